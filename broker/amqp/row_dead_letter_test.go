package amqp_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/warrenmq/warren/broker/amqp/amqptest"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// headers returns a delivery's headers as Go values.
func headers(ch *amqptest.Channel, d *amqptest.Delivery) amqp091.Map {
	ch.T.Helper()
	m, err := d.Headers().Map()
	if err != nil {
		ch.T.Fatal(err)
	}
	return m
}

// deaths returns the x-death entries of a delivery without their times, which are checked.
func deaths(ch *amqptest.Channel, d *amqptest.Delivery) (entries []amqp091.Map) {
	ch.T.Helper()
	list, _ := headers(ch, d)["x-death"].([]any)
	for _, e := range list {
		entry := e.(amqp091.Map)
		at, ok := entry["time"].(time.Time)
		if !ok || time.Since(at) > time.Minute || time.Since(at) < -time.Minute {
			ch.T.Fatalf("died at %v", entry["time"])
		}
		delete(entry, "time")
		entries = append(entries, entry)
	}
	return entries
}

func expectDeaths(ch *amqptest.Channel, d *amqptest.Delivery, want ...amqp091.Map) {
	ch.T.Helper()
	if got := deaths(ch, d); !reflect.DeepEqual(got, want) {
		ch.T.Fatalf("x-death is\n%v, want\n%v", got, want)
	}
}

// await takes the next message of a queue, which may be on its way there.
func await(ch *amqptest.Channel, queue string) *amqptest.Delivery {
	ch.T.Helper()
	for until := time.Now().Add(amqptest.Patience); time.Now().Before(until); {
		if d := ch.Get(queue, true); d != nil {
			return d
		}
	}
	ch.T.Fatalf("nothing came into queue %s", queue)
	return nil
}

// reject takes the next message of a queue and rejects it.
func reject(ch *amqptest.Channel, queue string) {
	ch.T.Helper()
	for until := time.Now().Add(amqptest.Patience); time.Now().Before(until); {
		if d := ch.Get(queue, false); d != nil {
			ch.Send(&amqp091.BasicReject{DeliveryTag: d.Tag})
			return
		}
	}
	ch.T.Fatalf("nothing came into queue %s", queue)
}

func TestRow209Reasons(t *testing.T) {
	_, ch := begin(t)
	dead := ch.Queue(name(t, "dead"))
	died := func(d *amqptest.Delivery, queue, reason string) {
		t.Helper()
		expectDeaths(ch, d, amqp091.Map{"count": int64(1), "reason": reason, "queue": queue, "exchange": "amq.direct", "routing-keys": []any{queue}})
		h := headers(ch, d)
		for _, which := range []string{"x-first-death-", "x-last-death-"} {
			if h[which+"reason"] != reason || h[which+"queue"] != queue || h[which+"exchange"] != "amq.direct" {
				t.Fatalf("the headers are %v", h)
			}
		}
		if d.Exchange != "" || d.Key != dead || d.Redelivered {
			t.Fatalf("it came from exchange %q with key %q, redelivered %v", d.Exchange, d.Key, d.Redelivered)
		}
	}
	to := func(suffix string, more amqp091.Map) string {
		arguments := amqp091.Map{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
		for k, v := range more {
			arguments[k] = v
		}
		q := declared(ch, suffix, arguments)
		ch.Bind(q, "amq.direct", q, nil)
		ch.Put("amq.direct", q, suffix)
		return q
	}
	for _, kind := range []string{"classic", "quorum"} {
		rejected := to("rejected"+kind, amqp091.Map{"x-queue-type": kind})
		reject(ch, rejected)
		died(await(ch, dead), rejected, "rejected")
		nacked := to("nacked"+kind, amqp091.Map{"x-queue-type": kind})
		ch.Nack(ch.MustGet(nacked).Tag, false, false)
		died(await(ch, dead), nacked, "rejected")
		expired := to("expired"+kind, amqp091.Map{"x-queue-type": kind, "x-message-ttl": int32(20)})
		died(await(ch, dead), expired, "expired")
	}
	limited := to("limited", amqp091.Map{"x-delivery-limit": int32(0)})
	ch.Nack(ch.MustGet(limited).Tag, false, true)
	died(await(ch, dead), limited, "delivery_limit")
}

func TestRow210RoutingKeys(t *testing.T) {
	_, ch := begin(t)
	x := ch.Exchange(name(t, "dlx"), "direct")
	var byKey []string
	for _, key := range []string{"key", "cc", "bcc", "new"} {
		q := ch.Queue(name(t, key))
		ch.Bind(q, x, key, nil)
		byKey = append(byKey, q)
	}
	own, other := declared(ch, "own", amqp091.Map{"x-dead-letter-exchange": x}), declared(ch, "other", amqp091.Map{"x-dead-letter-exchange": x, "x-dead-letter-routing-key": "new"})
	for _, q := range []string{own, other} {
		ch.Bind(q, "amq.direct", "key", nil)
	}
	ch.PutWith("amq.direct", "key", "m", amqp091.Properties{Headers: amqp091.Map{"CC": []any{"cc"}, "BCC": []any{"bcc"}, "mine": "kept"}, Priority: 7, CorrelationID: "c"})
	reject(ch, own)
	for i, q := range byKey[:3] {
		d := await(ch, q)
		expectDeaths(ch, d, amqp091.Map{"count": int64(1), "reason": "rejected", "queue": own, "exchange": "amq.direct", "routing-keys": []any{"key", "cc"}})
		h := headers(ch, d)
		if d.Key != "key" || d.Exchange != x || !reflect.DeepEqual(h["CC"], []any{"cc"}) || h["BCC"] != nil || h["mine"] != "kept" {
			t.Fatalf("in queue %d: key %q, exchange %q, headers %v", i, d.Key, d.Exchange, h)
		}
		if p, _ := d.Properties.Byte(amqp091.PropertyPriority); p != 7 {
			t.Fatalf("the priority became %d", p)
		}
	}
	reject(ch, other)
	d := await(ch, byKey[3])
	if h := headers(ch, d); d.Key != "new" || h["CC"] != nil || h["BCC"] != nil || h["mine"] != "kept" {
		t.Fatalf("key %q, headers %v", d.Key, h)
	}
	for _, q := range byKey {
		ch.ExpectDepth(q, 0)
	}
}

func TestRow211Expiration(t *testing.T) {
	_, ch := begin(t)
	dead := declared(ch, "dead", nil)
	q := declared(ch, "q", amqp091.Map{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead})
	ch.PutWith("", q, "m", lasting(20*time.Millisecond))
	d := await(ch, dead)
	expectDeaths(ch, d, amqp091.Map{"count": int64(1), "reason": "expired", "queue": q, "exchange": "", "routing-keys": []any{q}, "original-expiration": "20"})
	if d.Properties.Has(amqp091.PropertyExpiration) {
		t.Fatal("the expiration is there still")
	}
}

func TestRow212SecondDeath(t *testing.T) {
	_, ch := begin(t)
	a, b := name(t, "a"), name(t, "b")
	declared(ch, "a", amqp091.Map{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": b})
	declared(ch, "b", amqp091.Map{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": a})
	ch.Put("", a, "m")
	reject(ch, a)
	reject(ch, b)
	reject(ch, a)
	expectDeaths(ch, await(ch, b), amqp091.Map{"count": int64(2), "reason": "rejected", "queue": a, "exchange": "", "routing-keys": []any{a}},
		amqp091.Map{"count": int64(1), "reason": "rejected", "queue": b, "exchange": "", "routing-keys": []any{b}})
}

func TestRow213Chain(t *testing.T) {
	_, ch := begin(t)
	a, b, c := name(t, "a"), name(t, "b"), declared(ch, "c", nil)
	declared(ch, "a", amqp091.Map{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": b})
	declared(ch, "b", amqp091.Map{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": c, "x-message-ttl": int32(20)})
	ch.Put("", a, "m")
	reject(ch, a)
	d := await(ch, c)
	expectDeaths(ch, d, amqp091.Map{"count": int64(1), "reason": "expired", "queue": b, "exchange": "", "routing-keys": []any{b}},
		amqp091.Map{"count": int64(1), "reason": "rejected", "queue": a, "exchange": "", "routing-keys": []any{a}})
	if h := headers(ch, d); h["x-first-death-queue"] != a || h["x-first-death-reason"] != "rejected" || h["x-last-death-queue"] != b || h["x-last-death-reason"] != "expired" {
		t.Fatalf("the headers are %v", h)
	}
}

func TestRow214Cycles(t *testing.T) {
	_, ch := begin(t)
	// A publisher's x-death says nothing about where the message was.
	forged := amqp091.Properties{Headers: amqp091.Map{"x-death": []any{amqp091.Map{"queue": name(t, "dead"), "reason": "expired", "count": int64(1)}}}}
	dead := declared(ch, "dead", nil)
	loop, way := name(t, "loop"), name(t, "way")
	declared(ch, "loop", amqp091.Map{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": loop, "x-message-ttl": int32(20)})
	ch.Put("", loop, "goes")
	ch.ExpectDepth(loop, 0)
	declared(ch, "way", amqp091.Map{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead, "x-message-ttl": int32(20)})
	ch.PutWith("", way, "forged", forged)
	await(ch, dead)
	again := name(t, "again")
	declared(ch, "again", amqp091.Map{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": again})
	ch.Put("", again, "stays")
	for range 3 {
		reject(ch, again)
	}
	expectDeaths(ch, await(ch, again), amqp091.Map{"count": int64(3), "reason": "rejected", "queue": again, "exchange": "", "routing-keys": []any{again}})
	ch.ExpectDepth(loop, 0)
}

func TestRow215MissingExchange(t *testing.T) {
	_, ch := begin(t)
	x := name(t, "dlx")
	most := declared(ch, "most", amqp091.Map{"x-dead-letter-exchange": x})
	least := declared(ch, "least", amqp091.Map{"x-queue-type": "quorum", "x-dead-letter-exchange": x, "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"})
	for _, q := range []string{most, least} {
		ch.Put("", q, q)
		reject(ch, q)
		ch.ExpectDepth(q, 0)
	}
	dead := declared(ch, "dead", nil)
	marker := declared(ch, "marker", amqp091.Map{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead})
	ch.Put("", marker, "marker")
	reject(ch, marker)
	if d := await(ch, dead); d.Text() != "marker" { // behind the others
		t.Fatalf("in came %q", d.Text())
	}
	ch.Exchange(x, "fanout")
	defer func() { ch.Call(&amqp091.ExchangeDelete{Exchange: x}) }()
	ch.Bind(dead, x, "", nil)
	if d := await(ch, dead); d.Text() != least { // tried again
		t.Fatalf("in came %q", d.Text())
	}
	ch.ExpectDepth(dead, 0)
}

func TestRow218DeliveryLimit(t *testing.T) {
	c, ch := begin(t)
	dead := declared(ch, "dead", nil)
	for _, limit := range []int32{1, 3} {
		q := declared(ch, fmt.Sprint(limit), amqp091.Map{"x-queue-type": "quorum", "x-delivery-limit": limit, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead})
		ch.Put("", q, "m")
		for n := range limit + 1 {
			other := c.Channel(uint16(2 + n))
			d := other.MustGet(q)
			if count := headers(ch, d)["x-delivery-count"]; n > 0 && count != int64(n) {
				t.Fatalf("at return %d the count is %v", n, count)
			}
			if n%2 == 0 {
				other.Nack(d.Tag, false, true)
			}
			other.Leave()
		}
		expectDeaths(ch, await(ch, dead), amqp091.Map{"count": int64(1), "reason": "delivery_limit", "queue": q, "exchange": "", "routing-keys": []any{q}})
		ch.ExpectDepth(q, 0)
	}
}

func TestRow219WhatIsNoDeath(t *testing.T) {
	_, ch := begin(t)
	dead := declared(ch, "dead", nil)
	arguments := amqp091.Map{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
	purged, deleted := declared(ch, "purged", arguments), declared(ch, "deleted", arguments)
	arguments["x-expires"] = int32(50)
	gone := declared(ch, "gone", arguments)
	for _, q := range []string{purged, deleted, gone} {
		ch.Put("", q, "m")
	}
	ch.Call(&amqp091.QueuePurge{Queue: purged})
	ch.Call(&amqp091.QueueDelete{Queue: deleted})
	ch.ExpectGone(gone)
	marker := declared(ch, "marker", amqp091.Map{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead})
	ch.Put("", marker, "marker")
	reject(ch, marker)
	if d := await(ch, dead); d.Text() != "marker" {
		t.Fatalf("in came %q", d.Text())
	}
}

func TestDeadLettersKeepOrderAndLargeBodies(t *testing.T) {
	c, ch := begin(t)
	dead := declared(ch, "dead", nil)
	q := declared(ch, "q", amqp091.Map{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead})
	var bodies []string
	for i := range 1000 {
		bodies = append(bodies, fmt.Sprint(i))
	}
	large := make([]byte, 3<<20)
	for i := range large {
		large[i] = byte(i % 251)
	}
	bodies[500] = string(large)
	c.Fill(q, bodies...)
	var last uint64
	for range bodies {
		last = ch.MustGet(q).Tag
	}
	ch.Nack(last, true, false)
	ch.ExpectDepth(dead, 1000)
	if got := ch.Drain(dead); !slices.Equal(got, bodies) {
		t.Fatal("the dead letters are not what died, or in another order")
	}
}
