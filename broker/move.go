package broker

import (
	"context"
	"slices"
	"time"

	"github.com/warrenmq/warren/fsm"
)

// Bounds of one step of a move, and of each command of it.
const (
	maxStepMoves     = 2000 // messages
	maxStepTime      = time.Second
	maxMoveMessages  = 256
	maxMoveBytes     = 64 << 10 // of messages beside the first, about
	moveOverhead     = 160      // bytes of a message in an entry beside its texts
	operatorUpload   = 1 << 63  // clients do not use such numbers for their own
	deleteEntryBytes = 8192     // of a command that deletes maxMoveMessages, at most
)

// Target is where messages are moved to.
type Target uint8

// The targets, numbered as in the native protocol.
const (
	TargetQueue         Target = 0 // Move.To is a queue
	TargetExchange      Target = 1 // Move.To is an exchange, Key the routing key
	TargetFirstQueue    Target = 2 // the queue in which the message died first
	TargetFirstExchange Target = 3 // the exchange and the key with which it came there
	TargetNowhere       Target = 4 // the messages are deleted
)

// Move asks for messages of a queue to be moved or deleted.
type Move struct {
	Queue   string
	Filter  Filter
	Target  Target
	To, Key string
	Restore bool   // a dead letter gets the exchange and the key back that it had before it died first
	From    uint64 // a sequence to begin at; 0: the first message
	Upto    uint64 // the last sequence that is meant; 0: the last there is
	Limit   uint64 // at most so many are moved; 0: all
	DryRun  bool   // only count
}

// Moved is what one step of a Move did. Of the messages that match, those that are none of Moved, Held and Kept had gone
// already.
type Moved struct {
	Matched uint64 // messages that the filter means, among those looked at
	Moved   uint64 // or that would be, in a dry run
	Held    uint64 // left where they are, since a client has them
	Kept    uint64 // left where they are, since they would have reached no queue
	Reason  string // of the first one kept
	Next    uint64 // Move.From of the next step; 0 when all is done
	Upto    uint64 // Move.Upto of the next step
}

// Move does a bounded part of a move: the caller goes on with Next and Upto until Next is 0. Each message leaves its
// queue and is in the other in one log entry, so that wherever it ends, each is in exactly one place; to repeat a step
// does no harm. A message that a client holds is left alone, and so is one that would reach no queue. Messages keep their
// order. What is moved is a new message where it comes to: its delivery count begins anew, and so does its time to live.
func (s *Session) Move(ctx context.Context, m Move) (*Moved, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	if err := s.readable(ctx); err != nil {
		return nil, err
	}
	info, err := s.queue(m.Queue)
	if err != nil {
		return nil, err
	}
	mv := &move{Move: m, session: s, number: info.Number, targets: map[string]uint64{}, ends: time.Now().Add(maxStepTime)}
	if err := mv.findTarget(info); err != nil {
		return nil, err
	}
	if mv.view = s.leadership.view(info.Number); mv.view == nil {
		return nil, s.noQueue(m.Queue)
	}
	if err := mv.view.handOut(ctx); err != nil { // consumers that wait come first
		return nil, err
	}
	mv.out.Next, mv.out.Upto = max(m.From, 1), m.Upto
	if m.Upto == 0 {
		mv.out.Upto = info.Next - 1
	}
	return &mv.out, mv.step(ctx)
}

func (m *Move) check() error {
	if m.Target > TargetNowhere {
		return errorf(fsm.PreconditionFailed, "PRECONDITION_FAILED - messages are moved to a queue (0), an exchange (1), their first queue (2), their first exchange (3) or nowhere (4), not to a %d", m.Target)
	}
	return m.Filter.check()
}

// move is a step under way.
type move struct {
	Move
	session *Session
	view    *view
	number  uint64
	targets map[string]uint64 // numbers of queues by name; 0 for one that is not there
	ends    time.Time
	out     Moved
}

// findTarget refuses a target that is not there.
func (m *move) findTarget(from fsm.QueueInfo) error {
	s := m.session
	switch m.Target {
	case TargetQueue:
		to, err := s.queue(m.To)
		if err != nil {
			return err
		}
		if to.Number == from.Number {
			return errorf(fsm.PreconditionFailed, "PRECONDITION_FAILED - queue '%s' in vhost '%s' is where the messages are already", m.To, s.Vhost.Name)
		}
		m.targets[m.To] = to.Number
	case TargetExchange:
		e, ok := s.leadership.broker.machine.Exchange(s.Vhost.Number, m.To)
		if !ok {
			return errorf(fsm.NotFound, "NOT_FOUND - no exchange '%s' in vhost '%s'", m.To, s.Vhost.Name)
		}
		if e.Internal {
			return errorf(fsm.AccessRefused, "ACCESS_REFUSED - cannot publish to internal exchange '%s' in vhost '%s'", m.To, s.Vhost.Name)
		}
	}
	return nil
}

// step reads messages and moves those that are meant, until it has done enough or all.
func (m *move) step(ctx context.Context) error {
	machine := m.session.leadership.broker.machine
	for looks, bytes, acts := 0, 0, 0; looks < maxLooks && bytes < maxLookBytes && acts < maxStepMoves && time.Now().Before(m.ends); {
		kept, next, err := machine.ReadKept(m.number, m.out.Next, m.out.Upto, maxMoveMessages, readAheadBytes)
		if err != nil {
			return errorf(fsm.InternalError, "INTERNAL_ERROR - queue '%s' in vhost '%s' is damaged: %v", m.view.queue.Name, m.view.queue.Vhost, err)
		}
		var meant []fsm.Kept
		for i := range kept {
			looks, bytes = looks+1, bytes+len(kept[i].Body)
			if !kept[i].Dying && m.Filter.matches(&kept[i].Message) {
				if meant = append(meant, kept[i]); m.Limit > 0 && m.out.Moved+uint64(len(meant)) >= m.Limit {
					next = kept[i].Sequence + 1
					break
				}
			}
		}
		if err := m.act(ctx, meant); err != nil {
			return err
		}
		acts += len(meant)
		if m.out.Next = next; next == 0 || next > m.out.Upto || m.Limit > 0 && m.out.Moved >= m.Limit {
			m.out.Next = 0
			return nil
		}
	}
	return nil
}

// act moves messages, in commands of bounded size, and waits for all of them.
func (m *move) act(ctx context.Context, meant []fsm.Kept) error {
	m.out.Matched += uint64(len(meant))
	switch {
	case len(meant) == 0:
		return nil
	case m.DryRun:
		m.count(meant)
		return nil
	case m.Target == TargetNowhere:
		return m.remove(ctx, meant)
	}
	if err := m.session.waitForFlow(ctx); err != nil { // it takes as much of the disk as a publish
		return err
	}
	outcomes := make(chan outcome, len(meant))
	flying := 0
	for len(meant) > 0 {
		n, size := 0, 0
		c := &fsm.Move{Queue: m.number}
		for ; n < len(meant) && (len(c.Messages) == 0 || size < maxMoveBytes && len(meant[n].Body) < maxMoveBytes); n++ {
			moved, why := m.destination(&meant[n])
			if why != "" {
				m.keep(1, why)
				continue
			}
			c.Messages = append(c.Messages, moved)
			size += moveOverhead + fsm.Size(&moved.Message)
		}
		meant = meant[n:]
		if len(c.Messages) == 0 {
			continue
		}
		if err := m.submit(ctx, c, func(o outcome) { outcomes <- o }); err != nil {
			return err
		}
		flying++
	}
	for ; flying > 0; flying-- {
		select {
		case o := <-outcomes:
			if err := m.tally(o); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// outcome is what became of one command of a move.
type outcome struct {
	held   int
	result fsm.Result
}

func (m *move) tally(o outcome) error {
	m.out.Held += uint64(o.held)
	if err := resultError(o.result); err != nil {
		return err
	}
	m.out.Moved += o.result.Messages
	for _, part := range o.result.Parts {
		if part.Code != fsm.OK {
			m.keep(1, part.Message)
		}
	}
	return nil
}

func (m *move) keep(n uint64, why string) {
	if m.out.Kept += n; m.out.Reason == "" {
		m.out.Reason = why
	}
}

// count counts for a dry run.
func (m *move) count(meant []fsm.Kept) {
	m.view.mu.Lock()
	defer m.view.mu.Unlock()
	for i := range meant {
		if m.view.held.has(meant[i].Sequence) {
			m.out.Held++
			continue
		}
		if m.Target != TargetNowhere {
			if _, why := m.destination(&meant[i]); why != "" {
				m.keep(1, why)
				continue
			}
		}
		m.out.Moved++
	}
}

// destination says what a message becomes, or why it stays.
func (m *move) destination(k *fsm.Kept) (moved fsm.Moved, why string) {
	p := &moved.Message
	moved.Sequence = k.Sequence
	*p = fsm.Publish{Exchange: k.Exchange, RoutingKey: k.RoutingKey, Properties: k.Properties, Body: k.Body}
	first, dead := firstDeath(k.Properties)
	if dead && m.Restore {
		p.Exchange, p.RoutingKey = first.exchange, first.keyOr(k.RoutingKey)
	}
	switch m.Target {
	case TargetQueue:
		moved.To = m.targets[m.To]
	case TargetExchange:
		p.Exchange, p.RoutingKey, p.Properties = m.To, m.Key, fsm.StripBCC(p.Properties)
	case TargetFirstQueue:
		if !dead {
			return moved, "NOT_FOUND - a message has no x-first-death-queue header: it says not where it came from"
		}
		if moved.To = m.numberOf(first.queue); moved.To == 0 {
			return moved, "NOT_FOUND - no queue '" + first.queue + "' in vhost '" + m.session.Vhost.Name + "'"
		}
		if moved.To == m.number {
			return moved, "PRECONDITION_FAILED - a message died first in queue '" + first.queue + "', where it is"
		}
	case TargetFirstExchange:
		if !dead {
			return moved, "NOT_FOUND - a message has no x-first-death-queue header: it says not where it came from"
		}
		p.Exchange, p.RoutingKey, p.Properties = first.exchange, first.keyOr(k.RoutingKey), fsm.StripBCC(p.Properties)
	}
	return moved, ""
}

// numberOf finds a queue by name; 0 when it is not there or another session's.
func (m *move) numberOf(name string) uint64 {
	number, known := m.targets[name]
	if !known {
		if q, err := m.session.queue(name); err == nil {
			number = q.Number
		}
		m.targets[name] = number
	}
	return number
}

// submit sends one command into the log; a body that is too large for one goes in parts ahead of it. What is held when the
// entry is cut is left out.
func (m *move) submit(ctx context.Context, c *fsm.Move, done func(outcome)) error {
	s := m.session
	upload := uint64(0)
	if p := &c.Messages[0].Message; len(p.Body) > fsm.MaxInlineBody { // it goes alone
		upload = operatorUpload | s.moved.Add(1)
		s.own()
		if err := s.lane.sendParts(ctx, p, s.ID, upload); err != nil {
			return err
		}
	}
	held := 0
	return s.submitFrozen(ctx, m.view, fsm.Size(c), func(runs []fsm.Run) fsm.Command {
		c.Messages = slices.DeleteFunc(c.Messages, func(x fsm.Moved) bool {
			if !inRuns(runs, x.Sequence) {
				return false
			}
			held++
			return true
		})
		if len(c.Messages) == 0 && upload != 0 {
			return &fsm.DropUpload{Session: s.ID, Upload: upload}
		}
		return c
	}, func(r fsm.Result) { done(outcome{held, r}) })
}

// remove deletes messages.
func (m *move) remove(ctx context.Context, meant []fsm.Kept) error {
	sequences := make([]uint64, len(meant))
	for i := range meant {
		sequences[i] = meant[i].Sequence
	}
	held := 0
	done := make(chan outcome, 1)
	if err := m.session.submitFrozen(ctx, m.view, deleteEntryBytes, func(runs []fsm.Run) fsm.Command {
		free := slices.DeleteFunc(sequences, func(q uint64) bool { return inRuns(runs, q) })
		held = len(meant) - len(free)
		return &fsm.DeleteMessages{Queue: m.number, Runs: toRuns(free)}
	}, func(r fsm.Result) { done <- outcome{held, r} }); err != nil {
		return err
	}
	select {
	case o := <-done:
		return m.tally(o)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// inRuns reports whether a sequence is in ascending, disjoint runs.
func inRuns(runs []fsm.Run, sequence uint64) bool {
	_, found := slices.BinarySearchFunc(runs, sequence, func(r fsm.Run, q uint64) int {
		switch {
		case r.To < q:
			return -1
		case r.From > q:
			return 1
		}
		return 0
	})
	return found
}
