package amqp_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/warrenmq/warren/broker/amqp/amqptest"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// TestAlarmLargeMessage: a message that goes to the log in parts is held up like any other, and the rest goes on.
func TestAlarmLargeMessage(t *testing.T) {
	t.Parallel()
	node := startAlarming(t)
	c := amqptest.Dial(t, node.AMQPAddr())
	publishing, settling := c.Channel(1), c.Channel(2)
	q := settling.Queue("q")
	publishing.Confirm()
	node.alarm(t, true)
	publishing.Put("", q, strings.Repeat("x", 2<<20))
	expectBlocked(c)
	if n := settling.Look(q).MessageCount; n != 0 {
		t.Fatalf("%d messages were stored during the alarm", n)
	}
	node.alarm(t, false)
	c.Expect(0, amqp091.ConnectionUnblockedID)
	publishing.Settled(1, 1)
	if d := settling.MustGet(q); len(d.Body) != 2<<20 {
		t.Fatalf("%d bytes were stored", len(d.Body))
	}
}

// TestAlarmHoldsSoMuch: what one connection can leave in memory during an alarm does not grow with its channels.
func TestAlarmHoldsSoMuch(t *testing.T) {
	t.Parallel()
	node := startAlarming(t)
	c := amqptest.Dial(t, node.AMQPAddr())
	q := c.Channel(1).Queue("q")
	const channels, each = 24, 3
	var b []byte
	for i := range channels {
		ch := c.Channel(uint16(2 + i))
		for range each {
			b = ch.Message(b, &amqp091.BasicPublish{RoutingKey: []byte(q)}, nil, bytes.Repeat([]byte("x"), 1<<20))
		}
	}
	node.alarm(t, true)
	if c.TryRaw(b, 3*time.Second) {
		t.Errorf("the broker took %d MiB of publishes that it cannot make", len(b)>>20)
	}
	c.Cut()
	node.alarm(t, false)
}

// TestTransactionOfNothing: acknowledging everything when there is nothing takes no place in a transaction.
func TestTransactionOfNothing(t *testing.T) {
	c, ch := begin(t)
	ch.Call(&amqp091.TxSelect{})
	var b []byte
	for range 70_000 {
		b = (&amqp091.BasicAck{Multiple: true}).AppendFrame(b, ch.Number)
	}
	c.Raw(b)
	q := ch.Queue(name(t, "q"))
	ch.Put("", q, "m")
	ch.Call(&amqp091.TxCommit{})
	ch.ExpectDepth(q, 1)
}

// TestTransactionsOfConnection: what a connection's transactions gather is bounded for all of them together.
func TestTransactionsOfConnection(t *testing.T) {
	c, _ := begin(t)
	body := bytes.Repeat([]byte("x"), 1<<20)
	fill := func(ch *amqptest.Channel, messages int) {
		ch.Call(&amqp091.TxSelect{})
		for range messages {
			c.Raw(ch.Message(nil, &amqp091.BasicPublish{RoutingKey: []byte("nobody")}, nil, body))
		}
	}
	first, second := c.Channel(2), c.Channel(3)
	fill(first, 100)
	fill(second, 40)
	second.ExpectClose(amqp091.PreconditionFailed, amqp091.BasicPublishID, "")
	second.Reopen() // what it had is free again
	fill(second, 20)
	second.Call(&amqp091.TxCommit{})
	first.Call(&amqp091.TxRollback{})
	fill(second, 100)
	second.Leave()
	first.Call(&amqp091.TxCommit{})
}
