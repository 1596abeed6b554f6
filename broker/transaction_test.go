package broker

import (
	"testing"

	"github.com/warrenmq/warren/fsm"
)

func (w *wire) commit(ch *Channel, operations ...Operation) fsm.Result {
	w.t.Helper()
	r, err := ch.Commit(within(w.t), operations)
	check(w.t, err)
	return r
}

func take(t *testing.T, ch *Channel, tag uint64, multiple bool) *Held {
	t.Helper()
	h, err := ch.Take(tag, multiple)
	check(t, err)
	return h
}

// TestRow154And155TakingAndPuttingBack: a tag is taken at once, a rollback makes it outstanding again.
func TestRow154And155TakingAndPuttingBack(t *testing.T) {
	_, w, ch := filled(t, 4)
	h := take(t, ch, 2, true)
	_, err := ch.Take(2, false)
	refused(t, err, fsm.PreconditionFailed, "unknown delivery tag 2")
	refused(t, ch.SettleTag(fsm.Acknowledge, 1, false), fsm.PreconditionFailed, "unknown delivery tag 1")
	three := take(t, ch, 3, false)
	ch.PutBack(three, h, h, nil)
	if w.left() != 4 {
		t.Fatal("a rollback settled something")
	}
	check(t, ch.SettleTag(fsm.Acknowledge, 2, true))
	again := take(t, ch, 0, true)
	r := w.commit(ch, Operation{Settle: true, Kind: fsm.Acknowledge, Held: again}, Operation{Publication: Publication{RoutingKey: "q", Body: []byte("new")}})
	if len(r.Parts) != 2 || r.Parts[1].Routed != 1 {
		t.Fatalf("%+v", r)
	}
	w.next("t", "new")
	if n := w.left(); n != 1 {
		t.Fatalf("%d messages are left", n)
	}
	_, err = ch.Commit(within(t), []Operation{{Settle: true, Kind: fsm.Acknowledge, Held: again}})
	refused(t, err, fsm.PreconditionFailed, "went back")
}

// TestRow158ARefusedPublishCommitsNothing, and what was to be acknowledged is outstanding again.
func TestRow158ARefusedPublishCommitsNothing(t *testing.T) {
	_, w, ch := filled(t, 2)
	h := take(t, ch, 0, true)
	_, err := ch.Commit(within(t), []Operation{{Settle: true, Kind: fsm.Acknowledge, Held: h},
		{Publication: Publication{RoutingKey: "q", Body: []byte("new")}}, {Publication: Publication{Exchange: "missing"}}})
	refused(t, err, fsm.NotFound, "no exchange 'missing'")
	if n := w.left(); n != 2 {
		t.Fatalf("%d messages are left", n)
	}
	check(t, ch.SettleTag(fsm.Acknowledge, 1, false))
	check(t, ch.SettleTag(fsm.Acknowledge, 2, false))
}

// TestRow159AClosedChannelReturnsWhatATransactionHeld.
func TestRow159AClosedChannelReturnsWhatATransactionHeld(t *testing.T) {
	a, w, ch := filled(t, 3)
	h := take(t, ch, 2, true)
	ch.Close()
	check(t, w.session.Settled(within(t)))
	ch.PutBack(h)
	_, err := ch.Commit(within(t), []Operation{{Settle: true, Kind: fsm.Acknowledge, Held: h}})
	refused(t, err, fsm.PreconditionFailed, "went back")
	other := a.connect()
	other.consume(other.channel(1), Consumer{Queue: "q", Tag: "o"})
	for _, body := range []string{"1", "2", "3"} {
		other.next("o", body)
	}
}

// TestATransactionKeepsCredit: a consumer gets nothing for what it has acknowledged and not committed.
func TestATransactionKeepsCredit(t *testing.T) {
	w := startAlone(t, Config{}).connect()
	ch := w.channel(1)
	w.declare(Queue{Name: "q"})
	ch.Qos(1, false)
	ch.Qos(1, true)
	w.consume(ch, Consumer{Queue: "q", Tag: "t"})
	w.publish("q", "1", "2", "3")
	h := take(t, ch, w.next("t", "1").Tag, false)
	w.blocked("q")
	w.nothing()
	w.commit(ch, Operation{Settle: true, Kind: fsm.Acknowledge, Held: h})
	h = take(t, ch, w.next("t", "2").Tag, false)
	ch.PutBack(h)
	w.blocked("q")
	check(t, ch.SettleTag(fsm.Return, 2, false))
	w.next("t", "2") // in its place again before there is credit for the next
	w.blocked("q")
	w.nothing()
}
