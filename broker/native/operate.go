package native

import (
	"context"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/protocol/native"
)

// peekOverhead is how many bytes a peek's row has at most beside its texts, properties and body.
const peekOverhead = 256

func filter(f native.Filter) broker.Filter {
	out := broker.Filter{Key: f.Key}
	for _, h := range f.Headers {
		out.Headers = append(out.Headers, broker.HeaderFilter(h))
	}
	return out
}

// peek answers with as many messages as fit into a frame.
func (n *connection) peek(ctx context.Context, f *native.Peek, reply native.Reply) (native.Frame, error) {
	room := n.frameMax - 2*peekOverhead
	got, err := n.session.Peek(ctx, broker.Peek{Queue: f.Queue, Filter: filter(f.Filter), From: f.From, Skip: f.Skip, Limit: f.Limit,
		Truncate: min(f.Truncate, uint32(room/2)), Room: room / 2})
	if err != nil {
		return nil, err
	}
	answer := &native.PeekOK{Reply: reply, Skipped: got.Skipped, Next: got.Next}
	for i := range got.Messages {
		m := &got.Messages[i]
		row := peekRow(m)
		if len(row.Properties)+len(row.Body)+4*256+peekOverhead > room { // it is alone, and has large properties
			row.Properties, row.Cut = nil, true
		}
		raw := native.AppendRow(nil, row)
		if room -= len(raw); room < 0 { // those who hold them have long names
			answer.Next = m.Sequence
			break
		}
		answer.Rows = append(answer.Rows, raw)
	}
	return answer, nil
}

func peekRow(m *broker.PeekedMessage) *native.PeekRow {
	row := &native.PeekRow{Sequence: m.Sequence, ID: m.ID, State: uint8(m.State), Deliveries: m.DeliveryCount, Redeliver: m.Redelivered, Deaths: m.Died(),
		Expires: uint64(max(m.Expires, -m.Expires)), Priority: m.Priority, Exchange: m.Exchange, RoutingKey: m.RoutingKey, Properties: m.Properties,
		Body: m.Body, BodyBytes: uint64(m.BodyBytes)}
	if m.Dying {
		row.Reason = m.Reason.String()
	}
	if h := m.Holder; h != nil {
		row.Connection, row.Client, row.Peer, row.Channel = h.Connection, clip(h.Client.Name), h.Client.Peer, h.Channel
		row.Consumer, row.Since = h.ConsumerTag, uint64(h.Since)
	}
	return row
}

// move does a part of a move.
func (n *connection) move(ctx context.Context, f *native.Move, reply native.Reply) (native.Frame, error) {
	got, err := n.session.Move(ctx, broker.Move{Queue: f.Queue, Filter: filter(f.Filter), Target: broker.Target(f.Target), To: f.To, Key: f.RoutingKey,
		Restore: f.Restore, From: f.From, Upto: f.Upto, Limit: f.Limit, DryRun: f.DryRun})
	if err != nil {
		return nil, err
	}
	return &native.MoveOK{Reply: reply, Matched: got.Matched, Moved: got.Moved, Occupied: got.Held, Kept: got.Kept, Reason: clipTo(got.Reason, maxText),
		Next: got.Next, Upto: got.Upto}, nil
}
