package tools

import (
	"context"
	"fmt"

	"github.com/warrenmq/warren/client"
)

// binding is what bind and unbind name.
type binding struct {
	target
	arguments
	Exchange    string `arg:"" help:"Name of the exchange that messages come from."`
	Destination string `arg:"" help:"Name of the queue that they go to."`
	Key         string `help:"Binding key; a pattern for a topic exchange."`
	ToExchange  bool   `help:"The destination is an exchange."`
}

type bind struct{ binding }

// Run makes the binding.
func (b *bind) Run(ctx context.Context, std Streams) error {
	return b.channel(ctx, func(ctx context.Context, ch *client.Channel) error {
		do := ch.Bind
		if b.ToExchange {
			do = ch.BindExchange
		}
		if err := do(ctx, b.Exchange, b.Destination, b.Key, b.table()); err != nil {
			return err
		}
		_, err := fmt.Fprintf(std.Out, "%s is bound to %s with key %q\n", b.Destination, b.Exchange, b.Key)
		return err
	})
}

type unbind struct{ binding }

// Run removes the binding.
func (b *unbind) Run(ctx context.Context, std Streams) error {
	return b.channel(ctx, func(ctx context.Context, ch *client.Channel) error {
		do := ch.Unbind
		if b.ToExchange {
			do = ch.UnbindExchange
		}
		if err := do(ctx, b.Exchange, b.Destination, b.Key, b.table()); err != nil {
			return err
		}
		_, err := fmt.Fprintf(std.Out, "%s is no longer bound to %s with key %q\n", b.Destination, b.Exchange, b.Key)
		return err
	})
}
