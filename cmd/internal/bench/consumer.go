package bench

import (
	"context"
	"fmt"

	"github.com/warrenmq/warren/cmd/internal/ledger"
)

// consumer opens a consumer's connection and returns what consumes until its context ends.
func (r *run) consumer(ctx context.Context, number int) (func(context.Context), error) {
	starting, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	c, err := r.o.Protocol.Consumer(starting, fmt.Sprintf("warren bench consumer %d", number), r.o.Queue, r.o.Prefetch)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) {
		defer r.close(c)
		r.consume(ctx, c)
	}, nil
}

func (r *run) consume(ctx context.Context, c Consumer) {
	latencies := histogram()
	err := c.Consume(ctx, func(body []byte, redelivered bool) {
		if s, ok := ledger.Read(body); ok && r.ledger.Delivered(s, redelivered) {
			_ = latencies.RecordValue((r.now() - s.Sent) / 1e3)
			r.consumed.Add(1)
		}
	})
	if err != nil {
		r.fail(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ends.Merge(latencies)
}
