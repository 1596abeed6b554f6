package amqp_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/warrenmq/warren/broker/amqp"
	"github.com/warrenmq/warren/broker/amqp/amqptest"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// The tests of these files are named after the rows of the list of what a server has to do: TestRow01 to TestRow236.

func TestRow01ProtocolHeader(t *testing.T) {
	t.Parallel()
	c := amqptest.Connect(t, address(t))
	if s := c.Start(); s.VersionMajor != 0 || s.VersionMinor != 9 {
		t.Fatalf("version %d-%d", s.VersionMajor, s.VersionMinor)
	}
}

func TestRow02HeaderOf09(t *testing.T) {
	t.Parallel()
	c := amqptest.Connect(t, address(t))
	c.Raw([]byte("AMQP\x01\x01\x00\x09"))
	if s := c.Expect(0, amqp091.ConnectionStartID).Method.(*amqp091.ConnectionStart); s.VersionMajor != 0 || s.VersionMinor != 9 {
		t.Fatalf("version %d-%d", s.VersionMajor, s.VersionMinor)
	}
}

func TestRow03OtherHeaders(t *testing.T) {
	t.Parallel()
	each(t, map[string]string{"0-9-0": "AMQP\x00\x00\x09\x00", "0-10": "AMQP\x01\x01\x00\x0a", "1.0": "AMQP\x00\x01\x00\x00",
		"1.0 SASL": "AMQP\x03\x01\x00\x00", "1.0 TLS": "AMQP\x02\x01\x00\x00", "http": "GET / HT", "tls": "\x16\x03\x01\x00\xc8\x01\x00\x00", "zeros": strings.Repeat("\x00", 8)},
		func(t *testing.T, header string) {
			c := amqptest.Connect(t, address(t))
			c.Raw([]byte(header))
			c.ExpectBytes([]byte("AMQP\x00\x00\x09\x01"))
		})
}

func TestRow04NothingSent(t *testing.T) {
	t.Parallel()
	each(t, map[string]string{"nothing": "", "half a header": "AMQP"}, func(t *testing.T, sent string) {
		began := time.Now()
		c := amqptest.Connect(t, address(t))
		c.Raw([]byte(sent))
		c.ExpectClosed(amqptest.Patience)
		if d := time.Since(began); d < 8*time.Second {
			t.Fatalf("closed after %v", d)
		}
	})
}

func TestRow05HeaderOnly(t *testing.T) {
	t.Parallel()
	began := time.Now()
	c := amqptest.Connect(t, address(t))
	c.Start()
	c.ExpectClosed(amqptest.Patience)
	if d := time.Since(began); d < 8*time.Second {
		t.Fatalf("closed after %v", d)
	}
}

func TestRow05TrickledHandshake(t *testing.T) {
	t.Parallel()
	c := amqptest.Connect(t, configured(t, amqp.Config{HandshakeTimeout: time.Second}))
	c.StartOk(amqptest.Options{})
	c.ExpectClosed(amqptest.Patience)
}

func TestRow06Capabilities(t *testing.T) {
	t.Parallel()
	s := amqptest.Connect(t, address(t)).Start()
	v, _ := s.ServerProperties.Lookup("capabilities")
	capabilities, ok := v.Table()
	if !ok {
		t.Fatal("start has no table of capabilities")
	}
	for _, capability := range []string{"publisher_confirms", "exchange_exchange_bindings", "basic.nack", "consumer_cancel_notify",
		"connection.blocked", "consumer_priorities", "authentication_failure_close", "per_consumer_qos", "direct_reply_to"} {
		if v, _ := capabilities.Lookup(capability); v.Tag != 't' || v.Raw[0] != 1 {
			t.Errorf("%s is not true", capability)
		}
	}
	for _, property := range []string{"cluster_name", "copyright", "information", "platform", "product", "version"} {
		if v, _ := s.ServerProperties.Lookup(property); v.Tag != 'S' || len(v.Raw) == 0 {
			t.Errorf("there is no %s", property)
		}
	}
}

func TestRow07Mechanisms(t *testing.T) {
	t.Parallel()
	s := amqptest.Connect(t, address(t)).Start()
	if m := " " + s.Mechanisms + " "; !strings.Contains(m, " PLAIN ") || !strings.Contains(m, " AMQPLAIN ") || s.Locales != "en_US" {
		t.Fatalf("mechanisms %q, locales %q", s.Mechanisms, s.Locales)
	}
}

func TestRow08Plain(t *testing.T) {
	t.Parallel()
	tune := amqptest.Connect(t, address(t)).StartOk(amqptest.Options{})
	if *tune != (amqp091.ConnectionTune{ChannelMax: 2047, FrameMax: 131072, Heartbeat: 60}) {
		t.Fatalf("tune %+v", tune)
	}
}

func TestRow09Amqplain(t *testing.T) {
	t.Parallel()
	each(t, map[string]amqp091.Map{"strings": {"LOGIN": "guest", "PASSWORD": "guest"}, "binary": {"LOGIN": []byte("guest"), "PASSWORD": []byte("guest")}},
		func(t *testing.T, login amqp091.Map) {
			c := amqptest.Connect(t, address(t))
			c.Open(amqptest.Options{Mechanism: "AMQPLAIN", Response: string(amqptest.Table(t, login))})
			c.Close()
		})
}

// expectPenalty waits for the end of a connection that has to wait for it, since it sent something.
func expectPenalty(c *amqptest.Conn, sent time.Time) {
	c.T.Helper()
	c.ExpectClosed(amqptest.Patience)
	if d := time.Since(sent); d < 2*time.Second {
		c.T.Fatalf("closed after %v", d)
	}
}

func TestRow10BadPassword(t *testing.T) {
	t.Parallel()
	each(t, map[string]amqptest.Options{
		"plain":    {Mechanism: "PLAIN", Response: "\x00guest\x00wrong"},
		"user":     {Mechanism: "PLAIN", Response: "\x00nobody\x00guest"},
		"amqplain": {Mechanism: "AMQPLAIN", Response: string(amqptest.Table(t, amqp091.Map{"LOGIN": "guest", "PASSWORD": "wrong"}))},
	}, func(t *testing.T, o amqptest.Options) {
		c := amqptest.Connect(t, address(t))
		c.Start()
		began := time.Now()
		c.SendStartOk(o)
		c.ReceiveClose(amqp091.AccessRefused, 0, "Login was refused using authentication mechanism "+o.Mechanism+". For details see the broker logfile.")
		expectPenalty(c, began)
	})
}

func TestRow11BadPasswordWithoutCapability(t *testing.T) {
	t.Parallel()
	c := amqptest.Connect(t, address(t))
	c.Start()
	began := time.Now()
	c.SendStartOk(amqptest.Options{Response: "\x00guest\x00wrong", Capabilities: amqptest.Nothing})
	expectPenalty(c, began)
}

func TestRow12NoLogin(t *testing.T) {
	t.Parallel()
	each(t, map[string]amqptest.Options{
		"unknown mechanism":    {Mechanism: "SCRAM-SHA-256"},
		"external without TLS": {Mechanism: "EXTERNAL", Response: " "},
		"no leading NUL":       {Response: "guest\x00guest"},
		"no password":          {Response: "\x00guest"},
		"something behind":     {Response: "\x00guest\x00guest\x00"},
		"no table":             {Mechanism: "AMQPLAIN", Response: "\x00guest\x00guest"},
		"no password in table": {Mechanism: "AMQPLAIN", Response: string(amqptest.Table(t, amqp091.Map{"LOGIN": "guest"}))},
		"number for a login":   {Mechanism: "AMQPLAIN", Response: string(amqptest.Table(t, amqp091.Map{"LOGIN": int32(1), "PASSWORD": "guest"}))},
	}, func(t *testing.T, o amqptest.Options) {
		c := amqptest.Connect(t, address(t))
		c.Start()
		began := time.Now()
		c.SendStartOk(o)
		expectPenalty(c, began)
	})
}

func TestRow13Authzid(t *testing.T) {
	t.Parallel()
	c := amqptest.Connect(t, address(t))
	c.Start()
	began := time.Now()
	c.SendStartOk(amqptest.Options{Response: "guest\x00guest\x00guest"})
	expectPenalty(c, began)
}

// stranger is a connection from somewhere else.
type stranger struct{ net.Conn }

func (stranger) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 4711} }

func TestRow14GuestFromElsewhere(t *testing.T) {
	t.Parallel()
	s := amqp.NewServer(shared(t).Broker(), amqp.Config{})
	near, far := net.Pipe()
	ended := make(chan struct{})
	go func() { s.ServeConn(stranger{far}); close(ended) }()
	t.Cleanup(func() { _ = near.Close(); <-ended })
	c := amqptest.On(t, near)
	c.Start()
	began := time.Now()
	c.SendStartOk(amqptest.Options{})
	c.ReceiveClose(amqp091.AccessRefused, 0, "Login was refused using authentication mechanism PLAIN. For details see the broker logfile.")
	expectPenalty(c, began)
}

func TestRow15OthersDuringThePenalty(t *testing.T) {
	t.Parallel()
	for range 20 {
		c := amqptest.Connect(t, address(t))
		c.Start()
		c.SendStartOk(amqptest.Options{Response: "\x00guest\x00wrong"})
	}
	began := time.Now()
	c := dial(t)
	c.Channel(1)
	c.Close()
	if d := time.Since(began); d > amqptest.Patience {
		t.Fatalf("a good login took %v", d)
	}
}

// tuned logs in with these limits.
func tuned(t *testing.T, m amqp091.ConnectionTuneOk) *amqptest.Conn {
	c := amqptest.Connect(t, address(t))
	c.StartOk(amqptest.Options{})
	c.Send(0, &m)
	return c
}

func TestRow16FrameMaxLow(t *testing.T) {
	t.Parallel()
	tuned(t, amqp091.ConnectionTuneOk{ChannelMax: 10, FrameMax: 4096}).OpenVhost(amqptest.Options{})
	tuned(t, amqp091.ConnectionTuneOk{ChannelMax: 10, FrameMax: 4095}).ExpectClose(amqp091.NotAllowed, amqp091.ConnectionTuneID,
		"negotiated frame_max = 4095 is lower than the minimum allowed value (4096)")
}

func TestRow17FrameMaxHigh(t *testing.T) {
	t.Parallel()
	tuned(t, amqp091.ConnectionTuneOk{ChannelMax: 10}).ExpectClose(amqp091.NotAllowed, amqp091.ConnectionTuneID,
		"negotiated frame_max = 0 is higher than the maximum allowed value (131072)")
	tuned(t, amqp091.ConnectionTuneOk{ChannelMax: 10, FrameMax: 131073}).ExpectClose(amqp091.NotAllowed, amqp091.ConnectionTuneID,
		"negotiated frame_max = 131073 is higher than the maximum allowed value (131072)")
	tuned(t, amqp091.ConnectionTuneOk{ChannelMax: 10, FrameMax: 131072}).OpenVhost(amqptest.Options{})
}

func TestRow18ChannelMax(t *testing.T) {
	t.Parallel()
	tuned(t, amqp091.ConnectionTuneOk{FrameMax: 4096}).ExpectClose(amqp091.NotAllowed, amqp091.ConnectionTuneID,
		"negotiated channel_max = 0 (no limit) is higher than the maximum allowed value (2047)")
	tuned(t, amqp091.ConnectionTuneOk{ChannelMax: 2048, FrameMax: 4096}).ExpectClose(amqp091.NotAllowed, amqp091.ConnectionTuneID,
		"negotiated channel_max = 2048 is higher than the maximum allowed value (2047)")
	tuned(t, amqp091.ConnectionTuneOk{ChannelMax: 2047, FrameMax: 4096}).OpenVhost(amqptest.Options{})
}

func TestRow23OpenMissingVhost(t *testing.T) {
	t.Parallel()
	c := amqptest.Connect(t, address(t))
	c.Login(amqptest.Options{})
	c.Send(0, &amqp091.ConnectionOpen{VirtualHost: "none-such"})
	c.ExpectClose(amqp091.NotAllowed, amqp091.ConnectionOpenID, "vhost none-such not found")
}

func TestRow26KnownHosts(t *testing.T) {
	t.Parallel()
	c := amqptest.Connect(t, address(t))
	c.Login(amqptest.Options{})
	c.Send(0, &amqp091.ConnectionOpen{VirtualHost: "/"})
	if f, payload := c.Frame(); f.Type != amqp091.FrameMethod || string(payload) != "\x00\x0a\x00\x29\x00" {
		t.Fatalf("frame %+v %x", f, payload)
	}
}

func TestRow27MethodBeforeOpen(t *testing.T) {
	t.Parallel()
	each(t, map[string]func(c *amqptest.Conn){
		"before start-ok": func(c *amqptest.Conn) { c.Start() },
		"before tune-ok":  func(c *amqptest.Conn) { c.StartOk(amqptest.Options{}) },
	}, func(t *testing.T, reach func(*amqptest.Conn)) {
		c := amqptest.Connect(t, address(t))
		reach(c)
		c.Send(1, &amqp091.ChannelOpen{})
		c.ExpectClosed(amqptest.Patience)
	})
}

// TestRow27BeforeOpenOnly: at the last step the broker may say why.
func TestRow27BeforeOpenOnly(t *testing.T) {
	t.Parallel()
	c := amqptest.Connect(t, address(t))
	c.Login(amqptest.Options{})
	c.Send(1, &amqp091.ChannelOpen{})
	c.ExpectEnd()
}

// TestRow27OtherTurn: what else comes instead of a handshake's turn ends the connection as well.
func TestRow27OtherTurn(t *testing.T) {
	t.Parallel()
	c := amqptest.Connect(t, address(t))
	c.Start()
	began := time.Now()
	c.Send(0, &amqp091.ConnectionOpen{VirtualHost: "/"})
	expectPenalty(c, began)
	c = amqptest.Connect(t, address(t))
	c.Login(amqptest.Options{})
	c.Send(0, &amqp091.ConnectionTuneOk{ChannelMax: 10, FrameMax: 4096})
	c.ExpectClose(amqp091.ChannelError, amqp091.ConnectionTuneOkID, "unexpected method in connection state opening")
}
