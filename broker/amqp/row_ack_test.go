package amqp_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/warrenmq/warren/broker/amqp/amqptest"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// bothKinds declares a queue of each kind.
func bothKinds(ch *amqptest.Channel, suffix string) []string {
	ch.T.Helper()
	return []string{ch.Queue(name(ch.T, "K"+suffix)), ch.Declare(amqptest.Quorum(name(ch.T, "Q"+suffix))).Queue}
}

func TestRow181Tags(t *testing.T) {
	c, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	c.Fill(q, "1", "2", "3", "4", "5")
	if d := ch.MustGet(q); d.Tag != 1 {
		t.Fatalf("the first tag is %d", d.Tag)
	}
	if d := ch.Get(q, true); d.Tag != 2 {
		t.Fatalf("the second tag is %d", d.Tag)
	}
	ch.ConsumeWith(&amqp091.BasicConsume{Queue: q, ConsumerTag: "t", NoAck: true})
	for i, d := range ch.ExpectBodies("3", "4", "5") {
		if d.Tag != uint64(i+3) {
			t.Fatalf("delivery %d has tag %d", i+3, d.Tag)
		}
	}
	other := c.Channel(2)
	ch.Call(&amqp091.BasicCancel{ConsumerTag: "t"})
	c.Fill(q, "6")
	if d := other.MustGet(q); d.Tag != 1 {
		t.Fatalf("on another channel the tag is %d", d.Tag)
	}
}

// settlings are the ways to settle a delivery.
var settlings = map[string]func(tag uint64) amqp091.Method{
	"ack":    func(tag uint64) amqp091.Method { return &amqp091.BasicAck{DeliveryTag: tag} },
	"nack":   func(tag uint64) amqp091.Method { return &amqp091.BasicNack{DeliveryTag: tag, Requeue: true} },
	"reject": func(tag uint64) amqp091.Method { return &amqp091.BasicReject{DeliveryTag: tag, Requeue: true} },
}

func TestRow182UnknownTags(t *testing.T) {
	c, ch := begin(t)
	q, other := ch.Queue(name(t, "q")), c.Channel(2)
	c.Fill(q, "m")
	for kind, settle := range settlings {
		ch.Refused(settle(99), amqp091.PreconditionFailed, "unknown delivery tag 99")
		d := ch.MustGet(q)
		other.Refused(settle(d.Tag), amqp091.PreconditionFailed, "unknown delivery tag 1") // of another channel
		ch.Send(settle(d.Tag))
		ch.Refused(settle(d.Tag), amqp091.PreconditionFailed, "unknown delivery tag 1") // twice
		if kind == "ack" {
			c.Fill(q, "m")
		}
		ch.Get(q, true)
		ch.Refused(settle(1), amqp091.PreconditionFailed, "unknown delivery tag 1") // of no-ack
		c.Fill(q, "m")
	}
}

func TestRow183TagZero(t *testing.T) {
	c, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	ch.Ack(0, true)
	ch.Nack(0, true, true)
	ch.Quiet()
	c.Fill(q, "1", "2", "3")
	for range 3 {
		ch.MustGet(q)
	}
	ch.Nack(0, true, true)
	ch.ExpectDepth(q, 3)
	for range 3 {
		ch.MustGet(q)
	}
	ch.Ack(0, true)
	ch.Ack(0, true)
	ch.Leave()
	ch.Reopen()
	ch.ExpectDepth(q, 0)
	for _, settle := range settlings {
		ch.Refused(settle(0), amqp091.PreconditionFailed, "unknown delivery tag 0")
	}
}

func TestRow184MultipleOfUnknownTag(t *testing.T) {
	c, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	c.Fill(q, "1", "2", "3")
	for range 3 {
		ch.MustGet(q)
	}
	ch.Ack(2, false)
	ch.Refused(&amqp091.BasicAck{DeliveryTag: 2, Multiple: true}, amqp091.PreconditionFailed, "unknown delivery tag 2")
	ch.ExpectDepth(q, 2) // 1 and 3 came back
	ch.MustGet(q)
	ch.Refused(&amqp091.BasicNack{DeliveryTag: 5, Multiple: true}, amqp091.PreconditionFailed, "unknown delivery tag 5")
	ch.ExpectDepth(q, 2)
}

func TestRow185Discard(t *testing.T) {
	c, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	c.Fill(q, "1", "2", "3", "4")
	ch.Send(&amqp091.BasicReject{DeliveryTag: ch.MustGet(q).Tag})
	ch.Nack(ch.MustGet(q).Tag, false, false)
	ch.MustGet(q)
	ch.Nack(ch.MustGet(q).Tag, true, false)
	ch.Leave()
	ch.Reopen()
	ch.ExpectDepth(q, 0)
	// With a dead letter exchange each of them is there, see TestRow209 for what it looks like.
	dead := declared(ch, "dead", nil)
	q = declared(ch, "lettered", amqp091.Map{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead})
	c.Fill(q, "1", "2", "3", "4")
	ch.Send(&amqp091.BasicReject{DeliveryTag: ch.MustGet(q).Tag})
	ch.MustGet(q)
	ch.MustGet(q)
	ch.Nack(ch.MustGet(q).Tag, true, false)
	ch.ExpectDepth(q, 0)
	ch.ExpectDepth(dead, 4)
	if got := ch.Drain(dead); !slices.Equal(got, []string{"1", "2", "3", "4"}) {
		t.Fatalf("the dead letters are %q", got)
	}
}

func TestRow186RequeueKeepsOrder(t *testing.T) {
	c, ch := begin(t)
	for _, q := range bothKinds(ch, "") {
		if *against != "" && q == name(t, "Q") {
			continue
		}
		c.Fill(q, "1", "2", "3", "4", "5")
		one, two, three := ch.MustGet(q), ch.MustGet(q), ch.MustGet(q)
		ch.Nack(two.Tag, false, true)
		ch.Send(&amqp091.BasicReject{DeliveryTag: one.Tag, Requeue: true})
		ch.Nack(three.Tag, false, true)
		ch.ExpectDepth(q, 5)
		if got := ch.Drain(q); !slices.Equal(got, []string{"1", "2", "3", "4", "5"}) {
			t.Errorf("%s: %v", q, got)
		}
	}
}

func TestRow187NackMultiple(t *testing.T) {
	c, ch := begin(t)
	for _, q := range bothKinds(ch, "") {
		c.Fill(q, "1", "2", "3", "4", "5")
		ch.Consume(q, "t")
		got := ch.ExpectBodies("1", "2", "3", "4", "5")
		ch.Nack(got[3].Tag, true, true)
		ch.ExpectBodies("1", "2", "3", "4")
		ch.Leave()
		ch.Reopen()
		ch.ExpectDepth(q, 5)
	}
}

func TestRow188Redelivered(t *testing.T) {
	c, ch := begin(t)
	for _, q := range bothKinds(ch, "") {
		c.Fill(q, "m")
		expect := func(want bool) uint64 {
			t.Helper()
			d := ch.MustGet(q)
			if d.Redelivered != want {
				t.Errorf("%s: redelivered is %v", q, d.Redelivered)
			}
			return d.Tag
		}
		ch.Nack(expect(false), false, true)
		ch.Send(&amqp091.BasicReject{DeliveryTag: expect(true), Requeue: true})
		expect(true)
		ch.Call(&amqp091.BasicRecover{Requeue: true})
		expect(true)
		ch.Leave()
		ch.Reopen()
		ch.ExpectDepth(q, 1)
		ch.Ack(expect(true), false)
	}
}

func TestRow189DeliveryCount(t *testing.T) {
	c, ch := begin(t)
	q := ch.Declare(amqptest.Quorum(name(t, "Q"))).Queue
	c.Channel(2).PutWith("", q, "m", amqp091.Properties{Headers: amqp091.Map{"a": "b"}, MessageID: "id"})
	ch.ExpectDepth(q, 1)
	count := func(d *amqptest.Delivery) string {
		v, found := d.Headers().Lookup("x-delivery-count")
		if !found {
			return "absent"
		}
		n, _ := v.Int()
		return fmt.Sprintf("%c%d", v.Tag, n)
	}
	if first := count(ch.MustGet(q)); first != "absent" && *against == "" {
		t.Fatalf("at first it is %s", first)
	}
	for i, back := range []func(){
		func() { ch.Nack(1, false, true) },
		func() { ch.Send(&amqp091.BasicReject{DeliveryTag: 2, Requeue: true}) },
		func() { ch.Call(&amqp091.BasicRecover{Requeue: true}) },
		func() { ch.Leave(); ch.Reopen() },
	} {
		back()
		ch.ExpectDepth(q, 1)
		d := ch.MustGet(q)
		if got, want := count(d), fmt.Sprintf("l%d", i+1); got != want {
			t.Errorf("after return %d it is %s", i+1, got)
		}
		if id, _ := d.Properties.Value(amqp091.PropertyMessageID); string(id) != "id" {
			t.Errorf("message id %q", id)
		}
	}
	// With prefetch and a consumer too.
	ch.Leave()
	ch.Reopen()
	ch.Consume(q, "t")
	if d := ch.Deliver(); count(d) != "l5" || !d.Redelivered {
		t.Errorf("delivered with %s", count(d))
	}
}

func TestRow190AnotherConsumer(t *testing.T) {
	c, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	other := c.Channel(2)
	ch.Qos(1, false)
	other.Qos(1, false)
	ch.Consume(q, "a")
	c.Fill(q, "m")
	d := ch.Deliver()
	other.Consume(q, "b")
	ch.Nack(d.Tag, false, true)
	// It is offered in turn again: within two rounds the other has had it.
	for range 3 {
		e, code := c.Poll(amqptest.Patience)
		if e == nil || code != amqptest.Open || e.Method.ID() != amqp091.BasicDeliverID {
			t.Fatalf("instead of a delivery came %v, %v", e, code)
		}
		if e.Channel == other.Number {
			return
		}
		ch.Nack(e.Method.(*amqp091.BasicDeliver).DeliveryTag, false, true)
	}
	t.Error("the other consumer does not get it")
}

func TestRow191EndsRequeue(t *testing.T) {
	_, watcher := begin(t)
	for _, q := range bothKinds(watcher, "") {
		for _, end := range []func(*amqptest.Conn, *amqptest.Channel){
			func(_ *amqptest.Conn, ch *amqptest.Channel) { ch.Leave() },
			func(_ *amqptest.Conn, ch *amqptest.Channel) {
				ch.Send(&amqp091.QueueDeclare{Passive: true, Queue: name(t, "none")})
				ch.ReceiveClose(amqp091.NotFound, amqp091.QueueDeclareID, "") // without waiting for close-ok
			},
			func(c *amqptest.Conn, _ *amqptest.Channel) { c.Close() },
			func(c *amqptest.Conn, _ *amqptest.Channel) { c.Cut() },
		} {
			c := dial(t)
			ch := c.Channel(1)
			c.Fill(q, "1", "2", "3", "4")
			ch.MustGet(q)
			ch.Consume(q, "t")
			ch.ExpectBodies("2", "3", "4")
			ch.Ack(2, false)
			end(c, ch)
			watcher.ExpectDepth(q, 3)
			if got := watcher.Drain(q); !slices.Equal(got, []string{"1", "3", "4"}) {
				t.Fatalf("%s has %v", q, got)
			}
		}
	}
}

func TestRow192Recover(t *testing.T) {
	c, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	c.Fill(q, "1", "2", "3")
	ch.Consume(q, "t")
	got := ch.ExpectBodies("1", "2", "3")
	ch.Ack(got[1].Tag, false)
	_, early := ch.Pass(&amqp091.BasicRecover{Requeue: true})
	var again []*amqptest.Delivery
	for range 2 - len(early) {
		again = append(again, ch.Deliver())
	}
	for _, d := range again {
		if !d.Redelivered || d.Tag < 4 {
			t.Fatalf("%q has tag %d, redelivered %v", d.Text(), d.Tag, d.Redelivered)
		}
	}
	ch.Send(&amqp091.BasicRecoverAsync{Requeue: true})
	ch.ExpectBodies("1", "3")
	ch.Quiet()
	ch.Fatal(&amqp091.BasicRecover{}, amqp091.NotImplemented, "requeue=false")
	dial(t).Channel(1).Fatal(&amqp091.BasicRecoverAsync{}, amqp091.NotImplemented, "requeue=false")
}
