package client

import (
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"sync"

	"github.com/warrenmq/warren/protocol/native"
)

// ConsumeOptions say how to consume.
type ConsumeOptions struct {
	Tag       string // made up when empty
	AutoAck   bool   // a delivery counts as acknowledged when it is sent: what is under way may be lost
	Exclusive bool
	Arguments map[string]any
}

// autoAckBuffer is how many deliveries of an AutoAck consumer may wait before the connection is read no further.
const autoAckBuffer = 4_096

// Delivery is a message that was delivered.
type Delivery struct {
	Message
	ConsumerTag string
	DeliveryTag uint64 // on this channel and network connection
	Redelivered bool   // it may have been delivered before
	Exchange    string
	RoutingKey  string
	Queue       string

	ch    *Channel
	epoch uint64
}

func newDelivery(ch *Channel, epoch uint64, d *native.Delivery, body []byte) (*Delivery, error) {
	out := &Delivery{ConsumerTag: d.ConsumerTag, DeliveryTag: d.DeliveryTag, Redelivered: d.Redelivered, Exchange: d.Exchange,
		RoutingKey: d.RoutingKey, Queue: d.Queue, ch: ch, epoch: epoch}
	var err error
	if out.Message, err = message(d.Properties, body); err != nil {
		return nil, err
	}
	return out, nil
}

func message(properties, body []byte) (Message, error) {
	var p native.Properties
	if err := native.DecodeProperties(properties, &p); err != nil {
		return Message{}, err
	}
	return Message{ContentType: p.ContentType, ContentEncoding: p.ContentEncoding, Headers: p.Headers, Priority: p.Priority,
		CorrelationID: p.CorrelationID, ReplyTo: p.ReplyTo, Expiration: p.Expiration, MessageID: p.MessageID,
		Timestamp: p.Timestamp, Type: p.Type, UserID: p.UserID, AppID: p.AppID, Body: body,
		Transient: p.DeliveryMode == native.Transient}, nil
}

// Consumer receives deliveries of a queue. It goes on over reconnections, until Cancel, the channel's or the
// connection's Close, or the broker ends it.
type Consumer struct {
	ch        *Channel
	request   native.Consume
	confirmed bool // guarded by conn.mu

	mu         sync.Mutex     // held while sending to and closing deliveries
	deliveries chan *Delivery // closed by end
	ended      chan struct{}  // closed by end, before deliveries
	once       sync.Once
	err        error // set before ended is closed
}

// Consume starts a consumer. Deliveries wait in memory up to the channel's prefetch.
func (ch *Channel) Consume(ctx context.Context, queue string, o ConsumeOptions) (*Consumer, error) {
	args, err := native.EncodeTable(nil, o.Arguments)
	if err != nil {
		return nil, err
	}
	if o.Tag == "" {
		o.Tag = "ctag-" + rand.Text()
	}
	s := &Consumer{ch: ch, ended: make(chan struct{}), request: native.Consume{Head: ch.head(0), ConsumerTag: o.Tag, Queue: queue,
		AutoAck: o.AutoAck, Exclusive: o.Exclusive, Arguments: args}}
	ch.conn.mu.Lock()
	size := int(ch.prefetch)
	if o.AutoAck {
		size = autoAckBuffer
	}
	s.deliveries = make(chan *Delivery, size)
	if ch.closed || ch.consumers[o.Tag] != nil {
		closed := ch.closed
		ch.conn.mu.Unlock()
		if closed {
			return nil, ErrClosed
		}
		return nil, fmt.Errorf("%w: consumer tag %q is in use", ErrNotAllowed, o.Tag)
	}
	ch.consumers[o.Tag] = s // before the answer: deliveries may be right behind it
	ch.conn.mu.Unlock()
	err = ch.do(ctx, &call{after: func(*call) { s.confirmed = true }}, func(rid uint64) native.Frame {
		f := s.request
		f.RID = rid
		return &f
	})
	if err != nil {
		s.remove()
		s.end(err)
		ch.conn.abandon(&native.Cancel{Head: ch.head(0), ConsumerTag: o.Tag})
		return nil, err
	}
	return s, nil
}

// Tag is the consumer's tag.
func (s *Consumer) Tag() string { return s.request.ConsumerTag }

// Deliveries is closed when the consumer has ended; Err then says why.
func (s *Consumer) Deliveries() <-chan *Delivery { return s.deliveries }

// Err is why the consumer has ended; nil while it has not and after Cancel.
func (s *Consumer) Err() error {
	select {
	case <-s.ended:
		return s.err
	default:
		return nil
	}
}

// All yields the deliveries until ctx ends or the consumer does; the last pair then has the error, if there is one.
// Leaving the loop does not cancel the consumer.
func (s *Consumer) All(ctx context.Context) iter.Seq2[*Delivery, error] {
	return func(yield func(*Delivery, error) bool) {
		for {
			select {
			case d, ok := <-s.deliveries:
				if !ok {
					if err := s.Err(); err != nil {
						yield(nil, err)
					}
					return
				}
				if !yield(d, nil) {
					return
				}
			case <-ctx.Done():
				yield(nil, ctx.Err())
				return
			}
		}
	}
}

// Cancel ends the consumer. What it has delivered can still be acknowledged.
func (s *Consumer) Cancel(ctx context.Context) error {
	err := s.ch.do(ctx, &call{}, func(rid uint64) native.Frame {
		return &native.Cancel{Head: s.ch.head(rid), ConsumerTag: s.Tag()}
	})
	s.remove()
	s.end(nil)
	return err
}

func (s *Consumer) remove() {
	s.ch.conn.mu.Lock()
	defer s.ch.conn.mu.Unlock()
	if s.ch.consumers[s.Tag()] == s {
		delete(s.ch.consumers, s.Tag())
	}
}

func (s *Consumer) end(err error) {
	s.once.Do(func() {
		s.err = err
		close(s.ended) // frees a sender that waits
		s.mu.Lock()
		defer s.mu.Unlock()
		close(s.deliveries)
	})
}

func (s *Consumer) push(l *link, d *Delivery) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.ended:
		return nil
	default:
	}
	select {
	case s.deliveries <- d:
		return nil
	default:
	}
	if !s.request.AutoAck {
		return fmt.Errorf("%w: more deliveries to %s than its prefetch", ErrProtocol, s.Tag())
	}
	select {
	case s.deliveries <- d:
		return nil
	case <-s.ended:
		return nil
	case <-l.dead:
		return l.cause
	}
}

// dropStale empties the buffer after a link's end: those deliveries come again.
func (s *Consumer) dropStale() {
	for !s.request.AutoAck {
		select {
		case _, ok := <-s.deliveries:
			if !ok {
				return
			}
		default:
			return
		}
	}
}

// deliver hands a push to its consumer; called by the link's reader.
func (c *Connection) deliver(l *link, f *native.Deliver) error {
	body := l.body(&f.Delivery)
	c.mu.Lock()
	ch := c.channels[f.Channel]
	var s *Consumer
	if ch != nil {
		s = ch.consumers[f.ConsumerTag]
	}
	c.mu.Unlock()
	if s == nil { // cancelled or given up meanwhile: the message is for others
		if ch != nil {
			_, _ = (&Delivery{DeliveryTag: f.DeliveryTag, ch: ch, epoch: l.epoch}).enqueue(requeue)
		}
		return nil
	}
	d, err := newDelivery(ch, l.epoch, &f.Delivery, body)
	if err != nil { // it would come again over every new link
		s.remove()
		s.end(fmt.Errorf("%w: message %d of queue %s: %w", ErrProtocol, f.DeliveryTag, f.Queue, err))
		c.abandon(&native.Cancel{Head: ch.head(0), ConsumerTag: s.Tag()})
		_, _ = (&Delivery{DeliveryTag: f.DeliveryTag, ch: ch, epoch: l.epoch}).enqueue(requeue)
		return nil
	}
	return s.push(l, d)
}

// Get takes one message of a queue; nil when there is none. With autoAck, a lost connection makes its outcome unknown.
func (ch *Channel) Get(ctx context.Context, queue string, autoAck bool) (*Delivery, error) {
	var ok native.GetOK
	k := &call{answer: &ok, once: autoAck}
	err := ch.do(ctx, k, func(rid uint64) native.Frame {
		return &native.Get{Head: ch.head(rid), Queue: queue, AutoAck: autoAck}
	})
	if err != nil || !ok.Found {
		return nil, err
	}
	return newDelivery(ch, k.epoch, &ok.Delivery, k.body)
}
