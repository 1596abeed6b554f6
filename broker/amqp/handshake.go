package amqp

import (
	"bytes"
	"fmt"
	"time"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// What connection.start shows as product and version. Clients choose by them how they encode tables, what a prefetch means
// and what they may ask for, so they name whose behaviour this is; information and platform say who speaks.
const (
	compatibleProduct = "RabbitMQ"
	compatibleVersion = "3.13.7"
)

// mechanisms of login that are offered.
const (
	plain    = "PLAIN"
	amqplain = "AMQPLAIN"
)

// client is what a client says of itself.
type client struct {
	user         string
	mechanism    string
	name         string
	properties   []byte // field table
	cancelNotify bool   // it understands basic.cancel from the server
	blockedNotify,
	refusalNotify bool
}

// greet runs the handshake up to connection.open-ok (sections 1.1 and 1.6 to 1.9 of the reference). It returns nil when
// the connection is open.
func (n *connection) greet() *ended {
	n.reads.within(time.Now().Add(n.server.config.HandshakeTimeout), 0)
	header, err := n.reader.ReadPreface()
	if err != nil {
		return gone
	}
	minor, ok := spoken(header)
	if !ok {
		n.server.broker.Refused()
		n.server.log.Info("refused a connection that does not speak AMQP 0-9-1", "peer", n.name(), "header", fmt.Sprintf("%q", header[:]))
		n.out.Append(func(b []byte) []byte { return append(b, amqp091.ProtocolHeader[:]...) })
		return &ended{quiet: time.Millisecond}
	}
	n.send(0, n.start(minor))
	for _, step := range []func(id amqp091.MethodID, args []byte) *ended{n.login, n.tune, n.open} {
		id, args, err := n.turn()
		if err != nil {
			return n.endOf(err)
		}
		if e := step(id, args); e != nil {
			return e
		}
	}
	n.reads.within(time.Time{}, 2*n.heartbeat)
	return nil
}

// spoken reports whether a protocol header is one that this server speaks, and the minor version to answer with: the
// header of 0-9 is taken for 0-9-1.
func spoken(header [8]byte) (minor byte, ok bool) {
	switch header {
	case amqp091.ProtocolHeader:
		return 9, true
	case [8]byte{'A', 'M', 'Q', 'P', 1, 1, 0, 9}:
		return 9, true
	}
	return 0, false
}

// start makes connection.start (section 1.7).
func (n *connection) start(minor byte) *amqp091.ConnectionStart {
	c := &n.server.config
	properties := amqp091.Map{
		"capabilities": amqp091.Map{"publisher_confirms": true, "exchange_exchange_bindings": true, "basic.nack": true,
			"consumer_cancel_notify": true, "connection.blocked": true, "consumer_priorities": true,
			"authentication_failure_close": true, "per_consumer_qos": true, "direct_reply_to": true},
		"product": compatibleProduct, "version": compatibleVersion, "platform": "Warren " + c.Version, "copyright": "The Warren authors",
		"information": "This is Warren, which behaves as RabbitMQ " + compatibleVersion + " does",
	}
	if c.ClusterName != nil {
		properties["cluster_name"] = c.ClusterName()
	}
	table, err := amqp091.AppendMap(nil, properties)
	if err != nil { // a name that is no text
		n.server.log.Error("the server properties cannot be written; clients get none", "error", err)
	}
	return &amqp091.ConnectionStart{VersionMinor: minor, ServerProperties: table, Mechanisms: plain + " " + amqplain, Locales: "en_US"}
}

// turn reads the next method of the handshake; 0 is a frame that is none, or not on channel 0.
func (n *connection) turn() (id amqp091.MethodID, args []byte, err error) {
	for {
		f, err := n.reader.Next()
		switch {
		case err != nil:
			return 0, nil, err
		case f.Type == amqp091.FrameHeartbeat:
			continue
		case f.Type != amqp091.FrameMethod || f.Channel != 0:
			return 0, nil, n.reader.Skip()
		}
		payload, err := n.reader.Payload()
		if err != nil {
			return 0, nil, err
		}
		return amqp091.SplitMethod(payload)
	}
}

// outOfTurn ends a connection that sends something else than its turn: it is closed without a frame.
func (n *connection) outOfTurn(id amqp091.MethodID, state string) *ended {
	n.server.broker.Refused()
	n.server.log.Warn("an AMQP client sent something else than its handshake's turn", "peer", n.name(), "state", state, "method", id.String())
	return &ended{quiet: penalty}
}

// login reads start-ok.
func (n *connection) login(id amqp091.MethodID, args []byte) *ended {
	var m amqp091.ConnectionStartOk
	if id != m.ID() {
		return n.outOfTurn(id, "starting")
	}
	if err := m.Decode(args); err != nil {
		return n.endOf(err)
	}
	n.peer.read(m.ClientProperties)
	user, password, ok := credentials(m.Mechanism, []byte(m.Response))
	if !ok {
		n.server.broker.Refused()
		n.server.log.Warn("an AMQP client's login cannot be understood", "peer", n.name(), "mechanism", amqp091.ShortText(m.Mechanism))
		return &ended{quiet: penalty}
	}
	if err := n.server.broker.Login(user, password, n.conn.RemoteAddr()); err != nil {
		return n.refused(m.Mechanism)
	}
	n.peer.user, n.peer.mechanism = user, m.Mechanism
	c := &n.server.config
	n.send(0, &amqp091.ConnectionTune{ChannelMax: c.ChannelMax, FrameMax: c.FrameMax, Heartbeat: c.Heartbeat})
	return nil
}

// refused ends a connection whose login is no good. The pause is a brake for whoever guesses passwords.
func (n *connection) refused(mechanism string) *ended {
	n.server.broker.Refused()
	if n.peer.refusalNotify {
		n.send(0, &amqp091.ConnectionClose{ReplyCode: uint16(amqp091.AccessRefused),
			ReplyText: "ACCESS_REFUSED - Login was refused using authentication mechanism " + mechanism + ". For details see the broker logfile."})
	}
	return &ended{quiet: penalty}
}

// credentials takes a login apart (section 1.8).
func credentials(mechanism string, response []byte) (user, password string, ok bool) {
	switch mechanism {
	case plain:
		parts := bytes.Split(response, []byte{0})
		if len(parts) == 3 && len(parts[0]) == 0 {
			return string(parts[1]), string(parts[2]), true
		}
	case amqplain:
		return amqplainCredentials(response)
	}
	return "", "", false
}

// tune reads tune-ok.
func (n *connection) tune(id amqp091.MethodID, args []byte) *ended {
	var m amqp091.ConnectionTuneOk
	if id != m.ID() {
		return n.outOfTurn(id, "tuning")
	}
	if err := m.Decode(args); err != nil {
		return n.endOf(err)
	}
	c := &n.server.config
	wrong := bound("frame_max", uint64(m.FrameMax), minFrameMax, uint64(c.FrameMax))
	if wrong == "" {
		wrong = bound("channel_max", uint64(m.ChannelMax), 1, uint64(c.ChannelMax))
	}
	if wrong != "" {
		return &ended{exception: amqp091.Errorf(amqp091.NotAllowed, amqp091.ConnectionTuneID, "%s", wrong)}
	}
	n.frameMax, n.channelMax = m.FrameMax, int(m.ChannelMax)
	n.reader.SetFrameMax(m.FrameMax)
	n.heartbeat = time.Duration(m.Heartbeat) * time.Second
	if n.heartbeat > 0 {
		n.out.Beat(n.heartbeat/2, func() { n.out.Append(amqp091.AppendHeartbeat) })
	}
	return nil
}

// bound says what is wrong with a negotiated value.
func bound(field string, value, low, high uint64) string {
	switch {
	case value == 0 && field == "channel_max":
		return fmt.Sprintf("negotiated %s = 0 (no limit) is higher than the maximum allowed value (%d)", field, high)
	case value == 0: // it stands for no limit as well
		return fmt.Sprintf("negotiated %s = 0 is higher than the maximum allowed value (%d)", field, high)
	case value < low:
		return fmt.Sprintf("negotiated %s = %d is lower than the minimum allowed value (%d)", field, value, low)
	case value > high:
		return fmt.Sprintf("negotiated %s = %d is higher than the maximum allowed value (%d)", field, value, high)
	}
	return ""
}

// open reads connection.open and starts the session.
func (n *connection) open(id amqp091.MethodID, args []byte) *ended {
	var m amqp091.ConnectionOpen
	switch id {
	case m.ID():
	case amqp091.ConnectionCloseID:
		return &ended{asked: true}
	case 0:
		return n.outOfTurn(id, "opening")
	default:
		return &ended{exception: amqp091.Errorf(amqp091.ChannelError, id, "unexpected method in connection state opening")}
	}
	if err := m.Decode(args); err != nil {
		return n.endOf(err)
	}
	c := broker.Client{Name: n.peer.name, Peer: n.name(), Local: n.conn.LocalAddr().String(), User: n.peer.user, Protocol: "AMQP 0-9-1",
		Mechanism: n.peer.mechanism, Properties: n.peer.properties, ChannelMax: uint16(n.channelMax), FrameMax: n.frameMax, Heartbeat: n.heartbeat}
	s, err := n.server.broker.Open(c, m.VirtualHost, n)
	if err != nil {
		return &ended{exception: exceptionOf(err, id)}
	}
	n.session = s
	n.send(0, &amqp091.ConnectionOpenOk{})
	return nil
}

// read takes what the server goes by out of the client properties.
func (c *client) read(properties amqp091.Table) {
	c.properties = properties
	if v, ok := properties.Lookup("connection_name"); ok {
		if name, ok := v.Text(); ok {
			c.name = amqp091.ShortText(string(name))
		}
	}
	v, _ := properties.Lookup("capabilities")
	capabilities, _ := v.Table()
	can := func(name string) bool {
		v, _ := capabilities.Lookup(name)
		yes, _ := v.Bool()
		return yes
	}
	c.cancelNotify, c.blockedNotify = can("consumer_cancel_notify"), can("connection.blocked")
	c.refusalNotify = can("authentication_failure_close")
}

// amqplainCredentials reads the response of AMQPLAIN: a table without its length.
func amqplainCredentials(response []byte) (user, password string, ok bool) {
	t := amqp091.Table(response)
	if t.Check() != nil {
		return "", "", false
	}
	text := func(name string) (string, bool) {
		v, _ := t.Lookup(name)
		if v.Tag == 'x' {
			v.Tag = 'S'
		}
		b, ok := v.Text()
		return string(b), ok
	}
	user, ok = text("LOGIN")
	password, has := text("PASSWORD")
	return user, password, ok && has
}
