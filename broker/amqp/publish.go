package amqp

import (
	"strconv"
	"strings"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/fsm"
	"github.com/warrenmq/warren/protocol/amqp091"
)

const (
	// maxPending is how many publishes the reader collects before it hands them on.
	maxPending = 256
	// maxHeld is how many bytes of publishes a connection's channels keep while publishes are held up; then its socket is
	// not read any more.
	maxHeld = 16 << 20
	// maxExpiration is the longest time that a message may have to live, in ms: ten years.
	maxExpiration = 315_360_000_000
)

// pending are publishes that the reader has read of one channel and not handed on yet.
type pending struct {
	channel *channel
	list    []broker.Publication
}

// publish does with a message what section 4.2 of the reference says, in its order.
func (c *channel) publish(m incoming) error {
	n := c.connection
	if m.immediate {
		return amqp091.Errorf(amqp091.NotImplemented, amqp091.BasicPublishID, "immediate=true")
	}
	p := broker.Publication{Exchange: m.exchange, RoutingKey: m.key, Properties: m.Properties, Body: m.Body}
	if m.upload != 0 {
		p.Body, p.Upload = nil, m.upload
	}
	if c.confirming {
		c.published++
		p.Token = c.published
	}
	if n.server.broker.Blocked() {
		n.hold()
		return c.publishInTurn(p, m.mandatory, m.kept) // it will wait there, and the reader goes on
	}
	if m.mandatory || c.work != nil || c.requests.Busy() || n.session.HeldUp() {
		err := c.publishInTurn(p, m.mandatory, m.kept)
		n.blockHeld() // if it has come to that meanwhile
		return err
	}
	if x := c.admit(&p); x != nil {
		n.flush()
		x.Cause = amqp091.BasicPublishID
		c.fail(x)
		return nil
	}
	if n.pending.channel != c {
		n.flush()
		n.pending.channel = c
	}
	if n.pending.list = append(n.pending.list, p); len(n.pending.list) >= maxPending {
		n.flush()
	}
	return nil
}

// publishInTurn publishes a message behind what its channel waits for. kept is the body of an upload that may be returned.
func (c *channel) publishInTurn(p broker.Publication, returned bool, kept []byte) error {
	n := c.connection
	n.flush()
	var done broker.Completer = c
	body := p.Body
	if returned {
		if p.Upload != 0 {
			body = kept
		}
		done = &mandatory{channel: c, publication: p, body: body}
	}
	work := c.work
	if returned && work == nil {
		c.returnable.Add(1)
	}
	publish := func() error {
		if x := c.admit(&p); x != nil {
			x.Cause = amqp091.BasicPublishID
			return x
		}
		if work != nil {
			return work.publish(p, returned, done)
		}
		return n.session.Publish(c.context, []broker.Publication{p}, done)
	}
	if c.requests.Busy() || n.session.HeldUp() {
		n.queued.Add(1)
		c.inTurnThen(len(body)+len(p.Properties), publish, func() { n.queued.Add(-1) })
		return nil
	}
	return c.direct(0, publish)
}

// flush hands on what publish collected.
func (n *connection) flush() {
	if len(n.pending.list) == 0 {
		return
	}
	c := n.pending.channel
	err := n.session.Submit(c.context, n.pending.list, c) // the reader must not wait for an alarm that came meanwhile
	clear(n.pending.list)
	n.pending.list = n.pending.list[:0]
	if err != nil {
		c.failed(exceptionOf(err, amqp091.BasicPublishID))
	}
}

// admit checks a message against the state and completes its properties; what it refuses closes the channel.
func (c *channel) admit(p *broker.Publication) *amqp091.Error {
	n := c.connection
	e, ok := n.session.FindExchange(p.Exchange)
	switch {
	case !ok:
		return refuse(amqp091.NotFound, "no exchange '%s' in vhost '%s'", p.Exchange, n.session.Vhost.Name)
	case e.Internal:
		return refuse(amqp091.AccessRefused, "cannot publish to internal exchange '%s' in vhost '%s'", p.Exchange, n.session.Vhost.Name)
	}
	properties := amqp091.PropertyBytes(p.Properties)
	if to, ok := properties.Value(amqp091.PropertyReplyTo); ok && string(to) == broker.ReplyQueue {
		address := c.ReplyAddress()
		if address == "" {
			return refuse(amqp091.PreconditionFailed, "fast reply consumer does not exist")
		}
		p.Properties = properties.AppendWith(nil, amqp091.PropertyReplyTo, []byte(address))
	}
	if text, ok := properties.Value(amqp091.PropertyExpiration); ok {
		if reason := wrongExpiration(string(text)); reason != "" {
			return refuse(amqp091.PreconditionFailed, "invalid expiration '%s': %s", text, reason)
		}
	}
	if r := fsm.CheckProperties(p.Properties); r.Code != fsm.OK {
		return exceptionOfCode(r.Code, r.Message, amqp091.BasicPublishID)
	}
	if user, ok := properties.Value(amqp091.PropertyUserID); ok && string(user) != n.peer.user {
		return refuse(amqp091.PreconditionFailed, "user_id property set to '%s' but authenticated user was '%s'", user, n.peer.user)
	}
	return nil
}

// wrongExpiration returns RabbitMQ's reason against an expiration, or "".
func wrongExpiration(s string) string {
	digits := s
	if s != "" && (s[0] == '+' || s[0] == '-') {
		digits = s[1:]
	}
	end := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' })
	switch {
	case digits == "" || end == 0:
		return "no_integer"
	case end > 0:
		return "{leftover_string,\"" + digits[end:] + "\"}"
	}
	number := strings.TrimLeft(digits, "0")
	value, err := strconv.ParseUint(digits, 10, 64)
	switch {
	case s[0] == '-' && number != "":
		return "{value_negative,-" + number + "}"
	case err != nil || value > maxExpiration:
		return "{value_too_large," + number + "}"
	}
	return ""
}

// Complete hears what became of a publish (broker.Completer); the token is its number, 0 when no confirm is wanted.
func (c *channel) Complete(number uint64, r fsm.Result) {
	switch {
	case r.Code == fsm.OK:
		if number != 0 {
			c.confirms.settle(number, false)
		}
	case r.Code == fsm.QueueFull:
		if number != 0 {
			c.confirms.settle(number, true)
		}
	case r.Code < 600:
		c.failLater(exceptionOfCode(r.Code, r.Message, amqp091.BasicPublishID))
	}
	// Anything else means that the outcome is unknown or the leadership over: no confirm, and the connection ends.
}

// mandatory hears what became of a publish that is returned when it reached no queue, before its confirm.
type mandatory struct {
	channel     *channel
	publication broker.Publication
	body        []byte
}

// Complete implements broker.Completer.
func (m *mandatory) Complete(number uint64, r fsm.Result) {
	if r.Code == fsm.OK && r.Routed == 0 {
		m.giveBack()
	}
	m.channel.Complete(number, r)
	m.channel.returnable.Add(-1)
}

// giveBack sends basic.return.
func (m *mandatory) giveBack() {
	c, p := m.channel, &m.publication
	n := c.connection
	n.server.broker.Returned()
	c.append(func(b []byte) []byte {
		b = (&amqp091.BasicReturn{ReplyCode: uint16(amqp091.NoRoute), ReplyText: "NO_ROUTE", Exchange: p.Exchange, RoutingKey: p.RoutingKey}).AppendFrame(b, c.number)
		return amqp091.AppendContent(b, c.number, fsm.StripBCC(p.Properties), m.body, n.frameMax)
	})
}
