package amqp

import (
	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/fsm"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// serve handles one frame; an error ends the connection.
func (n *connection) serve(f amqp091.Frame) error {
	switch f.Type {
	case amqp091.FrameHeartbeat:
		return n.reader.Skip()
	case amqp091.FrameMethod:
		payload, err := n.reader.Payload()
		if err != nil {
			return err
		}
		id, args, err := amqp091.SplitMethod(payload)
		if err != nil {
			return err
		}
		if f.Channel == 0 {
			return n.serveConnection(id, args)
		}
		return n.serveChannel(f.Channel, id, args)
	}
	c := n.find(f.Channel)
	switch {
	case c == nil:
		return amqp091.Errorf(amqp091.ChannelError, 0, "expected 'channel.open'")
	case !c.is(open):
		return n.reader.Skip()
	}
	return c.take(f)
}

// serveConnection handles a method on channel 0.
func (n *connection) serveConnection(id amqp091.MethodID, args []byte) error {
	switch id {
	case amqp091.ConnectionCloseID:
		var m amqp091.ConnectionClose
		if err := m.Decode(args); err != nil {
			return err
		}
		return errAsked
	case amqp091.ConnectionUpdateSecretID:
		var m amqp091.ConnectionUpdateSecret
		if err := m.Decode(args); err != nil {
			return err
		}
		n.send(0, &amqp091.ConnectionUpdateSecretOk{}) // the user is known here, and no secret of its expires
		return nil
	}
	if !id.Known() {
		return amqp091.Errorf(amqp091.CommandInvalid, id, "unknown method %s", id)
	}
	return amqp091.Errorf(amqp091.ChannelError, id, "unexpected method in connection state running")
}

// serveChannel handles a method on a channel.
func (n *connection) serveChannel(number uint16, id amqp091.MethodID, args []byte) error {
	if id == amqp091.BasicPublishID || id == amqp091.BasicAckID { // they are the ones that count
		if c := n.find(number); c != nil && c.is(open) && c.incoming.Pending() == 0 {
			if id == amqp091.BasicAckID {
				return c.ack(args)
			}
			var m amqp091.BasicPublish
			if err := m.Decode(args); err != nil {
				return err
			}
			c.begin(&m)
			return nil
		}
	}
	n.flush()
	c := n.find(number)
	switch {
	case !id.Known():
		return amqp091.Errorf(amqp091.CommandInvalid, id, "unknown method %s", id)
	case c != nil && !c.is(open) && id != amqp091.ChannelOpenID:
		c.serveEnded(id)
		return nil
	case !id.FromClient() || id.Class() == classConnection:
		e := amqp091.Errorf(amqp091.CommandInvalid, id, "unimplemented method")
		if c == nil {
			return e
		}
		return c.direct(0, func() error { return e }) // if it is not dropped because of what is served before it
	case id == amqp091.ChannelOpenID:
		var m amqp091.ChannelOpen
		if err := m.Decode(args); err != nil {
			return err
		}
		return n.openChannel(number)
	case c == nil:
		return amqp091.Errorf(amqp091.ChannelError, id, "expected 'channel.open'")
	}
	if err := c.incoming.Expect(amqp091.FrameMethod); err != nil {
		return err
	}
	return c.serve(id, args)
}

const classConnection = 10

// serveEnded handles a method on a channel that has failed or is being closed: everything is dropped but the end itself.
func (c *channel) serveEnded(id amqp091.MethodID) {
	n := c.connection
	switch id {
	case amqp091.ChannelCloseID:
		if c.left == nil { // it crossed ours, and is answered behind it
			c.requests.Do(0, func() {
				c.close()
				n.send(c.number, &amqp091.ChannelCloseOk{})
			})
		}
	case amqp091.ChannelCloseOkID:
		if c.is(closing) {
			c.drop()
			c.cancel()
			n.forget(c)
		}
	}
}

// serve handles a method on an open channel.
func (c *channel) serve(id amqp091.MethodID, args []byte) error {
	if id == amqp091.BasicAckID {
		return c.ack(args)
	}
	m := amqp091.New(id)
	if err := m.Decode(args); err != nil {
		return err
	}
	bytes := len(args)
	switch m := m.(type) {
	case *amqp091.BasicNack:
		return c.settled(c.settle(giveUp(m.Requeue), m.DeliveryTag, m.Multiple, id))
	case *amqp091.BasicReject:
		return c.settled(c.settle(giveUp(m.Requeue), m.DeliveryTag, false, id))
	case *amqp091.BasicPublish:
		c.begin(m)
	case *amqp091.ChannelClose:
		c.leave()
	case *amqp091.ChannelFlow:
		if !m.Active {
			return amqp091.Errorf(amqp091.NotImplemented, id, "active=false")
		}
		return c.reply(bytes, func() error { c.send(&amqp091.ChannelFlowOk{Active: true}); return nil })
	case *amqp091.AccessRequest:
		return c.reply(bytes, func() error { c.send(&amqp091.AccessRequestOk{Ticket: 1}); return nil })
	case *amqp091.BasicQos:
		if m.PrefetchSize != 0 {
			return amqp091.Errorf(amqp091.NotImplemented, id, "prefetch_size!=0 (%d)", m.PrefetchSize)
		}
		return c.reply(bytes, func() error {
			c.Qos(uint32(m.PrefetchCount), m.Global)
			c.send(&amqp091.BasicQosOk{})
			return nil
		})
	case *amqp091.ConfirmSelect:
		return c.confirmSelect(m)
	case *amqp091.TxSelect:
		return c.txSelect()
	case *amqp091.TxCommit:
		return c.inTransaction(id, func(t *transaction) error { return t.commit(c.context) })
	case *amqp091.TxRollback:
		return c.inTransaction(id, func(t *transaction) error { t.rollback(); return nil })
	case *amqp091.BasicRecover:
		if !m.Requeue {
			return amqp091.Errorf(amqp091.NotImplemented, id, "requeue=false")
		}
		c.inTurn(bytes, func() error { return c.recover(true) })
	case *amqp091.BasicRecoverAsync:
		if !m.Requeue {
			return amqp091.Errorf(amqp091.NotImplemented, id, "requeue=false")
		}
		c.inTurn(bytes, func() error { return c.recover(false) })
	default:
		request := c.request(m)
		if request == nil { // a client's method that nobody asked for, such as channel.close-ok
			return amqp091.Errorf(amqp091.CommandInvalid, id, "unimplemented method")
		}
		c.inTurn(bytes, func() error {
			err := c.returned()
			if err == nil {
				err = request()
			}
			if err != nil {
				return exceptionOf(err, id)
			}
			return nil
		})
	}
	return nil
}

// ack serves basic.ack.
func (c *channel) ack(args []byte) error {
	var m amqp091.BasicAck
	if err := m.Decode(args); err != nil {
		return err
	}
	return c.settled(c.settle(fsm.Acknowledge, m.DeliveryTag, m.Multiple, amqp091.BasicAckID))
}

// settled passes hard errors to the reader; soft ones close the channel.
func (c *channel) settled(x *amqp091.Error) error {
	switch {
	case x == nil:
		return nil
	case x.Hard():
		return x
	}
	c.fail(x)
	return nil
}

// confirmSelect serves confirm.select: publishes are counted from now on.
func (c *channel) confirmSelect(m *amqp091.ConfirmSelect) error {
	if c.work != nil {
		c.fail(amqp091.Errorf(amqp091.PreconditionFailed, m.ID(), "cannot switch from tx to confirm mode"))
		return nil
	}
	c.confirming = true
	c.SetMode(broker.Mode{Confirm: true})
	if m.NoWait {
		return nil
	}
	return c.reply(0, func() error { c.send(&amqp091.ConfirmSelectOk{}); return nil })
}

// txSelect serves tx.select.
func (c *channel) txSelect() error {
	if c.confirming {
		c.fail(amqp091.Errorf(amqp091.PreconditionFailed, amqp091.TxSelectID, "cannot switch from confirm to tx mode"))
		return nil
	}
	if c.work == nil {
		c.work = &transaction{channel: c}
		c.SetMode(broker.Mode{Transactional: true})
	}
	return c.reply(0, func() error { c.send(&amqp091.TxSelectOk{}); return nil })
}

// inTransaction runs a commit or a rollback in turn.
func (c *channel) inTransaction(id amqp091.MethodID, f func(t *transaction) error) error {
	t := c.work
	if t == nil {
		c.fail(amqp091.Errorf(amqp091.PreconditionFailed, id, "channel is not transactional"))
		return nil
	}
	c.inTurn(0, func() error { return f(t) })
	return nil
}
