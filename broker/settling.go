package broker

import (
	"context"

	"github.com/warrenmq/warren/fsm"
)

// Bounds of one settle command that others join.
const (
	maxJoined      = 1024 // deliveries
	joinedRunBytes = 20   // at most so many does one delivery more add to the command
)

// settling is a settle command of a lane that is not cut yet: what the session settles next of the same queue in the
// same way joins it, so that a client which acknowledges one by one costs a command for each entry and not for each
// message. Guarded by the proposer's mu until it is cut; from then on nobody joins.
type settling struct {
	view      *view
	kind      fsm.SettleKind
	sequences []uint64
	consumers []*consumer // who have their credit back once it is applied, one for each delivery of theirs
}

// submitSettle puts the end of deliveries into the lane; nobody hears of it but the view and the consumers whose credit
// waits for it. It does not wait for room: what is delivered bounds what can be settled.
func (l *lane) submitSettle(v *view, kind fsm.SettleKind, consumers []*consumer, sequences ...uint64) {
	v.returning(kind, sequences, 1)
	p := l.proposer
	p.mu.Lock()
	if o := l.open; o != nil && o.view == v && o.kind == kind && len(o.sequences) < maxJoined {
		o.sequences = append(o.sequences, sequences...)
		o.consumers = append(o.consumers, consumers...)
		l.bytes += joinedRunBytes * len(sequences)
		p.bytes += joinedRunBytes * len(sequences)
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	s := &settling{view: v, kind: kind, sequences: append(make([]uint64, 0, max(8, len(sequences))), sequences...),
		consumers: append([]*consumer(nil), consumers...)}
	_ = l.submit(context.Background(), false, submission{settling: s, done: s, prepare: s.command}) // refused only when the leadership is over
}

// size is what the command takes in an entry. The caller holds the proposer's mu.
func (s *settling) size() int { return 32 + joinedRunBytes*len(s.sequences) }

func (s *settling) command() fsm.Command {
	return &fsm.Settle{Queue: s.view.queue.Number, Kind: s.kind, Runs: toRuns(s.sequences)}
}

// Complete lets go of the messages, or has them back (Completer).
func (s *settling) Complete(_ uint64, r fsm.Result) {
	if r.Code == fsm.OK {
		s.view.settled(s.kind, s.sequences)
	}
	release(s.consumers)
}
