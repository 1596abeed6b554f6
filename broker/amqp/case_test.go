package amqp_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warrenmq/warren/broker/amqp/amqptest"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// The tests of these files are scenarios that users of brokers of this kind ran into.

// routed binds a queue to a topic exchange, publishes with each key and returns what came.
func routed(ch *amqptest.Channel, pattern string, keys ...string) []string {
	ch.T.Helper()
	x, q := ch.Exchange(name(ch.T, "x "+pattern), "topic"), ch.Queue(name(ch.T, "q "+pattern))
	ch.Bind(q, x, pattern, nil)
	for _, key := range keys {
		ch.Put(x, key, key)
	}
	ch.Call(&amqp091.ChannelFlow{Active: true})
	return ch.Drain(q)
}

func TestCaseTopicHash(t *testing.T) {
	_, ch := begin(t)
	for pattern, c := range map[string]struct{ keys, want []string }{
		"a.*.c.#": {[]string{"a.b.c", "a.b.c.d", "a.b.c.d.e", "a.b", "a.b.d", "a.c"}, []string{"a.b.c", "a.b.c.d", "a.b.c.d.e"}},
		"a.#.b":   {[]string{"a.b", "a..b", "a.x.b", "a.x.y.b", "ab", "a", "b", "a.b.c", "a.b.b"}, []string{"a.b", "a..b", "a.x.b", "a.x.y.b", "a.b.b"}},
		"#":       {[]string{"", "a", "a.b.c", "."}, []string{"", "a", "a.b.c", "."}},
	} {
		if got := routed(ch, pattern, c.keys...); !slices.Equal(got, c.want) {
			t.Errorf("%s got %q, want %q", pattern, got, c.want)
		}
	}
}

// TestCaseRouting: a table of patterns and keys, and what matching costs at its worst.
func TestCaseRouting(t *testing.T) {
	_, ch := begin(t)
	text, err := os.ReadFile("testdata/routing.json")
	if err != nil {
		t.Fatal(err)
	}
	var table struct{ Topic [][3]any }
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	keys := map[string][]string{} // of each pattern
	want := map[string][]string{}
	for _, row := range table.Topic {
		pattern, key := row[0].(string), row[1].(string)
		keys[pattern] = append(keys[pattern], key)
		if row[2].(bool) {
			want[pattern] = append(want[pattern], key)
		}
	}
	for pattern := range keys {
		if got := routed(ch, pattern, keys[pattern]...); !slices.Equal(got, want[pattern]) {
			t.Errorf("%q got %q, want %q", pattern, got, want[pattern])
		}
	}
	began := time.Now()
	if got := routed(ch, strings.TrimSuffix(strings.Repeat("#.a.", 30), "."), strings.Repeat("a.", 120)+"b"); len(got) != 0 {
		t.Errorf("got %q", got)
	}
	if d := time.Since(began); d > amqptest.Patience {
		t.Errorf("a hard pattern took %v", d)
	}
}

// TestCaseBindingsManyDelete: deleting a queue with thousands of bindings does not stop publishing.
func TestCaseBindingsManyDelete(t *testing.T) {
	c, ch := begin(t)
	x, q, live := ch.Exchange(name(t, "x"), "topic"), ch.Queue(name(t, "q")), ch.Queue(name(t, "live"))
	ch.Bind(live, x, "live", nil)
	binders := make([]*amqptest.Channel, 30) // side by side, since each bind waits for the disk
	for i := range 3000 {
		n := i % len(binders)
		if binders[n] == nil {
			binders[n] = c.Channel(uint16(100 + n))
		}
		binders[n].Send(&amqp091.QueueBind{Queue: q, Exchange: x, RoutingKey: fmt.Sprintf("k.%d.*", i), NoWait: true})
	}
	for _, b := range binders {
		b.Quiet()
	}
	publishing := dial(t).Channel(1)
	publishing.Confirm()
	other := c.Channel(2)
	deleted := false
	worst := time.Duration(0)
	n := uint64(0)
	for !deleted || n < 50 {
		if n == 10 {
			other.Send(&amqp091.QueueDelete{Queue: q})
		}
		n++
		began := time.Now()
		publishing.PutMandatory(x, "live", "m")
		if returned := publishing.Settled(n, n); len(returned) > 0 {
			t.Fatal("returned")
		}
		worst = max(worst, time.Since(began))
		if n >= 10 && !deleted {
			deleted = other.NextWithin(2, time.Millisecond) != nil
		}
	}
	ch.ExpectDepth(live, uint32(n))
	t.Logf("the longest of %d confirms took %v", n, worst.Round(time.Millisecond))
}

// binding of a headers exchange and what it is to get.
type binding struct {
	criteria amqp091.Map
	want     []string
}

func expectByHeaders(t *testing.T, bindings []binding, order []string, messages map[string]amqp091.Map) {
	_, ch := begin(t)
	x := ch.Exchange(name(t, "x"), "headers")
	for i, b := range bindings {
		ch.Bind(ch.Queue(name(t, fmt.Sprint(i))), x, "", b.criteria)
	}
	for _, text := range order {
		ch.PutWith(x, "any", text, amqp091.Properties{Headers: messages[text]})
	}
	ch.Call(&amqp091.ChannelFlow{Active: true})
	for i, b := range bindings {
		if got := ch.Drain(name(t, fmt.Sprint(i))); !slices.Equal(got, b.want) {
			t.Errorf("binding %v got %q, want %q", b.criteria, got, b.want)
		}
	}
}

func TestCaseHeadersTwoCriteria(t *testing.T) {
	expectByHeaders(t, []binding{
		{amqp091.Map{"x-match": "all", "type": "one", "v": int32(1)}, []string{"1"}},
		{amqp091.Map{"x-match": "all", "type": "two"}, []string{"2", "4"}},
		{amqp091.Map{"x-match": "any", "type": "two", "v": int32(1)}, []string{"1", "2", "4"}},
	}, []string{"1", "2", "3", "4"}, map[string]amqp091.Map{"1": {"type": "one", "v": int32(1), "extra": "e"}, "2": {"type": "two"}, "3": {"type": "one"},
		"4": {"type": "two", "v": int32(2)}})
}

func TestCaseHeadersXKeys(t *testing.T) {
	expectByHeaders(t, []binding{
		{amqp091.Map{"x-match": "all", "x-k": int32(1), "a": int32(1)}, []string{"a", "ax"}},
		{amqp091.Map{"x-match": "any-with-x", "x-k": int32(1)}, []string{"x", "ax"}},
		{amqp091.Map{"x-match": "all-with-x", "x-k": int32(1), "a": int32(1)}, []string{"ax"}},
	}, []string{"a", "x", "ax"}, map[string]amqp091.Map{"a": {"a": int32(1)}, "x": {"x-k": int32(1)}, "ax": {"x-k": int32(1), "a": int32(1)}})
}

func TestCaseAlternateExchange(t *testing.T) {
	_, ch := begin(t)
	ae, x, qa, qx := ch.Exchange(name(t, "ae"), "fanout"), ch.Exchange(name(t, "x"), "fanout"), ch.Queue(name(t, "qa")), ch.Queue(name(t, "qx"))
	y := withAlternate(ch, name(t, "y"), "direct", ae)
	ch.Bind(qa, ae, "", nil)
	ch.BindExchange(y, x, "")
	ch.Bind(qx, x, "", nil)
	ch.Confirm()
	ch.PutMandatory(x, "none", "1")
	ch.PutMandatory(y, "none", "2")
	if returned := ch.Settled(1, 2); len(returned) > 0 {
		t.Error("returned")
	}
	if got := ch.Drain(qx); !slices.Equal(got, []string{"1"}) {
		t.Errorf("QX has %q", got)
	}
	if got := ch.Drain(qa); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("QA has %q", got)
	}
}

func TestCaseRequeueOrder(t *testing.T) {
	c, ch := begin(t)
	for _, q := range bothKinds(ch, "") {
		c.Fill(q, "a", "b", "c", "d")
		ch.Nack(ch.MustGet(q).Tag, false, true)
		again := ch.MustGet(q)
		if again.Text() != "a" || !again.Redelivered {
			t.Fatalf("got %q, redelivered %v", again.Text(), again.Redelivered)
		}
		b, third := ch.MustGet(q), ch.MustGet(q)
		for _, d := range []*amqptest.Delivery{third, again, b} {
			ch.Send(&amqp091.BasicReject{DeliveryTag: d.Tag, Requeue: true})
		}
		ch.ExpectDepth(q, 4)
		if got := ch.Drain(q); !slices.Equal(got, []string{"a", "b", "c", "d"}) {
			t.Errorf("%s has %q", q, got)
		}
	}
}

func TestCaseAckZeroMultiple(t *testing.T) {
	c, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	ch.Ack(0, true)
	ch.Nack(0, true, true)
	c.Fill(q, "0", "1", "2", "3", "4")
	for range 5 {
		ch.MustGet(q)
	}
	ch.Ack(2, true)
	ch.Nack(0, true, true)
	ch.ExpectDepth(q, 3)
	ch.Call(&amqp091.TxSelect{})
	ch.Ack(0, true)
	ch.Call(&amqp091.TxCommit{})
	if got := ch.Drain(q); !slices.Equal(got, []string{"2", "3", "4"}) {
		t.Errorf("got %q", got)
	}
}

func TestCaseCancelKeepsUnacked(t *testing.T) {
	c, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	c.Fill(q, "0", "1", "2", "3")
	ch.Qos(2, false)
	ch.Consume(q, "t")
	first := ch.ExpectBodies("0", "1")[0]
	ch.Call(&amqp091.BasicCancel{ConsumerTag: "t"})
	ch.ExpectDepth(q, 2)
	ch.Ack(first.Tag, false)
	ch.Leave()
	ch.Reopen()
	for i, text := range []string{"1", "2", "3"} {
		if d := ch.MustGet(q); d.Text() != text || d.Redelivered != (i == 0) {
			t.Errorf("got %q, redelivered %v", d.Text(), d.Redelivered)
		}
	}
}

func TestCasePrefetchPerConsumer(t *testing.T) {
	c, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	c.Fill(q, strings.Split(strings.Repeat("m", 30), "")...)
	ch.Qos(4, false)
	ch.Consume(q, "four")
	held := map[string]int{}
	for range 4 {
		held[ch.Deliver().Consumer]++
	}
	ch.Qos(7, false)
	ch.Consume(q, "seven")
	for range 7 {
		held[ch.Deliver().Consumer]++
	}
	ch.ExpectDepth(q, 19)
	ch.Quiet()
	if held["four"] != 4 || held["seven"] != 7 {
		t.Fatal(held)
	}
}

func TestCasePublishDeletedQueue(t *testing.T) {
	c, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	ch.Confirm()
	ch.PutMandatory("", q, "1")
	ch.Settled(1, 1)
	c.Channel(2).Call(&amqp091.QueueDelete{Queue: q})
	ch.Put("", q, "2")
	ch.Settled(2, 2)
	ch.PutMandatory("", q, "3")
	ch.Expect(amqp091.BasicReturnID)
	ch.Settled(3, 3)
	ch.Put(name(t, "none"), q, "4")
	ch.ExpectClose(amqp091.NotFound, amqp091.BasicPublishID, "no exchange '"+name(t, "none")+"' in vhost '/'")
}

func TestCaseConfirmsEachOnce(t *testing.T) {
	_, ch := begin(t)
	x := ch.Exchange(name(t, "x"), "direct")
	queues := []string{ch.Queue(name(t, "1")), ch.Queue(name(t, "2")), ch.Queue(name(t, "3"))}
	for _, q := range queues {
		ch.Bind(q, x, "all", nil)
	}
	ch.Confirm()
	var b []byte
	for i := range 2000 {
		key := "all"
		if i%3 == 2 {
			key = "none"
		}
		b = ch.Message(b, &amqp091.BasicPublish{Exchange: []byte(x), RoutingKey: []byte(key)}, nil, []byte("m"))
	}
	ch.Raw(b)
	ch.Settled(1, 2000)
	for _, q := range queues {
		ch.ExpectDepth(q, 1334)
	}
	ch.Quiet()
}
