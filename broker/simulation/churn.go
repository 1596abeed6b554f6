package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/warrenmq/warren/client"
)

// Churn runs one client whose queues come and go: it purges and deletes one, and leaves exclusive and auto-delete ones
// behind, over one connection after the other, until producing ends. None of its queues may be there in the end.
func (w *Workload) Churn(name string, r *rand.Rand) {
	w.publishers.Go(func() {
		for life := 1; w.producing.Err() == nil; life++ {
			a := w.connect(w.producing, fmt.Sprintf("%s-%d", name, life), r)
			if a == nil {
				return
			}
			if err := w.emptied(a, a.name+"-plain"); err != nil && w.patience.Err() == nil {
				w.history.Violation("%s: %v", a.name, err)
			}
			abandoned := 0
			if r.IntN(2) == 0 {
				abandoned = w.abandoned(a)
			}
			w.history.Emptied(abandoned)
			if r.IntN(2) == 0 {
				w.cluster.Net.Reset(a.name)
			}
			_ = a.conn.Close(w.patience)
			pause(w.producing, time.Duration(r.IntN(500))*time.Millisecond)
		}
	})
}

// emptied publishes to a queue, purges it or deletes it and declares it again, and looks whether anything is left. Each
// step is known to have taken effect before the next.
func (w *Workload) emptied(a *agent, queue string) error {
	ctx := w.patience
	declare := func() error {
		s, err := a.ch.DeclareQueue(ctx, client.Queue{Name: queue, Durable: true})
		if err == nil && s.Messages > 0 {
			err = fmt.Errorf("a new queue has %d messages", s.Messages)
		}
		return err
	}
	if err := declare(); err != nil {
		return fmt.Errorf("declare: %w", err)
	}
	for range 1 + a.rand.IntN(5) {
		c, err := a.ch.Publish(ctx, "", queue, client.Message{Body: body(a.rand, queue)})
		if err != nil || c.Routed != 1 {
			return fmt.Errorf("publish: routed to %d queues, %w", c.Routed, err)
		}
	}
	if a.rand.IntN(2) == 0 {
		if _, err := a.ch.Purge(ctx, queue); err != nil {
			return fmt.Errorf("purge: %w", err)
		}
	} else {
		if _, err := a.ch.DeleteQueue(ctx, queue, false, false); err != nil {
			return fmt.Errorf("delete: %w", err)
		}
		if err := declare(); err != nil {
			return fmt.Errorf("declare again: %w", err)
		}
	}
	if d, err := a.ch.Get(ctx, queue, false); err != nil || d != nil {
		return fmt.Errorf("get from an emptied queue: %v, %w", d, err)
	}
	if _, err := a.ch.DeleteQueue(ctx, queue, false, false); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	return nil
}

// abandoned makes an exclusive queue, and an auto-delete one with a consumer, which go when the connection does. It
// returns how many it left.
func (w *Workload) abandoned(a *agent) (left int) {
	ctx := w.patience
	exclusive, auto := a.name+"-exclusive", a.name+"-auto"
	if _, err := a.ch.DeclareQueue(ctx, client.Queue{Name: exclusive, Exclusive: true}); err == nil {
		left++
		_, _ = a.ch.Publish(ctx, "", exclusive, client.Message{Body: body(a.rand, exclusive)})
	}
	if _, err := a.ch.DeclareQueue(ctx, client.Queue{Name: auto, Durable: true, AutoDelete: true}); err != nil {
		return left
	}
	consumer, err := a.ch.Consume(ctx, auto, client.ConsumeOptions{})
	if err != nil { // a queue that never had a consumer stays
		_, _ = a.ch.DeleteQueue(ctx, auto, false, false)
		return left
	}
	_, _ = a.ch.Publish(ctx, "", auto, client.Message{Body: body(a.rand, auto)})
	within, cancel := context.WithTimeout(ctx, time.Duration(a.rand.IntN(1000))*time.Millisecond)
	defer cancel()
	select {
	case d, ok := <-consumer.Deliveries():
		if ok && a.rand.IntN(2) == 0 {
			_ = d.Ack(within)
		}
	case <-within.Done():
	}
	return left + 1
}

// foreign returns the queues that are not the topology's.
func foreign(names []string) []string {
	return slices.DeleteFunc(names, func(n string) bool { return slices.Contains(queues, n) })
}
