package native

import (
	"context"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/fsm"
	"github.com/warrenmq/warren/protocol/native"
)

func binding(b native.Binding) broker.Binding {
	return broker.Binding{Kind: fsm.DestinationKind(b.DestinationKind), Destination: b.Destination, Source: b.Exchange, Key: b.BindingKey, Arguments: b.Arguments}
}

// get answers with a message, or with Found false.
func (n *connection) get(ctx context.Context, c *channel, f *native.Get, reply native.Reply) (native.Frame, error) {
	if err := n.session.Settled(ctx); err != nil {
		return nil, err
	}
	found, err := c.Get(ctx, f.Queue, f.AutoAck, func(d *broker.Delivery, _ uint64) {
		ok := native.GetOK{Reply: reply, Found: true, Delivery: delivery(d)}
		n.deliver(reply.Head, &ok.Delivery, func(b []byte) []byte { return native.Append(b, &ok) })
	})
	if err == nil && !found {
		return &native.GetOK{Reply: reply}, nil
	}
	return sent, err
}

// commit applies a transaction and returns what its mandatory publishes did not reach.
func (n *connection) commit(ctx context.Context, c *channel, f *native.Tx, reply native.Reply) (native.Frame, error) {
	operations := make([]broker.Operation, len(f.Operations))
	for i := range f.Operations {
		o, to := &f.Operations[i], &operations[i]
		switch o.Kind {
		case native.TypePublish:
			to.Publication = broker.Publication{Exchange: o.Exchange, RoutingKey: o.RoutingKey, Properties: o.Properties, Body: o.Body, Upload: o.Upload}
		case native.TypeAck:
			to.Settle, to.Kind, to.Ranges = true, fsm.Acknowledge, ranges(o.Ranges)
		default:
			to.Settle, to.Kind, to.Ranges = true, fsm.Reject, ranges(o.Ranges)
			if o.Requeue {
				to.Kind = fsm.Return
			}
		}
	}
	r, err := c.Commit(ctx, operations)
	if err != nil {
		return nil, err
	}
	answer := &native.TxOK{Reply: reply}
	for i := range f.Operations {
		o := &f.Operations[i]
		if o.Kind != native.TypePublish {
			continue
		}
		routed := r.Parts[i].Routed
		answer.Routed = append(answer.Routed, routed)
		if o.Mandatory && routed == 0 {
			n.server.broker.Returned()
			n.giveBack(&native.Return{Head: reply.Head, Exchange: o.Exchange, RoutingKey: o.RoutingKey, Properties: o.Properties,
				Body: o.Body, Upload: o.Upload})
		}
	}
	return answer, nil
}

// list answers with a page of rows.
func (n *connection) list(ctx context.Context, f *native.List, reply native.Reply) (native.Frame, error) {
	rows, err := n.rows(ctx, f)
	if err != nil {
		return nil, err
	}
	size, page := int(f.PageSize), max(int(f.Page), 1)
	if size == 0 || size > native.MaxRows {
		size = native.MaxRows
	}
	answer := &native.ListOK{Reply: reply, Total: uint64(len(rows))}
	from := min((page-1)*size, len(rows))
	bytes := 0
	for _, row := range rows[from:min(from+size, len(rows))] {
		raw := native.AppendRow(nil, row)
		if bytes += len(raw) + 5; bytes+deliveryOverhead > n.frameMax {
			return nil, refusal(native.PreconditionFailed, "PRECONDITION_FAILED - the page is too large for a frame of %d bytes; ask for a smaller page size, or for larger frames in hello", n.frameMax)
		}
		answer.Rows = append(answer.Rows, raw)
	}
	return answer, nil
}

func (n *connection) rows(ctx context.Context, f *native.List) (rows []native.Row, err error) {
	s := n.session
	vhost := s.Vhost.Name
	switch f.Kind {
	case native.ListVhosts:
		list, err := s.Vhosts(ctx, f.Name)
		for _, v := range list {
			row := &native.VhostRow{Name: v.Name}
			for _, q := range s.QueuesOf(v) {
				row.Queues++
				row.Messages += q.Messages
			}
			rows = append(rows, row)
		}
		return rows, err
	case native.ListExchanges:
		list, err := s.Exchanges(ctx, f.Name)
		for _, e := range list {
			rows = append(rows, &native.ExchangeRow{Vhost: vhost, Name: e.Name, Kind: e.Type, Durable: e.Durable, AutoDelete: e.AutoDelete, Internal: e.Internal, Arguments: e.Arguments})
		}
		return rows, err
	case native.ListQueues:
		list, err := s.Queues(ctx, f.Name)
		for _, q := range list {
			held := min(q.Held, q.Messages)
			rows = append(rows, &native.QueueRow{Vhost: vhost, Name: q.Name, Durable: q.Durable, Exclusive: q.Exclusive, AutoDelete: q.AutoDelete, Arguments: q.Arguments,
				Messages: q.Messages, Ready: q.Messages - held, Unacknowledged: held, MessageBytes: q.MessageBytes, Consumers: uint32(q.Consumers)})
		}
		return rows, err
	case native.ListBindings:
		list, err := s.Bindings(ctx, f.Name)
		for _, b := range list {
			rows = append(rows, &native.BindingRow{Vhost: vhost, Source: b.Source, DestinationKind: uint8(b.Kind), Destination: b.Destination, BindingKey: b.Key, Arguments: b.Arguments})
		}
		return rows, err
	case native.ListConsumers:
		for _, c := range s.Consumers(f.Name) {
			rows = append(rows, &native.ConsumerRow{Vhost: vhost, Queue: c.Queue, ConsumerTag: c.Tag, Connection: c.Session, Channel: c.Channel,
				AutoAck: c.AutoAck, Exclusive: c.Exclusive, Prefetch: c.Prefetch, Unacknowledged: uint64(c.Unacked)})
		}
		return rows, nil
	case native.ListPolicies, native.ListOperator:
		list, err := s.Policies(ctx, f.Kind == native.ListOperator, f.Name)
		for _, p := range list {
			rows = append(rows, &native.PolicyRow{Vhost: vhost, Name: p.Name, Pattern: p.Pattern, ApplyTo: p.ApplyTo, Priority: p.Priority, Definition: p.Definition})
		}
		return rows, err
	case native.ListConnections:
		for _, c := range s.Connections(f.Name) {
			rows = append(rows, &native.ConnectionRow{ID: c.Name, ClientName: c.Client.Name, Peer: c.Client.Peer, Vhost: c.Vhost, User: c.Client.User,
				Protocol: c.Client.Protocol, Channels: uint32(c.Channels), ConnectedAt: uint64(c.Connected)})
		}
		return rows, nil
	}
	return nil, &broker.Error{Code: fsm.PreconditionFailed, Message: "PRECONDITION_FAILED - there is no list of '" + clip(f.Kind) +
		"'; there are vhosts, exchanges, queues, bindings, consumers, connections, policies and operator policies"}
}
