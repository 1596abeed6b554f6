package amqp_test

import (
	"fmt"
	"testing"

	"github.com/warrenmq/warren/broker/amqp/amqptest"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// asked are the frames of a client that declares a queue and publishes to it without waiting for anything.
func asked(ch *amqptest.Channel, q string, messages int) []byte {
	b := (&amqp091.QueueDeclare{Queue: q, Durable: true, NoWait: true}).AppendFrame(nil, ch.Number)
	for i := range messages {
		b = ch.Message(b, &amqp091.BasicPublish{RoutingKey: []byte(q)}, nil, fmt.Append(nil, i))
	}
	return b
}

// TestChannelCloseKeepsWhatWasAsked: what a client asked for in front of channel.close is done, though it waited for nothing.
func TestChannelCloseKeepsWhatWasAsked(t *testing.T) {
	c, ch := begin(t)
	look := c.Channel(2)
	for i := range 10 {
		q := fmt.Sprintf("%s.%d", name(t, "q"), i)
		c.Raw((&amqp091.ChannelClose{ReplyCode: 200}).AppendFrame(asked(ch, q, 20), ch.Number))
		ch.Expect(amqp091.ChannelCloseOkID)
		if n := look.Look(q).MessageCount; n != 20 {
			t.Errorf("%d of 20 messages are in the queue", n)
		}
		ch.Reopen()
	}
}

// TestConnectionCloseKeepsWhatWasAsked is the same for connection.close.
func TestConnectionCloseKeepsWhatWasAsked(t *testing.T) {
	c, look := begin(t)
	_ = c
	for i := range 10 {
		q := fmt.Sprintf("%s.%d", name(t, "q"), i)
		leaver := dial(t)
		ch := leaver.Channel(1)
		leaver.Raw((&amqp091.ConnectionClose{ReplyCode: 200}).AppendFrame(asked(ch, q, 20), 0))
		leaver.Expect(0, amqp091.ConnectionCloseOkID)
		if n := look.Look(q).MessageCount; n != 20 {
			t.Errorf("%d of 20 messages are in the queue", n)
		}
	}
}

// TestExclusiveQueueOfClientThatIsGone: a client may go while its exclusive queue is being declared.
func TestExclusiveQueueOfClientThatIsGone(t *testing.T) {
	_, look := begin(t)
	for i := range 100 {
		q := fmt.Sprintf("%s.%d", name(t, "q"), i)
		c := dial(t)
		ch := c.Channel(1)
		b := (&amqp091.QueueDeclare{Queue: q, Exclusive: true}).AppendFrame(nil, 1)
		switch i % 3 {
		case 0:
			b = (&amqp091.ConnectionClose{ReplyCode: 200}).AppendFrame(b, 0)
		case 1:
			b = append(b, 9, 9, 9, 9, 9, 9, 9, 9)
		}
		ch.Raw(b)
		switch i % 3 { // not the end of TCP, which takes its time when the framing is lost or the client does not close
		case 0:
			c.Expect(0, amqp091.ConnectionCloseOkID)
		case 1:
			c.Verdict()
		case 2:
			c.CloseWrite()
			c.ExpectEnd()
		}
		c.Cut()
		look.ExpectGone(q)
	}
}

// TestChannelCloseTellsOfFailure: when something in front of channel.close fails, the client is told so, then gets its answer,
// and the number is free once it has answered as well.
func TestChannelCloseTellsOfFailure(t *testing.T) {
	c, ch := begin(t)
	for range 20 {
		b := (&amqp091.QueueBind{Queue: name(t, "none"), Exchange: "amq.direct", NoWait: true}).AppendFrame(nil, ch.Number)
		c.Raw((&amqp091.ChannelClose{ReplyCode: 200}).AppendFrame(b, ch.Number))
		ch.ExpectClose(amqp091.NotFound, amqp091.QueueBindID, "")
		ch.Expect(amqp091.ChannelCloseOkID)
		ch.Reopen()
	}
}

// TestNothingFollowsChannelClose: what was published in front of an exception may be confirmed in front of channel.close only.
func TestNothingFollowsChannelClose(t *testing.T) {
	_, other := begin(t)
	for i := range 10 {
		x := other.Exchange(fmt.Sprintf("%s.%d", name(t, "x"), i), "fanout")
		c := dial(t)
		ch := c.Channel(1)
		ch.Confirm()
		var b []byte
		for range 1000 {
			b = ch.Message(b, &amqp091.BasicPublish{Exchange: []byte("amq.fanout")}, nil, nil)
			b = ch.Message(b, &amqp091.BasicPublish{Exchange: []byte(x)}, nil, nil)
		}
		c.Raw(b)
		other.Call(&amqp091.ExchangeDelete{Exchange: x})
		c.Raw(b)
		ch.ReceiveClose(amqp091.NotFound, amqp091.BasicPublishID, "")
		c.Channel(2).Leave() // all that was asked for is served
		if e := c.Waiting(1); e != nil {
			t.Fatalf("behind channel.close came %s", amqptest.Describe(e.Method))
		}
		c.Close()
	}
}
