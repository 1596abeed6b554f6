package amqp_test

import (
	"testing"

	"github.com/warrenmq/warren/protocol/amqp091"
)

// The tests of this file are of what RabbitMQ does not have.

// identified are the properties of a message with an id.
func identified(id any) amqp091.Properties {
	return amqp091.Properties{Headers: amqp091.Map{"id": id}}
}

// TestDeduplicationHeader: a duplicate is confirmed, not returned and not routed; a queue's leaves the other queues alone.
func TestDeduplicationHeader(t *testing.T) {
	_, ch := begin(t)
	once := table(t, amqp091.Map{"x-deduplication-header": "id", "x-deduplication-size": int32(2)})
	e, f, q, other := name(t, "e"), name(t, "f"), name(t, "q"), name(t, "other")
	ch.Call(&amqp091.ExchangeDeclare{Exchange: e, Type: "fanout", Arguments: once})
	ch.Exchange(f, "fanout")
	ch.Declare(&amqp091.QueueDeclare{Queue: q, Durable: true, Arguments: once})
	ch.Queue(other)
	for _, source := range []string{e, f} {
		ch.Bind(q, source, "", nil)
		ch.Bind(other, source, "", nil)
	}
	ch.Confirm()
	for _, id := range []any{"1", "1", int32(1), int64(1)} {
		ch.PutMethod(&amqp091.BasicPublish{Exchange: []byte(e), Mandatory: true}, "m", identified(id))
	}
	if others := ch.Settled(1, 4); len(others) > 0 {
		t.Fatalf("besides the confirms came %+v", others)
	}
	ch.ExpectDepth(q, 2)
	ch.ExpectDepth(other, 2)
	ch.PutMethod(&amqp091.BasicPublish{Exchange: []byte(f), Mandatory: true}, "m", identified("1"))
	ch.PutMethod(&amqp091.BasicPublish{RoutingKey: []byte(q), Mandatory: true}, "m", identified("1"))
	if others := ch.Settled(5, 6); len(others) > 0 {
		t.Fatalf("besides the confirms came %+v", others)
	}
	ch.ExpectDepth(q, 2)
	ch.ExpectDepth(other, 3)
	for _, id := range []string{"2", "3", "1"} { // two values are remembered
		ch.PutWith("", q, "m", identified(id))
	}
	ch.Settled(7, 9)
	ch.ExpectDepth(q, 5)
	ch.Refused(&amqp091.ExchangeDeclare{Exchange: e, Type: "fanout"}, amqp091.PreconditionFailed,
		"inequivalent arg 'x-deduplication-header' for exchange '"+e+"' in vhost '/': received none but current is the value 'id' of type 'longstr'")
	ch.Refused(&amqp091.QueueDeclare{Queue: name(t, "bad"), Arguments: table(t, amqp091.Map{"x-deduplication-size": int32(2)})}, amqp091.PreconditionFailed,
		"invalid arg 'x-deduplication-size' for queue '"+name(t, "bad")+"' in vhost '/': \"it means nothing without x-deduplication-header\"")
}

// TestGroupKey: one group goes to one consumer at a time, in order; the next has it when the first has gone, beginning with what
// that one had.
func TestGroupKey(t *testing.T) {
	c, ch := begin(t)
	q := name(t, "q")
	ch.Declare(&amqp091.QueueDeclare{Queue: q, Durable: true, Arguments: table(t, amqp091.Map{"x-group-key": "customer"})})
	put := func(customer, body string) {
		ch.PutWith("", q, body, amqp091.Properties{Headers: amqp091.Map{"customer": customer}})
	}
	for _, body := range []string{"a1", "a2", "a3", "b1", "b2"} {
		put(body[:1], body)
	}
	one := dial(t)
	first, second := one.Channel(1), c.Channel(2)
	first.Qos(2, false)
	first.Consume(q, "first")
	held := first.ExpectBodies("a1", "a2")
	second.Consume(q, "second")
	got := second.ExpectBodies("b1", "b2")
	second.Quiet()
	first.Ack(held[0].Tag, false)
	first.ExpectBodies("a3")
	put("a", "a4")
	first.Quiet()
	second.Quiet()
	second.Ack(got[1].Tag, true)
	one.Cut()
	for i, d := range second.ExpectBodies("a2", "a3", "a4") {
		if d.Redelivered != (i < 2) {
			t.Errorf("%s is redelivered: %v", d.Text(), d.Redelivered)
		}
	}
	ch.Refused(&amqp091.QueueDeclare{Queue: name(t, "bad"), Arguments: table(t, amqp091.Map{"x-group-key": int32(1)})}, amqp091.PreconditionFailed,
		"invalid arg 'x-group-key' for queue '"+name(t, "bad")+"' in vhost '/': {unacceptable_type,signedint}")
	ch.Refused(&amqp091.QueueDeclare{Queue: name(t, "bad"), Arguments: table(t, amqp091.Map{"x-group-key": "h", "x-max-length": int32(1)})}, amqp091.PreconditionFailed,
		"invalid arg 'x-group-key' for queue '"+name(t, "bad")+"' in vhost '/': a queue with groups cannot have x-max-length")
}

// TestGroupByRoutingKey: a get holds the group of what it got.
func TestGroupByRoutingKey(t *testing.T) {
	c, ch := begin(t)
	q := ch.Declare(&amqp091.QueueDeclare{Queue: name(t, "q"), Durable: true, Arguments: table(t, amqp091.Map{"x-group-key": "routing-key"})}).Queue
	e := ch.Exchange(name(t, "e"), "fanout")
	ch.Bind(q, e, "", nil)
	for _, body := range []string{"a1", "a2", "b1"} {
		ch.Put(e, body[:1], body)
	}
	other := c.Channel(2)
	if d := ch.MustGet(q); d.Text() != "a1" {
		t.Fatalf("got %s", d.Text())
	}
	if d := other.MustGet(q); d.Text() != "b1" {
		t.Fatalf("got %s", d.Text())
	}
	if d := other.Get(q, false); d != nil {
		t.Fatalf("got %s while another has its group", d.Text())
	}
	if d := ch.MustGet(q); d.Text() != "a2" {
		t.Fatalf("got %s", d.Text())
	}
}

// TestConsumersAfterALeaderChange: single active, exclusive and prioritized consumers are decided anew by who comes back first;
// nothing of the old leader's stands in the way, and the next active one receives at once when the first goes.
func TestConsumersAfterALeaderChange(t *testing.T) {
	c := startTrio(t, nil)
	leader, through := c.leader(), c.followers()[0]
	conn, ch := c.dial(through)
	single := ch.Declare(&amqp091.QueueDeclare{Queue: "single", Durable: true, Arguments: table(t, sac)}).Queue
	alone, ranked := ch.Queue("alone"), ch.Queue("ranked")
	high := table(t, amqp091.Map{"x-priority": int32(5)})
	other := conn.Channel(2)
	ch.Consume(single, "one")
	other.Consume(single, "two")
	ch.ConsumeWith(&amqp091.BasicConsume{Queue: alone, ConsumerTag: "alone", Exclusive: true})
	conn.Fill(single, "1", "2")
	ch.ExpectBodies("1", "2")
	c.kill(leader)
	conn.ExpectEnd()

	back, two := c.dial(through) // the second comes first
	two.Consume(single, "two")
	for _, d := range two.ExpectBodies("1", "2") {
		if !d.Redelivered {
			t.Errorf("%s is not marked as redelivered", d.Text())
		}
	}
	one := back.Channel(2)
	one.Consume(single, "one")
	back.Fill(single, "3")
	two.Ack(two.ExpectBodies("3")[0].Tag, true)
	one.Quiet()
	two.Call(&amqp091.BasicCancel{ConsumerTag: "two"})
	back.Fill(single, "4")
	one.ExpectBodies("4")

	one.ConsumeWith(&amqp091.BasicConsume{Queue: alone, ConsumerTag: "alone", Exclusive: true})
	two.Refused(&amqp091.BasicConsume{Queue: alone}, amqp091.AccessRefused, "queue 'alone' in vhost '/' in exclusive use")
	two.Consume(ranked, "low")
	one.ConsumeWith(&amqp091.BasicConsume{Queue: ranked, ConsumerTag: "high", Arguments: high})
	back.Fill(ranked, "5", "6")
	one.ExpectBodies("5", "6")
	two.Quiet()
}
