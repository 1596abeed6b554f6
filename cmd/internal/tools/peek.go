package tools

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/warrenmq/warren/client"
)

// filter says which messages of a queue are meant.
type filter struct {
	Header []string `sep:"none" placeholder:"KEY=VALUE" help:"Only messages with this header, repeatable; KEY alone is any value."`
	Key    string   `placeholder:"PATTERN" help:"Only messages with this routing key; * is a word of it, # any number of words."`
}

func (f *filter) filter() client.Filter {
	out := client.Filter{Key: f.Key}
	for _, h := range f.Header {
		name, value, given := strings.Cut(h, "=")
		out.Headers = append(out.Headers, client.HeaderFilter{Name: name, Value: value, Exists: !given})
	}
	return out
}

// shownBody is how many characters of a body the table has room for.
const shownBody = 40

type peek struct {
	target
	filter
	Queue    string `arg:"" help:"Name of the queue."`
	Offset   uint64 `help:"How many of the messages to leave out."`
	Limit    uint64 `default:"20" help:"At most so many messages; 0 shows all."`
	Truncate uint32 `default:"65536" help:"Bytes of each body to show with --json."`
	JSON     bool   `name:"json" help:"One JSON object a line with everything about the message, instead of a table."`
}

// Run shows messages.
func (p *peek) Run(ctx context.Context, std Streams) error {
	return p.dialed(ctx, func(conn *client.Connection) error {
		ctx, alive, stop := p.alive(ctx)
		defer stop()
		want := client.Peek{Offset: p.Offset, Limit: p.Limit, Truncate: max(p.Truncate, 1), Filter: p.filter.filter()}
		if !p.JSON {
			want.Truncate = 4 * shownBody
			t := newPeekTable(std)
			if err := conn.Peek(ctx, p.Queue, want, func(m *client.Peeked) error { alive(); t.message(m); return nil }); err != nil {
				return p.explain(err)
			}
			return t.flush()
		}
		out := bufio.NewWriter(std.Out)
		err := p.explain(conn.Peek(ctx, p.Queue, want, func(m *client.Peeked) error {
			alive()
			b, err := json.Marshal(describePeeked(p.Queue, m))
			if err == nil {
				_, err = out.Write(append(b, '\n'))
			}
			return err
		}))
		if failed := out.Flush(); err == nil {
			err = failed
		}
		return err
	})
}

// alive returns a context that ends when nothing happened for the timeout: alive says that something did.
func (t *target) alive(ctx context.Context) (_ context.Context, alive, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(t.Timeout, func() { cancel(context.DeadlineExceeded) })
	return expiring{ctx}, func() { timer.Reset(t.Timeout) }, func() { timer.Stop(); cancel(nil) }
}

// expiring is a context whose error is its cause.
type expiring struct{ context.Context }

func (e expiring) Err() error {
	if e.Context.Err() == nil {
		return nil
	}
	return context.Cause(e.Context)
}

type peekTable struct{ *table }

func newPeekTable(std Streams) peekTable {
	return peekTable{newTable(std.Out, "SEQUENCE", "STATE", "RETURNED", "DEATHS", "EXCHANGE", "KEY", "BYTES", "HOLDER", "BODY")}
}

func (t peekTable) message(m *client.Peeked) {
	holder := ""
	if h := m.Holder; h != nil {
		holder = fmt.Sprintf("%s/%d %s", h.Connection, h.Channel, h.ConsumerTag)
	}
	t.row(m.Sequence, m.State, m.Deliveries, m.Deaths, named(m.Exchange), m.RoutingKey, m.BodyBytes, strings.TrimSpace(holder), beginning(m.Body))
}

// beginning is a body as far as the table has room for it.
func beginning(body []byte) string {
	if !utf8.Valid(body[:len(body)-cutRune(body)]) {
		return "(binary)"
	}
	text := []rune(string(body[:len(body)-cutRune(body)]))
	if len(text) > shownBody {
		return string(text[:shownBody-1]) + "…"
	}
	return string(text)
}

// cutRune is how many bytes at the end of b are the beginning of a character.
func cutRune(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// peeked is a message as peek --json shows it.
type peeked struct {
	Sequence   uint64  `json:"sequence"`
	ID         string  `json:"id"`
	State      string  `json:"state"`
	Reason     string  `json:"reason,omitempty"` // of its death
	Holder     *holder `json:"holder,omitempty"`
	Deliveries uint32  `json:"delivery_count"`
	Deaths     uint32  `json:"deaths"`
	Expires    string  `json:"expires,omitempty"`
	Level      uint8   `json:"priority_level,omitempty"`
	Bytes      uint64  `json:"body_bytes"`
	Cut        bool    `json:"properties_cut,omitempty"`
	shown
}

type holder struct {
	Connection string `json:"connection"`
	Client     string `json:"client"`
	Peer       string `json:"peer"`
	Channel    uint32 `json:"channel"`
	Consumer   string `json:"consumer_tag"`
	Since      string `json:"since"`
}

func describePeeked(queue string, m *client.Peeked) peeked {
	p := peeked{Sequence: m.Sequence, ID: fmt.Sprintf("%d-%d", m.ID[0], m.ID[1]), State: m.State, Reason: m.Reason, Deliveries: m.Deliveries,
		Deaths: m.Deaths, Level: m.Level, Bytes: m.BodyBytes, Cut: m.Cut,
		shown: describe(&client.Delivery{Message: m.Message, Queue: queue, Redelivered: m.Redelivered, Exchange: m.Exchange, RoutingKey: m.RoutingKey})}
	if !m.Expires.IsZero() {
		p.Expires = m.Expires.UTC().Format(time.RFC3339Nano)
	}
	if h := m.Holder; h != nil {
		p.Holder = &holder{h.Connection, h.ClientName, h.Peer, h.Channel, h.ConsumerTag, h.Since.UTC().Format(time.RFC3339)}
	}
	return p
}
