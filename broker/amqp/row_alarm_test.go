package amqp_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/broker/amqp/amqptest"
	"github.com/warrenmq/warren/broker/server"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// alarming is a node whose memory the test uses up.
type alarming struct {
	*node
	used atomic.Uint64
}

func startAlarming(t *testing.T) *alarming {
	a := &alarming{}
	var config server.Config
	config.Broker.Watermarks = broker.Watermarks{MemoryUsed: a.used.Load, MaxMemory: 1000}
	a.node = start(t, config)
	return a
}

// alarm sets the alarm off, or on.
func (a *alarming) alarm(t *testing.T, on bool) {
	t.Helper()
	a.used.Store(0)
	if on {
		a.used.Store(2000)
	}
	timeout := time.After(amqptest.Patience)
	for b := a.Broker(); ; {
		_, changed := b.Flow()
		if b.Blocked() == on {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			t.Fatal("the alarm does not change")
		}
	}
}

func expectBlocked(c *amqptest.Conn) {
	c.T.Helper()
	if m := c.Expect(0, amqp091.ConnectionBlockedID).Method.(*amqp091.ConnectionBlocked); m.Reason != "low on memory" {
		c.T.Fatalf("the reason is %q", m.Reason)
	}
}

func TestRow36To42Alarm(t *testing.T) {
	t.Parallel()
	node := startAlarming(t)
	dial := func(capabilities amqp091.Map) (*amqptest.Conn, *amqptest.Channel) {
		c := amqptest.DialWith(t, node.AMQPAddr(), amqptest.Options{Capabilities: capabilities})
		return c, c.Channel(1)
	}
	publisher, publishing := dial(nil)
	second, settling := dial(nil)
	_, consuming := dial(nil)
	idle, idling := dial(nil)
	old, oldPublishing := dial(amqptest.Nothing)
	q, stored := publishing.Queue("q"), publishing.Queue("stored")
	publisher.Fill(stored, "a", "b", "c")
	publishing.Confirm()
	settling.Confirm()
	settling.Qos(1, false)
	settling.Consume(stored, "t")
	held := settling.ExpectBodies("a")[0]
	node.alarm(t, true)

	// 37: at the first publish, once.
	publishing.Put("", q, "1")
	expectBlocked(publisher)
	publishing.Put("", q, "2")
	// 42: while it is blocked a client can settle and close.
	settling.Put("", q, "3")
	expectBlocked(second)
	settling.Ack(held.Tag, false)
	held = settling.ExpectBodies("b")[0]
	// 39
	oldPublishing.Put("", q, "4")
	// 40
	consuming.Consume(stored, "t")
	consuming.Ack(consuming.ExpectBodies("c")[0].Tag, false)
	settling.Nack(held.Tag, false, true)
	consuming.Ack(redelivered(settling, consuming).Tag, false)
	// A connection that comes during the alarm is served as well.
	late, lateIn := dial(nil)
	lateIn.Look(q)
	late.Close()
	if n := idling.Look(q).MessageCount; n != 0 {
		t.Fatalf("%d messages were stored during the alarm", n)
	}
	leaver, leaving := dial(nil)
	leaving.Put("", q, "lost")
	expectBlocked(leaver)
	leaver.Close()

	// 38
	node.alarm(t, false)
	publisher.Expect(0, amqp091.ConnectionUnblockedID)
	publishing.Settled(1, 2)
	second.Expect(0, amqp091.ConnectionUnblockedID)
	settling.Pass(&amqp091.BasicCancel{ConsumerTag: "t"})
	publishing.ExpectDepth(q, 4)
	if got := strings.Join(publishing.Drain(q), ""); !strings.Contains(got, "4") || strings.Index(got, "1") > strings.Index(got, "2") {
		t.Fatalf("stored %q", got)
	}
	// 36 and 39: these were told nothing.
	idling.Quiet()
	oldPublishing.Quiet()
	for _, c := range []*amqptest.Conn{idle, old, publisher, second} {
		if e := c.Waiting(0); e != nil {
			t.Errorf("one was told %s", amqptest.Describe(e.Method))
		}
	}
	// Another alarm is told again.
	node.alarm(t, true)
	publishing.Put("", q, "5")
	expectBlocked(publisher)
	node.alarm(t, false)
	publisher.Expect(0, amqp091.ConnectionUnblockedID)
	publishing.Settled(3, 3)
}

// redelivered returns the delivery that came back, on whichever of the channels it comes; the first one gives it back until then.
func redelivered(giver, taker *amqptest.Channel) *amqptest.Delivery {
	for {
		if e := taker.NextWithin(taker.Number, 200*time.Millisecond); e != nil {
			m := e.Method.(*amqp091.BasicDeliver)
			return &amqptest.Delivery{Event: e, Tag: m.DeliveryTag}
		}
		giver.Nack(giver.Deliver().Tag, false, true)
	}
}

func TestRow34OperatorClose(t *testing.T) {
	t.Parallel()
	node := start(t, server.Config{})
	c := amqptest.Dial(t, node.AMQPAddr())
	ch := c.Channel(1)
	ch.Declare(&amqp091.QueueDeclare{Queue: "e", Exclusive: true})
	rows, err := node.Broker().Connections()
	if err != nil || len(rows) != 1 {
		t.Fatalf("%d connections, %v", len(rows), err)
	}
	if err := node.Broker().CloseSession(rows[0].Name, "because I say so"); err != nil {
		t.Fatal(err)
	}
	c.ReceiveClose(amqp091.ConnectionForced, 0, "because I say so")
	if amqptest.Dial(t, node.AMQPAddr()).Channel(1).Exists("e") {
		t.Fatal("the exclusive queue outlived connection.close")
	}
	c.Send(0, &amqp091.ConnectionCloseOk{})
	c.ExpectClosed(amqptest.Patience)
}

// TestRow34Shutdown: a node that stops says so.
func TestRow34Shutdown(t *testing.T) {
	t.Parallel()
	node := start(t, server.Config{})
	c := amqptest.Dial(t, node.AMQPAddr())
	c.Channel(1)
	node.cancel()
	c.ReceiveClose(amqp091.ConnectionForced, 0, "")
	c.Send(0, &amqp091.ConnectionCloseOk{})
	c.ExpectClosed(amqptest.Patience)
}

// TestRow90Restart: what is durable survives a restart of the node, and with it row 234 on one node.
func TestRow90Restart(t *testing.T) {
	t.Parallel()
	var config server.Config
	config.Cluster.DataDir = t.TempDir()
	node := start(t, config)
	c := amqptest.Dial(t, node.AMQPAddr())
	ch := c.Channel(1)
	ch.Queue("durable")
	ch.Queue("held")
	ch.Declare(&amqp091.QueueDeclare{Queue: "transient"})
	ch.Declare(&amqp091.QueueDeclare{Queue: "exclusive", Exclusive: true, Durable: true})
	ch.Exchange("x", "topic")
	ch.Call(&amqp091.ExchangeDeclare{Exchange: "gone", Type: "direct"})
	ch.Bind("durable", "x", "a.#", nil)
	ch.Bind("transient", "x", "a.#", nil)
	ch.Bind("durable", "gone", "k", nil)
	ch.BindExchange("amq.fanout", "x", "b")
	ch.Bind("durable", "amq.fanout", "", nil)
	ch.Confirm()
	ch.PutWith("x", "a.1", "kept", amqp091.Properties{DeliveryMode: 2})
	ch.PutWith("x", "a.2", "lost", amqp091.Properties{DeliveryMode: 1})
	for _, text := range []string{"1", "2", "3"} {
		ch.PutWith("", "held", text, amqp091.Properties{DeliveryMode: 2})
	}
	ch.Settled(1, 5)
	ch.MustGet("held")
	node.cancel()
	<-node.done
	node.done <- nil

	node = start(t, config)
	ch = amqptest.Dial(t, node.AMQPAddr()).Channel(1)
	if ch.Exists("transient") || ch.Exists("exclusive") {
		t.Error("a transient queue is still there")
	}
	missingExchange(ch, "gone")
	if got := ch.Drain("durable"); len(got) != 1 || got[0] != "kept" {
		t.Errorf("the queue has %v", got)
	}
	for i, text := range []string{"1", "2", "3"} {
		if d := ch.MustGet("held"); d.Text() != text || i == 0 && !d.Redelivered {
			t.Errorf("%q, redelivered %v", d.Text(), d.Redelivered)
		}
	}
	ch.PutMandatory("x", "a.3", "by a topic")
	ch.PutMandatory("x", "b", "by two exchanges")
	ch.ExpectDepth("durable", 2)
	ch.Quiet()
}
