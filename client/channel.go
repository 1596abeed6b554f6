package client

import (
	"context"
	"fmt"

	"github.com/warrenmq/warren/protocol/native"
)

// Channel is a channel of a connection. It lasts over reconnections.
type Channel struct {
	conn   *Connection
	number uint32

	// guarded by conn.mu
	closed    bool
	opened    bool // the broker has said so; else its open is still among the calls
	consumers map[string]*Consumer
	qos       []native.Qos // in force: at most one for each value of PerChannel
	prefetch  uint32       // of the next consumer
	batches   [3]*settlement
	isDirty   bool
}

// Channel opens a channel.
func (c *Connection) Channel(ctx context.Context) (*Channel, error) {
	c.mu.Lock()
	ch := &Channel{conn: c, consumers: map[string]*Consumer{}, prefetch: DefaultPrefetch}
	for n := uint32(controlChannel + 1); n <= maxChannels; n++ {
		if c.channels[n] == nil {
			ch.number = n
			break
		}
	}
	if ch.number == 0 || c.closed {
		closed := c.closed
		c.mu.Unlock()
		if closed {
			return nil, ErrClosed
		}
		return nil, fmt.Errorf("%w: %d channels are open on the connection, close some", ErrOverloaded, maxChannels)
	}
	c.channels[ch.number] = ch
	c.mu.Unlock()
	err := ch.do(ctx, &call{after: func(*call) { ch.opened = true }}, func(rid uint64) native.Frame { return &native.ChannelOpen{Head: ch.head(rid)} })
	if err == nil {
		err = ch.Qos(ctx, DefaultPrefetch, false)
	}
	if err != nil {
		c.mu.Lock()
		delete(c.channels, ch.number)
		c.mu.Unlock()
		return nil, err
	}
	return ch, nil
}

func (ch *Channel) head(rid uint64) native.Head { return native.Head{RID: rid, Channel: ch.number} }

func (ch *Channel) do(ctx context.Context, k *call, frame func(rid uint64) native.Frame) error {
	ch.conn.mu.Lock()
	closed := ch.closed
	ch.conn.mu.Unlock()
	if closed {
		return ErrClosed
	}
	return ch.conn.do(ctx, k, frame)
}

// Qos bounds the unacknowledged deliveries of each consumer started afterwards, or of the channel altogether. Without
// it the bound is DefaultPrefetch; at most MaxPrefetch.
func (ch *Channel) Qos(ctx context.Context, prefetch uint32, perChannel bool) error {
	if prefetch == 0 || prefetch > MaxPrefetch {
		return fmt.Errorf("%w: prefetch %d, from 1 to %d are possible", ErrPreconditionFailed, prefetch, MaxPrefetch)
	}
	f := native.Qos{PrefetchCount: prefetch, PerChannel: perChannel}
	return ch.do(ctx, &call{after: func(*call) {
		kept := ch.qos[:0]
		for _, q := range ch.qos {
			if q.PerChannel != perChannel {
				kept = append(kept, q)
			}
		}
		ch.qos = append(kept, f)
		if !perChannel {
			ch.prefetch = prefetch
		}
	}}, func(rid uint64) native.Frame {
		return &native.Qos{Head: ch.head(rid), PrefetchCount: prefetch, PerChannel: perChannel}
	})
}

// Close ends the channel and its consumers; unacknowledged deliveries return to their queues.
func (ch *Channel) Close(ctx context.Context) error {
	err := ch.do(ctx, &call{}, func(rid uint64) native.Frame { return &native.ChannelClose{Head: ch.head(rid)} })
	c := ch.conn
	c.mu.Lock()
	ch.closed = true
	if c.channels[ch.number] == ch {
		delete(c.channels, ch.number)
	}
	consumers := ch.consumers
	ch.consumers = nil
	c.mu.Unlock()
	for _, consumer := range consumers {
		consumer.end(ErrClosed)
	}
	return err
}
