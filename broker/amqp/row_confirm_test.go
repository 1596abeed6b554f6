package amqp_test

import (
	"testing"

	"github.com/warrenmq/warren/broker/amqp/amqptest"
	"github.com/warrenmq/warren/protocol/amqp091"
)

func TestRow142FirstIsOne(t *testing.T) {
	_, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	for range 5 {
		ch.Put("", q, "uncounted")
	}
	ch.Confirm()
	ch.Put("", q, "first")
	ch.Settled(1, 1)
	ch.ExpectDepth(q, 6)
}

func TestRow143SelectTwice(t *testing.T) {
	_, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	ch.Confirm()
	ch.Put("", q, "m")
	ch.Settled(1, 1)
	ch.Confirm()
	ch.Send(&amqp091.ConfirmSelect{NoWait: true})
	ch.Quiet()
	ch.Put("", q, "m")
	ch.Settled(2, 2)
}

// TestRow144EachOnce: every number once, whatever becomes of the message, and however acks are put together (row 145).
func TestRow144EachOnce(t *testing.T) {
	_, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	ch.Confirm()
	const n = 3000
	var b []byte
	for i := range n {
		m := toQueue(q)
		switch i % 3 {
		case 1:
			m.RoutingKey = []byte(name(t, "none"))
		case 2:
			m.RoutingKey, m.Mandatory = []byte(name(t, "none")), i%30 == 29
		}
		b = ch.Message(b, m, nil, []byte("m"))
	}
	ch.Raw(b)
	if returned := ch.Settled(1, n); len(returned) != n/30 {
		t.Fatalf("%d were returned, want %d", len(returned), n/30)
	}
	ch.ExpectDepth(q, n/3)
	ch.Quiet()
}

// TestRow145MultipleCoversSettledOnly: a message that takes longer holds up what is confirmed with multiple, and a return comes
// before its ack.
func TestRow145MultipleCoversSettledOnly(t *testing.T) {
	_, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	ch.Confirm()
	large := make([]byte, 3<<20)
	var b []byte
	for i := range 40 {
		text := []byte("small")
		if i%10 == 3 {
			text = large
		}
		m := toQueue(q)
		m.Mandatory = i%2 == 0
		if m.Mandatory {
			m.RoutingKey = []byte(name(t, "none"))
		}
		b = ch.Message(b[:0], m, nil, text)
		ch.Raw(b)
	}
	returned := 0
	settled := map[uint64]bool{}
	for len(settled) < 40 {
		switch m := ch.Next().Method.(type) {
		case *amqp091.BasicReturn:
			returned++
		case *amqp091.BasicAck:
			from := m.DeliveryTag
			if m.Multiple {
				from = 1
			}
			for n := from; n <= m.DeliveryTag; n++ {
				settled[n] = true
			}
			mandatory := 0
			for n := range settled {
				mandatory += int(n % 2)
			}
			if returned < mandatory {
				t.Fatalf("%d mandatory publishes were confirmed, %d returned before", mandatory, returned)
			}
		default:
			t.Fatal(amqptest.Describe(m))
		}
	}
	ch.ExpectDepth(q, 20)
}

func TestRow148DeletedWithPendingConfirms(t *testing.T) {
	c, ch := begin(t)
	other := c.Channel(2)
	for range 20 {
		q := ch.Queue(name(t, "q"))
		var b []byte
		for range 50 {
			b = ch.Message(b, toQueue(q), nil, []byte("m"))
		}
		ch.Confirm()
		ch.Raw(b)
		other.Send(&amqp091.QueueDelete{Queue: q})
		ch.Settled(1, 50)
		other.Expect(amqp091.QueueDeleteOkID)
		ch.Leave()
		ch.Reopen()
	}
}

func TestRow151ConfirmAndTx(t *testing.T) {
	_, ch := begin(t)
	ch.Confirm()
	ch.Refused(&amqp091.TxSelect{}, amqp091.PreconditionFailed, "cannot switch from confirm to tx mode")
	ch.Call(&amqp091.TxSelect{})
	ch.Refused(&amqp091.ConfirmSelect{}, amqp091.PreconditionFailed, "cannot switch from tx to confirm mode")
}

func TestRow152NotTransactional(t *testing.T) {
	_, ch := begin(t)
	ch.Refused(&amqp091.TxCommit{}, amqp091.PreconditionFailed, "channel is not transactional")
	ch.Refused(&amqp091.TxRollback{}, amqp091.PreconditionFailed, "channel is not transactional")
}

func TestRow153InvisibleBeforeCommit(t *testing.T) {
	c, ch := begin(t)
	watcher := c.Channel(2)
	a, b := ch.Queue(name(t, "a")), ch.Queue(name(t, "b"))
	ch.Call(&amqp091.TxSelect{})
	ch.Call(&amqp091.TxSelect{})
	ch.Put("", a, "1")
	ch.Put("", b, "2")
	ch.Quiet()
	if watcher.Look(a).MessageCount != 0 || watcher.Look(b).MessageCount != 0 {
		t.Fatal("visible before the commit")
	}
	ch.Call(&amqp091.TxCommit{})
	if watcher.Look(a).MessageCount != 1 || watcher.Look(b).MessageCount != 1 {
		t.Fatal("not visible after commit-ok")
	}
	ch.Call(&amqp091.TxCommit{}) // of nothing
	ch.Put("", a, "3")
	ch.Call(&amqp091.TxCommit{})
	if n := watcher.Look(a).MessageCount; n != 2 {
		t.Fatalf("%d messages after the next commit", n)
	}
}

func TestRow154Rollback(t *testing.T) {
	c, ch := begin(t)
	watcher := c.Channel(2)
	q := ch.Queue(name(t, "q"))
	c.Fill(q, "a", "b", "c")
	ch.Call(&amqp091.TxSelect{})
	a, b, d := ch.MustGet(q), ch.MustGet(q), ch.MustGet(q)
	ch.Ack(a.Tag, false)
	ch.Nack(b.Tag, false, true)
	ch.Send(&amqp091.BasicReject{DeliveryTag: d.Tag})
	ch.Put("", q, "dropped")
	ch.Call(&amqp091.TxRollback{})
	if n := watcher.Look(q).MessageCount; n != 0 {
		t.Fatalf("%d messages after the rollback", n)
	}
	ch.Ack(a.Tag, false)
	ch.Ack(b.Tag, false)
	ch.Nack(d.Tag, false, true)
	ch.Call(&amqp091.TxCommit{})
	if got := watcher.Drain(q); len(got) != 1 || got[0] != "c" {
		t.Fatalf("after the commit the queue has %v", got)
	}
	ch.Leave()
	if n := watcher.Look(q).MessageCount; n != 0 {
		t.Fatalf("%d messages came back", n)
	}
}

func TestRow155AckTwiceInTx(t *testing.T) {
	c, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	c.Fill(q, "a")
	ch.Call(&amqp091.TxSelect{})
	d := ch.MustGet(q)
	ch.Ack(d.Tag, false)
	ch.Refused(&amqp091.BasicAck{DeliveryTag: d.Tag}, amqp091.PreconditionFailed, "unknown delivery tag 1")
	ch.ExpectDepth(q, 1)
}

func TestRow156ReturnBeforeCommitOk(t *testing.T) {
	_, ch := begin(t)
	none := name(t, "none")
	ch.Call(&amqp091.TxSelect{})
	ch.PutMandatory("", none, "m")
	ch.Quiet()
	ch.Send(&amqp091.TxCommit{})
	if e := ch.Expect(amqp091.BasicReturnID); string(e.Body) != "m" {
		t.Fatalf("returned %q", e.Body)
	}
	ch.Expect(amqp091.TxCommitOkID)
	ch.PutMandatory("", none, "m")
	ch.Call(&amqp091.TxRollback{})
	ch.Call(&amqp091.TxCommit{})
}

func TestRow157BadPublishInTx(t *testing.T) {
	_, ch := begin(t)
	q, none := ch.Queue(name(t, "q")), name(t, "none")
	ch.Call(&amqp091.TxSelect{})
	ch.Put("", q, "dropped")
	ch.Put(none, "k", "m")
	ch.ExpectClose(amqp091.NotFound, amqp091.BasicPublishID, "no exchange '"+none+"' in vhost '/'")
	ch.Reopen()
	ch.ExpectDepth(q, 0)
}

func TestRow159CloseInTx(t *testing.T) {
	c, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	c.Fill(q, "a")
	ch.Call(&amqp091.TxSelect{})
	d := ch.MustGet(q)
	ch.Ack(d.Tag, false)
	ch.Put("", q, "dropped")
	ch.Leave()
	ch.Reopen()
	if got := ch.Drain(q); len(got) != 1 || got[0] != "a" {
		t.Fatalf("the queue has %v", got)
	}
	// The same at the end of the connection.
	c.Fill(q, "b")
	ch.Call(&amqp091.TxSelect{})
	ch.Ack(ch.MustGet(q).Tag, false)
	c.Cut()
	dial(t).Channel(1).ExpectDepth(q, 1)
}
