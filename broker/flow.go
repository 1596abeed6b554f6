package broker

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Watermarks are where a node stops taking publishes, so that it breaks neither its memory nor its disk. Consuming
// goes on above them. A nil function or a zero bound leaves that one out.
type Watermarks struct {
	MemoryUsed  func() uint64 // bytes
	MaxMemory   uint64
	DiskFree    func() (uint64, error) // bytes
	MinDiskFree uint64
	// Relieve is called when memory is short: a snapshot lets bodies leave memory.
	Relieve func() error
}

const (
	watermarkInterval = 250 * time.Millisecond
	relieveInterval   = 5 * time.Second
)

// flow holds publishes up while the node is above a watermark.
type flow struct {
	blocked atomic.Bool // reason is not empty

	mu      sync.Mutex
	reason  string        // guarded by mu
	short   string        // of what, in RabbitMQ's words; guarded by mu
	changed chan struct{} // closed and replaced when reason changes; guarded by mu
}

func newFlow() *flow { return &flow{changed: make(chan struct{})} }

func (f *flow) set(reason, short string) (changed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.reason == reason && f.short == short {
		return false
	}
	f.reason, f.short = reason, short
	f.blocked.Store(reason != "")
	close(f.changed)
	f.changed = make(chan struct{})
	return true
}

func (f *flow) state() (reason string, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reason, f.changed
}

// wait returns nil once publishes may go on.
func (f *flow) wait(ctx context.Context, ended <-chan struct{}) error {
	for f.blocked.Load() {
		reason, changed := f.state()
		if reason == "" {
			return nil
		}
		select {
		case <-changed:
		case <-ended:
			return nil // the submission is refused with the reason for that
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Flow returns why publishes are held up on this node, "" when they are not, and a channel that is closed when that
// changes.
func (b *Broker) Flow() (reason string, changed <-chan struct{}) { return b.flow.state() }

// ShortOf returns of what this node is short while it holds publishes up, as AMQP clients are told: "low on memory",
// "low on disk", "low on memory & disk"; "" when it does not hold them up.
func (b *Broker) ShortOf() string {
	b.flow.mu.Lock()
	defer b.flow.mu.Unlock()
	return b.flow.short
}

// Blocked reports whether publishes are held up now: Session.Publish would wait. It costs nothing.
func (b *Broker) Blocked() bool { return b.flow.blocked.Load() }

// watchWatermarks blocks and unblocks publishes until the context ends.
func (b *Broker) watchWatermarks(ctx context.Context) {
	w := b.config.Watermarks
	if (w.MemoryUsed == nil || w.MaxMemory == 0) && (w.DiskFree == nil || w.MinDiskFree == 0) {
		return
	}
	tick := time.NewTicker(watermarkInterval)
	defer tick.Stop()
	var relieved time.Time
	for {
		reason, short, memory := w.above()
		if b.flow.set(reason, short) {
			if reason != "" {
				b.log.Warn("publishes are held up; consuming goes on", "reason", reason)
			} else {
				b.log.Info("publishes go on")
			}
		}
		if memory && w.Relieve != nil && time.Since(relieved) >= relieveInterval {
			if err := w.Relieve(); err != nil {
				b.log.Warn("a snapshot to free memory failed", "error", err)
			}
			relieved = time.Now()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			b.flow.set("", "")
			return
		}
	}
}

// above says which watermark the node is above, "" for none, and whether the memory's is among them.
func (w *Watermarks) above() (reason, short string, memory bool) {
	if w.MemoryUsed != nil && w.MaxMemory > 0 && w.MemoryUsed() > w.MaxMemory {
		reason = fmt.Sprintf("the node uses more than %d MiB of memory; consume messages or give it more", w.MaxMemory>>20)
		short, memory = "low on memory", true
	}
	if w.DiskFree != nil && w.MinDiskFree > 0 {
		if free, err := w.DiskFree(); err == nil && free < w.MinDiskFree {
			reason = fmt.Sprintf("the disk has less than %d MiB free; free some or add to it", w.MinDiskFree>>20)
			short = "low on disk"
			if memory {
				short = "low on memory & disk"
			}
		}
	}
	return reason, short, memory
}
