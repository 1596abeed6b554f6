package tools

import (
	"context"
	"fmt"
	"strconv"

	"github.com/warrenmq/warren/client"
)

type declare struct {
	Exchange declareExchange `cmd:"" help:"Declare an exchange."`
	Queue    declareQueue    `cmd:"" help:"Declare a queue."`
	Vhost    declareVhost    `cmd:"" help:"Create a virtual host."`
}

// arguments are AMQP arguments on the command line.
type arguments struct {
	Argument map[string]string `placeholder:"KEY=VALUE" mapsep:"none" help:"An argument, repeatable. Whole numbers, true and false are taken as such; everything else is text, and so is what stands in quotes."`
}

func (a arguments) table() map[string]any {
	if len(a.Argument) == 0 {
		return nil
	}
	t := map[string]any{}
	for k, word := range a.Argument {
		t[k] = typed(word)
	}
	return t
}

// typed gives a word of the command line its AMQP type.
func typed(word string) any {
	if n, err := strconv.ParseInt(word, 10, 64); err == nil {
		return n
	}
	if word == "true" || word == "false" {
		return word == "true"
	}
	if text, err := strconv.Unquote(word); err == nil {
		return text
	}
	return word
}

type declareExchange struct {
	target
	arguments
	Name       string `arg:"" help:"Name of the exchange."`
	Type       string `default:"direct" enum:"direct,fanout,topic,headers,x-delayed-message" help:"direct, fanout, topic, headers, or x-delayed-message with one of them in the argument x-delayed-type."`
	Durable    bool   `help:"It outlives a stop of the whole cluster."`
	AutoDelete bool   `help:"It goes when its last binding goes."`
	Internal   bool   `help:"Only other exchanges may publish to it."`
}

// Run declares the exchange.
func (d *declareExchange) Run(ctx context.Context, std Streams) error {
	return d.channel(ctx, func(ctx context.Context, ch *client.Channel) error {
		err := ch.DeclareExchange(ctx, client.Exchange{Name: d.Name, Kind: d.Type, Durable: d.Durable, AutoDelete: d.AutoDelete,
			Internal: d.Internal, Arguments: d.table()})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(std.Out, "exchange %s is declared\n", d.Name)
		return err
	})
}

type declareQueue struct {
	target
	arguments
	Name       string `arg:"" help:"Name of the queue."`
	Durable    bool   `help:"It outlives a stop of the whole cluster, and so do persistent messages in it."`
	AutoDelete bool   `help:"It goes when its last consumer goes."`
}

// Run declares the queue.
func (d *declareQueue) Run(ctx context.Context, std Streams) error {
	return d.channel(ctx, func(ctx context.Context, ch *client.Channel) error {
		q, err := ch.DeclareQueue(ctx, client.Queue{Name: d.Name, Durable: d.Durable, AutoDelete: d.AutoDelete, Arguments: d.table()})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(std.Out, "queue %s is declared: %d messages ready, %d consumers\n", q.Name, q.Messages, q.Consumers)
		return err
	})
}

type declareVhost struct {
	target
	Name string `arg:"" help:"Name of the virtual host."`
}

// Run creates the virtual host.
func (d *declareVhost) Run(ctx context.Context, std Streams) error {
	return d.with(ctx, func(ctx context.Context, conn *client.Connection) error {
		if err := conn.PutVhost(ctx, d.Name); err != nil {
			return err
		}
		_, err := fmt.Fprintf(std.Out, "virtual host %s is there\n", d.Name)
		return err
	})
}
