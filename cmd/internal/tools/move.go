package tools

import (
	"context"
	"fmt"
	"time"

	"github.com/warrenmq/warren/client"
	"github.com/warrenmq/warren/protocol/native"
)

const (
	sample        = 10          // messages that a dry run shows
	progressEvery = time.Second // while messages are moved
)

// moving is what all commands that move messages can be told.
type moving struct {
	target
	Limit  uint64 `placeholder:"N" help:"At most so many messages; without it all that are in the queue when it begins."`
	DryRun bool   `help:"Only count the messages, and show some."`
}

// run moves messages, says on standard error how far it is, and in the end what it did.
func (m *moving) run(ctx context.Context, std Streams, want client.Move, did, would string) error {
	want.Limit, want.DryRun = m.Limit, m.DryRun
	return m.dialed(ctx, func(conn *client.Connection) error {
		steps, alive, stop := m.alive(ctx)
		defer stop()
		shown := time.Now()
		sum, err := conn.Move(steps, want, func(t client.Tally) {
			alive()
			if !m.DryRun && time.Since(shown) >= progressEvery {
				shown = time.Now()
				fmt.Fprintf(std.Err, "%d messages are %s so far\n", t.Moved, did)
			}
		})
		if err != nil {
			if err = m.explain(err); sum.Moved > 0 && !m.DryRun {
				err = fmt.Errorf("%w (%d messages are %s, each is in one place)", err, sum.Moved, did)
			}
			return err
		}
		if m.DryRun {
			did = would
		}
		if err := report(std, sum, did); err != nil || !m.DryRun || sum.Matched == 0 {
			return err
		}
		t := newPeekTable(std)
		limit := uint64(sample)
		if m.Limit > 0 {
			limit = min(limit, m.Limit)
		}
		if err := conn.Peek(steps, want.Queue, client.Peek{Limit: limit, Truncate: 4 * shownBody, Filter: want.Filter}, func(p *client.Peeked) error {
			t.message(p)
			return nil
		}); err != nil {
			return m.explain(err)
		}
		return t.flush()
	})
}

func report(std Streams, t client.Tally, did string) error {
	line := fmt.Sprintf("%d messages are %s", t.Moved, did)
	if t.Held > 0 {
		line += fmt.Sprintf("; %d are left, since clients have them", t.Held)
	}
	if t.Kept > 0 {
		line += fmt.Sprintf("; %d are left, since they would reach no queue: %s", t.Kept, t.Reason)
	}
	_, err := fmt.Fprintln(std.Out, line)
	return err
}

type move struct {
	moving
	filter
	Queue      string  `arg:"" help:"Name of the queue that the messages are in."`
	To         string  `xor:"to" placeholder:"QUEUE" help:"The queue that they go to; or:"`
	ToExchange *string `xor:"to" placeholder:"EXCHANGE" help:"The exchange that they are published to; an empty name is the default exchange."`
	ToKey      string  `placeholder:"KEY" help:"The routing key for --to-exchange."`
}

// Run moves messages.
func (m *move) Run(ctx context.Context, std Streams) error {
	want := client.Move{Queue: m.Queue, Target: native.MoveToQueue, To: m.To, Key: m.ToKey, Filter: m.filter.filter()}
	to := "queue " + m.To
	switch {
	case m.ToExchange != nil:
		want.Target, want.To = native.MoveToExchange, *m.ToExchange
		to = fmt.Sprintf("exchange %s with key %q", named(want.To), m.ToKey)
	case m.To == "":
		return wrong("move needs --to or --to-exchange: where do the messages go?")
	case m.ToKey != "":
		return wrong("--to-key %s: it is for --to-exchange", m.ToKey)
	}
	return m.run(ctx, std, want, fmt.Sprintf("moved from queue %s to %s", m.Queue, to), fmt.Sprintf("to be moved from queue %s to %s", m.Queue, to))
}

type redrive struct {
	moving
	filter
	Queue    string `arg:"" help:"Name of the queue that the dead letters are in."`
	To       string `xor:"to" placeholder:"QUEUE" help:"The queue that they go to, instead of the one in which each died first."`
	Original bool   `xor:"to" help:"Publish each again to the exchange and with the key that it was published with first: other queues may get it once more."`
}

// Run moves dead letters back. They have their first exchange and key again, and keep the headers about their deaths.
func (r *redrive) Run(ctx context.Context, std Streams) error {
	want := client.Move{Queue: r.Queue, Target: native.MoveToFirstQueue, Restore: true, Filter: r.filter.filter()}
	to := "the queues in which they died first"
	switch {
	case r.To != "":
		want.Target, want.To, to = native.MoveToQueue, r.To, "queue "+r.To
	case r.Original:
		want.Target, to = native.MoveToFirstExchange, "their first exchanges"
	}
	return r.run(ctx, std, want, fmt.Sprintf("moved from queue %s to %s", r.Queue, to), fmt.Sprintf("to be moved from queue %s to %s", r.Queue, to))
}

type deleteMessages struct {
	moving
	filter
	Queue string `arg:"" help:"Name of the queue."`
	All   bool   `help:"Without --header, --key and --limit: all messages are meant."`
}

// Run deletes messages.
func (d *deleteMessages) Run(ctx context.Context, std Streams) error {
	if len(d.Header) == 0 && d.Key == "" && d.Limit == 0 && !d.All {
		return wrong("delete messages needs --header, --key, --limit or --all: which messages are meant?")
	}
	return d.run(ctx, std, client.Move{Queue: d.Queue, Target: native.MoveToNowhere, Filter: d.filter.filter()},
		"deleted from queue "+d.Queue, "to be deleted from queue "+d.Queue)
}
