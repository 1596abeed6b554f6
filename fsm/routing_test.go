package fsm

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestHeadersMatching(t *testing.T) {
	one, two := table("a", "1"), table("a", "1", "b", "2", "x-c", "3")
	for _, c := range []struct {
		arguments, headers []byte
		want               bool
	}{
		{nil, nil, true}, {table("x-match", "all"), two, true}, {table("x-match", "any"), two, false}, {table("x-match", "any"), nil, false},
		{table("a", "1"), one, true}, {table("a", "1", "b", "2"), one, false}, {table("a", "1", "b", "2"), two, true},
		{table("a", "2"), one, false}, {table("a", "1"), nil, false},
		{table("x-match", "any", "a", "0", "b", "2"), two, true}, {table("x-match", "any", "a", "0", "b", "0"), two, false},
		{table("x-match", "all", "a", "1", "x-c", "0"), two, true}, {table("x-match", "any", "a", "0", "x-c", "3"), two, false},
		{table("x-match", "all-with-x", "a", "1", "x-c", "3"), two, true}, {table("x-match", "all-with-x", "a", "1", "x-c", "0"), two, false},
		{table("x-match", "any-with-x", "a", "0", "x-c", "3"), two, true}, {table("x-match", "any-with-x", "x-c", "0"), two, false},
		{table("a", nil), one, true}, {table("b", nil), one, false}, {table("a", nil), table("a", int32(7)), true},
		{table("a", "1"), table("a", nil), false}, {table("a", nil), table("a", nil), true},
		{table("n", int32(5)), table("n", int64(5)), true}, {table("n", int8(5)), table("n", int64(5)), true},
		{table("n", int64(1<<40)), table("n", int32(0)), false}, {table("n", int32(-1)), table("n", int8(-1)), true},
		{table("n", int32(1)), table("n", "1"), false}, {table("n", "1"), table("n", int32(1)), false},
		{table("n", int32(1)), table("n", true), false}, {table("t", true), table("t", true), true}, {table("t", true), table("t", false), false},
		{[]byte("\x01ff\x3f\x80\x00\x00"), []byte("\x01fd\x3f\xf0\x00\x00\x00\x00\x00\x00"), true}, // 1.0 as float and double
		{[]byte("\x01ff\x3f\x80\x00\x00"), table("f", int32(1)), false},
		{[]byte("\x01nu\xff\xff"), table("n", int32(65535)), true}, {[]byte("\x01ns\xff\xff"), table("n", int32(-1)), true},
	} {
		criteria, r := parseCriteria(c.arguments)
		if r.Code != OK {
			t.Fatal(r)
		}
		if got := criteria.match(messageHeaders(properties(c.headers, 2), nil)); got != c.want {
			t.Errorf("%q matches %q: %v", c.arguments, c.headers, got)
		}
	}
}

// TestRefusals compares codes and texts with RabbitMQ's.
func TestRefusals(t *testing.T) {
	w := newWorld(t)
	owner := Session{1, 1}
	w.do(PutQueue{Vhost: 1, Name: "q", Durable: true, Arguments: table("x-max-length", int32(5))},
		PutQueue{Vhost: 1, Name: "k", Durable: true, Arguments: table("x-queue-type", "quorum")},
		PutQueue{Vhost: 1, Name: "x", Exclusive: true, Owner: owner}, PutExchange{Vhost: 1, Name: "e", Type: fanout, Arguments: table("alternate-exchange", "ae")},
		PutExchange{Vhost: 1, Name: "h", Type: headers}, PutExchange{Vhost: 1, Name: "i", Type: fanout, Internal: true},
		PutBinding{Vhost: 1, Source: "e", Destination: "q"})
	const locked = "405 RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'x' in vhost '/'. It could be originally declared on another connection or the exclusive property value does not match that of the original declaration."
	queue := func(name string, arguments ...any) PutQueue {
		return PutQueue{Vhost: 1, Name: name, Durable: true, Arguments: table(arguments...)}
	}
	quorum := func(durable, autoDelete, exclusive bool) PutQueue {
		return PutQueue{Vhost: 1, Name: "n", Durable: durable, AutoDelete: autoDelete, Exclusive: exclusive, Arguments: table("x-queue-type", "quorum")}
	}
	for _, c := range []struct {
		command Command
		want    string
	}{
		{PutQueue{Vhost: 1, Name: "amq.q"}, "403 ACCESS_REFUSED - queue name 'amq.q' contains reserved prefix 'amq.*'"},
		{PutExchange{Vhost: 1, Name: "amq.e", Type: direct}, "403 ACCESS_REFUSED - exchange name 'amq.e' contains reserved prefix 'amq.*'"},
		{PutExchange{Vhost: 1, Type: direct}, "403 ACCESS_REFUSED - operation not permitted on the default exchange"},
		{DeleteExchange{Vhost: 1}, "403 ACCESS_REFUSED - operation not permitted on the default exchange"},
		{PutBinding{Vhost: 1, Destination: "q"}, "403 ACCESS_REFUSED - operation not permitted on the default exchange"},
		{DeleteBinding{Vhost: 1, Destination: "q"}, "403 ACCESS_REFUSED - operation not permitted on the default exchange"},
		{DeleteExchange{Vhost: 1, Name: "amq.topic"}, "403 ACCESS_REFUSED - deletion of system exchange 'amq.topic' in vhost '/' not allowed"},
		{&Publish{Vhost: 1, Exchange: "i"}, "403 ACCESS_REFUSED - cannot publish to internal exchange 'i' in vhost '/'"},
		{&Publish{Vhost: 1, Exchange: "none"}, "404 NOT_FOUND - no exchange 'none' in vhost '/'"},
		{PutBinding{Vhost: 1, Source: "none", Destination: "none"}, "404 NOT_FOUND - no exchange 'none' in vhost '/'"},
		{PutBinding{Vhost: 1, Source: "e", Destination: "none"}, "404 NOT_FOUND - no queue 'none' in vhost '/'"},
		{PutBinding{Vhost: 1, Source: "e", Kind: ToExchange, Destination: "none"}, "404 NOT_FOUND - no exchange 'none' in vhost '/'"},
		{DeleteBinding{Vhost: 1, Source: "none", Destination: "none"}, ""},
		{DeleteExchange{Vhost: 1, Name: "none"}, ""}, {DeleteQueue{Vhost: 1, Name: "none"}, ""},
		{PutQueue{Vhost: 1, Name: "x", Exclusive: true, Owner: Session{1, 2}}, locked}, {PutQueue{Vhost: 1, Name: "x", Owner: owner}, locked},
		{PutQueue{Vhost: 1, Name: "x", Durable: true, Exclusive: true, Owner: owner}, ""},
		{PutBinding{Vhost: 1, Source: "e", Destination: "x"}, locked}, {DeleteQueue{Vhost: 1, Name: "x"}, locked},
		{DeleteBinding{Vhost: 1, Source: "e", Destination: "x"}, ""},
		{PutQueue{Vhost: 1, Name: "q"}, "406 PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'q' in vhost '/': received 'false' but current is 'true'"},
		{PutQueue{Vhost: 1, Name: "q", Durable: true, AutoDelete: true}, "406 PRECONDITION_FAILED - inequivalent arg 'auto_delete' for queue 'q' in vhost '/': received 'true' but current is 'false'"},
		{queue("q"), "406 PRECONDITION_FAILED - inequivalent arg 'x-max-length' for queue 'q' in vhost '/': received none but current is the value '5' of type 'signedint'"},
		{queue("q", "x-max-length", int64(6)), "406 PRECONDITION_FAILED - inequivalent arg 'x-max-length' for queue 'q' in vhost '/': received '6' but current is '5'"},
		{queue("q", "x-max-length", int64(5)), ""}, {queue("q", "x-max-length", int8(5), "x-queue-type", "classic", "of-no-meaning", "1"), ""},
		{queue("k"), "406 PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 'k' in vhost '/': received none but current is the value 'quorum' of type 'longstr'"},
		{PutExchange{Vhost: 1, Name: "e", Type: topic}, "406 PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'e' in vhost '/': received 'topic' but current is 'fanout'"},
		{PutExchange{Vhost: 1, Name: "e", Type: fanout, Durable: true}, "406 PRECONDITION_FAILED - inequivalent arg 'durable' for exchange 'e' in vhost '/': received 'true' but current is 'false'"},
		{PutExchange{Vhost: 1, Name: "e", Type: fanout}, "406 PRECONDITION_FAILED - inequivalent arg 'alternate-exchange' for exchange 'e' in vhost '/': received none but current is the value 'ae' of type 'longstr'"},
		{PutExchange{Vhost: 1, Name: "n", Type: "odd"}, "503 COMMAND_INVALID - unknown exchange type 'odd'"},
		{PutExchange{Vhost: 1, Name: "n"}, "503 COMMAND_INVALID - invalid exchange type ''"},
		{DeleteExchange{Vhost: 1, Name: "e", IfUnused: true}, "406 PRECONDITION_FAILED - exchange 'e' in vhost '/' in use"},
		{queue("n", "x-queue-type", "stream"), `406 PRECONDITION_FAILED - invalid arg 'x-queue-type' for queue 'n' in vhost '/': "unsupported queue type 'stream'"`},
		{queue("n", "x-message-ttl", int32(-1)), "406 PRECONDITION_FAILED - invalid arg 'x-message-ttl' for queue 'n' in vhost '/': {value_negative,-1}"},
		{queue("n", "x-message-ttl", "5"), `406 PRECONDITION_FAILED - invalid arg 'x-message-ttl' for queue 'n' in vhost '/': "expected integer, got longstr"`},
		{queue("n", "x-expires", int32(0)), "406 PRECONDITION_FAILED - invalid arg 'x-expires' for queue 'n' in vhost '/': {value_zero,0}"},
		{queue("n", "x-max-priority", int32(256)), "406 PRECONDITION_FAILED - invalid arg 'x-max-priority' for queue 'n' in vhost '/': {max_value_exceeded,256}"},
		{queue("n", "x-dead-letter-routing-key", "k"), "406 PRECONDITION_FAILED - invalid arg 'x-dead-letter-routing-key' for queue 'n' in vhost '/': routing_key_but_no_dlx_defined"},
		{queue("n", "x-dead-letter-exchange", int32(1)), "406 PRECONDITION_FAILED - invalid type 'signedint' for arg 'x-dead-letter-exchange' in queue 'n' in vhost '/'"},
		{queue("n", "x-queue-type", "quorum", "x-max-priority", int32(1)), "406 PRECONDITION_FAILED - invalid arg 'x-max-priority' for queue 'n' in vhost '/' of queue type rabbit_quorum_queue"},
		{queue("n", "x-queue-type", "classic", "x-delivery-limit", int32(1)), "406 PRECONDITION_FAILED - invalid arg 'x-delivery-limit' for queue 'n' in vhost '/' of queue type rabbit_classic_queue"},
		{quorum(false, false, false), "406 PRECONDITION_FAILED - invalid property 'non-durable' for queue 'n' in vhost '/'"},
		{quorum(true, false, true), "406 PRECONDITION_FAILED - invalid property 'exclusive-owner' for queue 'n' in vhost '/'"},
		{quorum(true, true, false), "406 PRECONDITION_FAILED - invalid property 'auto-delete' for queue 'n' in vhost '/'"},
		{PutBinding{Vhost: 1, Source: "h", Destination: "q", Arguments: table("x-match", "foo")}, `406 PRECONDITION_FAILED - Invalid x-match field value <<"foo">>; expected all, any, all-with-x, or any-with-x`},
		{PutBinding{Vhost: 1, Source: "h", Destination: "q", Arguments: table("x-match", int32(1))}, "406 PRECONDITION_FAILED - Invalid x-match field type signedint (value 1); expected longstr"},
		{PutBinding{Vhost: 1, Source: "e", Destination: "q", Arguments: table("x-match", "foo")}, ""},
		{PutQueue{Vhost: 1, Name: "n", Arguments: []byte{9}}, "406 PRECONDITION_FAILED - the arguments are not a field table"},
		{PutQueue{Vhost: 1, Name: strings.Repeat("n", 256)}, "406 PRECONDITION_FAILED - a name of 256 bytes is longer than 255"},
		{PutQueue{Vhost: 77, Name: "n"}, "404 NOT_FOUND - no virtual host with number 77: it was deleted"},
		{DeleteVhost{Name: "none"}, "404 NOT_FOUND - no virtual host 'none'"},
	} {
		before := w.Check(c.command)
		queues := w.Totals().replicated()
		r := w.one(c.command)
		got := ""
		if r.Code != OK {
			got = fmt.Sprintf("%d %s", r.Code, r.Message)
			w.is("a refusal's effect", w.Totals().replicated(), queues)
		}
		if got != c.want {
			t.Errorf("%+v\n got %s\nwant %s", c.command, got, c.want)
		}
		switch c.command.(type) {
		case PutQueue, PutExchange, DeleteExchange:
			w.is("check beforehand", before, Result{Code: r.Code, Message: r.Message})
		}
	}
}

func TestAlternateExchangesAndCycles(t *testing.T) {
	w := newWorld(t)
	q, dead := w.queue("q"), w.queue("dead")
	w.do(PutExchange{Vhost: 1, Name: "a", Type: topic, Arguments: table("alternate-exchange", "b")},
		PutExchange{Vhost: 1, Name: "b", Type: direct, Arguments: table("alternate-exchange", "c")}, PutExchange{Vhost: 1, Name: "c", Type: fanout},
		PutBinding{Vhost: 1, Source: "a", Destination: "q", Key: "#.x"}, PutBinding{Vhost: 1, Source: "a", Destination: "q", Key: "x.#"},
		PutBinding{Vhost: 1, Source: "c", Destination: "dead"},
		PutBinding{Vhost: 1, Source: "c", Kind: ToExchange, Destination: "a"}) // a cycle, by way of alternates too
	publish := func(key string) uint32 {
		return w.one(&Publish{Vhost: 1, Exchange: "a", RoutingKey: key, Properties: properties(nil, 2), Body: []byte(key)}).Routed
	}
	w.is("two bindings to one queue", publish("x.x"), uint32(1))
	w.is("through two alternates", publish("none"), uint32(1))
	w.is("q", w.bodies(q), "x.x")
	w.is("dead", w.bodies(dead), "none")
	m, _, _ := w.Get(dead, 1)
	w.is("exchange of the message", m.Exchange, "a")
	w.do(DeleteExchange{Vhost: 1, Name: "c"})
	w.is("an alternate that is gone", publish("none"), uint32(0))
}

// TestTopicWorstCaseIsBounded counts the nodes that matching visits: at most words × nodes, whatever the keys are.
func TestTopicWorstCaseIsBounded(t *testing.T) {
	var root topicNode
	nodes := map[*topicNode]bool{&root: true}
	for i := range 40 {
		key := strings.TrimSuffix(strings.Repeat("#.a.", 1+i), ".")
		n := root.place(key)
		n.bindings = bindingList{{}}
		for ; n != nil; n = n.parent {
			nodes[n] = true
		}
	}
	r, visits := routing{}, 0
	key := strings.Repeat("a.", 127) + "b"
	r.match(&root, key)
	// Each step enters each node at most once; count them step by step.
	for i := range strings.Count(key, ".") + 2 {
		visits += len(r.match(&root, strings.Join(slices.Repeat([]string{"a"}, i), ".")))
	}
	if bound := (strings.Count(key, ".") + 2) * len(nodes); visits > bound {
		t.Errorf("%d visits, words × nodes are %d", visits, bound)
	}
	if got := r.match(&root, key); slices.ContainsFunc(got, func(n *topicNode) bool { return len(n.bindings) > 0 }) {
		t.Error("the worst case matches")
	}
}
