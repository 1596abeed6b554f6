package amqp

import (
	"context"
	"math"
	"strings"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/fsm"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// request returns what serves a method that has to wait for the log or for the state; nil when nothing does. It runs in
// its channel's turn.
func (c *channel) request(m amqp091.Method) func() error {
	ctx := c.context
	switch m := m.(type) {
	case *amqp091.ExchangeDeclare:
		return func() error { return c.declareExchange(ctx, m) }
	case *amqp091.ExchangeDelete:
		return func() error {
			return c.answer(c.connection.session.DeleteExchange(ctx, cleaned(m.Exchange), m.IfUnused), m.NoWait, &amqp091.ExchangeDeleteOk{})
		}
	case *amqp091.ExchangeBind:
		b := broker.Binding{Kind: fsm.ToExchange, Destination: cleaned(m.Destination), Source: cleaned(m.Source), Key: m.RoutingKey, Arguments: m.Arguments}
		return func() error {
			return c.answer(c.connection.session.Bind(ctx, b), m.NoWait, &amqp091.ExchangeBindOk{})
		}
	case *amqp091.ExchangeUnbind:
		b := broker.Binding{Kind: fsm.ToExchange, Destination: cleaned(m.Destination), Source: cleaned(m.Source), Key: m.RoutingKey, Arguments: m.Arguments}
		return func() error {
			return c.answer(c.connection.session.Unbind(ctx, b), m.NoWait, &amqp091.ExchangeUnbindOk{})
		}
	case *amqp091.QueueDeclare:
		return func() error { return c.declareQueue(ctx, m) }
	case *amqp091.QueueBind:
		return func() error {
			b, err := c.queueBinding(m.Queue, m.Exchange, m.RoutingKey, m.Arguments)
			if err != nil {
				return err
			}
			return c.answer(c.connection.session.Bind(ctx, b), m.NoWait, &amqp091.QueueBindOk{})
		}
	case *amqp091.QueueUnbind:
		return func() error {
			b, err := c.queueBinding(m.Queue, m.Exchange, m.RoutingKey, m.Arguments)
			if err != nil {
				return err
			}
			return c.answer(c.connection.session.Unbind(ctx, b), false, &amqp091.QueueUnbindOk{})
		}
	case *amqp091.QueuePurge:
		return func() error {
			queue, err := c.queue(m.Queue)
			if err != nil {
				return err
			}
			count, err := c.connection.session.Purge(ctx, queue)
			return c.answer(err, m.NoWait, &amqp091.QueuePurgeOk{MessageCount: clamp(count)})
		}
	case *amqp091.QueueDelete:
		return func() error { return c.deleteQueue(ctx, m) }
	case *amqp091.BasicConsume:
		return func() error { return c.consume(ctx, m) }
	case *amqp091.BasicCancel:
		return func() error {
			return c.answer(c.Cancel(ctx, m.ConsumerTag), m.NoWait, &amqp091.BasicCancelOk{ConsumerTag: m.ConsumerTag})
		}
	case *amqp091.BasicGet:
		return func() error { return c.get(ctx, m) }
	}
	return nil
}

// answer sends the reply to a request that succeeded, unless the client wants none.
func (c *channel) answer(err error, noWait bool, reply amqp091.Method) error {
	if err == nil && !noWait {
		c.send(reply)
	}
	return err
}

func (c *channel) declareExchange(ctx context.Context, m *amqp091.ExchangeDeclare) error {
	s, name := c.connection.session, cleaned(m.Exchange)
	var err error
	switch {
	case name == "":
		err = refuse(amqp091.AccessRefused, "operation not permitted on the default exchange")
	case m.Passive:
		err = s.ExchangeExists(ctx, name)
	default:
		err = s.DeclareExchange(ctx, broker.Exchange{Name: name, Kind: m.Type, Durable: m.Durable, AutoDelete: m.AutoDelete,
			Internal: m.Internal, Arguments: m.Arguments})
	}
	return c.answer(err, m.NoWait, &amqp091.ExchangeDeclareOk{})
}

func (c *channel) declareQueue(ctx context.Context, m *amqp091.QueueDeclare) error {
	s, name := c.connection.session, cleaned(m.Queue)
	var q broker.QueueState
	var err error
	switch {
	case m.Passive:
		q, err = s.QueueExists(ctx, name)
	default:
		q, err = s.DeclareQueue(ctx, broker.Queue{Name: name, Durable: m.Durable, Exclusive: m.Exclusive, AutoDelete: m.AutoDelete, Arguments: m.Arguments})
	}
	if err == nil {
		c.lastQueue = q.Name
	}
	return c.answer(err, m.NoWait, &amqp091.QueueDeclareOk{Queue: q.Name, MessageCount: clamp(q.Ready), ConsumerCount: q.Consumers})
}

// deleteQueue answers before the channel's consumers of the queue are told that they have ended.
func (c *channel) deleteQueue(ctx context.Context, m *amqp091.QueueDelete) error {
	queue, err := c.queue(m.Queue)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.deleting = true
	c.mu.Unlock()
	count, err := c.connection.session.DeleteQueue(ctx, queue, m.IfUnused, m.IfEmpty)
	err = c.answer(err, m.NoWait, &amqp091.QueueDeleteOk{MessageCount: clamp(count)})
	c.mu.Lock()
	ended := c.ended
	c.deleting, c.ended = false, nil
	c.mu.Unlock()
	for _, tag := range ended {
		c.send(&amqp091.BasicCancel{ConsumerTag: tag, NoWait: true})
	}
	return err
}

// queue resolves the empty name, which stands for the channel's last declared queue.
func (c *channel) queue(name string) (string, error) {
	if name = cleaned(name); name != "" {
		return name, nil
	}
	if c.lastQueue == "" {
		return "", refuse(amqp091.NotFound, "no previously declared queue")
	}
	return c.lastQueue, nil
}

// queueBinding makes the binding of queue.bind and queue.unbind: with neither queue nor key, the key is the queue's name.
func (c *channel) queueBinding(name, exchange, key string, arguments amqp091.Table) (broker.Binding, error) {
	queue, err := c.queue(name)
	if err != nil {
		return broker.Binding{}, err
	}
	if name == "" && key == "" {
		key = queue
	}
	return broker.Binding{Kind: fsm.ToQueue, Destination: queue, Source: cleaned(exchange), Key: key, Arguments: arguments}, nil
}

// cleaned is a name without line breaks, which RabbitMQ drops from names.
func cleaned(name string) string {
	if !strings.ContainsAny(name, "\r\n") {
		return name
	}
	return strings.NewReplacer("\r", "", "\n", "").Replace(name)
}

func clamp(n uint64) uint32 { return uint32(min(n, math.MaxUint32)) }

// refuse makes a refusal of the request at hand; exceptionOf adds its method.
func refuse(code amqp091.Code, format string, args ...any) *amqp091.Error {
	return amqp091.Errorf(code, 0, format, args...)
}
