package tools

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/warrenmq/warren/client"
)

// Bounds of publish: messages whose confirm is awaited, and one line of standard input.
const (
	publishWindow = 4_096
	maxLine       = 16 << 20
)

type publish struct {
	target
	Exchange   string            `arg:"" help:"Name of the exchange; an empty name is the default exchange, whose routing keys are queue names."`
	RoutingKey string            `arg:"" optional:"" help:"Routing key."`
	Body       *string           `xor:"source" help:"The body. Without --body and --file, each line of standard input is a message."`
	File       string            `xor:"source" type:"existingfile" placeholder:"FILE" help:"A file whose content is the body."`
	Count      int               `default:"1" help:"How often to publish it (not with standard input)."`
	Property   map[string]string `mapsep:"none" placeholder:"KEY=VALUE" help:"A message property, repeatable: content-type, content-encoding, priority, correlation-id, reply-to, expiration, message-id, timestamp, type, user-id, app-id."`
	Header     map[string]string `mapsep:"none" placeholder:"KEY=VALUE" help:"A header, repeatable. Whole numbers, true and false are taken as such."`
	Transient  bool              `help:"The message may be lost when the whole cluster has been down."`
	Mandatory  bool              `help:"It is an error when a message reaches no queue."`
}

// Run publishes, and succeeds only when everything was confirmed.
func (p *publish) Run(ctx context.Context, std Streams) error {
	m, err := p.message()
	if err != nil {
		return err
	}
	var sum confirms
	err = p.dialed(ctx, func(conn *client.Connection) error {
		opening, cancel := context.WithTimeout(ctx, p.Timeout)
		defer cancel()
		ch, err := conn.Channel(opening)
		if err != nil {
			return p.explain(err)
		}
		for body, err := range p.bodies(std.In) {
			if err != nil {
				return err
			}
			m.Body = body
			if err := p.send(ctx, ch, m, &sum); err != nil {
				return p.explain(err)
			}
		}
		return sum.wait(ctx, p, 0)
	}, client.WithPublishWindow(publishWindow, client.DefaultWindowBytes))
	if err != nil {
		if sum.confirmed > 0 {
			err = fmt.Errorf("%w (%d were confirmed before)", err, sum.confirmed)
		}
		return err
	}
	note := ""
	if sum.unrouted > 0 {
		note = fmt.Sprintf(" (%d of them reached no queue)", sum.unrouted)
	}
	_, err = fmt.Fprintf(std.Out, "confirmed %d%s\n", sum.confirmed, note)
	return err
}

func (p *publish) send(ctx context.Context, ch *client.Channel, m client.Message, sum *confirms) error {
	sending, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	f, err := ch.PublishAsync(sending, p.Exchange, p.RoutingKey, m)
	if err != nil {
		return err
	}
	sum.waiting = append(sum.waiting, f)
	return sum.wait(ctx, p, publishWindow)
}

// bodies yields the bodies to publish, in order.
func (p *publish) bodies(in io.Reader) func(func([]byte, error) bool) {
	return func(yield func([]byte, error) bool) {
		if p.Body == nil && p.File == "" {
			lines := bufio.NewScanner(in)
			lines.Buffer(nil, maxLine)
			for lines.Scan() {
				if !yield(lines.Bytes(), nil) {
					return
				}
			}
			if err := lines.Err(); err != nil {
				yield(nil, fmt.Errorf("standard input: %w", err))
			}
			return
		}
		var body []byte
		if p.Body != nil {
			body = []byte(*p.Body)
		} else {
			var err error
			if body, err = os.ReadFile(p.File); err != nil {
				yield(nil, err)
				return
			}
		}
		for range p.Count {
			if !yield(body, nil) {
				return
			}
		}
	}
}

// confirms are the publishes under way, oldest first, and what became of the others.
type confirms struct {
	waiting             []*client.Confirm
	confirmed, unrouted int
}

// wait waits until no more than some are under way.
func (c *confirms) wait(ctx context.Context, p *publish, some int) error {
	for len(c.waiting) > some {
		waiting, cancel := context.WithTimeout(ctx, p.Timeout)
		got, err := c.waiting[0].Wait(waiting)
		cancel()
		if err != nil {
			return p.explain(err)
		}
		c.waiting = c.waiting[1:]
		c.confirmed++
		if got.Routed == 0 {
			c.unrouted++
		}
	}
	return nil
}

func (p *publish) message() (client.Message, error) {
	m := client.Message{Transient: p.Transient, Mandatory: p.Mandatory}
	if p.Count < 1 {
		return m, wrong("--count %d: it must be at least 1", p.Count)
	}
	if len(p.Header) > 0 {
		m.Headers = map[string]any{}
	}
	for k, v := range p.Header {
		m.Headers[k] = typed(v)
	}
	texts := map[string]*string{"content-type": &m.ContentType, "content-encoding": &m.ContentEncoding, "correlation-id": &m.CorrelationID,
		"reply-to": &m.ReplyTo, "expiration": &m.Expiration, "message-id": &m.MessageID, "type": &m.Type, "user-id": &m.UserID, "app-id": &m.AppID}
	for k, v := range p.Property {
		switch text := texts[k]; {
		case text != nil:
			*text = v
		case k == "priority":
			n, err := strconv.ParseUint(v, 10, 8)
			if err != nil {
				return m, wrong("--property priority=%s: it must be a number from 0 to 255", v)
			}
			m.Priority = uint8(n)
		case k == "timestamp":
			t, err := time.Parse(time.RFC3339, v)
			if seconds, bad := strconv.ParseInt(v, 10, 64); bad == nil {
				t, err = time.Unix(seconds, 0), nil
			}
			if err != nil {
				return m, wrong("--property timestamp=%s: it must be seconds since 1970 or a time like 2006-01-02T15:04:05Z", v)
			}
			m.Timestamp = t
		default:
			names := []string{"priority", "timestamp"}
			for name := range texts {
				names = append(names, name)
			}
			slices.Sort(names)
			return m, wrong("--property %s=%s: there is no such property; there are %s (headers have --header)", k, v, strings.Join(names, ", "))
		}
	}
	return m, nil
}
