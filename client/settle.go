package client

import (
	"context"
	"slices"

	"github.com/warrenmq/warren/protocol/native"
)

// What can become of a delivery, as index into Channel.batches.
const (
	acknowledge = iota
	requeue
	reject
)

// settlement gathers the deliveries that are settled alike while the writer is busy; they share one frame and outcome.
type settlement struct {
	tags    []uint64
	frames  int // not answered yet
	err     error
	settled chan struct{} // closed by done
	over    bool
}

func (s *settlement) done(err error) {
	if s.over {
		return
	}
	s.frames--
	if err != nil {
		s.err = err
	}
	if s.frames <= 0 || err != nil {
		s.over = true
		close(s.settled)
	}
}

// Ack acknowledges the delivery and waits until that is applied: the message will not be delivered again. After a
// reconnection the error is ErrStaleDelivery; when the connection is lost on the way, ErrOutcomeUnknown.
func (d *Delivery) Ack(ctx context.Context) error { return d.settle(ctx, acknowledge) }

// Nack gives the delivery back, to its queue with back, else for good (as Reject).
func (d *Delivery) Nack(ctx context.Context, back bool) error {
	if back {
		return d.settle(ctx, requeue)
	}
	return d.settle(ctx, reject)
}

// Reject discards the message (or has it dead-lettered, where the queue says so).
func (d *Delivery) Reject(ctx context.Context) error { return d.settle(ctx, reject) }

// AckAsync acknowledges without waiting. The only errors are ErrStaleDelivery and ErrClosed; a lost connection makes
// the message come again.
func (d *Delivery) AckAsync() error {
	_, err := d.enqueue(acknowledge)
	return err
}

func (d *Delivery) settle(ctx context.Context, how int) error {
	s, err := d.enqueue(how)
	if err != nil || s == nil {
		return err
	}
	select {
	case <-s.settled:
		return s.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *Delivery) enqueue(how int) (*settlement, error) {
	if d.DeliveryTag == 0 {
		return nil, nil // delivered with AutoAck
	}
	c := d.ch.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || d.ch.closed {
		return nil, ErrClosed
	}
	l := c.link // not ready: deliveries come as soon as their consumer is restored, before all of the link is
	if l == nil || l.epoch != d.epoch {
		return nil, ErrStaleDelivery
	}
	s := d.ch.batches[how]
	if s == nil {
		s = &settlement{settled: make(chan struct{})}
		d.ch.batches[how] = s
	}
	s.tags = append(s.tags, d.DeliveryTag)
	if !d.ch.isDirty {
		d.ch.isDirty = true
		c.dirty = append(c.dirty, d.ch)
		l.signal()
	}
	return s, nil
}

// takeAcks appends the frames of all settlements that wait; called by the writer with mu held.
func (c *Connection) takeAcks(l *link, b []byte) []byte {
	if c.link != l {
		return b
	}
	for _, ch := range c.dirty {
		ch.isDirty = false
		for how, s := range ch.batches {
			if s == nil {
				continue
			}
			ch.batches[how] = nil
			ranges := rangesOf(s.tags)
			for part := range slices.Chunk(ranges, native.MaxRanges) {
				head := ch.head(c.rid())
				c.settling[head.RID] = s
				s.frames++
				if how == acknowledge {
					b = native.AppendAck(b, &native.Ack{Head: head, Ranges: part})
				} else {
					b = native.AppendNack(b, &native.Nack{Head: head, Ranges: part, Requeue: how == requeue})
				}
			}
		}
	}
	c.dirty = c.dirty[:0]
	return b
}

func rangesOf(tags []uint64) []native.Range {
	slices.Sort(tags)
	var out []native.Range
	for _, t := range tags {
		if n := len(out); n > 0 && t <= out[n-1].To+1 {
			out[n-1].To = t
		} else {
			out = append(out, native.Range{From: t, To: t})
		}
	}
	return out
}

func (c *Connection) settled(r *native.Reply) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.settling[r.RID]
	if s == nil {
		return nil
	}
	delete(c.settling, r.RID)
	c.pub.wakeWaiters()
	s.done(refusal(r))
	if retryable(r.Code) && r.Code != native.Overloaded {
		return refusal(r)
	}
	return nil
}

// dropSettlements fails what was not sent before the link's end; called with mu held.
func (ch *Channel) dropSettlements() {
	ch.isDirty = false
	for how, s := range ch.batches {
		if s != nil {
			ch.batches[how] = nil
			s.done(ErrStaleDelivery)
		}
	}
}
