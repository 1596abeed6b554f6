package broker

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Watermarks are where a node stops taking publishes, so that it breaks neither its memory nor its disk. Consuming
// goes on above them. Near one of them those whose publishes make queues grow are slowed, before everybody is stopped.
// A nil function or a zero bound leaves that one out.
type Watermarks struct {
	MemoryUsed func() uint64 // bytes
	MaxMemory  uint64
	// Unwritten are bytes of messages that are in memory until they are in a message file, which takes a snapshot.
	Unwritten    func() uint64
	MaxUnwritten uint64
	// Taken are the bytes of messages that have come in since the start: what of them does not stay need not be slowed.
	Taken       func() uint64
	DiskFree    func() (uint64, error) // bytes
	MinDiskFree uint64
	// Relieve is called when memory is nearly short: a snapshot lets bodies leave memory. It may take long.
	Relieve func() error
	// Reclaim is called when the disk is nearly short: snapshots let go of what was consumed. It may take long.
	Reclaim func() error
}

const (
	watermarkInterval = 100 * time.Millisecond
	relieveInterval   = 5 * time.Second
	// goOnParts: what was stopped goes on when that part of the bound is free again, so that it does not stop and go on
	// with every message.
	goOnParts = 32
)

// strain is how far a node is from its watermarks.
type strain struct {
	reason string        // publishes are held up for it; "" when they are not
	short  string        // of what, in RabbitMQ's words
	near   bool          // some watermark is near
	memory bool          // it is one of memory
	disk   bool          // it is the disk's
	left   uint64        // bytes that may come in within paceTime, for the nearest of those that are near
	look   time.Duration // when to look again; 0 is watermarkInterval
}

// add takes one watermark into account. used may be above bound; relief is how many bytes a second it is relieved of.
func (l *strain) add(used, bound, nearBy uint64, relief float64, blocked bool) (above bool) {
	if blocked {
		bound -= bound / goOnParts
	}
	left := uint64(0)
	if used < bound {
		left = bound - used
	}
	if left < nearBy {
		may := left + uint64(relief*paceTime.Seconds()*2*float64(left)/float64(nearBy))
		if !l.near || may < l.left {
			l.left = may
		}
		l.near = true
	}
	return used > bound
}

// measure says where the node is. blocked says that publishes are held up already.
func (w *Watermarks) measure(t *tides, blocked bool) (l strain) {
	memory, unwritten := t.note(w, time.Now())
	if w.MemoryUsed != nil && w.MaxMemory > 0 && l.add(t.memory.last, w.MaxMemory, w.MaxMemory/4, memory, blocked) {
		l.reason = fmt.Sprintf("the node's messages take more than %d MiB of memory; consume messages or give it more", w.MaxMemory>>20)
	}
	if w.Unwritten != nil && w.MaxUnwritten > 0 && l.add(t.unwritten.last, w.MaxUnwritten, w.MaxUnwritten/2, unwritten, blocked) && l.reason == "" {
		l.reason = fmt.Sprintf("messages come faster than the disk takes them, more than %d MiB wait to be written", w.MaxUnwritten>>20)
	}
	l.memory = l.near
	if l.reason != "" {
		l.short = lowMemory
	}
	l.addDisk(w, blocked)
	return l
}

// watchWatermarks slows, stops and lets go on publishes until the context ends: those of a leader also for what other
// voters are short of.
func (b *Broker) watchWatermarks(ctx context.Context) {
	w := &b.config.Watermarks
	tick := time.NewTimer(0)
	defer tick.Stop()
	memory := relief{b: b, what: "memory", call: w.Relieve}
	disk := relief{b: b, what: "disk space", call: w.Reclaim}
	defer memory.wait()
	defer disk.wait()
	var tides tides
	for {
		own := w.measure(&tides, b.alarms.own().reason != "")
		b.alarms.setOwn(own)
		l := b.allAlarms(own)
		if b.flow.set(l.reason, l.short) {
			if l.reason != "" {
				b.log.Warn("publishes are held up; consuming goes on", "reason", l.reason)
			} else {
				b.log.Info("publishes go on")
			}
		}
		b.flow.pacing.set(l.near, l.left)
		memory.when(own.memory)
		disk.when(own.disk)
		tick.Reset(cmp.Or(own.look, watermarkInterval))
		select {
		case <-tick.C:
		case <-ctx.Done():
			b.flow.set("", "")
			b.flow.pacing.set(false, 0)
			return
		}
	}
}

// relief calls what gives something back, now and then and never twice at a time. It is used by one goroutine.
type relief struct {
	b       *Broker
	what    string
	call    func() error
	last    time.Time
	working atomic.Bool
	work    sync.WaitGroup
}

func (r *relief) when(needed bool) {
	if !needed || r.call == nil || time.Since(r.last) < relieveInterval || r.working.Load() {
		return
	}
	r.last = time.Now()
	r.working.Store(true)
	r.work.Go(func() {
		defer r.working.Store(false)
		if err := r.call(); err != nil {
			r.b.log.Warn("a snapshot to free "+r.what+" failed", "error", err)
		}
	})
}

func (r *relief) wait() { r.work.Wait() }
