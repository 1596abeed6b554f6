package amqp_test

import (
	"testing"
	"time"

	"github.com/warrenmq/warren/broker/amqp/amqptest"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// waiting returns properties that delay a message.
func waiting(delay any) amqp091.Properties {
	return amqp091.Properties{Headers: amqp091.Map{"x-delay": delay, "order": int32(7)}, DeliveryMode: 2}
}

// delaying declares an exchange as users of RabbitMQ's plugin do.
func delaying(ch *amqptest.Channel, name string, inner any) *amqp091.ExchangeDeclare {
	arguments := amqp091.Map{}
	if inner != nil {
		arguments["x-delayed-type"] = inner
	}
	return &amqp091.ExchangeDeclare{Exchange: name, Type: "x-delayed-message", Durable: true, Arguments: amqptest.Table(ch.T, arguments)}
}

// TestDelayedExchange: messages come in the order of their delays, never early, with the delay negated.
func TestDelayedExchange(t *testing.T) {
	for _, inner := range []string{"direct", "topic", "fanout", "headers"} {
		t.Run(inner, func(t *testing.T) {
			_, ch := begin(t)
			x, q := name(t, "x"), ch.Queue(name(t, "q"))
			ch.Call(delaying(ch, x, inner))
			ch.Bind(q, x, "key", amqp091.Map{"order": int32(7)})
			ch.Call(&amqp091.ConfirmSelect{})
			began := time.Now()
			ch.PutWith(x, "key", "late", waiting(int32(900)))
			ch.PutWith(x, "key", "middle", waiting("600"))
			ch.PutWith(x, "key", "soon", waiting(int64(300)))
			ch.PutWith(x, "key", "now", waiting(int32(-900)))
			for acked := 0; acked < 4; {
				m := ch.Next().Method.(*amqp091.BasicAck)
				if acked++; m.Multiple {
					acked = int(m.DeliveryTag)
				}
			}
			confirmed := time.Since(began)
			ch.Consume(q, "")
			for _, want := range []struct {
				text  string
				after time.Duration
				delay int64
			}{{"now", 0, -900}, {"soon", 300, -300}, {"middle", 600, -600}, {"late", 900, -900}} {
				d := ch.Deliver()
				at := time.Since(began)
				delay, _ := headers(ch, d)["x-delay"].(int64)
				if small, ok := headers(ch, d)["x-delay"].(int32); ok {
					delay = int64(small)
				}
				if d.Text() != want.text || delay != want.delay || headers(ch, d)["order"] != int32(7) || d.Exchange != x || d.Key != "key" {
					t.Fatalf("got %q through %q, %q with %v, want %q with x-delay %d", d.Text(), d.Exchange, d.Key, headers(ch, d), want.text, want.delay)
				}
				if after := want.after * time.Millisecond; at < after || at > after+time.Second+confirmed {
					t.Errorf("%q came after %v, want %v", want.text, at, after)
				}
			}
		})
	}
}

// TestDelayedExchangeRefused: what the plugin answers to a wrong type.
func TestDelayedExchangeRefused(t *testing.T) {
	c, ch := begin(t)
	x := name(t, "x")
	missing := "Invalid argument, 'x-delayed-type' must be an existing exchange type"
	ch.Refused(delaying(ch, x, nil), amqp091.PreconditionFailed, missing)
	ch.Refused(delaying(ch, x, int32(1)), amqp091.PreconditionFailed, missing)
	ch.Refused(delaying(ch, x, "x-delayed-message"), amqp091.PreconditionFailed,
		"Invalid argument, 'x-delayed-message' can't be used for 'x-delayed-type'")
	ch.Call(delaying(ch, x, "topic"))
	ch.Call(delaying(ch, x, "topic"))
	ch.Refused(delaying(ch, x, "fanout"), amqp091.PreconditionFailed, "inequivalent arg 'x-delayed-type' for exchange '"+x+
		"' in vhost '/': received 'fanout' but current is 'topic'")
	ch.Fatal(delaying(ch, name(t, "odd"), "odd"), amqp091.CommandInvalid, "unknown exchange type 'odd'")
	c.Cut()
}

// TestDelayedOnAnyExchange: a plain exchange delays, too, and the bindings of when a message is due decide where it goes;
// the mandatory flag returns nothing, and there is no queue to be seen.
func TestDelayedOnAnyExchange(t *testing.T) {
	_, ch := begin(t)
	x, q := ch.Exchange(name(t, "x"), "topic"), name(t, "q")
	ch.Call(&amqp091.ConfirmSelect{})
	publish := func(exchange, key, body string, delay any) {
		ch.PutMethod(&amqp091.BasicPublish{Exchange: []byte(exchange), RoutingKey: []byte(key), Mandatory: true}, body, waiting(delay))
		ch.Expect(amqp091.BasicAckID)
	}
	began := time.Now()
	publish(x, "a.b", "topic", int32(3000))
	publish("", q, "default", int32(3100))
	ch.Queue(q)
	ch.Bind(q, x, "a.*", nil)
	if n := ch.Look(q).MessageCount; n != 0 && time.Since(began) < 3*time.Second {
		t.Fatalf("%d messages came at once", n)
	}
	for _, want := range []string{"topic", "default"} {
		if d := await(ch, q); d.Text() != want {
			t.Fatalf("got %q, want %q", d.Text(), want)
		}
	}
	// With its exchange gone a message is dropped when it is due; one behind it is not.
	gone := ch.Exchange(name(t, "gone"), "fanout")
	ch.Bind(q, gone, "", nil)
	publish(gone, "", "dropped", int32(2000))
	ch.Call(&amqp091.ExchangeDelete{Exchange: gone})
	publish("", q, "kept", int32(2100))
	if d := await(ch, q); d.Text() != "kept" {
		t.Fatalf("got %q", d.Text())
	}
}

// TestDelayedDeadLetter: what has waited once does not wait again when it is dead-lettered through a delayed exchange.
func TestDelayedDeadLetter(t *testing.T) {
	_, ch := begin(t)
	x, q, dead := name(t, "x"), name(t, "q"), ch.Queue(name(t, "dead"))
	ch.Call(delaying(ch, x, "fanout"))
	ch.Bind(dead, x, "", nil)
	ch.Declare(&amqp091.QueueDeclare{Queue: q, Durable: true, Arguments: table(t, amqp091.Map{"x-dead-letter-exchange": x})})
	ch.PutWith("", q, "m", waiting("100"))
	ch.ExpectDepth(q, 1)
	reject(ch, q)
	if d := await(ch, dead); d.Text() != "m" || headers(ch, d)["x-delay"] != int64(-100) {
		t.Fatalf("got %q with %v", d.Text(), headers(ch, d))
	}
}

// TestRetryBackOff: a returned message comes again after its wait, which doubles, others are not held up, and in the end it
// is dead-lettered.
func TestRetryBackOff(t *testing.T) {
	_, ch := begin(t)
	q, dead := name(t, "q"), ch.Queue(name(t, "dead"))
	ch.Declare(&amqp091.QueueDeclare{Queue: q, Durable: true, Arguments: table(t, amqp091.Map{"x-delayed-retry-min": int32(200), "x-delayed-retry-multiplier": int32(2),
		"x-delivery-limit": int32(2), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead})})
	ch.Put("", q, "poison")
	ch.Consume(q, "")
	d := ch.Deliver()
	for i, wait := range []time.Duration{200 * time.Millisecond, 400 * time.Millisecond} {
		returned := time.Now()
		ch.Send(&amqp091.BasicNack{DeliveryTag: d.Tag, Requeue: true})
		if i == 0 {
			ch.Put("", q, "good")
			good := ch.Deliver()
			if good.Text() != "good" {
				t.Fatalf("got %q, which was to wait", good.Text())
			}
			ch.Send(&amqp091.BasicAck{DeliveryTag: good.Tag})
		}
		d = ch.Deliver()
		if after := time.Since(returned); d.Text() != "poison" || !d.Redelivered || after < wait || after > wait+2*time.Second {
			t.Fatalf("%q came %v after it was returned, redelivered %v; want %v", d.Text(), after, d.Redelivered, wait)
		}
	}
	ch.Send(&amqp091.BasicNack{DeliveryTag: d.Tag, Requeue: true})
	if got := await(ch, dead); got.Text() != "poison" {
		t.Fatalf("got %q", got.Text())
	}
	ch.ExpectDepth(q, 0)
}
