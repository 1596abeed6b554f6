package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/warrenmq/warren/client"
	"github.com/warrenmq/warren/protocol/native"
)

type list struct {
	Queues      listQueues      `cmd:"" help:"List queues."`
	Exchanges   listExchanges   `cmd:"" help:"List exchanges."`
	Bindings    listBindings    `cmd:"" help:"List bindings."`
	Vhosts      listVhosts      `cmd:"" help:"List virtual hosts."`
	Consumers   listConsumers   `cmd:"" help:"List consumers."`
	Connections listConnections `cmd:"" help:"List client connections."`
	Policies    listPolicies    `cmd:"" help:"List policies."`
}

type listing struct {
	target
	Filter string `arg:"" optional:"" help:"Only what has this in its name."`
	JSON   bool   `name:"json" help:"A JSON array instead of a table."`
}

// rows asks for rows and prints them as a table or as JSON.
func rows[T any](ctx context.Context, l *listing, out io.Writer, ask func(*client.Connection, context.Context, string) ([]T, error),
	head []string, line func(T) []any) error {
	return l.with(ctx, func(ctx context.Context, conn *client.Connection) error {
		got, err := ask(conn, ctx, l.Filter)
		if err != nil {
			return err
		}
		if l.JSON {
			if got == nil {
				got = []T{} // an empty array, not null
			}
			return printJSON(out, got)
		}
		t := newTable(out, head...)
		for _, row := range got {
			t.row(line(row)...)
		}
		return t.flush()
	})
}

type listQueues struct{ listing }

// Run lists queues.
func (l *listQueues) Run(ctx context.Context, std Streams) error {
	return rows(ctx, &l.listing, std.Out, (*client.Connection).Queues,
		[]string{"NAME", "READY", "UNACKED", "BYTES", "CONSUMERS", "FLAGS", "ARGUMENTS"}, func(r native.QueueRow) []any {
			return []any{r.Name, r.Ready, r.Unacknowledged, r.MessageBytes, r.Consumers,
				flags("durable", r.Durable, "exclusive", r.Exclusive, "auto-delete", r.AutoDelete), argumentText(r.Arguments)}
		})
}

type listExchanges struct{ listing }

// Run lists exchanges.
func (l *listExchanges) Run(ctx context.Context, std Streams) error {
	return rows(ctx, &l.listing, std.Out, (*client.Connection).Exchanges,
		[]string{"NAME", "TYPE", "FLAGS", "ARGUMENTS"}, func(r native.ExchangeRow) []any {
			return []any{named(r.Name), r.Kind,
				flags("durable", r.Durable, "auto-delete", r.AutoDelete, "internal", r.Internal), argumentText(r.Arguments)}
		})
}

type listBindings struct{ listing }

// Run lists bindings.
func (l *listBindings) Run(ctx context.Context, std Streams) error {
	return rows(ctx, &l.listing, std.Out, (*client.Connection).Bindings,
		[]string{"EXCHANGE", "KEY", "TO", "DESTINATION", "ARGUMENTS"}, func(r native.BindingRow) []any {
			to := "queue"
			if r.DestinationKind == native.ToExchange {
				to = "exchange"
			}
			return []any{named(r.Source), r.BindingKey, to, r.Destination, argumentText(r.Arguments)}
		})
}

type listVhosts struct{ listing }

// Run lists virtual hosts.
func (l *listVhosts) Run(ctx context.Context, std Streams) error {
	return rows(ctx, &l.listing, std.Out, (*client.Connection).Vhosts,
		[]string{"NAME", "QUEUES", "MESSAGES"}, func(r native.VhostRow) []any { return []any{r.Name, r.Queues, r.Messages} })
}

type listConsumers struct{ listing }

// Run lists consumers.
func (l *listConsumers) Run(ctx context.Context, std Streams) error {
	return rows(ctx, &l.listing, std.Out, (*client.Connection).Consumers,
		[]string{"QUEUE", "TAG", "CONNECTION", "CHANNEL", "PREFETCH", "UNACKED", "FLAGS"}, func(r native.ConsumerRow) []any {
			return []any{r.Queue, r.ConsumerTag, r.Connection, r.Channel, r.Prefetch, r.Unacknowledged,
				flags("auto-ack", r.AutoAck, "exclusive", r.Exclusive)}
		})
}

type listConnections struct{ listing }

// Run lists client connections.
func (l *listConnections) Run(ctx context.Context, std Streams) error {
	return rows(ctx, &l.listing, std.Out, (*client.Connection).Connections,
		[]string{"ID", "CLIENT", "PEER", "VHOST", "USER", "PROTOCOL", "CHANNELS", "SINCE"}, func(r native.ConnectionRow) []any {
			return []any{r.ID, r.ClientName, r.Peer, r.Vhost, r.User, r.Protocol, r.Channels,
				time.UnixMilli(int64(r.ConnectedAt)).UTC().Format(time.RFC3339)}
		})
}

// named shows the default exchange, which has no name.
func named(exchange string) string {
	if exchange == "" {
		return "(default)"
	}
	return exchange
}

// flags joins the names whose value is true; it takes a name and a bool in turn.
func flags(pairs ...any) string {
	var on []string
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1].(bool) {
			on = append(on, pairs[i].(string))
		}
	}
	return strings.Join(on, ",")
}

// argumentText shows a field table as JSON, whose keys are sorted.
func argumentText(encoded []byte) string {
	t, err := native.DecodeTable(encoded)
	if err != nil {
		return "(unreadable)"
	}
	if len(t) == 0 {
		return ""
	}
	b, err := json.Marshal(t)
	if err != nil {
		return "(unreadable)"
	}
	return string(b)
}

func printJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// table is an aligned table. Control characters in a cell are shown escaped, so that a name cannot break it.
type table struct {
	out  io.Writer
	text bytes.Buffer
	w    *tabwriter.Writer // to text
}

func newTable(out io.Writer, head ...string) *table {
	t := &table{out: out}
	t.w = tabwriter.NewWriter(&t.text, 0, 0, 2, ' ', 0)
	cells := make([]any, len(head))
	for i, h := range head {
		cells[i] = h
	}
	t.row(cells...)
	return t
}

func (t *table) row(cells ...any) {
	for i, c := range cells {
		text := fmt.Sprint(c)
		if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			text = fmt.Sprintf("%q", text)
		}
		if i > 0 {
			fmt.Fprint(t.w, "\t")
		}
		fmt.Fprint(t.w, text)
	}
	fmt.Fprintln(t.w)
}

// flush writes the table, without the blanks that would fill empty cells at the end of a line.
func (t *table) flush() error {
	if err := t.w.Flush(); err != nil {
		return err
	}
	for line := range bytes.Lines(t.text.Bytes()) {
		if _, err := t.out.Write(append(bytes.TrimRight(line, " \n"), '\n')); err != nil {
			return err
		}
	}
	return nil
}
