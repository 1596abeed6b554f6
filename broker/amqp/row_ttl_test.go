package amqp_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/warrenmq/warren/broker/amqp/amqptest"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// declared declares a durable queue with arguments, named after the test and a suffix.
func declared(ch *amqptest.Channel, suffix string, arguments amqp091.Map) string {
	ch.T.Helper()
	return ch.Declare(&amqp091.QueueDeclare{Queue: name(ch.T, suffix), Durable: true, Arguments: table(ch.T, arguments)}).Queue
}

func lasting(d time.Duration) amqp091.Properties {
	return amqp091.Properties{Expiration: strconv.FormatInt(d.Milliseconds(), 10)}
}

func TestRow199ExpiredMessages(t *testing.T) {
	c, ch := begin(t)
	for suffix, arguments := range map[string]amqp091.Map{"K": {}, "Q": {"x-queue-type": "quorum"}} {
		q := declared(ch, suffix, arguments)
		ch.PutWith("", q, "first", lasting(time.Hour))
		ch.PutWith("", q, "short", lasting(50*time.Millisecond))
		ch.Put("", q, "last")
		ch.ExpectDepth(q, 2) // behind one that lives on, too
		ch.ConsumeWith(&amqp091.BasicConsume{Queue: q, ConsumerTag: suffix, NoAck: true})
		ch.ExpectBodies("first", "last")

		// What a consumer holds does not expire; given back, it does.
		other := c.Channel(2)
		held := declared(ch, suffix+"held", arguments)
		var d *amqptest.Delivery
		for d == nil { // on a busy machine it may be gone before the get
			ch.PutWith("", held, "held", lasting(200*time.Millisecond))
			d = other.Get(held, false)
		}
		ch.PutWith("", held, "marker", lasting(300*time.Millisecond))
		ch.ExpectDepth(held, 0)
		other.Nack(d.Tag, false, true)
		ch.ExpectDepth(held, 0)
		other.Quiet()
		if d := ch.Get(held, true); d != nil {
			t.Fatalf("got %q after its time", d.Text())
		}
		other.Leave()
	}
}

func TestRow200ShorterOfTwo(t *testing.T) {
	_, ch := begin(t)
	short, long := declared(ch, "short", amqp091.Map{"x-message-ttl": int32(50)}), declared(ch, "long", amqp091.Map{"x-message-ttl": int32(3_600_000)})
	ch.PutWith("", short, "1", lasting(time.Hour))
	ch.PutWith("", long, "2", lasting(time.Hour))
	ch.PutWith("", long, "3", lasting(50*time.Millisecond))
	ch.Put("", long, "4")
	ch.ExpectDepth(short, 0)
	ch.ExpectDepth(long, 2)
	if rest := ch.Drain(long); len(rest) != 2 || rest[0] != "2" || rest[1] != "4" {
		t.Fatalf("left are %q", rest)
	}
}

func TestRow201TimeToLiveZero(t *testing.T) {
	_, ch := begin(t)
	q, own := declared(ch, "queue", amqp091.Map{"x-message-ttl": int32(0)}), ch.Queue(name(t, "own"))
	ch.Put("", q, "nobody's")
	ch.PutWith("", own, "nobody's", lasting(0))
	for _, queue := range []string{q, own} {
		if d := ch.Get(queue, true); d != nil {
			t.Fatalf("got %q", d.Text())
		}
		ch.ConsumeWith(&amqp091.BasicConsume{Queue: queue, ConsumerTag: queue, NoAck: false})
		for range 100 {
			ch.PutWith("", queue, "somebody's", lasting(0))
			d := ch.Deliver()
			if d.Text() != "somebody's" {
				t.Fatalf("delivered was %q", d.Text())
			}
			ch.Ack(d.Tag, false)
		}
		ch.PutWith("", queue, "returned", lasting(0))
		ch.Nack(ch.Deliver().Tag, false, true)
		ch.ExpectDepth(queue, 0)
		ch.Quiet()
	}
}

func TestRow202RequeueKeepsExpiry(t *testing.T) {
	_, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	ch.PutWith("", q, "m", lasting(700*time.Millisecond))
	deadline := time.Now().Add(amqptest.Patience)
	for returns := 0; ; returns++ {
		d := ch.Get(q, false)
		if d == nil {
			if returns == 0 {
				t.Fatal("nothing was there")
			}
			return
		}
		ch.Nack(d.Tag, false, true)
		if time.Now().After(deadline) {
			t.Fatalf("the message is there still, after %d returns", returns)
		}
	}
}
