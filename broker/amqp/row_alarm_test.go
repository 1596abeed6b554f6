package amqp_test

import (
	"runtime"
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

// dial opens a connection to the node, with channel 1; nil is a client that can do everything.
func (a *alarming) dial(t *testing.T, capabilities amqp091.Map) (*amqptest.Conn, *amqptest.Channel) {
	t.Helper()
	c := amqptest.DialWith(t, a.AMQPAddr(), amqptest.Options{Capabilities: capabilities})
	return c, c.Channel(1)
}

// expectUntold checks that a connection was told nothing besides what was asked for.
func expectUntold(c *amqptest.Conn, ch *amqptest.Channel) {
	c.T.Helper()
	ch.Quiet()
	if e := c.Waiting(0); e != nil {
		c.T.Errorf("one was told %s", amqptest.Describe(e.Method))
	}
}

func TestRow36AlarmWithoutPublishes(t *testing.T) {
	t.Parallel()
	node := startAlarming(t)
	c, ch := node.dial(t, nil)
	node.alarm(t, true)
	q := ch.Queue("q")
	ch.Get(q, false)
	late, lateIn := node.dial(t, nil) // one that comes during the alarm is served as well
	lateIn.Look(q)
	expectUntold(late, lateIn)
	node.alarm(t, false)
	expectUntold(c, ch)
}

func TestRow37BlockedAtTheFirstPublish(t *testing.T) {
	t.Parallel()
	node := startAlarming(t)
	c, ch := node.dial(t, nil)
	q := ch.Queue("q")
	ch.Confirm()
	for i := range uint64(2) { // another alarm is told of again
		node.alarm(t, true)
		ch.Put("", q, "1")
		expectBlocked(c)
		ch.Put("", q, "2")
		_, watcher := node.dial(t, nil)
		if n := watcher.Look(q).MessageCount; uint64(n) != 2*i {
			t.Fatalf("%d messages are stored during the alarm", n)
		}
		node.alarm(t, false)
		c.Expect(0, amqp091.ConnectionUnblockedID) // and not blocked a second time before
		ch.Settled(2*i+1, 2*i+2)
	}
}

func TestRow38Unblocked(t *testing.T) {
	t.Parallel()
	node := startAlarming(t)
	c, ch := node.dial(t, nil)
	q := ch.Queue("q")
	ch.Confirm()
	node.alarm(t, true)
	ch.Put("", q, "1")
	ch.Put("", q, strings.Repeat("2", 3<<20))
	ch.Put("", q, "3")
	expectBlocked(c)
	ch.Nothing(50 * time.Millisecond)
	node.alarm(t, false)
	c.Expect(0, amqp091.ConnectionUnblockedID)
	ch.Settled(1, 3)
	if got := ch.Drain(q); len(got) != 3 || got[0] != "1" || got[2] != "3" {
		t.Fatalf("%d messages", len(got))
	}
}

func TestRow39WithoutTheCapability(t *testing.T) {
	t.Parallel()
	node := startAlarming(t)
	c, ch := node.dial(t, amqptest.Nothing)
	q := ch.Queue("q")
	ch.Confirm()
	node.alarm(t, true)
	ch.Put("", q, "1")
	ch.Nothing(50 * time.Millisecond)
	node.alarm(t, false)
	ch.Settled(1, 1)
	expectUntold(c, ch)
}

func TestRow40ConsumersGoOn(t *testing.T) {
	t.Parallel()
	node := startAlarming(t)
	c, ch := node.dial(t, nil)
	q := ch.Queue("q")
	publisher, _ := node.dial(t, nil)
	publisher.Fill(q, "a", "b", "c")
	ch.Qos(1, false)
	node.alarm(t, true)
	ch.Consume(q, "t")
	for _, text := range []string{"a", "b", "c"} {
		ch.Ack(ch.ExpectBodies(text)[0].Tag, false)
	}
	node.alarm(t, false)
	expectUntold(c, ch)
}

func TestRow42SettleAndCloseWhileBlocked(t *testing.T) {
	t.Parallel()
	node := startAlarming(t)
	c, ch := node.dial(t, nil)
	q, stored := ch.Queue("q"), ch.Queue("stored")
	c.Fill(stored, "a", "b", "c")
	ch.Qos(1, false)
	ch.Consume(stored, "t")
	node.alarm(t, true)
	held := ch.ExpectBodies("a")[0]
	ch.Put("", q, "lost")
	expectBlocked(c)
	ch.Ack(held.Tag, false)
	held = ch.ExpectBodies("b")[0]
	ch.Nack(held.Tag, false, true)
	held = ch.ExpectBodies("b")[0]
	ch.Send(&amqp091.BasicReject{DeliveryTag: held.Tag})
	ch.ExpectBodies("c")
	c.Close()
	_, watcher := node.dial(t, nil)
	watcher.ExpectDepth(stored, 1)
	node.alarm(t, false)
	watcher.ExpectDepth(q, 0)
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

// lags reports whether a queue does not get its nth message within two seconds.
func lags(t *testing.T, node *alarming, queue string, n uint64) bool {
	_, watcher := node.dial(t, nil)
	for until := time.Now().Add(2 * time.Second); uint64(watcher.Look(queue).MessageCount) < n; {
		if time.Now().After(until) {
			return true
		}
		runtime.Gosched()
	}
	return false
}

// TestRow37BlockedWhileSlowed: a client whose publishes were being slowed when the alarm came may send no more until they
// are confirmed. It is told all the same.
func TestRow37BlockedWhileSlowed(t *testing.T) {
	t.Parallel()
	node := startAlarming(t)
	c, ch := node.dial(t, nil)
	q := ch.Queue("q")
	ch.Confirm()
	node.used.Store(999) // near: whoever makes a queue grow is slowed down to next to nothing
	slowed := false
	for n := uint64(1); !slowed; n++ {
		ch.Put("", q, strings.Repeat("x", 64<<10))
		if n%16 == 0 {
			slowed = lags(t, node, q, n)
		}
		if n > 4096 {
			t.Skip("nothing is slowed on this machine")
		}
	}
	node.alarm(t, true)
	expectBlocked(c)
	node.alarm(t, false)
	c.Expect(0, amqp091.ConnectionUnblockedID)
}
