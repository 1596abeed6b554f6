package broker

import (
	"context"
	"errors"
	"time"

	"github.com/warrenmq/warren/fsm"
)

// lane is one session's way into the log: its commands keep their order, and its share of what is in flight is
// bounded. Its fields are guarded by the proposer's mu.
type lane struct {
	proposer *proposer
	share    *share // of a session; nil for the broker's own
	queue    []submission
	head     int           // of queue: those before it are cut
	active   bool          // in the proposer's turn
	bytes    int           // submitted and not finished
	waiting  int           // commands submitted and not finished
	finished uint64        // commands finished
	sent     uint64        // commands submitted
	shown    uint64        // of these, up to the last one that can bring messages into queues, or back
	sealed   bool          // the client has gone: of its requests nothing is taken any more
	open     *settling     // the settle command that others may join: the last one submitted, until it is cut
	watched  int           // callers waiting on changed
	changed  chan struct{} // closed and replaced by wake
}

func (p *proposer) newLane() *lane {
	return &lane{proposer: p, share: &share{}, changed: make(chan struct{})}
}

// room reports whether the lane takes more. One that has nothing on its way takes a command however full the others are.
func (l *lane) room() bool {
	return l.bytes < maxLaneBytes && l.waiting < maxLaneCommands && (l.bytes == 0 || l.proposer.bytes < l.proposer.most)
}

// wake lets every waiting caller look again. The caller holds mu.
func (l *lane) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// submit queues commands in order; it takes them over. With wait it first waits until the lane has room. It returns
// an error, and has taken none, when the leadership is over, the context ends or, with wait, the lane is sealed.
func (l *lane) submit(ctx context.Context, wait bool, subs ...submission) error {
	p := l.proposer
	p.mu.Lock()
	for wait && !p.closed && !l.sealed && !l.room() {
		l.watched++
		changed := l.changed
		p.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		p.mu.Lock()
		l.watched--
		if ctx.Err() != nil {
			p.mu.Unlock()
			return ctx.Err()
		}
	}
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return errorf(NotLeader, "NOT_LEADER - this node no longer leads")
	case wait && l.sealed:
		return errGone
	}
	if len(subs) > 0 {
		subs[0].since = time.Now()
	}
	for i := range subs {
		if s := &subs[i]; s.settling != nil {
			s.size, l.open = s.settling.size(), s.settling
		}
		l.bytes += subs[i].size
		p.bytes += subs[i].size
		l.sent++
		if s := subs[i].settling; s == nil || s.kind == fsm.Return {
			l.shown = l.sent
		}
	}
	l.queue = append(l.queue, subs...)
	l.waiting += len(subs)
	if !l.active && len(subs) > 0 {
		l.active = true
		p.active = append(p.active, l)
		p.ready.Signal()
	}
	return nil
}

// errGone is for requests that are still being served when their client has gone.
var errGone = errors.New("the client has gone")

// seal takes no more of the client's requests, all of which wait for room; what ends with the client still goes in.
func (l *lane) seal() {
	l.proposer.mu.Lock()
	defer l.proposer.mu.Unlock()
	l.sealed = true
	l.wake()
}

// position says how many commands were submitted so far, for waitFor.
func (l *lane) position() uint64 {
	l.proposer.mu.Lock()
	defer l.proposer.mu.Unlock()
	return l.sent
}

// show waits until the messages that were submitted or returned so far are in their queues.
func (l *lane) show(ctx context.Context) error {
	l.proposer.mu.Lock()
	target := l.shown
	l.proposer.mu.Unlock()
	return l.waitFor(ctx, target)
}

// wait waits until everything submitted so far has been finished.
func (l *lane) wait(ctx context.Context) error { return l.waitFor(ctx, l.position()) }

// waitFor waits until what was submitted up to a position has been finished.
func (l *lane) waitFor(ctx context.Context, target uint64) error {
	p := l.proposer
	p.mu.Lock()
	defer p.mu.Unlock()
	for l.finished < target && ctx.Err() == nil {
		l.watched++
		changed := l.changed
		p.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		p.mu.Lock()
		l.watched--
	}
	return ctx.Err()
}

// call submits one command and waits for its result. What the log cannot hold is refused here, before it is in an entry.
func (l *lane) call(ctx context.Context, c fsm.Command) (fsm.Result, error) {
	if err := fsm.Check(c); err != nil {
		return fsm.Result{}, errorf(fsm.PreconditionFailed, "PRECONDITION_FAILED - the request has a value out of its range: %v", err)
	}
	return l.callSubmission(ctx, submission{command: c, size: fsm.Size(c)})
}

func (l *lane) callSubmission(ctx context.Context, s submission) (fsm.Result, error) {
	done := make(chan fsm.Result, 1)
	s.done = CompleterFunc(func(r fsm.Result) { done <- r })
	if err := l.submit(ctx, true, s); err != nil {
		return fsm.Result{}, err
	}
	select {
	case r := <-done:
		return r, resultError(r)
	case <-ctx.Done():
		return fsm.Result{}, ctx.Err()
	}
}
