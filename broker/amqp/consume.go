package amqp

import (
	"context"
	"errors"
	"time"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/fsm"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// giveUp is what a reject or a nack does with a message.
func giveUp(requeue bool) fsm.SettleKind {
	if requeue {
		return fsm.Return
	}
	return fsm.Reject
}

// settle serves ack, nack and reject. An ack does not wait behind the channel's requests, and nothing does while publishes
// are held up, so that consuming goes on; what returns messages otherwise keeps its place, behind a purge say, and in a
// transaction everything does.
func (c *channel) settle(kind fsm.SettleKind, tag uint64, multiple bool, id amqp091.MethodID) *amqp091.Error {
	settle := c.SettleTag
	switch t := c.work; {
	case t != nil:
		settle = t.settle
	case kind == fsm.Acknowledge || c.connection.session.HeldUp():
		if err := settle(kind, tag, multiple); err != nil {
			return exceptionOf(err, id)
		}
		return nil
	}
	err := c.direct(0, func() error {
		if err := settle(kind, tag, multiple); err != nil {
			return exceptionOf(err, id)
		}
		return nil
	})
	var x *amqp091.Error
	errors.As(err, &x)
	return x
}

// recover returns everything outstanding to its queues.
func (c *channel) recover(answer bool) error {
	if err := c.Recover(c.context); err != nil {
		return exceptionOf(err, amqp091.BasicRecoverID)
	}
	if answer {
		c.send(&amqp091.BasicRecoverOk{})
	}
	return nil
}

func (c *channel) consume(ctx context.Context, m *amqp091.BasicConsume) error {
	started := func(tag string) {
		if !m.NoWait {
			c.send(&amqp091.BasicConsumeOk{ConsumerTag: tag})
		}
	}
	if cleaned(m.Queue) == broker.ReplyQueue {
		if !m.NoAck {
			return refuse(amqp091.PreconditionFailed, "reply consumer cannot acknowledge")
		}
		_, err := c.ConsumeReplies(m.ConsumerTag, started)
		return err
	}
	queue, err := c.queue(m.Queue)
	if err != nil {
		return err
	}
	consumer := broker.Consumer{Queue: queue, Tag: m.ConsumerTag, AutoAck: m.NoAck, Exclusive: m.Exclusive, Arguments: m.Arguments}
	integer := func(argument string) (int64, error) {
		v, found := m.Arguments.Lookup(argument)
		if !found {
			return 0, nil
		}
		number, ok := v.Int()
		if !ok {
			return 0, refuse(amqp091.PreconditionFailed, "invalid arg '%s' for queue '%s' in vhost '%s': \"expected integer, got %s\"",
				argument, queue, c.connection.session.Vhost.Name, v.TypeName())
		}
		return number, nil
	}
	if consumer.Priority, err = integer("x-priority"); err != nil {
		return err
	}
	timeout, err := integer("x-consumer-timeout")
	if err == nil && timeout < 0 {
		err = refuse(amqp091.PreconditionFailed, "invalid arg 'x-consumer-timeout' for queue '%s' in vhost '%s': {value_negative,%d}",
			queue, c.connection.session.Vhost.Name, timeout)
	}
	if err != nil {
		return err
	}
	consumer.Timeout = time.Duration(min(timeout, maxExpiration)) * time.Millisecond
	return c.Consume(ctx, consumer, started)
}

func (c *channel) get(ctx context.Context, m *amqp091.BasicGet) error {
	queue, err := c.queue(m.Queue)
	if err != nil {
		return err
	}
	found, err := c.Get(ctx, queue, m.NoAck, func(d *broker.Delivery, ready uint64) {
		c.append(func(b []byte) []byte {
			ok := amqp091.BasicGetOk{DeliveryTag: d.Tag, Redelivered: d.Redelivered, Exchange: d.Message.Exchange,
				RoutingKey: d.Message.RoutingKey, MessageCount: clamp(ready)}
			b = ok.AppendFrame(b, c.number)
			return amqp091.AppendContent(b, c.number, properties(d), d.Message.Body, c.connection.frameMax)
		})
	})
	if err == nil && !found {
		c.send(&amqp091.BasicGetEmpty{})
	}
	return err
}
