package client

import (
	"context"
	"fmt"

	"github.com/warrenmq/warren/protocol/native"
)

// Tx gathers publishes and settlements that take effect as one, all or none, when it is committed. Not safe for
// concurrent use.
type Tx struct {
	ch    *Channel
	ops   []native.Operation
	epoch uint64 // of its deliveries; 0 when it has none
	err   error
}

// Tx begins a transaction; nothing is sent before Commit.
func (ch *Channel) Tx() *Tx { return &Tx{ch: ch} }

// Publish adds a publish. m.Body must stay as it is until Commit returns.
func (t *Tx) Publish(exchange, key string, m Message) {
	properties, err := m.properties(nil)
	if err != nil && t.err == nil {
		t.err = err
	}
	t.ops = append(t.ops, native.Operation{Kind: native.TypePublish, Exchange: exchange, RoutingKey: key, Properties: properties,
		Body: m.Body, Mandatory: m.Mandatory})
}

// Ack adds an acknowledgement of a delivery of the same channel.
func (t *Tx) Ack(d *Delivery) { t.settle(d, native.Operation{Kind: native.TypeAck}) }

// Nack adds a giving back of a delivery of the same channel.
func (t *Tx) Nack(d *Delivery, back bool) {
	t.settle(d, native.Operation{Kind: native.TypeNack, Requeue: back})
}

func (t *Tx) settle(d *Delivery, op native.Operation) {
	if t.err == nil && d.ch != t.ch {
		t.err = fmt.Errorf("%w: delivery %d belongs to another channel", ErrPreconditionFailed, d.DeliveryTag)
	}
	if t.epoch != 0 && t.epoch != d.epoch && t.err == nil {
		t.err = ErrStaleDelivery
	}
	t.epoch = d.epoch
	op.Ranges = []native.Range{{From: d.DeliveryTag, To: d.DeliveryTag}}
	t.ops = append(t.ops, op)
}

// maxTxInline is how many bytes of bodies go in a transaction's frame; the others go ahead in parts.
const maxTxInline = 8 << 20

// Commit commits and returns the queues reached by each publish, in order. It is never sent twice: when the
// connection is lost before the answer, the error is ErrOutcomeUnknown.
func (t *Tx) Commit(ctx context.Context) ([]uint32, error) {
	if t.err != nil {
		return nil, t.err
	}
	if len(t.ops) > native.MaxTxOperations {
		return nil, fmt.Errorf("%w: transaction of %d operations, at most %d are allowed", ErrPreconditionFailed, len(t.ops), native.MaxTxOperations)
	}
	c := t.ch.conn
	var ok native.TxOK
	k := &call{answer: &ok, once: true}
	err := c.doBytes(ctx, k, func(b []byte, rid uint64) []byte {
		if t.ch.closed {
			k.err = ErrClosed
			return nil
		}
		if t.epoch != 0 && (c.ready == nil || c.ready.epoch != t.epoch) {
			k.err = ErrStaleDelivery
			return nil
		}
		inline := 0
		for i := range t.ops {
			op := &t.ops[i]
			if inline += len(op.Body); len(op.Body) > native.MaxInlineBody || len(op.Body) > 0 && inline > maxTxInline {
				inline -= len(op.Body)
				b = c.appendParts(b, t.ch.number, op.Body, &op.Upload)
			}
		}
		parts := len(b)
		b = native.Append(b, &native.Tx{Head: t.ch.head(rid), Operations: t.ops})
		if size := len(b) - parts - native.HeaderBytes; size > native.DefaultFrameMax {
			k.err = fmt.Errorf("%w: a transaction of %d bytes besides the bodies, at most %d fit a frame", ErrContentTooLarge, size-inline, native.DefaultFrameMax-inline)
			return nil
		}
		return b
	})
	return ok.Routed, err
}
