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

// TestRow227AcrossNodes, and rows 230 and 235: through whatever node, the answers are the same, and seen by all.
func TestRow227AcrossNodes(t *testing.T) {
	c := startTrio(t, nil)
	followers := c.followers()
	_, one := c.dial(followers[0])
	_, two := c.dial(followers[1])
	_, three := c.dial(c.leader())
	q := one.Queue("q")
	two.Look(q) // 235: at once
	three.Exchange("x", "topic")
	two.Bind(q, "x", "a.*", nil)
	three.PutMandatory("x", "a.b", "m")
	three.Quiet()
	one.ExpectDepth(q, 1)
	two.Call(&amqp091.QueuePurge{Queue: q})
	if n := one.Look(q).MessageCount; n != 0 {
		t.Errorf("%d messages after a purge elsewhere", n)
	}
	// 230: refusals too.
	for _, ch := range []*amqptest.Channel{one, two, three} {
		ch.Refused(&amqp091.QueueDeclare{Queue: "none", Passive: true}, amqp091.NotFound, "no queue 'none' in vhost '/'")
		ch.Refused(&amqp091.QueueDeclare{Queue: q}, amqp091.PreconditionFailed, "inequivalent arg 'durable' for queue 'q' in vhost '/': received 'false' but current is 'true'")
		ch.Refused(&amqp091.BasicAck{DeliveryTag: 5}, amqp091.PreconditionFailed, "unknown delivery tag 5")
		e := fmt.Sprintf("exclusive-%p", ch)
		ch.Declare(&amqp091.QueueDeclare{Queue: e, Exclusive: true})
		for _, other := range []*amqptest.Channel{one, two, three} {
			if other != ch {
				other.Refused(&amqp091.QueueDeclare{Queue: e, Passive: true}, amqp091.ResourceLocked, lockedText(e))
			}
		}
		ch.Confirm()
		ch.PutMandatory("", "none", "m")
		ch.Expect(amqp091.BasicReturnID)
		ch.Settled(1, 1)
		ch.Leave()
		ch.Reopen()
	}
	// 227
	consumeReplies(one)
	d := request(one, two, q)
	two.PutWith("", replyTo(d), "reply", amqp091.Properties{})
	one.ExpectBodies("reply")
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
			if ch.TryRaw(b, time.Second) {
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

// TestRow146LeaderKill, and rows 150, 231 and 233: what was confirmed is there once and in order when the leader was killed in the
// midst of it; what was settled is not there; consumers that come back go on.
func TestRow146LeaderKill(t *testing.T) {
	c := startTrio(t, nil)
	leader, through := c.leader(), c.followers()[0]
	_, ch := c.dial(through)
	for _, m := range []*amqp091.QueueDeclare{{Queue: "K", Durable: true}, amqptest.Quorum("Q"), {Queue: "settled", Durable: true}} {
		ch.Declare(m)
	}
	ch.Bind("K", "amq.fanout", "", nil)
	conn, consuming := c.dial(through)
	conn.Fill("settled", "1", "2", "3", "4")
	consuming.Consume("settled", "t")
	consuming.Ack(consuming.ExpectBodies("1", "2", "3", "4")[1].Tag, true)
	consuming.Pass(&amqp091.BasicRecover{Requeue: true}) // behind it the acks are known to be applied
	sent, confirmed := publishUntilEnd(ch, "Q", func(n int) {
		if n == 300 {
			c.kill(leader)
		}
	})
	t.Logf("%d sent, %d confirmed", sent, confirmed)
	if confirmed == 0 {
		t.Fatal("nothing was confirmed")
	}
	conn.ExpectEnd()
	_, again := c.dial(through) // waits for the next leader
	got := again.Drain("Q")
	if len(got) < confirmed {
		t.Fatalf("%d were confirmed, %d are there", confirmed, len(got))
	}
	for i, text := range got {
		if text != fmt.Sprint(i+1) {
			t.Fatalf("message %d is %s", i+1, text)
		}
	}
	again.Consume("settled", "t")
	for _, d := range again.ExpectBodies("3", "4") {
		if !d.Redelivered {
			t.Errorf("%q is not marked as redelivered", d.Text())
		}
	}
	again.Put("", "settled", "5")
	again.ExpectBodies("5")
}

// TestRow149WithoutQuorum, and rows 195 and 232: who is cut off confirms nothing, delivers nothing and answers no get; after
// the cut all nodes agree.
func TestRow149WithoutQuorum(t *testing.T) {
	c := startTrio(t, nil)
	leader := c.leader()
	conn, ch := c.dial(leader)
	q := ch.Declare(amqptest.Quorum("q")).Queue
	conn.Fill(q, "before")
	_, getting := c.dial(leader)
	_, consuming := c.dial(leader)
	ch.Confirm()
	c.isolate(leader)
	ch.Put("", q, "cut off")
	getting.Send(&amqp091.BasicGet{Queue: q})
	consuming.Send(&amqp091.BasicConsume{Queue: q, ConsumerTag: "t"})
	for _, side := range []*amqptest.Channel{ch, getting, consuming} {
		for code := amqptest.Open; code == amqptest.Open; {
			var e *amqptest.Event
			e, code = side.Poll(amqptest.Patience)
			switch m := eventMethod(e).(type) {
			case *amqp091.BasicAck, *amqp091.BasicGetOk, *amqp091.BasicGetEmpty, *amqp091.BasicDeliver:
				if m.ID() != amqp091.BasicDeliverID { // within the lease it still may
					t.Errorf("one that is cut off said %s", amqptest.Describe(m))
				}
			}
		}
	}
	var majority []*member
	for _, m := range c.members {
		if m != leader {
			majority = append(majority, m)
		}
	}
	c.leaderOf(majority...)
	_, other := c.dial(majority[0])
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
