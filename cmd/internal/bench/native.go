package bench

import (
	"context"
	"fmt"

	"github.com/warrenmq/warren/client"
)

// Native is Warren's own protocol.
type Native struct {
	Dial func(ctx context.Context, o ...client.Option) (*client.Connection, error)
}

// open opens a connection with a channel.
func (n Native) open(ctx context.Context, name string, o ...client.Option) (*client.Connection, *client.Channel, error) {
	conn, err := n.Dial(ctx, append(o, client.WithName(name))...)
	if err != nil {
		return nil, nil, err
	}
	ch, err := conn.Channel(ctx)
	if err != nil {
		_ = conn.Close(ctx)
		return nil, nil, err
	}
	return conn, ch, nil
}

// Declare implements Protocol.
func (n Native) Declare(ctx context.Context, queue string) error {
	conn, ch, err := n.open(ctx, "warren bench control")
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = ch.DeclareQueue(ctx, client.Queue{Name: queue, Durable: true})
	return err
}

// Delete implements Protocol.
func (n Native) Delete(ctx context.Context, queue string) error {
	conn, ch, err := n.open(ctx, "warren bench control")
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = ch.DeleteQueue(ctx, queue, false, false)
	return err
}

// Publisher implements Protocol.
func (n Native) Publisher(ctx context.Context, name, queue string, window, size int) (Publisher, error) {
	conn, ch, err := n.open(ctx, name, client.WithPublishWindow(window, window*(size+512)))
	if err != nil {
		return nil, err
	}
	return &nativePublisher{conn, ch, queue, make(chan *client.Confirm, window)}, nil
}

type nativePublisher struct {
	conn     *client.Connection
	ch       *client.Channel
	queue    string
	confirms chan *client.Confirm // in the order of the publishes
}

func (p *nativePublisher) Publish(ctx context.Context, body []byte) error {
	confirm, err := p.ch.PublishAsync(ctx, "", p.queue, client.Message{Body: body})
	if err == nil {
		p.confirms <- confirm
	}
	return err
}

func (p *nativePublisher) Confirmed(ctx context.Context) error {
	_, err := (<-p.confirms).Wait(ctx)
	return err
}

func (p *nativePublisher) Close(ctx context.Context) { _ = p.conn.Close(ctx) }

// Consumer implements Protocol.
func (n Native) Consumer(ctx context.Context, name, queue string, prefetch int) (Consumer, error) {
	conn, ch, err := n.open(ctx, name)
	if err != nil {
		return nil, err
	}
	err = ch.Qos(ctx, uint32(prefetch), false)
	var consumer *client.Consumer
	if err == nil {
		consumer, err = ch.Consume(ctx, queue, client.ConsumeOptions{})
	}
	if err != nil {
		_ = conn.Close(ctx)
		return nil, err
	}
	return &nativeConsumer{conn, consumer}, nil
}

type nativeConsumer struct {
	conn     *client.Connection
	consumer *client.Consumer
}

func (c *nativeConsumer) Consume(ctx context.Context, take func([]byte, bool)) error {
	for {
		select {
		case d := <-c.consumer.Deliveries():
			if d == nil {
				return fmt.Errorf("consumer ended: %w", c.consumer.Err())
			}
			take(d.Body, d.Redelivered)
			_ = d.AckAsync() // a lost connection makes it come again
		case <-ctx.Done():
			return nil
		}
	}
}

func (c *nativeConsumer) Close(ctx context.Context) { _ = c.conn.Close(ctx) }
