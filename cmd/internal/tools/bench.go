package tools

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	benching "github.com/warrenmq/warren/cmd/internal/bench"
)

type bench struct {
	target
	Protocol   string        `enum:"native,amqp" default:"native" help:"Warren's own protocol, or AMQP 0-9-1 (amqp) as RabbitMQ's Go client speaks it, to any broker. --servers are then addresses of that protocol."`
	URL        []string      `name:"url" sep:"none" placeholder:"amqp://USER:PASSWORD@HOST:PORT/VHOST" help:"With --protocol amqp, instead of --servers: a node, or several with several --url."`
	Publishers int           `default:"4" help:"Publishers, each with a connection of its own."`
	Consumers  int           `default:"0" help:"Consumers, each with a connection of its own."`
	Size       int           `default:"256" help:"Bytes of a body."`
	Window     int           `default:"1000" help:"Unconfirmed publishes of each publisher."`
	Duration   time.Duration `default:"10s" help:"How long to publish."`
	Rate       float64       `placeholder:"N" help:"Publishes a second, all publishers together; latency then counts from when a message should have left. 0 publishes as fast as confirms come."`
	Queue      string        `placeholder:"NAME" help:"A durable queue to use and leave behind; without it one is made, and deleted at the end."`
	Prefetch   int           `default:"1000" help:"Prefetch of each consumer."`
	JSON       bool          `name:"json" help:"One JSON object."`
}

// Run measures; a lost message or an error is a failure.
func (b *bench) Run(ctx context.Context, std Streams) error {
	protocol, err := b.protocol()
	if err != nil {
		return err
	}
	o := benching.Options{Publishers: b.Publishers, Consumers: b.Consumers, Size: b.Size, Window: b.Window, Duration: b.Duration,
		Rate: b.Rate, Queue: b.Queue, Prefetch: b.Prefetch, Timeout: b.Timeout,
		Protocol: protocol}
	if isTerminal(std.Err) {
		var before uint64
		o.Progress = func(elapsed time.Duration, confirmed, consumed uint64) {
			fmt.Fprintf(std.Err, "\r%3.0f s: %d confirmed/s, %d consumed so far ", elapsed.Seconds(), confirmed-before, consumed)
			before = confirmed
		}
	}
	var r benching.Result
	r, err = benching.Run(ctx, o)
	if o.Progress != nil {
		fmt.Fprintln(std.Err)
	}
	if err != nil {
		return b.explain(err)
	}
	if b.JSON {
		err = printJSON(std.Out, r)
	} else {
		err = b.print(std, r)
	}
	switch {
	case err != nil:
		return err
	case r.Lost > 0:
		return fmt.Errorf("%d confirmed messages were not delivered", r.Lost)
	case r.Errors > 0:
		return fmt.Errorf("%d errors, the first: %s", r.Errors, r.FirstError)
	}
	return nil
}

// protocol returns what --protocol, --url and --servers say.
func (b *bench) protocol() (benching.Protocol, error) {
	if b.Protocol == "native" {
		if len(b.URL) > 0 {
			return nil, wrong("--url %s: it needs --protocol amqp", b.URL[0])
		}
		_, err := b.servers() // what is wrong there is told at once
		return benching.Native{Dial: b.dial}, err
	}
	a := &benching.AMQP{URLs: b.URL}
	if len(a.URLs) == 0 {
		if slices.Equal(b.Servers, []string{"127.0.0.1:5670"}) { // the default
			b.Servers = []string{"127.0.0.1:5672"}
		}
		servers, err := b.addresses("5672")
		if err != nil {
			return nil, err
		}
		user := url.UserPassword("guest", "guest")
		if b.User != "" {
			user = url.UserPassword(b.User, b.Password)
		}
		for _, s := range servers {
			a.URLs = append(a.URLs, (&url.URL{Scheme: "amqp", User: user, Host: s, Path: "/" + b.Vhost, RawPath: "/" + url.PathEscape(b.Vhost)}).String())
		}
	}
	if err := a.Check(); err != nil {
		return nil, wrong("--url: %v", err)
	}
	return a, nil
}

func (b *bench) print(std Streams, r benching.Result) error {
	t := newTable(std.Out, "", "MSG/S", "P50 MS", "P99 MS", "P99.9 MS", "MAX MS")
	line := func(name string, rate float64, p benching.Percentiles) {
		t.row(name, fmt.Sprintf("%.0f", rate), fmt.Sprintf("%.2f", p.P50), fmt.Sprintf("%.2f", p.P99), fmt.Sprintf("%.2f", p.P999), fmt.Sprintf("%.2f", p.Max))
	}
	line("confirmed", r.ConfirmedPerSecond, r.ConfirmMS)
	if b.Consumers > 0 {
		line("end to end", r.ConsumedPerSecond, r.EndToEndMS)
	}
	if err := t.flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(std.Out, "\npublished %d, confirmed %d, errors %d, longest gap between confirms %.0f ms\n", r.Published, r.Confirmed, r.Errors, r.GapMS)
	if b.Consumers > 0 && err == nil {
		_, err = fmt.Fprintf(std.Out, "delivered %d, lost %d, duplicated %d (%d of them unmarked)\n", r.Delivered, r.Lost, r.Duplicated, r.Unmarked)
	}
	return err
}
