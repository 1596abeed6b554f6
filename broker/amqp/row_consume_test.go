package amqp_test

import (
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/warrenmq/warren/broker/amqp/amqptest"
	"github.com/warrenmq/warren/protocol/amqp091"
)

func TestRow160ConsumeMissing(t *testing.T) {
	_, ch := begin(t)
	none := name(t, "none")
	ch.Refused(&amqp091.BasicConsume{Queue: none}, amqp091.NotFound, "no queue '"+none+"' in vhost '/'")
	ch.Refused(&amqp091.BasicGet{Queue: none}, amqp091.NotFound, "no queue '"+none+"' in vhost '/'")
}

var generatedTag = regexp.MustCompile(`^amq\.ctag-[A-Za-z0-9_-]{22}$`)

func TestRow161GeneratedTag(t *testing.T) {
	_, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	a, b := ch.Consume(q, ""), ch.Consume(q, "")
	if !generatedTag.MatchString(a) || !generatedTag.MatchString(b) || a == b {
		t.Fatalf("tags %q and %q", a, b)
	}
}

func TestRow162DuplicateTag(t *testing.T) {
	c, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	ch.Consume(q, "t")
	c.Channel(2).Consume(q, "t")
	ch.Call(&amqp091.BasicCancel{ConsumerTag: "t"})
	ch.Consume(q, "t")
	ch.Fatal(&amqp091.BasicConsume{Queue: name(t, "none"), ConsumerTag: "t"}, amqp091.NotAllowed, "attempt to reuse consumer tag 't'")
}

func TestRow163ConsumeOkFirst(t *testing.T) {
	c, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	c.Fill(q, "a", "b", "c")
	for i := range 20 {
		tag := fmt.Sprint(i)
		ch.Consume(q, tag)
		ch.ExpectBodies("a", "b", "c")
		ch.Pass(&amqp091.BasicCancel{ConsumerTag: tag})
		ch.Nack(0, true, true)
		ch.Pass(&amqp091.BasicRecover{Requeue: true})
		ch.ExpectDepth(q, 3)
	}
}

func TestRow164Exclusive(t *testing.T) {
	c, ch := begin(t)
	other := c.Channel(2)
	for _, m := range []*amqp091.QueueDeclare{{Queue: name(t, "K"), Durable: true}, amqptest.Quorum(name(t, "Q"))} {
		if *against != "" && m.Arguments != nil {
			continue
		}
		q := ch.Declare(m).Queue
		text := "queue '" + q + "' in vhost '/' in exclusive use"
		ch.ConsumeWith(&amqp091.BasicConsume{Queue: q, ConsumerTag: "e", Exclusive: true})
		other.Refused(&amqp091.BasicConsume{Queue: q}, amqp091.AccessRefused, text)
		other.Refused(&amqp091.BasicConsume{Queue: q, Exclusive: true}, amqp091.AccessRefused, text)
		other.Get(q, true) // is not refused
		ch.Call(&amqp091.BasicCancel{ConsumerTag: "e"})
		other.Consume(q, "t")
		ch.Refused(&amqp091.BasicConsume{Queue: q, Exclusive: true}, amqp091.AccessRefused, text)
		other.Call(&amqp091.BasicCancel{ConsumerTag: "t"})
	}
}

var sac = amqp091.Map{"x-single-active-consumer": true}

func TestRow165ExclusiveOnSAC(t *testing.T) {
	_, ch := begin(t)
	q := name(t, "q")
	ch.Declare(&amqp091.QueueDeclare{Queue: q, Arguments: table(t, sac)})
	ch.Refused(&amqp091.BasicConsume{Queue: q, Exclusive: true}, amqp091.AccessRefused, "queue '"+q+"' in vhost '/' in exclusive use")
}

func TestRow166CancelUnknown(t *testing.T) {
	_, ch := begin(t)
	if ok := ch.Call(&amqp091.BasicCancel{ConsumerTag: "none"}).(*amqp091.BasicCancelOk); ok.ConsumerTag != "none" {
		t.Fatalf("%+v", ok)
	}
	ch.Send(&amqp091.BasicCancel{ConsumerTag: "none", NoWait: true})
	ch.Quiet()
}

func TestRow167AfterCancelOk(t *testing.T) {
	c, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	c.Fill(q, "a")
	ch.Consume(q, "t")
	d := ch.Deliver()
	ch.Call(&amqp091.BasicCancel{ConsumerTag: "t"})
	c.Fill(q, "b", "c")
	ch.Quiet()
	ch.ExpectDepth(q, 2)
	ch.Ack(d.Tag, false)
	ch.Leave()
	ch.Reopen()
	if got := ch.Drain(q); !slices.Equal(got, []string{"b", "c"}) {
		t.Fatalf("the queue has %v", got)
	}
}

func TestRow168CancelNotify(t *testing.T) {
	c, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	ch.Consume(q, "t")
	c.Channel(2).Call(&amqp091.QueueDelete{Queue: q})
	if m := ch.Expect(amqp091.BasicCancelID).Method.(*amqp091.BasicCancel); m.ConsumerTag != "t" || !m.NoWait {
		t.Fatalf("%+v", m)
	}
	ch.Queue(q)
	ch.Consume(q, "t")
	c.Fill(q, "a")
	ch.ExpectBodies("a")
	// A late cancel is answered as well.
	c.Channel(3).Call(&amqp091.QueueDelete{Queue: q})
	ch.Expect(amqp091.BasicCancelID)
	ch.Call(&amqp091.BasicCancel{ConsumerTag: "t"})
}

func TestRow169ClientCancelOk(t *testing.T) {
	_, ch := begin(t)
	ch.Fatal(&amqp091.BasicCancelOk{ConsumerTag: "t"}, amqp091.CommandInvalid, "unimplemented method")
}

func TestRow170PriorityType(t *testing.T) {
	_, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	ch.Refused(&amqp091.BasicConsume{Queue: q, Arguments: table(t, amqp091.Map{"x-priority": "1"})}, amqp091.PreconditionFailed,
		"invalid arg 'x-priority' for queue '"+q+"' in vhost '/': \"expected integer, got longstr\"")
	for i, priority := range []any{int32(-5), int64(10), uint8(3), int8(-1), int16(7)} {
		ch.ConsumeWith(&amqp091.BasicConsume{Queue: q, ConsumerTag: fmt.Sprint(i), Arguments: table(t, amqp091.Map{"x-priority": priority, "unknown": "ignored"})})
	}
}

func TestRow171HigherPriorityFirst(t *testing.T) {
	c, low := begin(t)
	high := c.Channel(2)
	q := low.Queue(name(t, "q"))
	low.Qos(100, false)
	high.Qos(3, false)
	low.Consume(q, "low")
	high.ConsumeWith(&amqp091.BasicConsume{Queue: q, ConsumerTag: "high", Arguments: table(t, amqp091.Map{"x-priority": int32(5)})})
	c.Fill(q, "1", "2", "3", "4", "5")
	got := high.ExpectBodies("1", "2", "3")
	low.ExpectBodies("4", "5")
	high.Ack(got[2].Tag, true)
	high.Pass(&amqp091.BasicRecover{Requeue: true}) // the acks have been served
	c.Fill(q, "6", "7")
	high.ExpectBodies("6", "7")
	low.Quiet()
}

func TestRow172RoundRobin(t *testing.T) {
	c, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	tags := []string{"a", "b", "c"}
	for _, tag := range tags {
		ch.Consume(q, tag)
	}
	c.Fill(q, "0", "1", "2", "3", "4", "5", "6", "7", "8")
	var order []string
	for range 9 {
		order = append(order, ch.Deliver().Consumer)
	}
	for i := 3; i < 9; i++ {
		if order[i] != order[i-3] || order[0] == order[1] || order[1] == order[2] || order[0] == order[2] {
			t.Fatalf("the order is %v", order)
		}
	}
}

func TestRow173NoLocal(t *testing.T) {
	_, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	ch.ConsumeWith(&amqp091.BasicConsume{Queue: q, NoLocal: true})
	ch.Put("", q, "m")
	ch.ExpectBodies("m")
}

func TestRow174LostConsumer(t *testing.T) {
	c, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	c.Fill(q, "a", "b")
	for _, lose := range []func(*amqptest.Conn, *amqptest.Channel){
		func(lost *amqptest.Conn, _ *amqptest.Channel) { lost.Cut() },
		func(lost *amqptest.Conn, _ *amqptest.Channel) { lost.Close() },
		func(_ *amqptest.Conn, in *amqptest.Channel) { in.Leave() },
		func(_ *amqptest.Conn, in *amqptest.Channel) {
			in.Refused(&amqp091.BasicAck{DeliveryTag: 99}, amqp091.PreconditionFailed, "unknown delivery tag 99")
		},
	} {
		lost := dial(t)
		in := lost.Channel(1)
		in.Consume(q, "first")
		in.ExpectBodies("a", "b")
		ch.Consume(q, "second")
		lose(lost, in)
		for _, d := range ch.ExpectBodies("a", "b") {
			if !d.Redelivered {
				t.Fatal("not marked as redelivered")
			}
		}
		ch.Call(&amqp091.BasicCancel{ConsumerTag: "second"})
		ch.Call(&amqp091.BasicRecover{Requeue: true})
	}
}

func TestRow175QosOfLaterConsumers(t *testing.T) {
	c, ch := begin(t)
	q, p := ch.Queue(name(t, "q")), ch.Queue(name(t, "p"))
	ch.Qos(2, false)
	ch.Consume(q, "two")
	ch.Qos(3, false)
	ch.Consume(p, "three")
	ch.Qos(0, false)
	c.Fill(q, "1", "2", "3", "4", "5")
	ch.ExpectBodies("1", "2")
	c.Fill(p, "1", "2", "3", "4", "5")
	ch.ExpectBodies("1", "2", "3")
	ch.ExpectDepth(q, 3)
	ch.ExpectDepth(p, 2)
	ch.Quiet()
}

func TestRow176QosOfTheChannel(t *testing.T) {
	c, ch := begin(t)
	for _, m := range []*amqp091.QueueDeclare{{Queue: name(t, "K"), Durable: true}, amqptest.Quorum(name(t, "Q"))} {
		if *against != "" && m.Arguments != nil {
			continue
		}
		q := ch.Declare(m).Queue
		ch.Consume(q, "a")
		ch.Consume(q, "b")
		ch.Qos(3, true) // at once, for consumers that are there
		c.Fill(q, "1", "2", "3", "4", "5", "6", "7")
		got := ch.ExpectBodies("1", "2", "3")
		ch.Quiet()
		ch.ExpectDepth(q, 4)
		ch.Send(&amqp091.BasicQos{PrefetchCount: 5, Global: true}) // more goes on at once
		ch.Expect(amqp091.BasicQosOkID)
		ch.ExpectBodies("4", "5")
		ch.Ack(got[0].Tag, false)
		ch.ExpectBodies("6")
		ch.Send(&amqp091.BasicQos{Global: true})
		ch.Expect(amqp091.BasicQosOkID)
		ch.ExpectBodies("7")
		ch.Leave()
		ch.Reopen()
	}
}

func TestRow177BothLimits(t *testing.T) {
	c, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	ch.Qos(3, false)
	ch.Qos(4, true)
	ch.Consume(q, "a")
	ch.Consume(q, "b")
	c.Fill(q, "1", "2", "3", "4", "5", "6", "7", "8")
	of := map[string]int{}
	for range 4 {
		of[ch.Deliver().Consumer]++
	}
	ch.ExpectDepth(q, 4)
	ch.Quiet()
	if of["a"] > 3 || of["b"] > 3 {
		t.Fatalf("%v", of)
	}
	ch.Send(&amqp091.BasicQos{Global: true})
	ch.Expect(amqp091.BasicQosOkID)
	for range 2 {
		of[ch.Deliver().Consumer]++
	}
	ch.ExpectDepth(q, 2)
	if of["a"] != 3 || of["b"] != 3 {
		t.Fatalf("%v", of)
	}
}

func TestRow178NoAckIgnoresQos(t *testing.T) {
	c, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	c.Fill(q, "1", "2", "3", "4", "5")
	ch.Qos(1, false)
	ch.Qos(1, true)
	for range 2 {
		ch.MustGet(q)
	}
	ch.ConsumeWith(&amqp091.BasicConsume{Queue: q, ConsumerTag: "t", NoAck: true})
	ch.ExpectBodies("3", "4", "5")
}

func TestRow179PrefetchSize(t *testing.T) {
	_, ch := begin(t)
	ch.Fatal(&amqp091.BasicQos{PrefetchSize: 100, PrefetchCount: 1}, amqp091.NotImplemented, "prefetch_size!=0 (100)")
}

func TestRow180AckFreesSlots(t *testing.T) {
	c, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	c.Fill(q, "1", "2", "3", "4", "5", "6", "7", "8")
	ch.Qos(3, false)
	ch.Consume(q, "t")
	ch.ExpectBodies("1", "2", "3")
	ch.Ack(2, false)
	ch.ExpectBodies("4")
	ch.ExpectDepth(q, 4)
	ch.Quiet()
	ch.Ack(3, true) // 1 and 3
	ch.ExpectBodies("5", "6")
	ch.ExpectDepth(q, 2)
	ch.Send(&amqp091.BasicReject{DeliveryTag: 4})
	ch.ExpectBodies("7")
	ch.Nack(5, false, false)
	ch.ExpectBodies("8")
	ch.Quiet()
}

// TestRow193AckTimeout: a consumer that sits on a message for longer than it said loses it.
func TestRow193AckTimeout(t *testing.T) {
	t.Parallel()
	each(t, map[string]amqp091.Map{"told": amqptest.Everything, "old": amqptest.Nothing}, func(t *testing.T, capabilities amqp091.Map) {
		c := amqptest.DialWith(t, address(t), amqptest.Options{Capabilities: capabilities})
		ch := c.Channel(1)
		q := ch.Queue(name(t, "q"))
		c.Fill(q, "a", "b")
		ch.Qos(1, false)
		began := time.Now()
		ch.ConsumeWith(&amqp091.BasicConsume{Queue: q, ConsumerTag: "t", Arguments: table(t, amqp091.Map{"x-consumer-timeout": int32(1000)})})
		ch.ExpectBodies("a")
		if len(capabilities) > 0 {
			if m := ch.Expect(amqp091.BasicCancelID).Method.(*amqp091.BasicCancel); m.ConsumerTag != "t" {
				t.Fatalf("%+v", m)
			}
		} else {
			ch.ExpectClose(amqp091.PreconditionFailed, 0, "delivery acknowledgement on channel 1 timed out. Timeout value used: 1000 ms. "+
				"This timeout value can be configured, see consumers doc guide to learn more")
			ch.Reopen()
		}
		if d := time.Since(began); d < 900*time.Millisecond {
			t.Fatalf("after %v", d)
		}
		if d := ch.MustGet(q); d.Text() != "a" || !d.Redelivered {
			t.Fatalf("got %q, redelivered %v", d.Text(), d.Redelivered)
		}
	})
}

func TestRow194Get(t *testing.T) {
	c, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	if ch.Get(q, false) != nil {
		t.Fatal("got something out of an empty queue")
	}
	c.Fill(q, "a", "b", "c")
	for i, text := range []string{"a", "b", "c"} {
		if d := ch.MustGet(q); d.Text() != text || d.Left != uint32(2-i) || d.Exchange != "" || d.Key != q || d.Redelivered {
			t.Fatalf("got %q, %d left, exchange %q, key %q", d.Text(), d.Left, d.Exchange, d.Key)
		}
	}
	if ch.Get(q, false) != nil {
		t.Fatal("got something out of an empty queue")
	}
}

func TestRow196SingleActive(t *testing.T) {
	_, watcher := begin(t)
	q := name(t, "q")
	watcher.Declare(&amqp091.QueueDeclare{Queue: q, Durable: true, Arguments: table(t, sac)})
	var conns []*amqptest.Conn
	var channels []*amqptest.Channel
	for i := range 4 {
		conns = append(conns, dial(t))
		channels = append(channels, conns[i].Channel(1))
		channels[i].ConsumeWith(&amqp091.BasicConsume{Queue: q, ConsumerTag: "t", NoAck: true})
	}
	for i, leave := range []func(){
		func() { channels[0].Call(&amqp091.BasicCancel{ConsumerTag: "t"}) },
		func() { channels[1].Leave() },
		func() { conns[2].Cut() },
		func() {},
	} {
		for _, text := range []string{"1", "2", "3"} {
			watcher.Put("", q, text)
		}
		channels[i].ExpectBodies("1", "2", "3")
		for _, other := range channels[i+1:] {
			other.Quiet()
		}
		leave()
		watcher.ExpectConsumers(q, uint32(3-min(i, 2)))
	}
}

func TestRow197HigherNewcomer(t *testing.T) {
	c, old := begin(t)
	newcomer := c.Channel(2)
	q := name(t, "q")
	old.Declare(&amqp091.QueueDeclare{Queue: q, Durable: true, Arguments: table(t, sac)})
	c.Fill(q, "1", "2", "3")
	old.Qos(2, false)
	old.Consume(q, "old")
	got := old.ExpectBodies("1", "2")
	newcomer.ConsumeWith(&amqp091.BasicConsume{Queue: q, ConsumerTag: "new", Arguments: table(t, amqp091.Map{"x-priority": int32(1)})})
	old.Ack(got[0].Tag, false)
	old.Quiet()
	newcomer.Quiet()
	old.Ack(got[1].Tag, false)
	newcomer.ExpectBodies("3")
	c.Fill(q, "4")
	newcomer.ExpectBodies("4")
	old.Quiet()
}

func TestRow198GetOnSAC(t *testing.T) {
	c, ch := begin(t)
	k, q := name(t, "K"), name(t, "Q")
	ch.Declare(&amqp091.QueueDeclare{Queue: k, Arguments: table(t, sac)})
	c.Fill(k, "a")
	ch.MustGet(k)
	ch.Declare(&amqp091.QueueDeclare{Queue: q, Durable: true, Arguments: table(t, amqp091.Map{"x-queue-type": "quorum", "x-single-active-consumer": true})})
	ch.Refused(&amqp091.BasicGet{Queue: q}, amqp091.ResourceLocked,
		"cannot obtain access to locked queue '"+q+"' in vhost '/'. basic.get operations are not supported by quorum queues with single active consumer")
}
