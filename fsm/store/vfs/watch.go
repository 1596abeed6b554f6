package vfs

import (
	"fmt"
	"sync"
	"time"
)

// looks is how often a Watch looks at a call before it takes it for hung. Looks are counted rather than time, so that a
// pause of the whole process is no fault of the disk.
const looks = 8

// removals is how many times longer than any other call the removal of a whole directory may take.
const removals = 10

// Watch is a file system that notices calls which do not return. Safe for concurrent use.
type Watch struct {
	FS
	limit time.Duration

	mu      sync.Mutex // guards everything below
	running map[*watched]struct{}
	err     error

	hung chan struct{} // closed by the first hang
	stop chan struct{} // closed by Stop
	done chan struct{} // closed when the watching has ended
}

type watched struct {
	op    Op
	name  string
	looks int
}

// NewWatch watches the calls of a file system: one that takes longer than the limit counts as hung. Stop ends it.
func NewWatch(fs FS, limit time.Duration) *Watch {
	w := &Watch{limit: limit, running: map[*watched]struct{}{}, hung: make(chan struct{}), stop: make(chan struct{}), done: make(chan struct{})}
	w.FS = Hook(fs, w.around)
	go w.look()
	return w
}

// Hung is closed once a call hangs; Err then says which.
func (w *Watch) Hung() <-chan struct{} { return w.hung }

// Err returns the first hang, nil while there is none.
func (w *Watch) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Stop ends the watching; the file system stays usable.
func (w *Watch) Stop() {
	close(w.stop)
	<-w.done
}

func (w *Watch) around(op Op, name string, size int, call func(int) error) error {
	c := &watched{op: op, name: name}
	w.mu.Lock()
	w.running[c] = struct{}{}
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		delete(w.running, c)
		w.mu.Unlock()
	}()
	return call(size)
}

func (w *Watch) look() {
	defer close(w.done)
	tick := time.NewTicker(w.limit / looks)
	defer tick.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-tick.C:
		}
		w.mu.Lock()
		for c := range w.running {
			c.looks++
			most := looks
			if c.op == OpRemoveAll {
				most *= removals
			}
			if c.looks > most && w.err == nil {
				w.err = fmt.Errorf("%s %s has hung for %v: the disk does not answer", c.op, c.name, w.limit*time.Duration(most/looks))
				close(w.hung)
			}
		}
		w.mu.Unlock()
	}
}
