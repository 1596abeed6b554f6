package broker

import "sync"

// Bounds of what waits on a channel for an earlier request; at them the connection's socket is not read.
const (
	maxRequests      = 1024    // requests
	maxRequestsBytes = 4 << 20 // of their payloads, but one request always fits
)

// Requests runs what one channel asks for in the order in which it came, on a goroutine that lives only while there
// is something to run. A connection's reader hands it what has to wait for the log; while it is busy everything after
// that on the channel goes through it too, so that a publish never overtakes the declare in front of it.
type Requests struct {
	work   *sync.WaitGroup
	before func()

	mu      sync.Mutex
	room    sync.Cond // broadcast when waiting shrank or the goroutine ended; waits on mu
	waiting []request // guarded by mu
	bytes   int       // of what waits and what runs; guarded by mu
	running bool      // the goroutine lives; guarded by mu
}

// request is what waits, and the bytes that it keeps in memory.
type request struct {
	run   func()
	bytes int
}

// NewRequests returns Requests whose goroutine counts in work: its owner waits for that. before, if any, is called on
// the goroutine ahead of each request and may block: until the client has read its answers, say.
func NewRequests(work *sync.WaitGroup, before func()) *Requests {
	r := &Requests{work: work, before: before}
	r.room.L = &r.mu
	return r
}

// Busy reports whether something runs or waits: then what comes next must go through Do. It is for the one goroutine
// that calls Do.
func (r *Requests) Busy() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running
}

// Rest waits until nothing runs or waits. It is for the one goroutine that calls Do.
func (r *Requests) Rest() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.running {
		r.room.Wait()
	}
}

// Do runs a request after those before it. bytes is what it keeps in memory. Do blocks while too much waits; what is
// in front must end by itself, at the latest with the connection.
func (r *Requests) Do(bytes int, run func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.waiting) >= maxRequests || r.bytes > 0 && r.bytes+bytes > maxRequestsBytes {
		r.room.Wait()
	}
	r.waiting = append(r.waiting, request{run, bytes})
	r.bytes += bytes
	if !r.running {
		r.running = true
		r.work.Go(r.runAll)
	}
}

// runAll runs requests until none waits.
func (r *Requests) runAll() {
	for {
		r.mu.Lock()
		if len(r.waiting) == 0 {
			r.running, r.waiting = false, nil
			r.room.Broadcast()
			r.mu.Unlock()
			return
		}
		next := r.waiting[0]
		r.waiting[0] = request{}
		r.waiting = r.waiting[1:]
		r.mu.Unlock()
		if r.before != nil {
			r.before()
		}
		next.run()
		r.mu.Lock()
		r.bytes -= next.bytes
		r.room.Broadcast()
		r.mu.Unlock()
	}
}
