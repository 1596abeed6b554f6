package bench

import (
	"context"
	"fmt"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// acknowledgeAfter lets a consumer acknowledge many deliveries with one frame, as Warren's own client does.
const acknowledgeAfter = time.Millisecond

// Consumer implements Protocol.
func (a *AMQP) Consumer(ctx context.Context, name, queue string, prefetch int) (Consumer, error) {
	c := &amqpConsumer{protocol: a, name: name, queue: queue, prefetch: prefetch}
	return c, c.connect(ctx)
}

// amqpConsumer acknowledges all that it has when half of its prefetch has come, or acknowledgeAfter the first of them.
type amqpConsumer struct {
	protocol   *AMQP
	name       string
	queue      string
	prefetch   int
	link       *link
	deliveries <-chan amqp091.Delivery
}

func (c *amqpConsumer) connect(ctx context.Context) error {
	l, err := c.protocol.open(ctx, c.name)
	if err != nil {
		return err
	}
	err = l.within(ctx, func() error {
		if err := l.ch.Qos(c.prefetch, 0, false); err != nil {
			return err
		}
		c.deliveries, err = l.ch.Consume(c.queue, "", false, false, false, false, nil)
		return err
	})
	if err != nil {
		l.close()
		return err
	}
	c.link = l
	return nil
}

// Consume implements Consumer.
func (c *amqpConsumer) Consume(ctx context.Context, take func([]byte, bool)) error {
	var last amqp091.Delivery
	unacknowledged := 0
	acknowledge := func() {
		if unacknowledged > 0 {
			_ = last.Ack(true) // a lost connection makes them come again
			unacknowledged = 0
		}
	}
	defer acknowledge()
	quiet := time.NewTimer(acknowledgeAfter)
	defer quiet.Stop()
	for {
		var d amqp091.Delivery
		var ok bool
		select {
		case d, ok = <-c.deliveries:
		case <-quiet.C:
			acknowledge()
			continue
		case <-ctx.Done():
			return nil
		}
		if !ok {
			unacknowledged = 0
			c.link.close()
			if err := c.connect(ctx); err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return fmt.Errorf("connect again: %w", err)
			}
			continue
		}
		take(d.Body, d.Redelivered)
		last = d
		if unacknowledged++; unacknowledged > c.prefetch/2 {
			acknowledge()
		} else if unacknowledged == 1 {
			quiet.Reset(acknowledgeAfter)
		}
	}
}

// Close implements Consumer.
func (c *amqpConsumer) Close(context.Context) { c.link.close() }
