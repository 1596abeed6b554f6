package bench

import (
	"context"
	"fmt"

	"github.com/warrenmq/warren/client"
	"github.com/warrenmq/warren/cmd/internal/ledger"
)

// consumer opens a consumer's connection and returns what consumes until its context ends.
func (r *run) consumer(ctx context.Context, number int) (func(context.Context), error) {
	conn, err := r.dial(ctx, fmt.Sprintf("consumer %d", number))
	if err != nil {
		return nil, err
	}
	starting, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	consumer, err := func() (*client.Consumer, error) {
		ch, err := conn.Channel(starting)
		if err != nil {
			return nil, err
		}
		if err := ch.Qos(starting, uint32(r.o.Prefetch), false); err != nil {
			return nil, err
		}
		return ch.Consume(starting, r.o.Queue, client.ConsumeOptions{})
	}()
	if err != nil {
		r.close(conn)
		return nil, err
	}
	return func(ctx context.Context) {
		defer r.close(conn)
		r.consume(ctx, consumer)
	}, nil
}

func (r *run) consume(ctx context.Context, consumer *client.Consumer) {
	latencies := histogram()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ends.Merge(latencies)
	}()
	for {
		select {
		case d := <-consumer.Deliveries():
			if d == nil {
				r.fail(fmt.Errorf("consumer ended: %w", consumer.Err()))
				return
			}
			if s, ok := ledger.Read(d.Body); ok && r.ledger.Delivered(s, d.Redelivered) {
				_ = latencies.RecordValue((r.now() - s.Sent) / 1e3)
				r.consumed.Add(1)
			}
			_ = d.AckAsync() // a lost connection makes it come again
		case <-ctx.Done():
			return
		}
	}
}
