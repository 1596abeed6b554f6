package tools

import (
	"bufio"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/warrenmq/warren/client"
)

// printing is how messages are shown.
type printing struct {
	JSON bool `name:"json" help:"One JSON object a line with everything about the message, instead of its body."`
}

// ackEvery is how many printed messages may wait for their acknowledgement.
const ackEvery = 64

// printed prints deliveries and acknowledges them once they are written out: what was not seen is not gone.
type printed struct {
	printing
	w       *bufio.Writer
	ack     bool
	pending []*client.Delivery
}

func (p *printed) print(d *client.Delivery) error {
	if p.JSON {
		b, err := json.Marshal(describe(d))
		if err != nil {
			return fmt.Errorf("message %s: %w", d.MessageID, err)
		}
		p.w.Write(b)
	} else {
		p.w.Write(d.Body)
	}
	if err := p.w.WriteByte('\n'); err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	if p.ack {
		p.pending = append(p.pending, d)
	}
	if len(p.pending) >= ackEvery {
		return p.flush()
	}
	return nil
}

func (p *printed) flush() error {
	if err := p.w.Flush(); err != nil {
		return fmt.Errorf("standard output: %w", err)
	}
	for _, d := range p.pending {
		_ = d.AckAsync() // a lost connection makes the message come again
	}
	clear(p.pending)
	p.pending = p.pending[:0]
	return nil
}

// shown is a message as --json shows it. A body that is no text comes as base64.
type shown struct {
	Queue       string         `json:"queue"`
	Exchange    string         `json:"exchange"`
	RoutingKey  string         `json:"routing_key"`
	Redelivered bool           `json:"redelivered"`
	Persistent  bool           `json:"persistent"`
	Properties  map[string]any `json:"properties"`
	Headers     map[string]any `json:"headers,omitempty"`
	Body        *string        `json:"body,omitempty"`
	BodyBase64  []byte         `json:"body_base64,omitempty"`
}

func describe(d *client.Delivery) shown {
	s := shown{Queue: d.Queue, Exchange: d.Exchange, RoutingKey: d.RoutingKey, Redelivered: d.Redelivered, Persistent: !d.Transient,
		Properties: map[string]any{}, Headers: d.Headers}
	for name, text := range map[string]string{"content_type": d.ContentType, "content_encoding": d.ContentEncoding,
		"correlation_id": d.CorrelationID, "reply_to": d.ReplyTo, "expiration": d.Expiration, "message_id": d.MessageID,
		"type": d.Type, "user_id": d.UserID, "app_id": d.AppID} {
		if text != "" {
			s.Properties[name] = text
		}
	}
	if d.Priority != 0 {
		s.Properties["priority"] = d.Priority
	}
	if !d.Timestamp.IsZero() {
		s.Properties["timestamp"] = d.Timestamp.UTC().Format(time.RFC3339)
	}
	if utf8.Valid(d.Body) {
		text := string(d.Body)
		s.Body = &text
	} else {
		s.BodyBase64 = d.Body
	}
	return s
}
