package broker

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warrenmq/warren/fsm"
)

const (
	// paceTime: together, those who make queues grow may use up what is left to a watermark in this time, beside what the
	// node is relieved of. So the less is left the slower they are, and before the watermark is reached they hardly move.
	paceTime = 2 * time.Second
	// maxPause is how long one call of Publish is held back: slowed is not stopped.
	maxPause = time.Second
	// trendWindow is how long a queue is watched before it is said to grow.
	trendWindow = time.Second
	// growsPart: a queue grows when more than this part of what came in stayed.
	growsPart = 4
	// maxTrends is how many queues are watched in one window. Those who publish into others are not slowed by themselves.
	maxTrends = 4096
)

// pacing slows the sessions whose publishes make queues grow while a watermark is near. Publishes are paid for when they
// are applied, by what they added: the next call of Publish waits until the debt has been worked off.
type pacing struct {
	near atomic.Bool

	mu      sync.Mutex
	left    uint64            // bytes that may come in within paceTime; guarded by mu
	began   time.Time         // of the window; guarded by mu
	window  uint64            // its number; guarded by mu
	trends  map[uint64]*trend // by queue number, of this window; guarded by mu
	growing map[uint64]bool   // of the window before: whether the queue grew; guarded by mu
	payers  int               // sessions charged in this window; guarded by mu
	sharing int               // in the one before; guarded by mu
}

// trend is what happened to a queue in a window.
type trend struct{ first, last, arrived uint64 } // bytes

// share is a session's part in it. Its fields are guarded by the pacing's mu.
type share struct {
	owed    float64   // bytes
	settled time.Time // owed is as of then
	charged uint64    // the last window in which it was charged
}

func newPacing() *pacing { return &pacing{trends: map[uint64]*trend{}, growing: map[uint64]bool{}} }

// set says whether a watermark is near, and how many bytes may come in within paceTime then.
func (p *pacing) set(near bool, left uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = left
	p.near.Store(near)
}

// landed notes what the publishes of an applied entry did to the queues, and charges those that make one grow.
func (p *pacing) landed(f *flight) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.began) >= trendWindow {
		p.turn(now)
	}
	near := p.near.Load()
	for i := range min(len(f.waiters), len(f.applied.Results)) {
		w, r := &f.waiters[i], &f.applied.Results[i]
		if w.lane.share == nil {
			continue
		}
		if p.note(r, w.size) && near {
			p.charge(w.lane.share, float64(w.size)*float64(max(r.Routed, 1)), now)
		}
		for j := range r.Parts { // of a transaction, whose size is that of all parts
			if p.note(&r.Parts[j], w.size/len(r.Parts)) && near {
				p.charge(w.lane.share, float64(w.size/len(r.Parts))*float64(r.Parts[j].Routed), now)
			}
		}
	}
}

// turn begins a window.
func (p *pacing) turn(now time.Time) {
	clear(p.growing)
	for queue, t := range p.trends {
		p.growing[queue] = t.last > t.first && t.last-t.first > t.arrived/growsPart
	}
	clear(p.trends)
	p.began, p.sharing, p.payers = now, p.payers, 0
	p.window++
}

// note adds a publish to its queue's trend and reports whether the queue grows.
func (p *pacing) note(r *fsm.Result, size int) bool {
	if r.Longest.Queue == 0 || r.Duplicate {
		return false
	}
	t := p.trends[r.Longest.Queue]
	if t == nil {
		if len(p.trends) >= maxTrends {
			return false
		}
		t = &trend{first: r.Longest.Bytes - min(r.Longest.Bytes, uint64(size))}
		p.trends[r.Longest.Queue] = t
	}
	t.last = r.Longest.Bytes
	t.arrived += uint64(size)
	return p.growing[r.Longest.Queue]
}

func (p *pacing) charge(s *share, bytes float64, now time.Time) {
	p.settle(s, now)
	if s.charged != p.window {
		s.charged = p.window
		p.payers++
	}
	s.owed += bytes
}

// settle works off what a session owes at its present rate, which it returns in bytes a second.
func (p *pacing) settle(s *share, now time.Time) (rate float64) {
	rate = float64(max(p.left, 1)) / paceTime.Seconds() / float64(max(p.sharing, p.payers, 1))
	if !p.near.Load() {
		s.owed = 0
	}
	if passed := now.Sub(s.settled); passed > 0 {
		s.owed = max(0, s.owed-rate*passed.Seconds())
	}
	s.settled = now
	return rate
}

// due returns how long a session has to wait now.
func (p *pacing) due(s *share) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	rate := p.settle(s, time.Now())
	return time.Duration(min(s.owed/rate, maxPause.Seconds()) * float64(time.Second))
}

// slows reports whether the session would have to wait.
func (p *pacing) slows(s *share) bool { return p.near.Load() && p.due(s) > 0 }

// wait holds a session back as long as it has to.
func (p *pacing) wait(ctx context.Context, s *share, ended <-chan struct{}) error {
	until := time.Now().Add(maxPause)
	for p.near.Load() {
		pause := min(p.due(s), time.Until(until), watermarkInterval)
		if pause <= 0 {
			return nil
		}
		again := time.NewTimer(pause)
		select {
		case <-again.C:
		case <-ended:
			again.Stop()
			return nil // the submission is refused with the reason for that
		case <-ctx.Done():
			again.Stop()
			return ctx.Err()
		}
	}
	return nil
}
