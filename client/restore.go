package client

import (
	"errors"
	"fmt"

	"github.com/warrenmq/warren/protocol/native"
)

// restore sends what makes a new link like the one before it: channels, topology, qos, consumers. The returned channel
// gets one value when all of it is answered: nil, or an error that another link may not meet.
func (c *Connection) restore(l *link) <-chan error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var steps []step
	send := func(what string, f native.Frame, head *native.Head, consumer *Consumer) {
		k := &call{rid: c.rid(), internal: true, sent: true, done: newDone()}
		head.RID = k.rid
		c.calls[k.rid] = k
		l.out = native.Append(l.out, f)
		steps = append(steps, step{k, what, consumer})
	}
	for _, ch := range c.channels {
		if !ch.opened {
			continue
		}
		f := &native.ChannelOpen{Head: ch.head(0)}
		send("channel", f, &f.Head, nil)
	}
	for _, f := range c.topology.exchanges {
		f.Channel = controlChannel
		send("exchange "+f.Name, &f, &f.Head, nil)
	}
	for _, f := range c.topology.queues {
		f.Channel = controlChannel
		send("queue "+f.Name, &f, &f.Head, nil)
	}
	for _, b := range c.topology.bindings {
		f := &native.Bind{Head: native.Head{Channel: controlChannel}, Binding: b}
		send("binding of "+b.Destination+" to "+b.Exchange, f, &f.Head, nil)
	}
	restored := make(chan error, 1)
	l.wg.Add(1)
	go func() {
		defer l.wg.Done()
		err := c.answers(l, steps)
		if err == nil {
			c.mu.Lock()
			steps = steps[:0]
			for _, ch := range c.channels {
				for _, f := range ch.qos {
					f.Head = ch.head(0)
					send("qos", &f, &f.Head, nil)
				}
				for _, consumer := range ch.consumers {
					if consumer.confirmed {
						f := consumer.request
						send("consumer "+f.ConsumerTag, &f, &f.Head, consumer)
					}
				}
			}
			c.mu.Unlock()
			l.signal()
			err = c.answers(l, steps)
		}
		restored <- err
	}()
	l.signal()
	return restored
}

type step struct {
	call     *call
	what     string
	consumer *Consumer
}

// answers waits for the steps. A locked queue is worth another try: the broker may not have noticed yet that the
// connection that held it is gone. Any other refusal concerns one thing, which is left out.
func (c *Connection) answers(l *link, steps []step) error {
	for _, s := range steps {
		select {
		case <-s.call.done:
		case <-l.dead:
			return l.cause
		}
		var refused *Error
		switch err := s.call.err; {
		case err == nil:
		case errors.Is(err, ErrResourceLocked) || !errors.As(err, &refused):
			return fmt.Errorf("restoring %s: %w", s.what, err)
		default:
			c.o.log.Error("could not restore", "what", s.what, "error", err)
			if s.consumer != nil {
				s.consumer.remove()
				s.consumer.end(err)
			}
		}
	}
	return nil
}
