// Package amqptest is a client for tests of the AMQP 0-9-1 front end. It works on frames, so that a test can send
// everything, wrong things included, and sees everything that comes back. A connection belongs to one goroutine.
package amqptest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/warrenmq/warren/protocol/amqp091"
)

// Patience bounds every wait for something that should come at once, on a machine that may be busy.
const Patience = time.Minute

// Conn is a connection to a broker.
type Conn struct {
	T        testing.TB
	FrameMax uint32 // as negotiated; bodies are cut to it
	// Beats counts the heartbeats that were received.
	Beats int
	// Bytes is how many bytes have been received.
	Bytes int64

	conn    net.Conn
	reader  *amqp091.Reader
	early   []byte                   // what was read to see whether something comes
	waiting map[uint16][]*Event      // what was received for channels that nobody has asked for yet
	partial map[uint16]*partialEvent // messages that are coming in
}

// Event is a method that was received, with its message if it has one.
type Event struct {
	Channel    uint16
	Method     amqp091.Method
	Properties amqp091.PropertyBytes
	Body       []byte
	Frames     []int // lengths of the body frames
}

type partialEvent struct {
	*Event
	size   uint64
	header bool
}

// Connect opens a TCP connection, which the end of the test closes, and says nothing yet.
func Connect(t testing.TB, address string) *Conn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, Patience)
	if err != nil {
		t.Fatalf("connect to the broker: %v", err)
	}
	return On(t, conn)
}

// On talks over a connection that exists already. The end of the test closes it.
func On(t testing.TB, conn net.Conn) *Conn {
	t.Cleanup(func() { _ = conn.Close() })
	c := &Conn{T: t, conn: conn, waiting: map[uint16][]*Event{}, partial: map[uint16]*partialEvent{}}
	c.reader = amqp091.NewReader(counting{c}, 0)
	return c
}

// counting notes how much has come in.
type counting struct{ c *Conn }

func (r counting) Read(b []byte) (int, error) {
	if len(r.c.early) > 0 {
		n := copy(b, r.c.early)
		r.c.early = r.c.early[n:]
		return n, nil
	}
	n, err := r.c.conn.Read(b)
	r.c.Bytes += int64(n)
	return n, err
}

// Raw writes bytes as they are. It fails the test when the broker does not take them, unless it has closed.
func (c *Conn) Raw(b []byte) {
	c.T.Helper()
	_ = c.conn.SetWriteDeadline(time.Now().Add(Patience))
	if _, err := c.conn.Write(b); errors.Is(err, os.ErrDeadlineExceeded) {
		c.T.Fatal("the broker does not read")
	}
}

// Send writes methods of a channel.
func (c *Conn) Send(channel uint16, methods ...amqp091.Method) {
	c.T.Helper()
	var b []byte
	for _, m := range methods {
		b = m.AppendFrame(b, channel)
	}
	c.Raw(b)
}

// next receives the next method of any channel. An io.EOF says that the broker has closed.
func (c *Conn) next(until time.Time) (*Event, error) {
	for {
		if err := c.wait(until); err != nil {
			return nil, err
		}
		f, err := c.reader.Next()
		if err != nil {
			return nil, closedOr(err)
		}
		payload, err := c.reader.Payload()
		if err != nil {
			return nil, closedOr(err)
		}
		if e, err := c.take(f, payload); e != nil || err != nil {
			return e, err
		}
	}
}

// wait waits until something comes. A frame that has begun may take longer: it cannot be given up and taken up again.
func (c *Conn) wait(until time.Time) error {
	if c.reader.Buffered() == 0 && len(c.early) == 0 {
		_ = c.conn.SetReadDeadline(until)
		b := make([]byte, 4096)
		n, err := c.conn.Read(b)
		c.Bytes += int64(n)
		if n == 0 {
			return closedOr(err)
		}
		c.early = b[:n]
	}
	_ = c.conn.SetReadDeadline(time.Now().Add(Patience))
	return nil
}

// closedOr makes one error of all the ways in which a peer can close.
func closedOr(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	var e *amqp091.Error
	if errors.As(err, &e) {
		return err
	}
	return io.EOF
}

// take takes one frame; an event when it completes one.
func (c *Conn) take(f amqp091.Frame, payload []byte) (*Event, error) {
	p := c.partial[f.Channel]
	switch {
	case f.Type == amqp091.FrameHeartbeat:
		c.Beats++
		return nil, nil
	case f.Type == amqp091.FrameMethod && p == nil:
		m, err := amqp091.DecodeMethod(payload)
		if err != nil {
			return nil, err
		}
		e := &Event{Channel: f.Channel, Method: m}
		if m.ID().HasContent() {
			c.partial[f.Channel] = &partialEvent{Event: e}
			return nil, nil
		}
		return e, nil
	case f.Type == amqp091.FrameHeader && p != nil && !p.header && len(payload) >= 14:
		p.header = true
		for _, b := range payload[4:12] {
			p.size = p.size<<8 | uint64(b)
		}
		p.Properties = amqp091.PropertyBytes(payload[12:]).Clone()
		if err := p.Properties.Check(); err != nil {
			return nil, fmt.Errorf("the broker's content header: %w", err)
		}
	case f.Type == amqp091.FrameBody && p != nil && p.header:
		if len(payload) == 0 {
			return nil, errors.New("the broker sent an empty body frame")
		}
		p.Body, p.Frames = append(p.Body, payload...), append(p.Frames, len(payload))
	default:
		return nil, fmt.Errorf("the broker sent a frame of type %d out of turn on channel %d", f.Type, f.Channel)
	}
	if uint64(len(p.Body)) < p.size {
		return nil, nil
	}
	delete(c.partial, f.Channel)
	if uint64(len(p.Body)) > p.size {
		return nil, fmt.Errorf("the broker sent %d bytes of a body of %d", len(p.Body), p.size)
	}
	return p.Event, nil
}

// Next returns the next method of a channel. What comes for others meanwhile is kept for them; a connection.close in
// between fails the test.
func (c *Conn) Next(channel uint16) *Event {
	c.T.Helper()
	e := c.NextWithin(channel, Patience)
	if e == nil {
		c.T.Fatalf("nothing came on channel %d", channel)
	}
	return e
}

// NextWithin is Next with a time; nil when it is over.
func (c *Conn) NextWithin(channel uint16, d time.Duration) *Event {
	c.T.Helper()
	if w := c.waiting[channel]; len(w) > 0 {
		c.waiting[channel] = w[1:]
		return w[0]
	}
	until := time.Now().Add(d)
	for {
		e, err := c.next(until)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil
		case err == io.EOF:
			c.T.Fatalf("the broker closed the connection; channel %d waited", channel)
		case err != nil:
			c.T.Fatalf("channel %d waited: %v", channel, err)
		case e.Channel == channel:
			return e
		case e.Method.ID() == amqp091.ConnectionCloseID:
			c.T.Fatalf("channel %d waited and the broker closed the connection: %s", channel, Describe(e.Method))
		}
		c.waiting[e.Channel] = append(c.waiting[e.Channel], e)
	}
}

// ExpectClosed waits until the broker closes without a word; heartbeats are let pass. It returns how long that took.
func (c *Conn) ExpectClosed(within time.Duration) time.Duration {
	c.T.Helper()
	began := time.Now()
	switch e, err := c.next(began.Add(within)); {
	case err == io.EOF:
	case err != nil:
		c.T.Fatalf("the broker did not close within %v: %v", within, err)
	default:
		c.T.Fatalf("instead of closing the broker sent %s", Describe(e.Method))
	}
	return time.Since(began)
}

// ExpectClose waits for connection.close, on any channel's behalf, checks it, answers it and waits for the end of the connection.
// The text is the part behind the code's name; "" is any. What came for channels before is dropped.
func (c *Conn) ExpectClose(code amqp091.Code, cause amqp091.MethodID, text string) {
	c.T.Helper()
	c.ReceiveClose(code, cause, text)
	c.Send(0, &amqp091.ConnectionCloseOk{})
	c.ExpectClosed(Patience)
}

// ReceiveClose is ExpectClose without the answer.
func (c *Conn) ReceiveClose(code amqp091.Code, cause amqp091.MethodID, text string) {
	c.T.Helper()
	until := time.Now().Add(Patience)
	for {
		e, err := c.next(until)
		if err != nil {
			c.T.Fatalf("waited for connection.close %d: %v", code, err)
		}
		m, ok := e.Method.(*amqp091.ConnectionClose)
		if !ok {
			continue
		}
		if m.ReplyCode != uint16(code) || cause != AnyMethod && m.Cause != cause || text != "" && m.ReplyText != code.String()+" - "+text {
			c.T.Fatalf("the broker closed the connection with\n  %s, want\n  %s", Describe(m), describe(uint16(code), code.String()+" - "+text, cause))
		}
		return
	}
}

// Verdict waits for connection.close and returns its code, 0 when the broker closes without one.
func (c *Conn) Verdict() amqp091.Code {
	c.T.Helper()
	until := time.Now().Add(Patience)
	for {
		switch e, err := c.next(until); {
		case err == io.EOF:
			return 0
		case err != nil:
			c.T.Fatalf("waited for the end of the connection: %v", err)
		case e.Method.ID() == amqp091.ConnectionCloseID:
			return amqp091.Code(e.Method.(*amqp091.ConnectionClose).ReplyCode)
		}
	}
}

// ExpectEnd waits until the connection has ended, with connection.close before it or without, and returns its code, 0 for none.
func (c *Conn) ExpectEnd() amqp091.Code {
	c.T.Helper()
	until := time.Now().Add(Patience)
	var code amqp091.Code
	for {
		switch e, err := c.next(until); {
		case err == io.EOF:
			return code
		case err != nil:
			c.T.Fatalf("waited for the end of the connection: %v", err)
		case e.Method.ID() == amqp091.ConnectionCloseID:
			code = amqp091.Code(e.Method.(*amqp091.ConnectionClose).ReplyCode)
			c.Send(0, &amqp091.ConnectionCloseOk{})
		}
	}
}

// Close closes the connection as a client should.
func (c *Conn) Close() {
	c.T.Helper()
	c.Send(0, &amqp091.ConnectionClose{ReplyCode: 200, ReplyText: "bye"})
	for {
		e, err := c.next(time.Now().Add(Patience))
		if err != nil {
			c.T.Fatalf("waited for connection.close-ok: %v", err)
		}
		if e.Method.ID() == amqp091.ConnectionCloseOkID {
			break
		}
	}
	_ = c.conn.Close()
}

// Cut drops the TCP connection.
func (c *Conn) Cut() {
	if tcp, ok := c.conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.conn.Close()
}

// Describe shows a method with its arguments.
func Describe(m amqp091.Method) string {
	switch m := m.(type) {
	case *amqp091.ConnectionClose:
		return "connection " + describe(m.ReplyCode, m.ReplyText, m.Cause)
	case *amqp091.ChannelClose:
		return "channel " + describe(m.ReplyCode, m.ReplyText, m.Cause)
	}
	return fmt.Sprintf("%s %+v", m.ID(), m)
}

func describe(code uint16, text string, cause amqp091.MethodID) string {
	return fmt.Sprintf("close %d %q of %d.%d", code, text, cause.Class(), cause.Method())
}

// AnyMethod as a cause matches every one.
const AnyMethod = amqp091.MethodID(0xffffffff)

// Frame reads one frame as it is. It must not be mixed with reads of methods that are under way.
func (c *Conn) Frame() (amqp091.Frame, []byte) {
	c.T.Helper()
	_ = c.conn.SetReadDeadline(time.Now().Add(Patience))
	f, err := c.reader.Next()
	if err != nil {
		c.T.Fatalf("waited for a frame: %v", err)
	}
	payload, err := c.reader.Payload()
	if err != nil {
		c.T.Fatalf("waited for a frame's payload: %v", err)
	}
	return f, payload
}

// RawFrame makes a frame of any kind.
func RawFrame(kind uint8, channel uint16, payload []byte) []byte {
	n := len(payload)
	b := []byte{kind, byte(channel >> 8), byte(channel), byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
	return append(append(b, payload...), 0xce)
}

// Waiting returns what was received for a channel and not asked for, nil for nothing.
func (c *Conn) Waiting(channel uint16) *Event {
	if w := c.waiting[channel]; len(w) > 0 {
		return w[0]
	}
	return nil
}

// ClosedWithin reports whether the broker closes within a time; whatever comes before is dropped.
func (c *Conn) ClosedWithin(d time.Duration) bool {
	c.T.Helper()
	until := time.Now().Add(d)
	for {
		switch _, err := c.next(until); {
		case err == io.EOF:
			return true
		case err != nil:
			return false
		}
	}
}

// TryRaw is Raw with a time; false when the broker does not take all of it by then, or has closed.
func (c *Conn) TryRaw(b []byte, d time.Duration) bool {
	_ = c.conn.SetWriteDeadline(time.Now().Add(d))
	_, err := c.conn.Write(b)
	return err == nil
}

// CloseWrite says that nothing more comes.
func (c *Conn) CloseWrite() { _ = c.conn.(*net.TCPConn).CloseWrite() }
