package tools

import (
	"bufio"
	"context"
	"fmt"
	"time"

	"github.com/warrenmq/warren/client"
)

type consume struct {
	target
	printing
	Queue   string        `arg:"" help:"Name of the queue."`
	Count   int           `placeholder:"N" help:"End after so many messages; 0 goes on until interrupted."`
	NoAck   bool          `xor:"settle" help:"Take messages as acknowledged when they are sent: what is under way may be lost."`
	Requeue bool          `xor:"settle" help:"Give all messages back at the end instead of acknowledging them."`
	Wait    time.Duration `help:"End when no message came for so long; a failure when --count is not reached then."`
}

// Run consumes.
func (c *consume) Run(ctx context.Context, std Streams) error {
	switch {
	case c.Count < 0:
		return wrong("--count %d: it must be at least 1, or 0 for no end", c.Count)
	case c.Wait < 0:
		return wrong("--wait %v: it must be above zero", c.Wait)
	case c.Requeue && c.Count > client.MaxPrefetch:
		return wrong("--count %d: --requeue can hold at most %d messages", c.Count, client.MaxPrefetch)
	}
	return c.dialed(ctx, func(conn *client.Connection) error {
		starting, cancel := context.WithTimeout(ctx, c.Timeout)
		defer cancel()
		ch, err := conn.Channel(starting)
		if err != nil {
			return c.explain(err)
		}
		if err := ch.Qos(starting, c.prefetch(), false); err != nil {
			return c.explain(err)
		}
		consumer, err := ch.Consume(starting, c.Queue, client.ConsumeOptions{AutoAck: c.NoAck})
		if err != nil {
			return c.explain(err)
		}
		out := &printed{printing: c.printing, w: bufio.NewWriter(std.Out), ack: !c.NoAck && !c.Requeue}
		err = c.receive(ctx, consumer, out)
		if failed := out.flush(); err == nil {
			err = failed
		}
		if failed := c.giveBack(ctx, ch); err == nil {
			err = failed
		}
		return err
	})
}

// giveBack closes the channel, so that what was not acknowledged is in its queue again when this ends.
func (c *consume) giveBack(ctx context.Context, ch *client.Channel) error {
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Timeout)
	defer cancel()
	return c.explain(ch.Close(closing))
}

// prefetch is how many messages may be here unacknowledged: never more than will be printed.
func (c *consume) prefetch() uint32 {
	switch {
	case c.Requeue && c.Count == 0:
		return client.MaxPrefetch
	case c.Requeue:
		return uint32(c.Count)
	case c.Count == 0:
		return client.DefaultPrefetch
	}
	return uint32(min(c.Count, client.DefaultPrefetch))
}

func (c *consume) receive(ctx context.Context, consumer *client.Consumer, out *printed) error {
	var silence <-chan time.Time
	var timer *time.Timer
	if c.Wait > 0 {
		timer = time.NewTimer(c.Wait)
		defer timer.Stop()
		silence = timer.C
	}
	for n := 0; c.Count == 0 || n < c.Count; n++ {
		var d *client.Delivery
		select { // what is here already
		case d = <-consumer.Deliveries():
		default:
			if err := out.flush(); err != nil {
				return err
			}
			select {
			case d = <-consumer.Deliveries():
			case <-silence:
				if c.Count > 0 {
					return fmt.Errorf("only %d of %d messages came; none for %v", n, c.Count, c.Wait)
				}
				return nil
			case <-ctx.Done():
				if c.Count > 0 {
					return fmt.Errorf("interrupted after %d of %d messages", n, c.Count)
				}
				return nil
			}
		}
		if d == nil {
			return c.explain(consumer.Err())
		}
		if err := out.print(d); err != nil {
			return err
		}
		if timer != nil {
			timer.Reset(c.Wait)
		}
	}
	return nil
}

type get struct {
	target
	printing
	Queue   string `arg:"" help:"Name of the queue."`
	Requeue bool   `help:"Give the message back instead of acknowledging it."`
}

// Run takes one message; an empty queue is a failure.
func (g *get) Run(ctx context.Context, std Streams) error {
	return g.channel(ctx, func(ctx context.Context, ch *client.Channel) error {
		d, err := ch.Get(ctx, g.Queue, false)
		if err != nil {
			return err
		}
		if d == nil {
			return fmt.Errorf("queue %s is empty", g.Queue)
		}
		out := &printed{printing: g.printing, w: bufio.NewWriter(std.Out)}
		if err := out.print(d); err != nil {
			return err
		}
		if err := out.flush(); err != nil {
			return err
		}
		if g.Requeue {
			return d.Nack(ctx, true)
		}
		return d.Ack(ctx)
	})
}
