package native

import (
	"slices"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/fsm"
	"github.com/warrenmq/warren/protocol/native"
)

// channel is one channel of a connection, and its requests that wait for the log. A client that does not read its
// answers gets no more of them.
type channel struct {
	*broker.Channel // another one once the number was closed and opened again; while requests run, they alone use this
	number          uint32
	connection      *connection
	requests        *broker.Requests
	reopened        bool // a request may not have opened it again yet; only the reader uses this
}

func newChannel(b *broker.Channel, n *connection) *channel {
	return &channel{Channel: b, number: b.ID, connection: n, requests: broker.NewRequests(&n.work, func() { n.out.WaitForRoom(n.context.Done()) })}
}

// Complete answers a publish (broker.Completer); the token is its rid.
func (c *channel) Complete(rid uint64, r fsm.Result) {
	ok := native.PublishOK{Reply: native.Reply{Head: native.Head{RID: rid, Channel: c.number}, Code: native.Code(r.Code), Message: r.Message, Of: native.TypePublish},
		Routed: r.Routed, Duplicate: r.Duplicate}
	c.connection.out.Append(func(b []byte) []byte { return native.AppendPublishOK(b, &ok) })
}

// mandatory answers a publish that wants to be returned when it reached no queue.
type mandatory struct {
	channel *channel
	publish native.Publish
}

func (m *mandatory) Complete(rid uint64, r fsm.Result) {
	if r.Code == fsm.OK && r.Routed == 0 {
		m.channel.connection.server.broker.Returned()
		m.channel.connection.giveBack(&native.Return{Head: native.Head{RID: rid, Channel: m.channel.number}, Exchange: m.publish.Exchange,
			RoutingKey: m.publish.RoutingKey, Properties: m.publish.Properties, Body: m.publish.Body, Upload: m.publish.Upload})
	}
	m.channel.Complete(rid, r)
}

// simple answers requests of a type whose response has nothing of its own.
type simple struct {
	channel *channel
	of      native.Type
}

func (s simple) Complete(rid uint64, r fsm.Result) {
	reply := native.Reply{Head: native.Head{RID: rid, Channel: s.channel.number}, Code: native.Code(r.Code), Message: r.Message, Of: s.of}
	s.channel.connection.out.Append(func(b []byte) []byte { return native.AppendReply(b, &reply) })
}

// publishes are what the reader has read of one channel and not handed on yet.
type publishes struct {
	channel *channel
	list    []broker.Publication
	bytes   int // of their payloads
}

// maxPending is how many publishes the reader collects before it hands them on.
const maxPending = 256

// publish collects a publish, or sends it behind what the channel waits for; bytes are its payload's. One that is
// refused by itself leaves those around it alone.
func (n *connection) publish(c *channel, p *native.Publish, bytes int) {
	if err := checkPublish(p.Exchange, p.RoutingKey, p.Properties, p.Body); err != nil {
		n.fail(native.TypePublish, p.Head, err)
		return
	}
	m := broker.Publication{Exchange: p.Exchange, RoutingKey: p.RoutingKey, Properties: p.Properties, Body: p.Body, Upload: p.Upload,
		Producer: p.Producer, Sequence: p.Sequence, Token: p.RID}
	if p.Mandatory || c.requests.Busy() {
		n.flush()
		var done broker.Completer = c
		if p.Mandatory {
			done = &mandatory{c, *p}
		}
		n.hand(c, bytes, []broker.Publication{m}, done)
		return
	}
	if n.pending.channel != c {
		n.flush()
		n.pending.channel = c
	}
	n.pending.list = append(n.pending.list, m)
	n.pending.bytes += bytes
	if len(n.pending.list) >= maxPending {
		n.flush()
	}
}

// flush hands on what publish collected.
func (n *connection) flush() {
	if len(n.pending.list) == 0 {
		return
	}
	n.hand(n.pending.channel, n.pending.bytes, n.pending.list, n.pending.channel)
	clear(n.pending.list)
	n.pending.list, n.pending.bytes = n.pending.list[:0], 0
}

// hand submits publishes now, or on the channel's worker when something is in front of them or the node holds publishes
// up: the reader must go on to the acknowledgements behind them. The list is the caller's again when it returns.
func (n *connection) hand(c *channel, bytes int, list []broker.Publication, done broker.Completer) {
	if c.requests.Busy() || n.session.HeldUp() {
		list = slices.Clone(list)
		c.requests.Do(bytes, func() { n.submit(c, list, done) })
		return
	}
	n.submit(c, list, done)
}

func (n *connection) submit(c *channel, list []broker.Publication, done broker.Completer) {
	if err := n.session.Publish(n.context, list, done); err != nil {
		e := broker.AsError(err)
		for i := range list {
			done.Complete(list[i].Token, fsm.Result{Code: e.Code, Message: e.Message})
		}
	}
}

// Writable reports whether the connection takes more deliveries (broker.Receiver).
func (n *connection) Writable() bool { return n.out.Writable() }

// Full reports whether the connection takes no replies either (broker.Receiver).
func (n *connection) Full() bool { return n.out.Full() }

// Cancelled says that the broker ended a consumer (broker.Receiver).
func (n *connection) Cancelled(c broker.Cancellation) {
	n.send(&native.Cancel{Head: native.Head{Channel: c.Channel}, ConsumerTag: c.ConsumerTag})
}
