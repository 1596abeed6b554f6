package broker

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/warrenmq/warren/fsm"
)

// Completer is told what became of the commands it submitted. It is called in log order by the leadership's finishing
// goroutine and must not block.
type Completer interface {
	Complete(token uint64, r fsm.Result)
}

// CompleterFunc makes a function a Completer.
type CompleterFunc func(fsm.Result)

// Complete calls the function.
func (f CompleterFunc) Complete(_ uint64, r fsm.Result) { f(r) }

// submission is one command on its way into an entry. Exactly one of publish (when command and prepare are nil),
// command and prepare names it; prepare is called when the batch is cut.
type submission struct {
	publish  fsm.Publish
	command  fsm.Command
	prepare  func() fsm.Command
	settling *settling // others may join it as long as the lane's open is this one; size is set when it is cut
	size     int
	done     Completer
	token    uint64
	since    time.Time // submitted; set on the first of each call of submit
}

// waiter is who waits for a command of a flight.
type waiter struct {
	lane    *lane
	done    Completer
	token   uint64
	size    int
	publish bool
}

// flight is an entry between Propose and its results.
type flight struct {
	number    uint64
	waiters   []waiter
	proposed  time.Time
	hasLanded bool        // guarded by the proposer's mu
	applied   fsm.Applied // set when it lands
}

// proposer packs the commands of all lanes into entries, taking from the lanes in turn, and never waits for an entry
// to fill: one goes out as soon as fewer than maxEntriesFlying are on their way.
type proposer struct {
	leadership *leadership
	stats      *counters

	mu      sync.Mutex
	ready   sync.Cond          // signalled when work or room may have come; waits on mu
	active  []*lane            // lanes with submissions, in turn; guarded by mu
	flights map[uint64]*flight // guarded by mu
	closed  bool               // guarded by mu
	paused  bool               // nothing is cut, for leadership is being handed over; guarded by mu
	landing chan struct{}      // closed and replaced when a flight ends; guarded by mu
	number  uint64             // of the last batch; guarded by mu
	bytes   int                // of all lanes; guarded by mu
	most    int                // bytes of all lanes, above which a lane takes more only when it has nothing on its way

	landed chan *flight // applied entries, for finish; has room for all flights; closed by close
}

func newProposer(l *leadership, number uint64, stats *counters) *proposer {
	p := &proposer{leadership: l, stats: stats, flights: map[uint64]*flight{}, number: number, most: l.broker.config.MaxInFlight, landing: make(chan struct{}), landed: make(chan *flight, maxEntriesFlying)}
	p.ready.L = &p.mu
	return p
}

// run cuts batches until the proposer is closed.
func (p *proposer) run() {
	var cut []submission
	for {
		p.mu.Lock()
		for !p.closed && (p.paused || len(p.active) == 0 || len(p.flights) >= maxEntriesFlying) {
			p.ready.Wait()
		}
		if p.closed {
			p.mu.Unlock()
			return
		}
		f := &flight{}
		cut = p.cut(cut[:0], f)
		p.number++
		f.number = p.number
		p.flights[f.number] = f
		p.mu.Unlock()
		p.propose(f, cut)
		clear(cut)
	}
}

// cut takes submissions from the lanes in turn until the entry is full. The caller holds mu.
func (p *proposer) cut(into []submission, f *flight) []submission {
	bytes := 0
	for len(p.active) > 0 && len(into) < maxEntryCommands {
		l := p.active[0]
		turn := 0
		for l.head < len(l.queue) && turn < laneTurnBytes && len(into) < maxEntryCommands {
			s := &l.queue[l.head]
			if s.settling != nil {
				s.size = s.settling.size()
			}
			if bytes > 0 && bytes+s.size > maxEntryBytes {
				return into
			}
			into = append(into, *s)
			f.waiters = append(f.waiters, waiter{lane: l, done: s.done, token: s.token, size: s.size, publish: s.command == nil && s.prepare == nil})
			bytes += s.size
			turn += s.size
			if l.open != nil && l.open == s.settling {
				l.open = nil
			}
			*s = submission{}
			l.head++
		}
		copy(p.active, p.active[1:])
		p.active = p.active[:len(p.active)-1]
		if l.head < len(l.queue) {
			p.active = append(p.active, l)
		} else {
			l.active, l.queue, l.head = false, l.queue[:0], 0
		}
	}
	return into
}

// propose encodes the entry and hands it to Raft.
func (p *proposer) propose(f *flight, cut []submission) {
	size := 64
	for i := range cut {
		size += cut[i].size
	}
	var b fsm.Batch
	b.Begin(p.leadership.term, f.number, p.leadership.broker.clock.now(), size)
	for i := range cut {
		switch s := &cut[i]; {
		case s.prepare != nil:
			b.Append(s.prepare())
		case s.command != nil:
			b.Append(s.command)
		default:
			b.AppendPublish(&s.publish)
		}
	}
	entry := b.Finish()
	f.proposed = time.Now()
	if since := cut[0].since; !since.IsZero() {
		p.stats.wait.observe(f.proposed.Sub(since))
	}
	p.stats.entries.Add(1)
	p.stats.commands.Add(uint64(len(cut)))
	p.stats.entryBytes.Add(uint64(len(entry)))
	p.leadership.broker.node.Propose(entry, func(err error) {
		if err != nil {
			p.leadership.fail(err)
		}
	})
}

// applied hears of each entry that the machine applied. It does not block: landed has room for all flights.
func (p *proposer) applied(a fsm.Applied) {
	if a.Replaced || a.Term != p.leadership.term {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if f := p.flights[a.Number]; f != nil && !f.hasLanded && !p.closed {
		f.hasLanded, f.applied = true, a
		p.landed <- f
	}
}

// finish hands out results, in log order, until close.
func (p *proposer) finish() {
	for f := range p.landed {
		p.stats.commit.observe(time.Since(f.proposed))
		confirmed := uint64(0)
		for i := range f.waiters {
			w := &f.waiters[i]
			var r fsm.Result
			if i < len(f.applied.Results) {
				r = f.applied.Results[i]
			}
			if w.done != nil {
				w.done.Complete(w.token, r)
			}
			if w.publish && r.Code == fsm.OK {
				confirmed++
			}
		}
		p.stats.confirms.Add(confirmed)
		p.leadership.broker.flow.pacing.landed(f)
		p.release(f)
		p.leadership.grew(f.applied.Grown)
		p.leadership.deleted(f.applied.Deleted)
		for _, number := range f.applied.Limited {
			p.leadership.limitsChanged(number)
		}
		if f.applied.Overfull {
			select {
			case p.leadership.overran <- struct{}{}:
			default:
			}
		}
		if len(f.applied.Dying) > 0 {
			select {
			case p.leadership.died <- struct{}{}:
			default:
			}
		}
	}
}

// release ends a flight: its lanes get their room back.
func (p *proposer) release(f *flight) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range f.waiters {
		w := &f.waiters[i]
		l := w.lane
		l.bytes -= w.size
		p.bytes -= w.size
		l.waiting--
		l.finished++
		last := i+1 == len(f.waiters) || f.waiters[i+1].lane != l
		if last && l.watched > 0 {
			l.wake()
		}
	}
	delete(p.flights, f.number)
	close(p.landing)
	p.landing = make(chan struct{})
	p.ready.Signal()
}

// pause stops cutting entries and waits until none is on its way, so that none fails while leadership is handed over
// (rule 6): what waits was not written.
func (p *proposer) pause(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused = true
	for len(p.flights) > 0 && !p.closed && ctx.Err() == nil {
		landing := p.landing
		p.mu.Unlock()
		select {
		case <-landing:
		case <-ctx.Done():
		}
		p.mu.Lock()
	}
}

// resume goes on after pause.
func (p *proposer) resume() {
	p.mu.Lock()
	p.paused = false
	p.ready.Signal()
	p.mu.Unlock()
}

// close ends the proposer: what is in flight has an unknown outcome, what was not cut was not written.
func (p *proposer) close() {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.closed = true
	var unknown []*flight
	for _, f := range p.flights {
		if !f.hasLanded {
			unknown = append(unknown, f)
		}
	}
	slices.SortFunc(unknown, func(a, b *flight) int { return cmp.Compare(a.number, b.number) })
	unwritten := &flight{}
	for _, l := range p.active {
		for _, s := range l.queue[l.head:] {
			unwritten.waiters = append(unwritten.waiters, waiter{lane: l, done: s.done, token: s.token, size: s.size})
		}
		l.queue, l.head, l.open = nil, 0, nil
	}
	p.active = nil
	p.ready.Broadcast()
	close(p.landed)
	p.mu.Unlock()
	fail := func(f *flight, r fsm.Result) {
		for _, w := range f.waiters {
			if w.done != nil {
				w.done.Complete(w.token, r)
			}
		}
		p.release(f)
	}
	for _, f := range unknown {
		fail(f, fsm.Result{Code: LeadershipLost, Message: "LEADERSHIP_LOST - the leader changed before the outcome was known"})
	}
	fail(unwritten, fsm.Result{Code: NotLeader, Message: "NOT_LEADER - this node no longer leads"})
}
