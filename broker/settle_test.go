package broker

import (
	"fmt"
	"testing"

	"github.com/warrenmq/warren/fsm"
)

// filled returns a channel whose consumer holds n messages of the queue q.
func filled(t *testing.T, n int) (*alone, *wire, *Channel) {
	a := startAlone(t, Config{})
	w := a.connect()
	ch := w.channel(1)
	w.declare(Queue{Name: "q"})
	w.consume(ch, Consumer{Queue: "q", Tag: "t"})
	for i := range n {
		w.publish("q", fmt.Sprint(i+1))
		w.next("t", fmt.Sprint(i+1))
	}
	return a, w, ch
}

// left waits until all is applied and returns the messages of the queue.
func (w *wire) left() uint64 {
	w.t.Helper()
	check(w.t, w.session.Settled(within(w.t)))
	info, err := w.session.queue("q")
	check(w.t, err)
	return info.Messages
}

// TestRow182To184WhichTagsMayBeSettled: one that is not outstanding settles nothing, not even what multiple names besides.
func TestRow182To184WhichTagsMayBeSettled(t *testing.T) {
	_, w, ch := filled(t, 5)
	unknown := func(tag uint64, multiple bool) {
		t.Helper()
		refused(t, ch.SettleTag(fsm.Acknowledge, tag, multiple), fsm.PreconditionFailed, fmt.Sprintf("PRECONDITION_FAILED - unknown delivery tag %d", tag))
	}
	unknown(0, false)
	unknown(6, false)
	unknown(6, true)
	check(t, ch.SettleTag(fsm.Acknowledge, 3, false))
	unknown(3, false)
	unknown(3, true)
	if n := w.left(); n != 4 {
		t.Fatalf("%d messages are left", n)
	}
	check(t, ch.SettleTag(fsm.Reject, 4, true))
	if n := w.left(); n != 1 {
		t.Fatalf("%d messages are left", n)
	}
	check(t, ch.SettleTag(fsm.Acknowledge, 0, true))
	check(t, ch.SettleTag(fsm.Acknowledge, 0, true)) // none there: that is fine
	if n := w.left(); n != 0 {
		t.Fatalf("%d messages are left", n)
	}
}

// TestRow186To188ReturnedMessagesKeepTheirPlace and are marked.
func TestRow186To188ReturnedMessagesKeepTheirPlace(t *testing.T) {
	a, w, ch := filled(t, 3)
	w.publish("q", "4")
	w.next("t", "4")
	check(t, ch.Cancel(within(t), "t"))
	for _, tag := range []uint64{2, 1, 3} {
		check(t, ch.SettleTag(fsm.Return, tag, false))
	}
	check(t, w.session.Settled(within(t)))
	other := a.connect()
	other.consume(other.channel(1), Consumer{Queue: "q", Tag: "o"})
	for _, body := range []string{"1", "2", "3"} {
		if d := other.next("o", body); !d.Redelivered || d.Message.DeliveryCount != 1 {
			t.Fatalf("%+v", d)
		}
	}
	if w.left() != 4 {
		t.Fatal("a returned message is gone")
	}
}

func TestRow192Recover(t *testing.T) {
	_, w, ch := filled(t, 3)
	check(t, ch.SettleTag(fsm.Acknowledge, 2, false))
	check(t, ch.Recover(within(t)))
	for i, body := range []string{"1", "3"} {
		if d := w.next("t", body); !d.Redelivered || d.Tag != uint64(4+i) {
			t.Fatalf("%+v", d)
		}
	}
	refused(t, ch.SettleTag(fsm.Acknowledge, 1, false), fsm.PreconditionFailed, "unknown delivery tag 1")
	check(t, ch.SettleTag(fsm.Acknowledge, 5, true))
	check(t, ch.Recover(within(t)))
	if w.left() != 0 {
		t.Fatal("something is left")
	}
}

// TestAcknowledgementsJoin: what is settled while the log is slow costs few commands.
func TestAcknowledgementsJoin(t *testing.T) {
	const n = 2000
	a, w, ch := filled(t, n)
	check(t, w.session.Settled(within(t)))
	before := a.broker.Stats().Commands
	a.gate.Lock()
	for tag := range uint64(n) {
		check(t, ch.SettleTag(fsm.Acknowledge, tag+1, false))
	}
	a.gate.Unlock()
	if left := w.left(); left != 0 {
		t.Fatalf("%d messages are left", left)
	}
	if made := a.broker.Stats().Commands - before; made > 100 {
		t.Errorf("%d acknowledgements cost %d commands", n, made)
	}
}

// BenchmarkSettleTag delivers nothing: it is what an acknowledgement costs until it is in an entry.
func BenchmarkSettleTag(b *testing.B) {
	l := &leadership{broker: New(Config{}), term: 1}
	p := newProposer(l, 0, &counters{})
	ch := &Channel{ID: 1, session: &Session{leadership: l, lane: p.newLane()}}
	v := newView(l, fsm.QueueInfo{Number: 1})
	b.ReportAllocs()
	for tag := uint64(1); b.Loop(); tag++ {
		ch.unacked.add(tag, unacked{view: v, sequence: tag})
		if err := ch.SettleTag(fsm.Acknowledge, tag, false); err != nil {
			b.Fatal(err)
		}
		if tag%1000 == 0 {
			p.mu.Lock()
			p.cut(nil, &flight{})
			p.mu.Unlock()
		}
	}
}
