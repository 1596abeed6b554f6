// Package watchdog ends a node whose disk fails or hangs. During a hung write raft's main goroutine checks no lease
// while heartbeats go on, so nobody would replace the leader.
package watchdog

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// DefaultLimit is how long a call of a store may take.
const DefaultLimit = 2 * time.Second

// Options says what to do; zero values mean the defaults.
type Options struct {
	Limit time.Duration // a call that takes longer counts as failed
	// OnFailure is called once, on a goroutine of its own, and must not call Close. It ends the process.
	OnFailure func(error)
	// Stopped is closed when the node is being stopped and talks to nobody any more; nil leaves it to Close.
	Stopped <-chan struct{}
	// Observe, if set, gets the duration of each write; it must not block.
	Observe func(op string, d time.Duration)
}

// Watchdog watches the calls of several stores. After the first failure each later call returns that failure.
type Watchdog struct {
	opt Options

	mu      sync.Mutex // guards everything below
	running map[*call]struct{}
	spare   []*call // bounded by the calls that ever ran at once
	err     error
	ran     time.Duration // for how long this process ran, as of ticked; see now
	ticked  time.Time

	raft atomic.Bool // raft runs: see Run

	stop      chan struct{} // closed by Close
	done      sync.WaitGroup
	closeOnce sync.Once
}

type call struct {
	op    string
	start time.Duration // by now
}

// New starts a watchdog; Close stops it.
func New(opt Options) *Watchdog {
	if opt.Limit == 0 {
		opt.Limit = DefaultLimit
	}
	w := &Watchdog{opt: opt, running: map[*call]struct{}{}, ticked: time.Now(), stop: make(chan struct{})}
	w.done.Add(1)
	go w.watch()
	return w
}

// Close ends the watching and waits for OnFailure if it runs.
func (w *Watchdog) Close() {
	w.closeOnce.Do(func() { close(w.stop) })
	w.done.Wait()
}

// Run says that raft runs now: from here on it is kept from errors that it would panic at.
func (w *Watchdog) Run() { w.raft.Store(true) }

// hold waits, with a call that failed, until the node is being stopped; false, at once, when raft does not run yet and
// whoever starts it wants the error.
func (w *Watchdog) hold() bool {
	if !w.raft.Load() {
		return false
	}
	select {
	case <-w.opt.Stopped:
	case <-w.stop:
	}
	return true
}

// Err returns the first failure.
func (w *Watchdog) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// watch looks at the running calls eight times in a limit, so that a hang is found at most an eighth late.
func (w *Watchdog) watch() {
	defer w.done.Done()
	tick := time.NewTicker(w.interval())
	defer tick.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-tick.C:
		}
		w.mu.Lock()
		w.ran, w.ticked = w.now(), time.Now()
		for c := range w.running {
			if d := w.ran - c.start; d >= w.opt.Limit {
				w.fail(fmt.Errorf("%s has hung for %v: the disk does not answer", c.op, d.Round(time.Millisecond)))
			}
		}
		w.mu.Unlock()
	}
}

// interval is the time between two looks.
func (w *Watchdog) interval() time.Duration { return w.opt.Limit / 8 }

// now is for how long this process ran. When the watching itself stood still for longer than it should, the whole
// process was paused, as a suspended machine is: that is no fault of the disk and does not count. The caller holds mu.
func (w *Watchdog) now() time.Duration {
	return w.ran + min(time.Since(w.ticked), 2*w.interval())
}

// fail keeps and reports the first failure. The caller holds mu.
func (w *Watchdog) fail(err error) {
	if w.err != nil {
		return
	}
	w.err = fmt.Errorf("stores of this node are refused until it restarts: %w", err)
	if w.opt.OnFailure != nil {
		w.done.Add(1)
		go func(err error) {
			defer w.done.Done()
			w.opt.OnFailure(err)
		}(w.err)
	}
}

// do runs a call under watch. A call that comes back after the failure is refused too.
func (w *Watchdog) do(op string, write bool, expected func(error) bool, f func() error) error {
	w.mu.Lock()
	if w.err != nil {
		defer w.mu.Unlock()
		return w.err
	}
	c := new(call)
	if n := len(w.spare); n > 0 {
		c, w.spare = w.spare[n-1], w.spare[:n-1]
	}
	*c = call{op, w.now()}
	w.running[c] = struct{}{}
	w.mu.Unlock()
	err := f()
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.now() - c.start
	delete(w.running, c)
	w.spare = append(w.spare, c)
	switch {
	case w.err != nil:
		return w.err
	case err != nil && !expected(err):
		w.fail(fmt.Errorf("%s: %w", op, err))
	case d >= w.opt.Limit:
		w.fail(fmt.Errorf("%s took %v", op, d.Round(time.Millisecond)))
		return w.err
	}
	if write && w.opt.Observe != nil {
		w.opt.Observe(op, d)
	}
	return err
}

func never(error) bool { return false }

// Log returns a log store under watch; it is a raft.MonotonicLogStore if s says it is one.
func (w *Watchdog) Log(s raft.LogStore) raft.LogStore { return &logStore{w, s} }

// Stable returns a stable store under watch.
func (w *Watchdog) Stable(s raft.StableStore) raft.StableStore { return &stableStore{w, s} }
