package broker

import (
	"context"
	"math"
	"sync"

	"github.com/warrenmq/warren/fsm"
)

// Range is a range of delivery tags, both ends included.
type Range struct{ From, To uint64 }

// taken are deliveries of one view that left a channel's outstanding ones.
type taken struct {
	view    *view
	entries []entry
}

func (t *taken) sequences() []uint64 {
	list := make([]uint64, len(t.entries))
	for i := range t.entries {
		list[i] = t.entries[i].sequence
	}
	return list
}

// consumers returns who got the deliveries, each as often as it did.
func (t *taken) consumers() []*consumer {
	var list []*consumer
	for i := range t.entries {
		if c := t.entries[i].consumer; c != nil {
			list = append(list, c)
		}
	}
	return list
}

// takings are deliveries by their views.
type takings struct {
	list []taken
	at   map[*view]int // index in list; nil while there is one
	n    int
}

func (t *takings) add(e entry) {
	t.n++
	last := len(t.list) - 1
	if last >= 0 && t.list[last].view == e.view {
		t.list[last].entries = append(t.list[last].entries, e)
		return
	}
	if last == 0 {
		t.at = map[*view]int{t.list[0].view: 0}
	}
	i, known := t.at[e.view]
	if !known {
		i = len(t.list)
		t.list = append(t.list, taken{view: e.view})
		if t.at != nil {
			t.at[e.view] = i
		}
	}
	t.list[i].entries = append(t.list[i].entries, e)
}

// all yields every delivery.
func (t *takings) all(yield func(entry) bool) {
	for _, p := range t.list {
		for _, e := range p.entries {
			if !yield(e) {
				return
			}
		}
	}
}

// unknownTag is AMQP's refusal of a tag that is not outstanding.
func unknownTag(tag uint64) error {
	return errorf(fsm.PreconditionFailed, "PRECONDITION_FAILED - unknown delivery tag %d", tag)
}

// take removes the deliveries that an acknowledgement in AMQP's manner names: tag, and with multiple all before it;
// 0 with multiple is all there are. A tag that is not outstanding takes nothing. The consumers' credit stays used up
// until release. The caller holds mu.
func (ch *Channel) take(tag uint64, multiple bool, into *takings) error {
	from, to := tag, tag
	if multiple {
		from = 0
	}
	switch {
	case tag == 0 && multiple:
		to = math.MaxUint64
	case tag == 0 || !ch.unacked.has(tag):
		return unknownTag(tag)
	}
	ch.unacked.take(from, to, into.add)
	return nil
}

// takeRanges removes the deliveries in the ranges, up to the first range in which there is none. The consumers' credit
// stays used up until release. The caller holds mu.
func (ch *Channel) takeRanges(ranges []Range, into *takings) error {
	for _, r := range ranges {
		if r.To < r.From || r.To > ch.lastTag || ch.unacked.take(r.From, r.To, into.add) == 0 {
			return unknownTag(r.To)
		}
	}
	return nil
}

// release gives the credit of taken deliveries back to their consumers. The caller holds mu of their channel.
func (t *takings) release() {
	for e := range t.all {
		if e.consumer != nil {
			e.consumer.release()
		}
	}
}

// release gives consumers their credit back.
func release(consumers []*consumer) {
	for _, c := range consumers {
		c.channel.mu.Lock()
		c.release()
		c.channel.mu.Unlock()
	}
}

// credits reports whether deliveries that end so have their credit released at once. What returns must be in its place
// in the queue first: it is the next to be delivered, not what lies behind it.
func credits(kind fsm.SettleKind) bool { return kind != fsm.Return }

// SettleTag acknowledges, rejects or returns a delivery, and with multiple all outstanding ones up to it; tag 0 with
// multiple is all there are and always allowed. A tag that is not outstanding is a PreconditionFailed and settles
// nothing. It does not block: Session.Settled waits until it is applied. It costs what it settles.
func (ch *Channel) SettleTag(kind fsm.SettleKind, tag uint64, multiple bool) error {
	if !multiple {
		return ch.settleOne(kind, tag)
	}
	var t takings
	ch.mu.Lock()
	err := ch.take(tag, true, &t)
	if credits(kind) {
		t.release()
	}
	ch.mu.Unlock()
	if err == nil {
		ch.settle(kind, &t)
	}
	return err
}

// settleOne is SettleTag of the case that counts, without allocating.
func (ch *Channel) settleOne(kind fsm.SettleKind, tag uint64) error {
	var found entry
	ch.mu.Lock()
	if ch.unacked.take(tag, tag, func(e entry) { found = e }) == 0 {
		ch.mu.Unlock()
		return unknownTag(tag)
	}
	var later []*consumer
	if c := found.consumer; c != nil && credits(kind) {
		c.release()
	} else if c != nil {
		later = []*consumer{c}
	}
	ch.mu.Unlock()
	ch.session.leadership.broker.stats.settled(kind, 1)
	ch.session.lane.submitSettle(found.view, kind, later, found.sequence)
	return nil
}

// settle ends taken deliveries, whose credit was released if the kind credits.
func (ch *Channel) settle(kind fsm.SettleKind, t *takings) {
	ch.session.leadership.broker.stats.settled(kind, t.n)
	for i := range t.list {
		p := &t.list[i]
		var later []*consumer
		if !credits(kind) {
			later = p.consumers()
		}
		ch.session.lane.submitSettle(p.view, kind, later, p.sequences()...)
	}
}

// Recover returns all outstanding deliveries of the channel to their queues and waits until that is applied.
func (ch *Channel) Recover(ctx context.Context) error {
	if err := ch.SettleTag(fsm.Return, 0, true); err != nil {
		return err
	}
	return ch.session.Settled(ctx)
}

// Settle acknowledges, rejects or returns deliveries. done is told once when all of it is applied, with the first
// failure if there is one; tags that are not outstanding are a precondition failure, and what else was named is
// settled all the same.
func (ch *Channel) Settle(kind fsm.SettleKind, ranges []Range, token uint64, done Completer) {
	var t takings
	ch.mu.Lock()
	err := ch.takeRanges(ranges, &t)
	if credits(kind) {
		t.release()
	}
	ch.mu.Unlock()
	outcome := fsm.Result{}
	if err != nil {
		outcome = fsm.Result{Code: AsError(err).Code, Message: err.Error()}
	}
	if len(t.list) == 0 {
		done.Complete(token, outcome)
		return
	}
	ch.session.leadership.broker.stats.settled(kind, t.n)
	var mu sync.Mutex
	left := len(t.list)
	for i := range t.list {
		v := t.list[i].view
		var later []*consumer
		if !credits(kind) {
			later = t.list[i].consumers()
		}
		v.settle(ch.session.lane, kind, t.list[i].sequences(), func(r fsm.Result) {
			release(later)
			mu.Lock()
			if r.Code != fsm.OK && outcome.Code == fsm.OK {
				outcome = r
			}
			left--
			last := left == 0
			mu.Unlock()
			if last {
				done.Complete(token, outcome)
			}
		})
	}
}
