package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/warrenmq/warren/cmd/internal/ledger"
)

// pending is a publish whose confirm is awaited.
type pending struct {
	sequence uint64
	sent     int64 // when it was, or should have been, sent
}

// publisher opens a publisher's connection and returns what runs it to its end: publishing, then the last confirms.
func (r *run) publisher(ctx context.Context, number uint64) (func(), error) {
	opening, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	p, err := r.o.Protocol.Publisher(opening, fmt.Sprintf("warren bench publisher %d", number), r.o.Queue, r.o.Window, r.o.Size)
	if err != nil {
		return nil, err
	}
	return func() {
		defer r.close(p)
		under := make(chan pending, r.o.Window) // closed by publish
		var confirms sync.WaitGroup
		confirms.Go(func() { r.awaitConfirms(p, number, under) })
		r.publish(p, number, under)
		confirms.Wait()
	}, nil
}

// publish sends until the time of publishing is over. With a rate, each message has a time at which it should leave,
// and its latency counts from then on: a cluster that stalls is not spared the messages it held up.
func (r *run) publish(p Publisher, number uint64, under chan<- pending) {
	defer close(under)
	body := make([]byte, r.o.Size)
	start := r.now()
	var interval float64 // nanoseconds between this publisher's messages
	if r.o.Rate > 0 {
		interval = 1e9 * float64(r.o.Publishers) / r.o.Rate
		start += int64(interval * float64(number) / float64(r.o.Publishers)) // not all at once
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for sequence := uint64(0); r.publishing.Err() == nil; sequence++ {
		sent := r.now()
		if interval > 0 {
			due := start + int64(interval*float64(sequence))
			if ahead := due - sent; ahead > 0 {
				timer.Reset(time.Duration(ahead))
				select {
				case <-timer.C:
				case <-r.publishing.Done():
					return
				}
			}
			sent = due
		}
		ledger.Stamp{Run: r.id, Publisher: number, Sequence: sequence, Sent: sent}.Put(body)
		if err := p.Publish(r.publishing, body); err != nil {
			if r.publishing.Err() == nil {
				r.fail(err)
			}
			return
		}
		r.published.Add(1)
		under <- pending{sequence, sent}
	}
}

// awaitConfirms takes the confirms in the order of the publishes.
func (r *run) awaitConfirms(p Publisher, number uint64, under <-chan pending) {
	latencies := histogram()
	for m := range under {
		if err := p.Confirmed(r.draining); err != nil {
			if errors.Is(err, r.draining.Err()) {
				err = fmt.Errorf("unconfirmed at the end: %w", err)
			}
			r.fail(err)
			continue
		}
		now := r.now()
		if last := r.lastConfirm.Swap(now); now-last > r.gap.Load() {
			r.gap.Store(now - last)
		}
		_ = latencies.RecordValue((now - m.sent) / 1e3) // out of range only after ten minutes
		r.confirmed.Add(1)
		r.ledger.Confirmed(number, m.sequence)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.confirms.Merge(latencies)
}
