package native

import (
	"context"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/fsm"
	"github.com/warrenmq/warren/protocol/native"
)

// serve handles one frame; false ends the connection.
func (n *connection) serve(t native.Type, payload []byte) bool {
	if t == native.TypePublish { // first: it is the one that counts
		var p native.Publish
		if err := native.DecodePublish(payload, &p); err != nil {
			return n.refuse(t, payload, native.SyntaxError, "SYNTAX_ERROR - "+err.Error())
		}
		c := n.channels[p.Channel]
		if c == nil {
			return n.noChannel(t, p.Head)
		}
		n.publish(c, &p, len(payload))
		return true
	}
	n.flush()
	if t == native.TypeHeartbeat {
		return true
	}
	f := request(t)
	if f == nil {
		return n.refuse(t, payload, native.CommandInvalid, "COMMAND_INVALID - a client does not send "+t.String())
	}
	if err := native.Decode(payload, f); err != nil {
		return n.refuse(t, payload, native.SyntaxError, "SYNTAX_ERROR - "+err.Error())
	}
	head, err := native.PeekHead(payload)
	if err != nil {
		return n.refuse(t, payload, native.SyntaxError, "SYNTAX_ERROR - "+err.Error())
	}
	if t == native.TypeChannelOpen {
		n.openChannel(head, len(payload))
		return true
	}
	c := n.channels[head.Channel]
	if c == nil {
		return n.noChannel(t, head)
	}
	if err := check(f); err != nil {
		c.direct(len(payload), func() { n.fail(t, head, err) })
		return true
	}
	switch f := f.(type) { // what needs no answer of the log goes on at once when nothing is in front of it
	case *native.Ack:
		c.settle(len(payload), func() { c.Settle(fsm.Acknowledge, ranges(f.Ranges), f.RID, simple{c, t}) })
		return true
	case *native.Nack:
		kind := fsm.Reject
		if f.Requeue {
			kind = fsm.Return
		}
		c.settle(len(payload), func() { c.Settle(kind, ranges(f.Ranges), f.RID, simple{c, t}) })
		return true
	case *native.BodyPart:
		c.direct(len(payload), func() {
			if err := n.session.BodyPart(n.context, f.Upload, f.Offset, f.Total, f.Bytes, f.RID, simple{c, t}); err != nil {
				n.fail(t, head, err)
			}
		})
		return true
	case *native.ChannelClose:
		delete(n.channels, head.Channel)
		n.retire(c)
	}
	c.requests.Do(len(payload), func() { n.answer(c, t, head, f) })
	return true
}

// direct runs a request now if nothing of its channel waits, else in its turn.
func (c *channel) direct(bytes int, request func()) {
	if c.requests.Busy() {
		c.requests.Do(bytes, request)
		return
	}
	request()
}

// settle is direct for acknowledgements. They pass publishes that the node holds up.
func (c *channel) settle(bytes int, request func()) {
	busy := c.requests.Busy()
	if c.reopened = c.reopened && busy; busy && (c.reopened || !c.connection.session.HeldUp()) {
		c.requests.Do(bytes, request)
		return
	}
	request()
}

// request makes the value that a request of the type is decoded into; nil for what a client does not send.
func request(t native.Type) native.Frame {
	switch t {
	case native.TypeChannelOpen:
		return &native.ChannelOpen{}
	case native.TypeChannelClose:
		return &native.ChannelClose{}
	case native.TypeExchangeDeclare:
		return &native.ExchangeDeclare{}
	case native.TypeExchangeDelete:
		return &native.ExchangeDelete{}
	case native.TypeQueueDeclare:
		return &native.QueueDeclare{}
	case native.TypeQueueDelete:
		return &native.QueueDelete{}
	case native.TypeBind:
		return &native.Bind{}
	case native.TypeUnbind:
		return &native.Unbind{}
	case native.TypeConsume:
		return &native.Consume{}
	case native.TypeAck:
		return &native.Ack{}
	case native.TypeCancel:
		return &native.Cancel{}
	case native.TypeNack:
		return &native.Nack{}
	case native.TypeGet:
		return &native.Get{}
	case native.TypeQos:
		return &native.Qos{}
	case native.TypePurge:
		return &native.Purge{}
	case native.TypeTx:
		return &native.Tx{}
	case native.TypeList:
		return &native.List{}
	case native.TypeClusterStatus:
		return &native.ClusterStatusRequest{}
	case native.TypeVhostPut:
		return &native.VhostPut{}
	case native.TypeVhostDelete:
		return &native.VhostDelete{}
	case native.TypeBodyPart:
		return &native.BodyPart{}
	case native.TypePeek:
		return &native.Peek{}
	case native.TypeMove:
		return &native.Move{}
	case native.TypePolicyPut:
		return &native.PolicyPut{}
	case native.TypePolicyDelete:
		return &native.PolicyDelete{}
	}
	return nil
}

// openChannel opens a channel, and the session with the first one.
func (n *connection) openChannel(head native.Head, bytes int) {
	if n.session == nil {
		if err := n.open(); err != nil {
			n.fail(native.TypeChannelOpen, head, err)
			return
		}
	}
	if c := n.closing[head.Channel]; c != nil {
		delete(n.closing, head.Channel)
		if c.requests.Busy() { // its close is answered first
			n.channels[head.Channel], c.reopened = c, true
			c.requests.Do(bytes, func() { n.reopen(c, head) })
			return
		}
	}
	b, err := n.session.Channel(head.Channel)
	if err != nil {
		n.fail(native.TypeChannelOpen, head, err)
		return
	}
	n.channels[head.Channel] = newChannel(b, n)
	n.ok(native.TypeChannelOpen, head)
}

// reopen opens a channel again on its worker, behind its close.
func (n *connection) reopen(c *channel, head native.Head) {
	b, err := n.session.Channel(head.Channel)
	if err != nil { // what the client has sent behind it was for an open channel
		n.fail(native.TypeChannelOpen, head, err)
		n.out.Close()
		return
	}
	if n.context.Err() != nil {
		b.Close() // the session may have closed its channels before this one came
		return
	}
	c.Channel = b
	n.ok(native.TypeChannelOpen, head)
}

// maxClosing bounds the channels of a connection whose close is not answered yet; at it the socket is not read.
const maxClosing = 256

// retire keeps a channel that is being closed, so that its number can be opened again at once.
func (n *connection) retire(c *channel) {
	if len(n.closing) >= maxClosing {
		for number, old := range n.closing {
			if !old.requests.Busy() {
				delete(n.closing, number)
			}
		}
	}
	if len(n.closing) >= maxClosing {
		for number, old := range n.closing {
			old.requests.Rest()
			delete(n.closing, number)
			break
		}
	}
	n.closing[c.number] = c
}

// noChannel answers a request on a channel that is not open: on a follower none is. The connection lives.
func (n *connection) noChannel(t native.Type, head native.Head) bool {
	if n.session == nil {
		n.fail(t, head, n.server.broker.Refusal())
		return true
	}
	n.reply(t, head, native.ChannelError, "CHANNEL_ERROR - the channel is not open")
	return true
}

func (n *connection) ok(t native.Type, head native.Head) {
	n.send(&native.Reply{Head: head, Of: t})
}

// maxText bounds the text of a refusal, in bytes: it may repeat what the client said.
const maxText = 2048

func (n *connection) reply(t native.Type, head native.Head, code native.Code, text string) {
	n.server.broker.Refused()
	r := native.Reply{Head: head, Code: code, Message: clipTo(text, maxText), Of: t}
	n.out.Append(func(b []byte) []byte { return native.AppendReply(b, &r) })
}

func (n *connection) fail(t native.Type, head native.Head, err error) {
	if n.context.Err() != nil {
		return // nobody is there any more
	}
	e := broker.AsError(err)
	n.reply(t, head, native.Code(e.Code), e.Message)
}

func ranges(list []native.Range) []broker.Range {
	out := make([]broker.Range, len(list))
	for i, r := range list {
		out[i] = broker.Range(r)
	}
	return out
}

// answer serves a request on its channel's worker.
func (n *connection) answer(c *channel, t native.Type, head native.Head, f native.Frame) {
	answer, err := n.perform(n.context, c, head, f)
	switch {
	case err != nil:
		n.fail(t, head, err)
	case answer == sent:
	case answer != nil:
		n.send(answer)
	default:
		n.ok(t, head)
	}
}

// sent stands for a response that was sent already, in front of what had to come after it.
var sent native.Frame = &native.Heartbeat{}

// perform does what a request asks and returns its response, nil for the plain one.
func (n *connection) perform(ctx context.Context, c *channel, head native.Head, f native.Frame) (native.Frame, error) {
	s := n.session
	reply := native.Reply{Head: head, Of: f.FrameType()}
	switch f := f.(type) {
	case *native.ChannelClose:
		c.Close()
		return nil, s.Settled(ctx)
	case *native.ExchangeDeclare:
		if f.Passive {
			return nil, s.ExchangeExists(ctx, f.Name)
		}
		return nil, s.DeclareExchange(ctx, broker.Exchange{Name: f.Name, Kind: f.Kind, Durable: f.Durable, AutoDelete: f.AutoDelete, Internal: f.Internal, Arguments: f.Arguments})
	case *native.ExchangeDelete:
		return nil, s.DeleteExchange(ctx, f.Name, f.IfUnused)
	case *native.QueueDeclare:
		state, err := broker.QueueState{}, error(nil)
		if f.Passive {
			state, err = s.QueueExists(ctx, f.Name)
		} else {
			state, err = s.DeclareQueue(ctx, broker.Queue{Name: f.Name, Durable: f.Durable, Exclusive: f.Exclusive, AutoDelete: f.AutoDelete, Arguments: f.Arguments})
		}
		return &native.QueueDeclareOK{Reply: reply, Name: state.Name, Messages: state.Ready, Consumers: state.Consumers}, err
	case *native.QueueDelete:
		count, err := s.DeleteQueue(ctx, f.Name, f.IfUnused, f.IfEmpty)
		return &native.QueueDeleteOK{Reply: reply, Messages: count}, err
	case *native.Bind:
		return nil, s.Bind(ctx, binding(f.Binding))
	case *native.Unbind:
		return nil, s.Unbind(ctx, binding(f.Binding))
	case *native.Purge:
		count, err := s.Purge(ctx, f.Name)
		return &native.PurgeOK{Reply: reply, Messages: count}, err
	case *native.Qos:
		c.Qos(f.PrefetchCount, f.PerChannel)
		return nil, nil
	case *native.Cancel:
		return nil, c.Cancel(ctx, f.ConsumerTag)
	case *native.VhostPut:
		return nil, s.PutVhost(ctx, f.Name)
	case *native.VhostDelete:
		return nil, s.DeleteVhost(ctx, f.Name)
	case *native.PolicyPut:
		_, err := s.PutPolicy(ctx, fsm.PutPolicy{Operator: f.Operator, Name: f.Name, Pattern: f.Pattern, ApplyTo: f.ApplyTo, Priority: f.Priority, Definition: f.Definition})
		return nil, err
	case *native.PolicyDelete:
		return nil, s.DeletePolicy(ctx, f.Operator, f.Name)
	case *native.Tx:
		return n.commit(ctx, c, f, reply)
	case *native.List:
		return n.list(ctx, f, reply)
	case *native.ClusterStatusRequest:
		status, err := n.server.broker.Status(ctx)
		return &native.ClusterStatusOK{Reply: reply, ClusterStatus: status}, err
	case *native.Consume:
		return sent, c.Consume(ctx, broker.Consumer{Queue: f.Queue, Tag: f.ConsumerTag, AutoAck: f.AutoAck, Exclusive: f.Exclusive}, func(tag string) {
			n.send(&native.ConsumeOK{Reply: reply, ConsumerTag: tag})
		})
	case *native.Get:
		return n.get(ctx, c, f, reply)
	case *native.Peek:
		return n.peek(ctx, f, reply)
	case *native.Move:
		return n.move(ctx, f, reply)
	}
	return nil, &broker.Error{Code: fsm.NotImplemented, Message: "NOT_IMPLEMENTED - " + f.FrameType().String()}
}
