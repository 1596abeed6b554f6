package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// Publisher implements Protocol.
func (a *AMQP) Publisher(ctx context.Context, name, queue string, window, size int) (Publisher, error) {
	p := &amqpPublisher{protocol: a, name: name, queue: queue, slots: make(chan struct{}, window), bodies: make([][]byte, window)}
	for i := range p.bodies {
		p.bodies[i] = make([]byte, 0, size)
	}
	if err := p.connect(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// amqpPublisher keeps the bodies that are not confirmed, in order, so that it can publish them again: a broker may then
// have one of them twice, and bench shows that. Message n is in bodies[n % window].
type amqpPublisher struct {
	protocol *AMQP
	name     string
	queue    string
	slots    chan struct{} // one for each unconfirmed message
	confirms chan amqp091.Confirmation

	sending   sync.Mutex // held while messages are written, so that they are written in order
	link      *link      // guarded by sending
	bodies    [][]byte   // guarded by sending, but for those that are confirmed
	published uint64     // guarded by sending

	confirmed uint64 // Confirmed's
}

// connect opens a connection and publishes what is unconfirmed.
func (p *amqpPublisher) connect(ctx context.Context) error {
	l, err := p.protocol.open(ctx, p.name)
	if err != nil {
		return err
	}
	if err := l.within(ctx, func() error { return l.ch.Confirm(false) }); err != nil {
		l.close()
		return err
	}
	// As many as can be unconfirmed: the client's reader must never wait for us.
	p.confirms = l.ch.NotifyPublish(make(chan amqp091.Confirmation, cap(p.slots)))
	p.sending.Lock()
	defer p.sending.Unlock()
	p.link = l
	for n := p.confirmed; n < p.published; n++ {
		p.send(n)
	}
	return nil
}

// send writes a message. An error means that the connection ends, which Confirmed sees. The caller holds sending.
func (p *amqpPublisher) send(n uint64) {
	body := p.bodies[n%uint64(len(p.bodies))]
	err := p.link.ch.Publish("", p.queue, false, false, amqp091.Publishing{DeliveryMode: amqp091.Persistent, Body: body})
	if err != nil {
		p.link.close()
	}
}

// Publish implements Publisher.
func (p *amqpPublisher) Publish(ctx context.Context, body []byte) error {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	p.sending.Lock()
	defer p.sending.Unlock()
	kept := &p.bodies[p.published%uint64(len(p.bodies))]
	*kept = append((*kept)[:0], body...)
	p.published++
	p.send(p.published - 1)
	return nil
}

// Confirmed implements Publisher.
func (p *amqpPublisher) Confirmed(ctx context.Context) error {
	for {
		select {
		case c, ok := <-p.confirms:
			if ok {
				p.confirmed++
				<-p.slots
				if !c.Ack {
					return errors.New("the broker refused a message")
				}
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
		p.link.close()
		if err := p.connect(ctx); err != nil {
			return fmt.Errorf("connect again: %w", err)
		}
	}
}

// Close implements Publisher.
func (p *amqpPublisher) Close(context.Context) { p.link.close() }
