package fsm

import (
	"fmt"
	"strings"
	"testing"
)

func durableQueue(name string, arguments ...any) PutQueue {
	return PutQueue{Vhost: 1, Name: name, Durable: true, Arguments: table(arguments...)}
}

func quorumQueue(name string, arguments ...any) PutQueue {
	return durableQueue(name, append([]any{"x-queue-type", "quorum"}, arguments...)...)
}

func classicQueue(name string, arguments ...any) PutQueue {
	return durableQueue(name, append([]any{"x-queue-type", "classic"}, arguments...)...)
}

func lockedQueue(name string) string {
	return "405 RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '" + name + "' in vhost '/'. It could be originally declared on another connection or the exclusive property value does not match that of the original declaration."
}

func unequal(argument, queue, received, current string) string {
	return failed406 + fmt.Sprintf("inequivalent arg '%s' for queue '%s' in vhost '/': received %s but current is %s", argument, queue, received, current)
}

func TestRow95ReservedQueueNames(t *testing.T) {
	w := newWorld(t)
	w.answers(answer{durableQueue("amq.x"), "403 ACCESS_REFUSED - queue name 'amq.x' contains reserved prefix 'amq.*'"},
		answer{durableQueue("amq.rabbitmq.reply-to"), "403 ACCESS_REFUSED - queue name 'amq.rabbitmq.reply-to' contains reserved prefix 'amq.*'"},
		answer{durableQueue("amq.gen-1"), ""}) // the broker made that one
}

func TestRow98QueueEquivalence(t *testing.T) {
	w := newWorld(t)
	w.do(durableQueue("q", "x-max-length", int32(7), "x-dead-letter-exchange", "d", "x-single-active-consumer", true, "other", "1"))
	change := func(f func(*PutQueue), arguments ...any) PutQueue {
		c := durableQueue("q", append([]any{"x-max-length", int32(7), "x-dead-letter-exchange", "d", "x-single-active-consumer", true}, arguments...)...)
		if f != nil {
			f(&c)
		}
		return c
	}
	w.answers(answer{change(nil), ""}, answer{change(nil, "other", "2"), ""},
		answer{change(func(c *PutQueue) { c.Durable, c.AutoDelete = false, true }), unequal("durable", "q", "'false'", "'true'")},
		answer{change(func(c *PutQueue) { c.AutoDelete, c.Arguments = true, nil }), unequal("auto_delete", "q", "'true'", "'false'")},
		answer{change(nil, "x-expires", int32(1)), unequal("x-expires", "q", "the value '1' of type 'signedint'", "none")},
		answer{change(nil, "x-queue-mode", "no such mode"), unequal("x-queue-mode", "q", "the value 'no such mode' of type 'longstr'", "none")},
		answer{durableQueue("q", "x-max-length", int32(7), "x-dead-letter-exchange", "d"), unequal("x-single-active-consumer", "q", "none", "the value 'true' of type 'bool'")},
		answer{durableQueue("q", "x-max-length", int32(7), "x-dead-letter-exchange", "e"), unequal("x-dead-letter-exchange", "q", "'e'", "'d'")},
		answer{durableQueue("q", "x-max-length", "7", "x-dead-letter-exchange", "d"), unequal("x-max-length", "q", "'7'", "'7'")})
}

func TestRow99And102And103And104ExclusiveQueues(t *testing.T) {
	w := newWorld(t)
	mine, other := Session{1, 1}, Session{1, 2}
	exclusive := func(owner Session, durable, autoDelete bool) PutQueue {
		return PutQueue{Vhost: 1, Name: "x", Exclusive: true, Durable: durable, AutoDelete: autoDelete, Owner: owner}
	}
	w.do(exclusive(mine, true, false), durableQueue("q"))
	q, _ := w.Queue(1, "x")
	w.is("stored as durable", q.Durable, false)
	bind := bindQueue("amq.direct", "x", "k")
	bind.Session = mine
	w.answers(answer{exclusive(mine, false, false), ""}, answer{exclusive(mine, true, false), ""}, answer{exclusive(mine, false, true), unequal("auto_delete", "x", "'true'", "'false'")},
		answer{exclusive(other, true, true), lockedQueue("x")}, answer{PutQueue{Vhost: 1, Name: "x", Durable: true, Owner: mine}, lockedQueue("x")},
		answer{PutQueue{Vhost: 1, Name: "q", Durable: true, Exclusive: true, Owner: mine}, lockedQueue("q")},
		answer{bind, ""}, answer{bindQueue("amq.direct", "x", "l"), lockedQueue("x")}, answer{DeleteQueue{Vhost: 1, Name: "x", Session: other}, lockedQueue("x")},
		answer{DeleteQueue{Vhost: 1, Name: "x", Session: other, IfEmpty: true}, lockedQueue("x")})
	w.is("others may publish to it", w.sent("amq.direct", "k"), uint32(1))
	w.answers(answer{DeleteBinding(bindQueue("amq.direct", "x", "k")), lockedQueue("x")}, // by another connection
		answer{DeleteBinding(bindQueue("amq.direct", "x", "missing")), ""}, answer{DeleteBinding(bind), ""})
	w.is("its owner may unbind it", w.sent("amq.direct", "k"), uint32(0))
	w.answers(answer{DeleteQueue{Vhost: 1, Name: "x", Session: mine}, ""})
}

func TestRow105ExclusiveQueueGoesWithItsConnection(t *testing.T) {
	w := newWorld(t)
	w.do(PutQueue{Vhost: 1, Name: "x", Exclusive: true, Owner: Session{1, 1}}, autoDelete("a"), PutBinding{Vhost: 1, Source: "a", Destination: "x", Session: Session{1, 1}})
	w.do(ClientGone{Session: Session{1, 2}})
	w.is("another connection's end", w.exchanges(), "a")
	w.do(ClientGone{Session: Session{1, 1}})
	w.is("queues", w.Totals().Queues, 0)
	w.is("its auto-delete exchange follows", w.exchanges(), "")
}

func TestRow106AutoDeleteQueue(t *testing.T) {
	w := newWorld(t)
	q := w.one(PutQueue{Vhost: 1, Name: "a", AutoDelete: true}).Queue
	w.do(ConsumerPresence{Queue: q})
	w.is("never had a consumer", w.Totals().Queues, 1)
	w.do(ConsumerPresence{Queue: q, Present: true}, ConsumerPresence{Queue: q})
	w.is("lost its last consumer", w.Totals().Queues, 0)
}

func TestRow100And101IntegerWidthsAndTypes(t *testing.T) {
	w := newWorld(t)
	w.do(durableQueue("q", "x-max-length", int32(7)), durableQueue("c", "x-queue-type", "classic"), quorumQueue("k"))
	none, quorum := "none", "the value 'quorum' of type 'longstr'"
	wide := durableQueue("q")
	wide.Arguments = []byte("\x0cx-max-lengthL\x00\x00\x00\x00\x00\x00\x00\x07")
	w.answers(answer{durableQueue("q", "x-max-length", int64(7)), ""}, answer{durableQueue("q", "x-max-length", int8(7)), ""}, answer{wide, ""},
		answer{durableQueue("c"), ""}, answer{classicQueue("q", "x-max-length", int32(7)), ""}, answer{classicQueue("c"), ""}, answer{quorumQueue("k"), ""},
		answer{durableQueue("k"), unequal("x-queue-type", "k", none, quorum)}, answer{classicQueue("k"), unequal("x-queue-type", "k", "'classic'", "'quorum'")},
		answer{quorumQueue("q", "x-max-length", int32(7)), unequal("x-queue-type", "q", quorum, none)}, answer{quorumQueue("c"), unequal("x-queue-type", "c", "'quorum'", "'classic'")},
		answer{quorumQueue("k", "x-max-priority", int32(1)), ""}, // foreign to the type: not compared
		answer{durableQueue("q", "x-max-length", int32(7), "x-max-priority", int32(1)), unequal("x-max-priority", "q", "the value '1' of type 'signedint'", none)})
}

func TestRow107And108Bindings(t *testing.T) {
	w := newWorld(t)
	w.queue("q")
	w.answers(answer{bindQueue("none", "q", ""), "404 NOT_FOUND - no exchange 'none' in vhost '/'"}, answer{bindQueue("none", "none", ""), "404 NOT_FOUND - no exchange 'none' in vhost '/'"},
		answer{bindQueue("amq.topic", "none", ""), "404 NOT_FOUND - no queue 'none' in vhost '/'"},
		answer{bindQueue("amq.topic", "q", "k"), ""}, answer{bindQueue("amq.topic", "q", "k"), ""},
		answer{bindQueue("amq.headers", "q", "", "a", "1", "b", "2"), ""}, answer{bindQueue("amq.headers", "q", "", "b", "2", "a", "1"), ""})
	w.is("bindings", len(w.Bindings(1)), 2)
	w.is("one copy", w.sent("amq.topic", "k"), uint32(1))
	w.answers(answer{DeleteBinding(bindQueue("none", "q", "")), ""}, answer{DeleteBinding(bindQueue("amq.topic", "none", "")), ""}, answer{DeleteBinding(bindQueue("amq.topic", "q", "l")), ""},
		answer{DeleteBinding(bindQueue("amq.topic", "q", "k", "a", "1")), ""})
	w.is("bindings", len(w.Bindings(1)), 2)
	w.swapped()
	w.answers(answer{DeleteBinding(bindQueue("amq.headers", "q", "", "b", "2", "a", "1")), ""}, answer{DeleteBinding(bindQueue("amq.topic", "q", "k")), ""})
	w.is("bindings", len(w.Bindings(1)), 0)
}

func TestRow110To114PurgeAndDelete(t *testing.T) {
	w := newWorld(t)
	q := w.queue("q")
	w.publish("q", "a", "b", "c")
	w.is("purge leaves unacknowledged messages", w.one(Purge{Queue: q, Held: []Run{{1, 1}}}).Messages, uint64(2))
	w.publish("q", "d")
	w.answers(answer{DeleteQueue{Vhost: 1, Name: "none"}, ""}, answer{DeleteQueue{Vhost: 1, Name: "none", IfEmpty: true}, ""},
		answer{DeleteQueue{Vhost: 1, Name: "q", IfEmpty: true, Held: []Run{{1, 1}}}, failed406 + "queue 'q' in vhost '/' not empty"})
	w.is("delete counts ready messages", w.one(DeleteQueue{Vhost: 1, Name: "q", Held: []Run{{1, 1}}}).Messages, uint64(1))
	w.is("ack for a deleted queue", w.one(Settle{Queue: q, Runs: []Run{{1, 1}}}), Result{})
	w.is("a missing queue", w.one(DeleteQueue{Vhost: 1, Name: "q"}), Result{})
}

func TestRow115LongNames(t *testing.T) {
	w := newWorld(t)
	name := strings.Repeat("n", 255)
	w.answers(answer{durableQueue(name), ""}, answer{exchangeNamed(name, topic), ""}, answer{bindQueue(name, name, name), ""})
	w.is("routed", w.sent(name, name), uint32(1))
}

func TestRow116QuorumProperties(t *testing.T) {
	text := func(property string) string {
		return failed406 + "invalid property '" + property + "' for queue 'n' in vhost '/'"
	}
	change := func(f func(*PutQueue)) PutQueue {
		c := quorumQueue("n")
		f(&c)
		return c
	}
	newWorld(t).answers(answer{change(func(c *PutQueue) { c.Durable = false }), text("non-durable")}, answer{change(func(c *PutQueue) { c.Exclusive = true }), text("exclusive-owner")},
		answer{change(func(c *PutQueue) { c.AutoDelete = true }), text("auto-delete")},
		answer{quorumQueue("amq.gen-1"), failed406 + "Cannot declare a server-named queue for type rabbit_quorum_queue"}, answer{quorumQueue("n"), ""})
}

func TestRow117To122QueueArguments(t *testing.T) {
	w := newWorld(t)
	const period = int64(315_360_000_001)
	const notText = "{unacceptable_type,signedint}"
	for _, c := range []struct {
		name  string
		value any
		want  string // the reason, or "" when it is allowed
	}{
		{"x-queue-type", "stream", `"unsupported queue type 'stream'"`}, {"x-queue-type", "Quorum", `"unsupported queue type 'Quorum'"`}, {"x-queue-type", int32(1), notText},
		{"x-message-ttl", int32(0), ""}, {"x-message-ttl", period - 1, ""}, {"x-message-ttl", period, "{value_too_large,315360000001}"}, {"x-message-ttl", int32(-1), "{value_negative,-1}"},
		{"x-message-ttl", "10", `"expected integer, got longstr"`}, {"x-message-ttl", true, `"expected integer, got bool"`}, {"x-message-ttl", nil, `"expected integer, got void"`},
		{"x-expires", int32(0), "{value_zero,0}"}, {"x-expires", int8(1), ""}, {"x-expires", int32(-5), "{value_negative,-5}"}, {"x-expires", period, "{value_too_large,315360000001}"},
		{"x-max-length", int32(0), ""}, {"x-max-length", int32(-1), "{value_negative,-1}"}, {"x-max-length", "1", `"expected integer, got longstr"`},
		{"x-max-length-bytes", int64(1 << 50), ""}, {"x-max-length-bytes", int32(-1), "{value_negative,-1}"},
		{"x-overflow", "drop-head", ""}, {"x-overflow", "reject-publish-dlx", ""}, {"x-overflow", "drop", "invalid_overflow"}, {"x-overflow", int32(1), notText},
		{"x-dead-letter-exchange", "", ""}, {"x-dead-letter-routing-key", "k", "routing_key_but_no_dlx_defined"}, {"x-dead-letter-routing-key", int32(1), notText},
		{"x-single-active-consumer", true, ""}, {"x-single-active-consumer", "true", "{unacceptable_type,longstr}"},
		{"x-max-priority", int32(255), ""}, {"x-max-priority", int32(0), ""}, {"x-max-priority", int32(256), "{max_value_exceeded,256}"}, {"x-max-priority", int32(-1), "{value_negative,-1}"},
		{"x-max-priority", "1", `"expected integer, got longstr"`},
		{"x-queue-mode", "lazy", ""}, {"x-queue-mode", "foo", `"unsupported queue mode 'foo'"`}, {"x-queue-version", int32(2), ""}, {"x-queue-version", int32(3), `"unsupported queue version '3'"`},
		{"x-queue-version", int32(0), `"unsupported queue version '0'"`}, {"x-queue-version", int32(-1), "{value_negative,-1}"},
		{"x-queue-master-locator", "min-masters", ""}, {"x-queue-leader-locator", "balanced", ""}, {"x-queue-leader-locator", "least-leaders", ""}, {"x-queue-leader-locator", "x", "invalid_queue_locator_arg"},
		{"unknown", int32(-1), ""}, {"x-unknown", nil, ""}, {"x-stream-offset", "first", ""},
		// known to quorum queues, and so to those without a type
		{"x-delivery-limit", int32(-1), ""}, {"x-delivery-limit", "many", ""}, {"x-dead-letter-strategy", "at-least-once", ""}, {"x-dead-letter-strategy", "never", "invalid_dlx_strategy"},
		{"x-quorum-initial-group-size", int32(0), "{value_zero,0}"}, {"x-quorum-initial-group-size", int32(3), ""}, {"x-max-in-memory-length", int32(-1), "{value_negative,-1}"}, {"x-max-in-memory-bytes", int32(1), ""},
		{"x-consumer-timeout", int32(-1), "{value_negative,-1}"}, {"x-consumer-disconnected-timeout", int32(0), ""}, {"x-delayed-retry-type", "failed", ""}, {"x-delayed-retry-type", "no", "invalid_delayed_retry_type"},
		{"x-delayed-retry-min", int32(1), ""}, {"x-delayed-retry-multiplier", int32(0), "{value_zero,0}"}, {"x-delayed-retry-multiplier", int32(1001), "{value_too_large,1001}"}, {"x-delayed-retry-max", "1", `"expected integer, got longstr"`},
	} {
		want := ""
		if c.want != "" {
			want = failed406 + "invalid arg '" + c.name + "' for queue 'n' in vhost '/': " + c.want
		}
		w.answers(answer{durableQueue("n", c.name, c.value), want}, answer{DeleteQueue{Vhost: 1, Name: "n"}, ""})
	}
	const foreign = failed406 + "invalid arg '%s' for queue 'n' in vhost '/' of queue type rabbit_%s_queue"
	for _, c := range []struct {
		command  PutQueue
		argument string
		kind     string
	}{
		{quorumQueue("n", "x-max-priority", int32(1)), "x-max-priority", "quorum"}, {quorumQueue("n", "x-queue-mode", "lazy"), "x-queue-mode", "quorum"}, {quorumQueue("n", "x-max-age", "1D"), "x-max-age", "quorum"},
		{quorumQueue("n", "x-queue-version", int32(1)), "x-queue-version", "quorum"}, {quorumQueue("n", "x-queue-master-locator", "x"), "x-queue-master-locator", "quorum"},
		{classicQueue("n", "x-delivery-limit", int32(1)), "x-delivery-limit", "classic"}, {classicQueue("n", "x-dead-letter-strategy", "at-most-once"), "x-dead-letter-strategy", "classic"},
		{classicQueue("n", "x-quorum-initial-group-size", int32(0)), "x-quorum-initial-group-size", "classic"}, {classicQueue("n", "x-consumer-timeout", int32(1)), "x-consumer-timeout", "classic"},
		{classicQueue("n", "x-delayed-retry-min", int32(1)), "x-delayed-retry-min", "classic"}, {durableQueue("n", "x-max-age", "1D"), "x-max-age", "classic"},
		{durableQueue("n", "x-stream-max-segment-size-bytes", int32(1)), "x-stream-max-segment-size-bytes", "classic"},
	} {
		w.answers(answer{c.command, fmt.Sprintf(foreign, c.argument, c.kind)})
	}
	w.answers(answer{durableQueue("n", "x-dead-letter-exchange", int32(1), "x-queue-type", "odd"), failed406 + "invalid type 'signedint' for arg 'x-dead-letter-exchange' in queue 'n' in vhost '/'"},
		answer{durableQueue("n", "x-max-priority", int32(9), "x-delivery-limit", int32(3), "x-dead-letter-exchange", "", "x-dead-letter-routing-key", "k"), ""}) // without a type all go together
	w.is("queues", w.Totals().Queues, 1)
}
