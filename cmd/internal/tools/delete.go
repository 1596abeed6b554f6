package tools

import (
	"context"
	"fmt"

	"github.com/warrenmq/warren/client"
)

type remove struct {
	Exchange deleteExchange `cmd:"" help:"Delete an exchange and its bindings."`
	Queue    deleteQueue    `cmd:"" help:"Delete a queue with its messages and bindings."`
	Messages deleteMessages `cmd:"" help:"Delete messages of a queue."`
	Policy   deletePolicy   `cmd:"" help:"Delete a policy."`
	Vhost    deleteVhost    `cmd:"" help:"Delete a virtual host with all that is in it."`
}

type deleteExchange struct {
	target
	Name     string `arg:"" help:"Name of the exchange."`
	IfUnused bool   `help:"Only when no binding leads from it."`
}

// Run deletes the exchange.
func (d *deleteExchange) Run(ctx context.Context, std Streams) error {
	return d.channel(ctx, func(ctx context.Context, ch *client.Channel) error {
		if err := ch.DeleteExchange(ctx, d.Name, d.IfUnused); err != nil {
			return err
		}
		_, err := fmt.Fprintf(std.Out, "exchange %s is deleted\n", d.Name)
		return err
	})
}

type deleteQueue struct {
	target
	Name     string `arg:"" help:"Name of the queue."`
	IfUnused bool   `help:"Only when it has no consumer."`
	IfEmpty  bool   `help:"Only when it has no message."`
}

// Run deletes the queue.
func (d *deleteQueue) Run(ctx context.Context, std Streams) error {
	return d.channel(ctx, func(ctx context.Context, ch *client.Channel) error {
		n, err := ch.DeleteQueue(ctx, d.Name, d.IfUnused, d.IfEmpty)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(std.Out, "queue %s is deleted with %d ready messages\n", d.Name, n)
		return err
	})
}

type deleteVhost struct {
	target
	Name string `arg:"" help:"Name of the virtual host."`
}

// Run deletes the virtual host.
func (d *deleteVhost) Run(ctx context.Context, std Streams) error {
	return d.with(ctx, func(ctx context.Context, conn *client.Connection) error {
		if err := conn.DeleteVhost(ctx, d.Name); err != nil {
			return err
		}
		_, err := fmt.Fprintf(std.Out, "virtual host %s is deleted\n", d.Name)
		return err
	})
}

type purge struct {
	target
	Queue string `arg:"" help:"Name of the queue."`
}

// Run purges the queue.
func (p *purge) Run(ctx context.Context, std Streams) error {
	return p.channel(ctx, func(ctx context.Context, ch *client.Channel) error {
		n, err := ch.Purge(ctx, p.Queue)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(std.Out, "%d messages are purged from queue %s\n", n, p.Queue)
		return err
	})
}
