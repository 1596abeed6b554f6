package amqptest

import (
	"io"
	"testing"
	"time"

	"github.com/warrenmq/warren/protocol/amqp091"
)

// Options say how a client logs in. Zero values take what the broker offers, and a client that can do everything.
type Options struct {
	Vhost        string // "/"
	Mechanism    string // PLAIN
	Response     string // guest's
	Capabilities amqp091.Map
	FrameMax     uint32
	ChannelMax   uint16
	Heartbeat    uint16 // 0 is none
}

// Everything is what a modern client announces.
var Everything = amqp091.Map{"publisher_confirms": true, "consumer_cancel_notify": true, "connection.blocked": true,
	"authentication_failure_close": true, "basic.nack": true, "exchange_exchange_bindings": true}

// Nothing is what a client of the old days announces.
var Nothing = amqp091.Map{}

// Dial opens a connection as a client that can do everything.
func Dial(t testing.TB, address string) *Conn {
	t.Helper()
	return DialWith(t, address, Options{})
}

// DialWith opens a connection.
func DialWith(t testing.TB, address string, o Options) *Conn {
	t.Helper()
	c := Connect(t, address)
	c.Open(o)
	return c
}

// Open does the whole handshake.
func (c *Conn) Open(o Options) {
	c.T.Helper()
	c.Login(o)
	c.OpenVhost(o)
}

// TryOpen is Open; false when the connection is closed with 320 instead, as while leadership changes.
func (c *Conn) TryOpen(o Options) bool {
	c.T.Helper()
	c.Login(o)
	c.Send(0, &amqp091.ConnectionOpen{VirtualHost: "/"})
	switch m := c.Next(0).Method.(type) {
	case *amqp091.ConnectionOpenOk:
		return true
	case *amqp091.ConnectionClose:
		if m.ReplyCode == uint16(Conn320) {
			return false
		}
		c.T.Fatalf("instead of opening the broker sent %s", Describe(m))
	default:
		c.T.Fatalf("instead of opening the broker sent %s", Describe(m))
	}
	return false
}

// Login goes as far as tune-ok.
func (c *Conn) Login(o Options) {
	c.T.Helper()
	tune := c.StartOk(o)
	ok := &amqp091.ConnectionTuneOk{ChannelMax: tune.ChannelMax, FrameMax: tune.FrameMax, Heartbeat: o.Heartbeat}
	if o.FrameMax != 0 {
		ok.FrameMax = o.FrameMax
	}
	if o.ChannelMax != 0 {
		ok.ChannelMax = o.ChannelMax
	}
	c.FrameMax = ok.FrameMax
	c.Send(0, ok)
}

// OpenVhost opens the virtual host.
func (c *Conn) OpenVhost(o Options) {
	c.T.Helper()
	if o.Vhost == "" {
		o.Vhost = "/"
	}
	c.Send(0, &amqp091.ConnectionOpen{VirtualHost: o.Vhost})
	c.Expect(0, amqp091.ConnectionOpenOkID)
}

// Start sends the protocol header and returns the broker's start.
func (c *Conn) Start() *amqp091.ConnectionStart {
	c.T.Helper()
	c.Raw(amqp091.ProtocolHeader[:])
	return c.Expect(0, amqp091.ConnectionStartID).Method.(*amqp091.ConnectionStart)
}

// SendStartOk sends start-ok.
func (c *Conn) SendStartOk(o Options) {
	c.T.Helper()
	if o.Mechanism == "" {
		o.Mechanism = "PLAIN"
	}
	if o.Response == "" {
		o.Response = "\x00guest\x00guest"
	}
	if o.Capabilities == nil {
		o.Capabilities = Everything
	}
	c.Send(0, &amqp091.ConnectionStartOk{ClientProperties: Table(c.T, amqp091.Map{"product": "amqptest", "capabilities": o.Capabilities}),
		Mechanism: o.Mechanism, Response: o.Response, Locale: "en_US"})
}

// StartOk goes as far as tune.
func (c *Conn) StartOk(o Options) *amqp091.ConnectionTune {
	c.T.Helper()
	c.Start()
	c.SendStartOk(o)
	return c.Expect(0, amqp091.ConnectionTuneID).Method.(*amqp091.ConnectionTune)
}

// Expect returns the next method of a channel, which must be the one given.
func (c *Conn) Expect(channel uint16, id amqp091.MethodID) *Event {
	c.T.Helper()
	e := c.Next(channel)
	if e.Method.ID() != id {
		c.T.Fatalf("channel %d waited for %s, got %s", channel, id, Describe(e.Method))
	}
	return e
}

// ExpectBytes reads exactly these bytes and then the end of the connection.
func (c *Conn) ExpectBytes(want []byte) {
	c.T.Helper()
	_ = c.conn.SetReadDeadline(time.Now().Add(Patience))
	got, err := io.ReadAll(io.LimitReader(c.conn, 1<<16))
	if string(got) != string(want) {
		c.T.Fatalf("the broker sent %q (then %v), want %q", got, err, want)
	}
}

// Table makes a field table.
func Table(t testing.TB, m amqp091.Map) amqp091.Table {
	t.Helper()
	if m == nil {
		return nil
	}
	b, err := amqp091.AppendMap(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Properties makes property bytes.
func Properties(t testing.TB, p amqp091.Properties) amqp091.PropertyBytes {
	t.Helper()
	b, err := amqp091.AppendProperties(nil, &p)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
