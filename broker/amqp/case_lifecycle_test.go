package amqp_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/warrenmq/warren/broker/amqp/amqptest"
	"github.com/warrenmq/warren/protocol/amqp091"
)

func TestCaseBodyEmpty(t *testing.T) {
	c, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	ch.ConsumeWith(&amqp091.BasicConsume{Queue: q, NoAck: true})
	c.Raw(append(publishFrame(q), header(60, 0, 0, noProperties)...))
	ch.ExpectBodies("")
	ch.Put("", q, "x")
	ch.PutWith("", q, "", amqp091.Properties{Headers: amqp091.Map{"a": "b"}})
	for i, frames := range []int{1, 0} {
		if d := ch.Deliver(); len(d.Frames) != frames {
			t.Errorf("delivery %d has %d body frames", i, len(d.Frames))
		}
	}
}

func TestCaseBodyFrameMax(t *testing.T) {
	c, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	sizes := []int{4087, 4088, 4089, 8176, 8177, 1 << 20, 1<<20 + 1}
	for _, n := range sizes {
		c.Raw(ch.Message(nil, toQueue(q), nil, bytes.Repeat([]byte("x"), n)))
	}
	small := amqptest.DialWith(t, address(t), amqptest.Options{FrameMax: 4096}).Channel(1)
	small.Consume(q, "")
	for _, n := range sizes {
		d := small.Deliver()
		if len(d.Body) != n || len(d.Frames) != (n+4087)/4088 || d.Frames[0] != min(n, 4088) {
			t.Errorf("%d bytes came as %d in %d frames, the first of %d", n, len(d.Body), len(d.Frames), d.Frames[0])
		}
	}
}

func TestCaseExclusiveReleased(t *testing.T) {
	t.Parallel()
	other := dial(t).Channel(1)
	e := name(t, "e")
	for _, leave := range []func(*amqptest.Conn){(*amqptest.Conn).Close, (*amqptest.Conn).Cut} {
		c := dial(t)
		ch := c.Channel(1)
		ch.Declare(&amqp091.QueueDeclare{Queue: e, Exclusive: true})
		ch.Leave()
		other.Refused(&amqp091.QueueDeclare{Queue: e, Passive: true}, amqp091.ResourceLocked, lockedText(e))
		leave(c)
		other.ExpectGone(e)
	}
}

func TestCaseExclusiveQueueRerun(t *testing.T) {
	t.Parallel()
	x := name(t, "x")
	for i := range 20 {
		c := dial(t)
		ch := c.Channel(1)
		ch.Exchange(x, "topic")
		q := ch.Declare(&amqp091.QueueDeclare{Exclusive: true}).Queue
		ch.Bind(q, x, "kern.*", nil)
		ch.Consume(q, "")
		ch.Put(x, "kern.critical", "m")
		ch.ExpectBodies("m")
		if i%2 == 0 {
			c.Close()
		} else {
			c.Cut()
		}
	}
}

func TestCaseHeartbeatSlowConsumer(t *testing.T) {
	t.Parallel()
	c := amqptest.DialWith(t, address(t), amqptest.Options{Heartbeat: 2})
	ch := c.Channel(1)
	q := ch.Queue(name(t, "q"))
	c.Fill(q, "1", "2")
	ch.Qos(1, false)
	ch.Consume(q, "")
	d := ch.Deliver()
	for range 7 {
		ch.Nothing(time.Second)
		c.Raw(heartbeat)
	}
	if c.Beats < 3 {
		t.Errorf("%d heartbeats in 7 seconds", c.Beats)
	}
	ch.Ack(d.Tag, false)
	ch.ExpectBodies("2")
}

// TestCaseAutoDeleteRace: when the last consumer leaves as the next one comes, the next one is told what is the case.
func TestCaseAutoDeleteRace(t *testing.T) {
	_, leaving := begin(t)
	c := dial(t)
	coming := c.Channel(1)
	for i := range 40 {
		q := fmt.Sprintf("%s.%d", name(t, "q"), i)
		leaving.Declare(&amqp091.QueueDeclare{Queue: q, AutoDelete: true})
		leaving.Consume(q, "t")
		leaving.Send(&amqp091.BasicCancel{ConsumerTag: "t"})
		coming.Send(&amqp091.BasicConsume{Queue: q, ConsumerTag: "t"})
		leaving.Expect(amqp091.BasicCancelOkID)
		switch e := coming.Next(); m := e.Method.(type) {
		case *amqp091.BasicConsumeOk:
			leaving.Put("", q, "m")
			e := coming.Next()
			if e.Method.ID() == amqp091.BasicCancelID { // it may have gone all the same, but then it is said
				break
			}
			if e.Method.ID() != amqp091.BasicDeliverID {
				t.Fatal(amqptest.Describe(e.Method))
			}
			coming.Call(&amqp091.BasicCancel{ConsumerTag: "t"})
			leaving.ExpectGone(q)
		case *amqp091.ChannelClose:
			if m.ReplyCode != 404 {
				t.Fatal(amqptest.Describe(m))
			}
			coming.Send(&amqp091.ChannelCloseOk{})
			coming.Reopen()
			leaving.ExpectGone(q)
		default:
			t.Fatal(amqptest.Describe(m))
		}
	}
}

func TestCaseDeleteIfEmptyUnacked(t *testing.T) {
	c, ch := begin(t)
	q, holder := ch.Queue(name(t, "q")), c.Channel(2)
	c.Fill(q, "1", "2")
	holder.MustGet(q)
	ch.Refused(&amqp091.QueueDelete{Queue: q, IfEmpty: true}, amqp091.PreconditionFailed, "queue '"+q+"' in vhost '/' not empty")
	holder.MustGet(q)
	if ok := ch.Call(&amqp091.QueueDelete{Queue: q, IfEmpty: true}).(*amqp091.QueueDeleteOk); ok.MessageCount != 0 {
		t.Errorf("%+v", ok)
	}
	holder.Ack(0, true)
	holder.Quiet()
}

// TestCaseHeadersRoundTrip: every kind of value, as clients' libraries write them.
func TestCaseHeadersRoundTrip(t *testing.T) {
	_, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	headers := amqp091.Map{"text": "é", "empty": "", "small": int32(-5), "large": int64(1) << 40, "true": true, "void": nil, "bytes": []byte{0, 1, 2}, "decimal": amqp091.Decimal{Scale: 2, Value: 125},
		"time": time.Unix(1700000000, 0), "array": []any{"a", int32(1), amqp091.Map{"in": "array"}}, "deep": amqp091.Map{"b": amqp091.Map{"c": amqp091.Map{"d": "e"}}},
		strings.Repeat("k", 120): "long", "float": 1.5}
	ch.PutWith("", q, "m", amqp091.Properties{Headers: headers})
	ch.ExpectDepth(q, 1)
	if got, want := ch.MustGet(q).Headers(), table(t, headers); !bytes.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestCaseManyQueues: hundreds of queues on one channel, declared and deleted without waiting.
func TestCaseManyQueues(t *testing.T) {
	_, ch := begin(t)
	const n = 200
	began := time.Now()
	for i := range n {
		ch.Send(&amqp091.QueueDeclare{Queue: fmt.Sprintf("%s.%d", name(t, "q"), i), Durable: true})
	}
	for range n {
		ch.Expect(amqp091.QueueDeclareOkID)
	}
	extra := ch.Queue(name(t, "extra"))
	ch.Put("", extra, "m")
	ch.ExpectDepth(extra, 1)
	for i := range n {
		ch.Send(&amqp091.QueueDelete{Queue: fmt.Sprintf("%s.%d", name(t, "q"), i)})
	}
	for range n {
		ch.Expect(amqp091.QueueDeleteOkID)
	}
	t.Logf("%d declares and deletes in %v", n, time.Since(began).Round(time.Millisecond))
}
