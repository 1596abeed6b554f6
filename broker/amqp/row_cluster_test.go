package amqp_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/broker/amqp/amqptest"
	"github.com/warrenmq/warren/broker/server"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// persistent marks messages that survive everything.
var persistent = amqp091.Properties{DeliveryMode: amqp091.Persistent}

// TestRow41AlarmElsewhere: the alarm of the node that leads holds up the clients of all nodes.
func TestRow41AlarmElsewhere(t *testing.T) {
	var memory atomic.Uint64
	c := startTrio(t, func(config *server.Config) {
		config.Broker.Watermarks = broker.Watermarks{MemoryUsed: memory.Load, MaxMemory: 1000}
	})
	conn, ch := c.dial(c.followers()[0])
	q := ch.Queue("q")
	ch.Confirm()
	memory.Store(2000)
	for !c.leader().process.Broker().Blocked() {
		ch.Quiet()
	}
	ch.Put("", q, "m")
	expectBlocked(conn)
	ch.Nothing(100 * time.Millisecond)
	memory.Store(0)
	conn.Expect(0, amqp091.ConnectionUnblockedID)
	ch.Settled(1, 1)
}

// everywhere starts three nodes and opens a channel through each of them.
func everywhere(t *testing.T) []*amqptest.Channel {
	t.Helper()
	c := startTrio(t, nil)
	var channels []*amqptest.Channel
	for _, m := range c.members {
		_, ch := c.dial(m)
		channels = append(channels, ch)
	}
	return channels
}

func TestRow227RepliesAcrossNodes(t *testing.T) {
	channels := everywhere(t)
	q := channels[0].Queue("q")
	for i, ch := range channels {
		consumeReplies(ch)
		responder := channels[(i+1)%3]
		responder.PutWith("", replyTo(request(ch, responder, q)), "reply", amqp091.Properties{})
		ch.ExpectBodies("reply")
	}
}

func TestRow230SameAnswersEverywhere(t *testing.T) {
	channels := everywhere(t)
	q := channels[0].Queue("q")
	for i, ch := range channels {
		ch.Refused(&amqp091.QueueDeclare{Queue: "none", Passive: true}, amqp091.NotFound, "no queue 'none' in vhost '/'")
		ch.Refused(&amqp091.QueueDeclare{Queue: q}, amqp091.PreconditionFailed, "inequivalent arg 'durable' for queue 'q' in vhost '/': received 'false' but current is 'true'")
		ch.Refused(&amqp091.BasicAck{DeliveryTag: 5}, amqp091.PreconditionFailed, "unknown delivery tag 5")
		e := fmt.Sprint("exclusive", i)
		ch.Declare(&amqp091.QueueDeclare{Queue: e, Exclusive: true})
		channels[(i+1)%3].Refused(&amqp091.QueueDeclare{Queue: e, Passive: true}, amqp091.ResourceLocked, lockedText(e))
		ch.Confirm()
		ch.PutMandatory("", "none", "m")
		ch.Expect(amqp091.BasicReturnID)
		ch.Settled(1, 1)
		ch.PutMandatory("", q, "m")
		ch.Settled(2, 2)
		ch.Ack(ch.MustGet(q).Tag, false)
		if ok := ch.Look(q); ok.MessageCount != 0 || ok.ConsumerCount != 0 {
			t.Errorf("%+v", ok)
		}
	}
}

func TestRow235SeenElsewhereAtOnce(t *testing.T) {
	channels := everywhere(t)
	one, two, three := channels[0], channels[1], channels[2]
	q := one.Queue("q")
	two.Look(q)
	three.Exchange("x", "topic")
	two.Bind(q, "x", "a.*", nil)
	three.PutMandatory("x", "a.b", "m")
	three.Quiet()
	one.ExpectDepth(q, 1)
	two.Call(&amqp091.QueuePurge{Queue: q})
	if n := one.Look(q).MessageCount; n != 0 {
		t.Errorf("%d messages after a purge elsewhere", n)
	}
	three.Call(&amqp091.QueueDelete{Queue: q})
	if one.Exists(q) || two.Exists(q) {
		t.Error("the queue is still there")
	}
}

// TestRow236NodeKill: exclusive queues of the connections through a killed node go, others stay.
func TestRow236NodeKill(t *testing.T) {
	c := startTrio(t, nil)
	followers := c.followers()
	lost, inside := c.dial(followers[0])
	_, safe := c.dial(followers[1])
	inside.Declare(&amqp091.QueueDeclare{Queue: "lost", Exclusive: true})
	safe.Declare(&amqp091.QueueDeclare{Queue: "kept", Exclusive: true})
	q := safe.Queue("q")
	lost.Fill(q, "m")
	inside.MustGet(q)
	c.kill(followers[0])
	safe.ExpectGone("lost")
	safe.Look("kept")
	safe.ExpectDepth(q, 1)
	if d := safe.MustGet(q); !d.Redelivered {
		t.Error("not marked as redelivered")
	}
}

// publishUntilEnd publishes numbered messages to a queue, without waiting, until the connection ends, and returns how many it sent
// and how many of them, from the first on, were confirmed.
func publishUntilEnd(ch *amqptest.Channel, queue string, disturb func(sent int)) (sent, confirmed int) {
	ch.T.Helper()
	ch.Confirm()
	settled := map[uint64]bool{}
	for n := 1; ; n++ {
		if n < 2000 {
			b := ch.Message(nil, toQueue(queue), amqptest.Properties(ch.T, persistent), fmt.Append(nil, n))
			if ch.TryRaw(b, amqptest.Patience) {
				sent = n
			}
		}
		disturb(n)
		event, code := ch.Poll(time.Millisecond)
		if ack, ok := eventMethod(event).(*amqp091.BasicAck); ok {
			from := ack.DeliveryTag
			if ack.Multiple {
				from = 1
			}
			for i := from; i <= ack.DeliveryTag; i++ {
				settled[i] = true
			}
		}
		if code != amqptest.Open {
			for settled[uint64(confirmed+1)] {
				confirmed++
			}
			if confirmed != len(settled) {
				ch.T.Logf("%d were confirmed, not all from the first on", len(settled))
			}
			if code != amqptest.Closed && code != amqptest.Conn320 {
				ch.T.Errorf("the connection ended with %d", code)
			}
			return sent, confirmed
		}
	}
}

func eventMethod(e *amqptest.Event) amqp091.Method {
	if e == nil {
		return nil
	}
	return e.Method
}

func TestRow146MinorityKilled(t *testing.T) {
	c := startTrio(t, nil)
	leader := c.leader()
	_, ch := c.dial(leader)
	q := ch.Declare(amqptest.Quorum("q")).Queue
	ch.Confirm()
	for n := range 300 {
		if n == 100 {
			c.kill(c.followers()[0])
		}
		ch.PutWith("", q, fmt.Sprint(n), amqp091.Properties{})
	}
	ch.Settled(1, 300)
	c.stop(leader) // what is left is no majority: the first one killed comes back
	for _, m := range c.members {
		if m.process == nil && m != leader {
			c.start(m)
		}
	}
	_, again := c.dial(c.leader())
	for n := range 300 {
		if d := again.MustGet(q); d.Text() != fmt.Sprint(n) {
			t.Fatalf("message %d is %s", n, d.Text())
		}
	}
}

func TestRow150LeaderKill(t *testing.T) {
	c := startTrio(t, nil)
	leader, through := c.leader(), c.followers()[0]
	_, ch := c.dial(through)
	q := ch.Declare(amqptest.Quorum("q")).Queue
	sent, confirmed := publishUntilEnd(ch, q, func(n int) {
		if n == 300 {
			c.kill(leader)
		}
	})
	t.Logf("%d sent, %d confirmed", sent, confirmed)
	_, again := c.dial(through) // waits for the next leader
	got := again.Drain(q)
	if confirmed == 0 || len(got) < confirmed {
		t.Fatalf("%d were confirmed, %d are there", confirmed, len(got))
	}
	for i, text := range got {
		if text != fmt.Sprint(i+1) {
			t.Fatalf("message %d is %s", i+1, text)
		}
	}
}

// TestRow231LeaderChange: here a change of leader closes connections with 320; consumers that come back go on.
func TestRow231LeaderChange(t *testing.T) {
	c := startTrio(t, nil)
	leader, through := c.leader(), c.followers()[0]
	conn, ch := c.dial(through)
	q := ch.Queue("q")
	conn.Fill(q, "1", "2")
	ch.Consume(q, "t")
	ch.ExpectBodies("1", "2")
	c.stop(leader)
	if code := conn.ExpectEnd(); code != amqp091.ConnectionForced {
		t.Errorf("the connection ended with %d", code)
	}
	_, again := c.dial(through)
	again.Consume(q, "t")
	for _, d := range again.ExpectBodies("1", "2") {
		if !d.Redelivered {
			t.Errorf("%q is not marked as redelivered", d.Text())
		}
	}
	again.Put("", q, "3")
	again.ExpectBodies("3")
}

func TestRow233SettledStaysSettled(t *testing.T) {
	c := startTrio(t, nil)
	leader, through := c.leader(), c.followers()[0]
	conn, ch := c.dial(through)
	q := ch.Queue("q")
	conn.Fill(q, "1", "2", "3", "4")
	ch.Consume(q, "t")
	ch.Ack(ch.ExpectBodies("1", "2", "3", "4")[1].Tag, true)
	ch.Leave() // close-ok comes when the acks are applied
	c.kill(leader)
	conn.ExpectEnd()
	_, again := c.dial(through)
	if got := again.Drain(q); !slices.Equal(got, []string{"3", "4"}) {
		t.Errorf("the queue has %q", got)
	}
}

// untilEnd returns what comes on a connection until it ends, as one does whose node finds out that it leads nobody.
func untilEnd(c *amqptest.Conn) (all []amqp091.Method) {
	c.T.Helper()
	for {
		e, code := c.Poll(amqptest.Patience)
		switch {
		case code != amqptest.Open:
			return all
		case e == nil:
			c.T.Fatal("the connection to a node that is cut off does not end")
		}
		all = append(all, e.Method)
	}
}

// cutOff starts three nodes and a queue with the message "before", and cuts off the one that leads, once something was
// prepared on a channel to it.
func cutOff(t *testing.T, prepare func(ch *amqptest.Channel, q string)) (c *trio, leader *member, ch *amqptest.Channel, q string) {
	t.Helper()
	c = startTrio(t, nil)
	leader = c.leader()
	var conn *amqptest.Conn
	conn, ch = c.dial(leader)
	q = ch.Declare(amqptest.Quorum("q")).Queue
	conn.Fill(q, "before")
	prepare(ch, q)
	c.isolate(leader)
	return c, leader, ch, q
}

// others returns all members but one.
func (c *trio) others(than *member) []*member {
	return slices.DeleteFunc(slices.Clone(c.members[:]), func(m *member) bool { return m == than })
}

func TestRow149WithoutQuorum(t *testing.T) {
	c, leader, ch, q := cutOff(t, func(ch *amqptest.Channel, _ string) { ch.Confirm() })
	ch.PutWith("", q, "cut off", persistent)
	for _, m := range untilEnd(ch.Conn) {
		if m.ID() == amqp091.BasicAckID {
			t.Error("one that is cut off confirmed a publish")
		}
	}
	rest := c.others(leader)
	c.leaderOf(rest...)
	_, other := c.dial(rest[0])
	other.Confirm()
	other.PutWith("", q, "majority", persistent)
	other.Settled(1, 1)
	c.net.Heal()
	c.leader()
	_, after := c.dial(leader)
	got := after.Drain(q)
	if !slices.Equal(got, []string{"before", "majority"}) && !slices.Equal(got, []string{"before", "cut off", "majority"}) {
		t.Errorf("after the cut the queue has %q", got)
	}
}

func TestRow195GetWithoutQuorum(t *testing.T) {
	_, _, ch, q := cutOff(t, func(*amqptest.Channel, string) {})
	ch.Send(&amqp091.BasicGet{Queue: q})
	for _, m := range untilEnd(ch.Conn) {
		if id := m.ID(); id == amqp091.BasicGetOkID || id == amqp091.BasicGetEmptyID {
			t.Errorf("one that is cut off answered %s", amqptest.Describe(m))
		}
	}
}

// TestRow232MinorityPartition: what the majority took away meanwhile is not delivered by who was cut off, and all agree in the end.
func TestRow232MinorityPartition(t *testing.T) {
	c, leader, ch, q := cutOff(t, func(ch *amqptest.Channel, q string) {
		ch.Qos(1, false)
		ch.Consume(q, "t")
		ch.ExpectBodies("before")
	})
	rest := c.others(leader)
	c.leaderOf(rest...)
	_, other := c.dial(rest[0])
	for _, text := range []string{"1", "2", "3"} {
		other.PutWith("", q, text, persistent)
	}
	other.ExpectDepth(q, 4)
	ch.Ack(1, false) // a consumer with room, and a leader that can confirm nothing
	for _, m := range untilEnd(ch.Conn) {
		if m.ID() == amqp091.BasicDeliverID {
			t.Error("one that is cut off delivered a message")
		}
	}
	if got := other.Drain(q); !slices.Equal(got, []string{"before", "1", "2", "3"}) {
		t.Errorf("the majority has %q", got)
	}
	c.net.Heal()
	c.leader()
	_, after := c.dial(leader)
	after.ExpectDepth(q, 0)
	c.agree()
}

func TestRow234FullRestart(t *testing.T) {
	c := startTrio(t, nil)
	through := c.followers()[0]
	conn, ch := c.dial(through)
	q := ch.Queue("q")
	ch.Confirm()
	var want []string
	for i := range 200 {
		text := fmt.Sprint(i)
		want = append(want, text)
		ch.PutWith("", q, text, persistent)
	}
	ch.Settled(1, 200)
	ch.Qos(3, false)
	ch.Consume(q, "t")
	ch.ExpectBodies("0", "1", "2")
	for _, m := range c.members {
		c.kill(m)
	}
	conn.ExpectEnd()
	c.net.Heal()
	for _, m := range c.members {
		c.start(m)
	}
	c.leader()
	_, again := c.dial(through)
	for i, text := range want {
		if d := again.MustGet(q); d.Text() != text || i < 3 && !d.Redelivered {
			t.Fatalf("message %d is %q, redelivered %v", i, d.Text(), d.Redelivered)
		}
	}
	if again.Get(q, true) != nil {
		t.Error("there is more than was published")
	}
	c.agree()
}
