package broker

import (
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/warrenmq/warren/fsm"
)

// expiry ends messages whose time is over, until the leadership ends. What is handed out is checked again then, so that
// nobody gets an expired message; here they leave their queues. A queue costs nothing until its first message is due.
type expiry struct {
	leadership *leadership
	mu         sync.Mutex
	idle       map[uint64]time.Time // queues in which everything that is due is held, by when to look again; guarded by mu
}

func (l *leadership) expireMessages(ctx context.Context) {
	e := &expiry{leadership: l, idle: map[uint64]time.Time{}}
	tick := time.NewTicker(expiryInterval)
	defer tick.Stop()
	for {
		for e.pass(ctx) { // one after the other while there is more than a command takes
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// pass submits a command for each queue that has messages which are due, waits until they are applied, and reports
// whether there may be more.
func (e *expiry) pass(ctx context.Context) (more bool) {
	l := e.leadership
	due := l.broker.machine.Due(l.broker.clock.now(), math.MaxInt)
	e.forget(due)
	for _, number := range due {
		if e.isIdle(number) {
			continue
		}
		last := l.broker.machine.LastSequence(number)
		if v := l.existingView(number); v != nil { // consumers that wait come first
			if err := v.handOut(ctx); err != nil {
				return false
			}
		}
		_ = l.system.submit(ctx, true, submission{size: expireBytes, prepare: func() fsm.Command { return e.cut(number, last) },
			done: CompleterFunc(func(r fsm.Result) {
				e.mu.Lock()
				defer e.mu.Unlock()
				switch {
				case r.Code != fsm.OK:
				case r.Messages == 0:
					e.idle[number] = time.Now().Add(expiryIdle)
				default:
					more = more || r.Messages >= expireStep
				}
			})})
	}
	if err := l.system.wait(ctx); err != nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return more
}

// forget drops what is known of queues in which nothing is due any more: they may be gone.
func (e *expiry) forget(due []uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.idle, func(number uint64, _ time.Time) bool {
		_, found := slices.BinarySearch(due, number)
		return !found
	})
}

func (e *expiry) isIdle(number uint64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	until, ok := e.idle[number]
	if ok && !time.Now().Before(until) {
		delete(e.idle, number)
		return false
	}
	return ok
}

// cut names the messages up to last that are due and that no consumer holds. From now on none of them is handed out
// (rule 3).
func (e *expiry) cut(number, last uint64) fsm.Command {
	l := e.leadership
	v := l.existingView(number)
	now := l.broker.clock.now()
	if v == nil {
		return &fsm.Expire{Queue: number, Runs: toRuns(l.broker.machine.ExpiredIn(number, now, expireStep))}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	var due []uint64
	for _, sequence := range l.broker.machine.ExpiredIn(number, now, expireStep+v.held.n) {
		if sequence <= last && !v.held.has(sequence) {
			due = append(due, sequence)
			v.unwanted = max(v.unwanted, sequence)
		}
	}
	return &fsm.Expire{Queue: number, Runs: toRuns(due)}
}

// isExpired reports whether a message must not be handed out any more, since its time is over. One that lives for no
// time goes to a consumer that is there already or to none. The caller holds mu.
func (v *view) isExpired(m *fsm.Message, returned bool) bool {
	switch {
	case m.Expires == 0:
		return false
	case m.Expires < 0:
		return returned || m.Sequence <= v.unwanted
	}
	return m.ExpiredAt(v.leadership.broker.clock.now())
}

// expireUnwanted makes what lives for no time and waits now unavailable: nobody was there for it. The caller holds mu.
func (v *view) expireUnwanted() {
	v.unwanted = max(v.unwanted, v.leadership.broker.machine.LastSequence(v.queue.Number))
}
