package broker

import (
	"context"
	"sync"
	"sync/atomic"
)

// flow holds publishes up while the node is above a watermark.
type flow struct {
	blocked atomic.Bool // reason is not empty
	pacing  *pacing

	mu      sync.Mutex
	reason  string        // guarded by mu
	short   string        // of what, in RabbitMQ's words; guarded by mu
	changed chan struct{} // closed and replaced when reason changes; guarded by mu
}

func newFlow() *flow { return &flow{pacing: newPacing(), changed: make(chan struct{})} }

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
