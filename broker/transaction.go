package broker

import (
	"context"
	"slices"

	"github.com/warrenmq/warren/fsm"
)

// Held are deliveries that a transaction not committed yet has settled: their tags are not outstanding, and their
// consumers' credit is still used up. They end with Channel.Commit or Channel.PutBack; when the channel closes first
// they return to their queues.
type Held struct {
	takings
	owner *Channel // nil once it ended; guarded by the channel's mu
}

// Take takes deliveries for a transaction, by the rules of SettleTag, at once: a second settling of the same tag is
// refused.
func (ch *Channel) Take(tag uint64, multiple bool) (*Held, error) {
	h := &Held{owner: ch}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if err := ch.take(tag, multiple, &h.takings); err != nil {
		return nil, err
	}
	if ch.held == nil {
		ch.held = map[*Held]struct{}{}
	}
	ch.held[h] = struct{}{}
	return h, nil
}

// Empty reports whether nothing was taken.
func (h *Held) Empty() bool { return h.n == 0 }

// PutBack makes taken deliveries outstanding again, with the tags they had. Held ones that ended are passed over.
func (ch *Channel) PutBack(held ...*Held) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	var all []entry
	for _, h := range held {
		if !ch.claim(h) {
			continue
		}
		for i := range h.list {
			all = append(all, h.list[i].entries...)
		}
	}
	if len(all) > 0 {
		ch.unacked.putBack(all)
	}
}

// claim makes the caller the one who ends held deliveries. The caller holds mu.
func (ch *Channel) claim(h *Held) bool {
	if h == nil || h.owner != ch {
		return false
	}
	h.owner = nil
	delete(ch.held, h)
	return true
}

// Operation is one of a transaction: a publish, or the end of deliveries, either taken before or named by ranges.
type Operation struct {
	Publication
	Settle bool
	Kind   fsm.SettleKind
	Held   *Held
	Ranges []Range
}

// transaction is what Commit makes of operations.
type transaction struct {
	command fsm.Transaction
	first   []int // index of each operation's first command; -1 of one that has none
	settled []takings
	kinds   []fsm.SettleKind // of settled
}

// Commit applies operations at one index, all or none (rule 8). The result has a part for each operation. After an
// error nothing was applied, and what was to be settled is outstanding again; only when the context ended or
// leadership was lost the outcome is unknown.
func (ch *Channel) Commit(ctx context.Context, operations []Operation) (fsm.Result, error) {
	s := ch.session
	if slices.ContainsFunc(operations, func(o Operation) bool { return !o.Settle }) {
		if err := s.waitForFlow(ctx); err != nil {
			return fsm.Result{}, err
		}
	}
	t := &transaction{first: make([]int, len(operations))}
	if err := ch.collect(t, operations); err != nil {
		ch.restore(t)
		return fsm.Result{}, err
	}
	size := fsm.Size(&t.command)
	var err error
	switch {
	case len(t.command.Operations) > fsm.MaxTransactionOperations:
		err = errorf(fsm.PreconditionFailed, "PRECONDITION_FAILED - a transaction has at most %d operations", fsm.MaxTransactionOperations)
	case size > fsm.MaxTransactionBytes:
		err = errorf(fsm.PreconditionFailed, "PRECONDITION_FAILED - a transaction has at most %d bytes", fsm.MaxTransactionBytes)
	}
	var r fsm.Result
	if err == nil {
		r, err = s.lane.callSubmission(ctx, submission{command: &t.command, size: size})
	}
	if err != nil {
		ch.restore(t)
		return r, err
	}
	ch.committed(t)
	parts := make([]fsm.Result, len(operations))
	for i, first := range t.first {
		switch o := &operations[i]; {
		case first < 0:
			parts[i].Routed = s.leadership.reply(&o.Publication)
		case first < len(r.Parts):
			parts[i] = r.Parts[first]
		}
	}
	r.Parts = parts
	return r, nil
}

// collect makes the commands of a transaction and takes what it settles.
func (ch *Channel) collect(t *transaction, operations []Operation) error {
	s := ch.session
	for i := range operations {
		o := &operations[i]
		t.first[i] = len(t.command.Operations)
		switch {
		case o.Settle:
			if err := ch.collectSettle(t, o); err != nil {
				return err
			}
		case o.isReply():
			t.first[i] = -1
		default:
			t.command.Operations = append(t.command.Operations, &fsm.Publish{Vhost: s.Vhost.Number, Exchange: o.Exchange, RoutingKey: o.RoutingKey,
				Properties: o.Properties, Body: o.Body, Upload: o.Upload, Session: s.ID})
		}
	}
	return nil
}

func (ch *Channel) collectSettle(t *transaction, o *Operation) (err error) {
	var some takings
	ch.mu.Lock()
	if o.Held == nil {
		err = ch.takeRanges(o.Ranges, &some)
	} else if ch.claim(o.Held) {
		some = o.Held.takings
	} else {
		err = errorf(fsm.PreconditionFailed, "PRECONDITION_FAILED - the deliveries that the transaction settles went back to their queues")
	}
	ch.mu.Unlock()
	t.settled, t.kinds = append(t.settled, some), append(t.kinds, o.Kind)
	for i := range some.list {
		p := &some.list[i]
		p.view.returning(o.Kind, p.sequences(), 1)
		t.command.Operations = append(t.command.Operations, &fsm.Settle{Queue: p.view.queue.Number, Kind: o.Kind, Runs: toRuns(p.sequences())})
	}
	return err
}

// committed ends what the transaction settled: the messages are gone or have returned, and credit is free.
func (ch *Channel) committed(t *transaction) {
	for i := range t.settled {
		ch.session.leadership.broker.stats.settled(t.kinds[i], t.settled[i].n)
		for _, p := range t.settled[i].list {
			p.view.settled(t.kinds[i], p.sequences())
		}
	}
	for i := range t.settled {
		for _, p := range t.settled[i].list {
			release(p.consumers())
		}
	}
}

// restore makes outstanding again what a transaction took that failed. When the channel was closed meanwhile it
// returns to its queues, behind the transaction: that may still be applied.
func (ch *Channel) restore(t *transaction) {
	var all []entry
	for i := range t.settled {
		for _, p := range t.settled[i].list {
			p.view.returning(t.kinds[i], p.sequences(), -1)
			all = append(all, p.entries...)
		}
	}
	ch.mu.Lock()
	closed := ch.closed
	if !closed && len(all) > 0 {
		ch.unacked.putBack(all)
	}
	ch.mu.Unlock()
	for i := range t.settled {
		for _, p := range t.settled[i].list {
			if closed {
				ch.session.lane.submitSettle(p.view, fsm.Return, nil, p.sequences()...)
			}
		}
	}
}
