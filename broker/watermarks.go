package broker

import (
	"context"
	"fmt"
	"sync"
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
	DiskFree     func() (uint64, error) // bytes
	MinDiskFree  uint64
	// Relieve is called when memory is nearly short: a snapshot lets bodies leave memory. It may take long.
	Relieve func() error
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
	reason string // publishes are held up for it; "" when they are not
	short  string // of what, in RabbitMQ's words
	near   bool   // some watermark is near
	memory bool   // it is one of memory
	left   uint64 // bytes to the nearest of those that are near
}

// add takes one watermark into account. used may be above bound.
func (l *strain) add(used, bound, nearBy uint64, blocked bool) (above bool) {
	if blocked {
		bound -= bound / goOnParts
	}
	left := uint64(0)
	if used < bound {
		left = bound - used
	}
	if left < nearBy {
		if !l.near || left < l.left {
			l.left = left
		}
		l.near = true
	}
	return used > bound
}

// measure says where the node is. blocked says that publishes are held up already.
func (w *Watermarks) measure(blocked bool) (l strain) {
	if w.MemoryUsed != nil && w.MaxMemory > 0 && l.add(w.MemoryUsed(), w.MaxMemory, w.MaxMemory/4, blocked) {
		l.reason = fmt.Sprintf("the node's messages take more than %d MiB of memory; consume messages or give it more", w.MaxMemory>>20)
	}
	if w.Unwritten != nil && w.MaxUnwritten > 0 && l.add(w.Unwritten(), w.MaxUnwritten, w.MaxUnwritten/2, blocked) && l.reason == "" {
		l.reason = fmt.Sprintf("messages come faster than the disk takes them, more than %d MiB wait to be written", w.MaxUnwritten>>20)
	}
	l.memory = l.near
	if l.reason != "" {
		l.short = "low on memory"
	}
	if w.DiskFree == nil || w.MinDiskFree == 0 {
		return l
	}
	free, err := w.DiskFree()
	if err != nil {
		return l
	}
	least := w.MinDiskFree
	if blocked {
		least += least / goOnParts
	}
	if left := free - min(free, least); left < w.MinDiskFree/2 {
		if !l.near || left < l.left {
			l.left = left
		}
		l.near = true
	}
	if free < least {
		l.reason = fmt.Sprintf("the disk has less than %d MiB free; free some or add to it", w.MinDiskFree>>20)
		if l.short != "" {
			l.short = "low on memory & disk"
		} else {
			l.short = "low on disk"
		}
	}
	return l
}

// none reports whether there is nothing to watch.
func (w *Watermarks) none() bool {
	return (w.MemoryUsed == nil || w.MaxMemory == 0) && (w.Unwritten == nil || w.MaxUnwritten == 0) && (w.DiskFree == nil || w.MinDiskFree == 0)
}

// watchWatermarks slows, stops and lets go on publishes until the context ends.
func (b *Broker) watchWatermarks(ctx context.Context) {
	w := &b.config.Watermarks
	if w.none() {
		return
	}
	tick := time.NewTicker(watermarkInterval)
	defer tick.Stop()
	var relieving sync.WaitGroup
	defer relieving.Wait()
	relieved := make(chan struct{}, 1)
	relieved <- struct{}{}
	var last time.Time
	for {
		l := w.measure(b.flow.blocked.Load())
		if b.flow.set(l.reason, l.short) {
			if l.reason != "" {
				b.log.Warn("publishes are held up; consuming goes on", "reason", l.reason)
			} else {
				b.log.Info("publishes go on")
			}
		}
		b.flow.pacing.set(l.near, l.left)
		if l.memory && w.Relieve != nil && time.Since(last) >= relieveInterval {
			select {
			case <-relieved:
				last = time.Now()
				relieving.Go(func() {
					if err := w.Relieve(); err != nil {
						b.log.Warn("a snapshot to free memory failed", "error", err)
					}
					relieved <- struct{}{}
				})
			default: // it is under way
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			b.flow.set("", "")
			b.flow.pacing.set(false, 0)
			return
		}
	}
}
