package client

import (
	"context"
	"fmt"
	"time"

	"github.com/warrenmq/warren/protocol/native"
)

// Message is what is published. Empty fields are absent properties; see native.Table for what headers can hold.
type Message struct {
	ContentType     string
	ContentEncoding string
	Headers         map[string]any
	Priority        uint8
	CorrelationID   string
	ReplyTo         string
	Expiration      string // milliseconds, in digits
	MessageID       string
	Timestamp       time.Time // whole seconds
	Type            string
	UserID          string
	AppID           string
	Body            []byte
	Mandatory       bool // reaching no queue is an error (ErrReturned)
	Transient       bool // may be lost when the whole cluster has been down; else persistent
}

func (m *Message) properties(b []byte) ([]byte, error) {
	p := native.Properties{ContentType: m.ContentType, ContentEncoding: m.ContentEncoding, Headers: m.Headers,
		DeliveryMode: native.Persistent, Priority: m.Priority, CorrelationID: m.CorrelationID, ReplyTo: m.ReplyTo,
		Expiration: m.Expiration, MessageID: m.MessageID, Timestamp: m.Timestamp, Type: m.Type, UserID: m.UserID, AppID: m.AppID}
	if m.Transient {
		p.DeliveryMode = native.Transient
	}
	return native.AppendProperties(b, &p)
}

// Confirmation is what became of a publish.
type Confirmation struct {
	Routed    uint32 // queues reached
	Duplicate bool   // the answer came to a repetition of the publish
}

// Confirm is a publish whose confirmation is awaited.
type Confirm struct {
	done   chan struct{}
	result Confirmation
	err    error

	exchange, key string
	mandatory     bool
	sent          bool
	frame         []byte
}

// Done is closed when the outcome is known.
func (f *Confirm) Done() <-chan struct{} { return f.done }

// Wait waits for the outcome. When ctx ends first, the publish goes on: its outcome is open.
func (f *Confirm) Wait(ctx context.Context) (Confirmation, error) {
	select {
	case <-f.done:
		return f.result, f.err
	case <-ctx.Done():
		return Confirmation{}, ctx.Err()
	}
}

// window holds the unconfirmed publishes in the order of their sequences, guarded by the Connection's mu. The span from
// the oldest unconfirmed one to the newest is bounded, since that is what the broker's deduplication looks back.
type window struct {
	ring  []*Confirm // from sequence first on; nil: confirmed
	first uint64     // sequence of ring[0]; sequences begin at 1
	bytes int        // of the frames in it
	count int        // unconfirmed
	room  chan struct{}
	wants bool // somebody waits on room, which is closed and replaced when a publish leaves
}

func (w *window) full(o *options, size int) bool {
	return len(w.ring) >= o.windowCount || w.count > 0 && w.bytes+size > o.windowBytes
}

func (w *window) left(f *Confirm) {
	w.count--
	w.bytes -= len(f.frame)
	f.frame = nil
	for len(w.ring) > 0 && w.ring[0] == nil {
		w.ring = w.ring[1:]
		w.first++
	}
	w.wakeWaiters()
}

func (w *window) wakeWaiters() {
	if w.wants {
		close(w.room)
		w.room, w.wants = make(chan struct{}), false
	}
}

func (w *window) resend(l *link) {
	for _, f := range w.ring {
		if f != nil {
			f.sent = true
			l.out = append(l.out, f.frame...)
		}
	}
}

func (w *window) failSent(err error) { w.fail(err, true) }
func (w *window) failAll(err error)  { w.fail(err, false) }

func (w *window) fail(err error, sentOnly bool) {
	for i, f := range w.ring {
		if f != nil && (f.sent || !sentOnly) {
			w.ring[i] = nil
			f.err = err
			close(f.done)
			defer w.left(f)
		}
	}
}

// drain waits until nothing is unconfirmed and no settlement is under way.
func (w *window) drain(ctx context.Context, c *Connection) error {
	for {
		c.mu.Lock()
		if w.count == 0 && len(c.settling) == 0 && len(c.dirty) == 0 || c.closed {
			c.mu.Unlock()
			return nil
		}
		room, n := w.room, w.count
		w.wants = true
		c.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return fmt.Errorf("%d publishes unconfirmed: %w", n, ctx.Err())
		}
	}
}

// Publish sends a message and waits for its confirm: then it is in every queue it routed to, on a majority's disks.
// When ctx ends first, the publish may still take effect.
func (ch *Channel) Publish(ctx context.Context, exchange, key string, m Message) (Confirmation, error) {
	f, err := ch.PublishAsync(ctx, exchange, key, m)
	if err != nil {
		return Confirmation{}, err
	}
	return f.Wait(ctx)
}

// PublishAsync sends a message and returns while its confirm is under way. It waits, until ctx ends, only when the
// publish window is full (WithPublishWindow) or the broker holds publishes up (ErrBlocked then). Messages of one goroutine are published in order. m.Body may be reused
// after it returns.
func (ch *Channel) PublishAsync(ctx context.Context, exchange, key string, m Message) (*Confirm, error) {
	c := ch.conn
	var scratch [256]byte
	properties, err := m.properties(scratch[:0])
	if err != nil {
		return nil, err
	}
	if len(m.Body) > maxBody {
		return nil, fmt.Errorf("%w: body of %d bytes, at most %d are allowed", ErrContentTooLarge, len(m.Body), maxBody)
	}
	size := len(m.Body) + len(properties) + len(exchange) + len(key) + 80
	f := &Confirm{done: make(chan struct{}), exchange: exchange, key: key, mandatory: m.Mandatory, frame: make([]byte, 0, size)}
	c.mu.Lock()
	for !c.closed && !ch.closed && (c.blocked != "" || c.pub.full(&c.o, size)) {
		room, blocked := c.pub.room, c.blocked
		c.pub.wants = true
		c.mu.Unlock()
		select {
		case <-room:
		case <-c.ctx.Done():
			return nil, ErrClosed
		case <-ctx.Done():
			if blocked != "" {
				return nil, fmt.Errorf("%w: %s: %w", ErrBlocked, blocked, ctx.Err())
			}
			return nil, ctx.Err()
		}
		c.mu.Lock()
	}
	defer c.mu.Unlock()
	if c.closed || ch.closed {
		return nil, ErrClosed
	}
	w := &c.pub
	if w.first == 0 {
		w.first = 1
	}
	sequence := w.first + uint64(len(w.ring))
	p := native.Publish{Head: native.Head{RID: sequence<<1 | 1, Channel: ch.number}, Exchange: exchange, RoutingKey: key,
		Properties: properties, Body: m.Body, Mandatory: m.Mandatory}
	if c.producer != nil {
		p.Producer, p.Sequence = c.producer, sequence
	}
	if len(m.Body) > native.MaxInlineBody {
		f.frame = c.appendParts(f.frame, ch.number, m.Body, &p.Upload)
		p.Body = nil
	}
	f.frame = native.AppendPublish(f.frame, &p)
	w.ring = append(w.ring, f)
	w.bytes += len(f.frame)
	w.count++
	if l := c.ready; l != nil {
		f.sent = true
		l.out = append(l.out, f.frame...)
		l.signal()
	}
	return f, nil
}

// appendParts appends the parts of a body under a new upload number. Their answers are not waited for: a publish whose
// parts were refused is refused itself.
func (c *Connection) appendParts(b []byte, channel uint32, body []byte, upload *uint64) []byte {
	*upload = c.rid()
	for at := 0; at < len(body); at += native.PartBytes {
		b = native.Append(b, &native.BodyPart{Head: native.Head{RID: c.rid(), Channel: channel}, Upload: *upload,
			Offset: uint64(at), Total: uint64(len(body)), Bytes: body[at:min(at+native.PartBytes, len(body))]})
	}
	return b
}

// confirmed takes a publish's response. A code that asks for another try ends the link, which publishes all that is
// unconfirmed again, in order.
func (c *Connection) confirmed(ok *native.PublishOK) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &c.pub
	at := ok.RID>>1 - w.first
	if ok.RID&1 == 0 || at >= uint64(len(w.ring)) || w.ring[at] == nil {
		return nil
	}
	f := w.ring[at]
	switch {
	case retryable(ok.Code) && (ok.Code != native.LeadershipLost || c.producer != nil):
		if c.producer == nil {
			f.sent = false // it had no effect
		}
		return refusal(&ok.Reply)
	case ok.Code != native.OK:
		f.err = refusal(&ok.Reply)
	case f.mandatory && ok.Routed == 0:
		f.err = &ReturnError{f.exchange, f.key}
	}
	f.result = Confirmation{ok.Routed, ok.Duplicate}
	w.ring[at] = nil
	w.left(f)
	close(f.done)
	return nil
}
