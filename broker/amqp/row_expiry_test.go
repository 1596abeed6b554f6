package amqp_test

import (
	"testing"

	"github.com/warrenmq/warren/protocol/amqp091"
)

func expiring(t *testing.T, name string, ms int32, more amqp091.Map) *amqp091.QueueDeclare {
	arguments := amqp091.Map{"x-expires": ms}
	for k, v := range more {
		arguments[k] = v
	}
	return &amqp091.QueueDeclare{Queue: name, Durable: true, Arguments: table(t, arguments)}
}

func TestRow203QueueExpires(t *testing.T) {
	c, ch := begin(t)
	consumed, got, left, quorum := name(t, "consumed"), name(t, "got"), name(t, "left"), name(t, "quorum")
	ch.Declare(expiring(t, consumed, 1500, nil)) // time enough for a busy machine to consume, and to get below
	other := c.Channel(2)
	other.Consume(consumed, "")
	ch.Declare(expiring(t, got, 4000, nil))
	ch.Declare(expiring(t, left, 4001, nil))
	ch.Declare(expiring(t, quorum, 100, amqp091.Map{"x-queue-type": "quorum"}))
	ch.Bind(left, "amq.direct", left, nil)
	ch.Put("", left, "lost")
	ch.ExpectGone(quorum)
	for ch.Exists(left) { // a look is no use, a get is
		if ch.Get(got, true) != nil {
			t.Fatal("a message from nowhere")
		}
	}
	ch.Put("amq.direct", left, "nobody's")
	if !ch.Exists(consumed) || !ch.Exists(got) {
		t.Fatal("a queue in use expired")
	}
	other.Leave()
	ch.ExpectGone(consumed)
	ch.Put("", got, "there")
	if d := ch.MustGet(got); d.Text() != "there" {
		t.Fatalf("got %q", d.Text())
	}
	ch.Call(&amqp091.QueueDelete{Queue: got})
}
