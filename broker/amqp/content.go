package amqp

import (
	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/fsm"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// Bounds of messages that are coming in, in bytes.
const (
	partBytes  = 256 << 10 // a body that goes to the log in parts goes in parts of at least this
	maxPartial = 16 << 20  // of incomplete bodies on one connection; above it they go to the log in parts
	maxKept    = 256 << 20 // of bodies that went to the log, are incomplete and may have to be returned, on one connection
)

// incoming is the message that is coming in on a channel: basic.publish, then a header, then the body's frames. A body
// above fsm.MaxInlineBody goes to the log in parts as it comes in and does not stay here.
type incoming struct {
	amqp091.Content
	exchange, key        string
	mandatory, immediate bool
	upload               uint64 // number of the upload; 0: the body is inline
	uploaded             uint64 // bytes that went to the log
	kept                 []byte // a body that went to the log and may have to be returned
}

// begin takes basic.publish.
func (c *channel) begin(p *amqp091.BasicPublish) {
	n := c.connection
	c.incoming = incoming{exchange: n.names.String(p.Exchange), key: n.names.String(p.RoutingKey), mandatory: p.Mandatory, immediate: p.Immediate}
	c.incoming.MaxBytes = n.server.config.MaxMessage
	c.incoming.Begin(amqp091.BasicPublishID)
}

// drop gives up the message that is coming in.
func (c *channel) drop() {
	c.connection.partial -= len(c.incoming.Body)
	c.connection.kept -= len(c.incoming.kept)
	c.incoming = incoming{}
}

// take takes a header or body frame.
func (c *channel) take(f amqp091.Frame) error {
	m, n := &c.incoming, c.connection
	before := len(m.Body)
	complete, err := m.Take(n.reader, f)
	n.partial += len(m.Body) - before
	switch {
	case complete:
		n.partial -= len(m.Body)
		return c.complete()
	case err != nil:
		return c.failContent(err)
	case broker.IsReply(m.exchange, m.key) && n.partial <= maxPartial+int(m.MaxBytes): // it does not go through the log
	case n.partial > maxPartial && len(m.Body) > 0, m.Size > fsm.MaxInlineBody && len(m.Body) >= partBytes:
		n.partial -= len(m.Body)
		return c.sendPart()
	}
	return nil
}

// failContent ends the channel for a message that is larger than this server allows, and the connection for all else.
func (c *channel) failContent(err error) error {
	var x *amqp091.Error
	if !asException(err, &x) || x.Hard() {
		return err
	}
	c.drop()
	c.fail(x)
	return nil
}

// sendPart hands what has come in of a body to the log.
func (c *channel) sendPart() error {
	m, n := &c.incoming, c.connection
	if m.upload == 0 {
		n.uploads++
		m.upload = n.uploads
	}
	part := m.Pass()
	upload, offset, total := m.upload, m.uploaded, m.Size
	m.uploaded += uint64(len(part))
	if m.mandatory {
		if n.kept += len(part); n.kept > maxKept {
			n.kept -= len(part)
			return c.failContent(amqp091.Errorf(amqp091.PreconditionFailed, amqp091.BasicPublishID, "incomplete mandatory messages on this connection have more than %d bytes", maxKept))
		}
		m.kept = append(m.kept, part...)
	}
	send := func() error {
		return n.session.BodyPart(c.context, upload, offset, total, part, 0, partDone{c})
	}
	if n.server.broker.Blocked() {
		n.flush()
		n.hold()
		c.inTurn(len(part), send) // it will wait there, and the reader goes on
		return nil
	}
	return c.direct(len(part), send)
}

// complete publishes the message, all of which has come in.
func (c *channel) complete() error {
	if m := &c.incoming; len(m.Body) > 0 && (m.upload != 0 || len(m.Body) > fsm.MaxInlineBody && !broker.IsReply(m.exchange, m.key)) {
		if err := c.sendPart(); err != nil {
			return err
		}
	}
	if !c.is(open) { // that failed
		c.drop()
		return nil
	}
	m := c.incoming
	n := c.connection
	n.kept -= len(m.kept)
	c.incoming = incoming{}
	return c.publish(m)
}

// partDone hears what became of a part.
type partDone struct{ channel *channel }

// Complete implements broker.Completer.
func (p partDone) Complete(_ uint64, r fsm.Result) {
	if r.Code != fsm.OK {
		p.channel.failLater(exceptionOfCode(r.Code, r.Message, amqp091.BasicPublishID))
	}
}

var _ broker.Completer = partDone{}
