package amqp

import (
	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// The connection as the broker writes to it (broker.Receiver). Nothing here blocks or calls back.
var _ broker.Receiver = (*connection)(nil)

// Deliver writes a delivery.
func (n *connection) Deliver(d broker.Delivery) {
	n.out.Append(func(b []byte) []byte {
		m := d.Message
		deliver := amqp091.BasicDeliver{ConsumerTag: d.ConsumerTag, DeliveryTag: d.Tag, Redelivered: d.Redelivered, Exchange: m.Exchange, RoutingKey: m.RoutingKey}
		b = deliver.AppendFrame(b, uint16(d.Channel))
		return amqp091.AppendContent(b, uint16(d.Channel), properties(&d), m.Body, n.frameMax)
	})
}

// deliveryCount is the field that x-delivery-count becomes, for AppendWithField.
const deliveryCount = "x-delivery-count"

// properties are those of the message, with the number of earlier deliveries if its queue tells it.
func properties(d *broker.Delivery) amqp091.PropertyBytes {
	m := d.Message
	if !d.Quorum || m.DeliveryCount == 0 {
		return m.Properties
	}
	field, err := amqp091.AppendField(nil, deliveryCount, int64(m.DeliveryCount))
	if err != nil { // it cannot be: the name is short and the value a number
		return m.Properties
	}
	return amqp091.PropertyBytes(m.Properties).AppendWithField(nil, field)
}

// Writable reports whether the connection takes more deliveries.
func (n *connection) Writable() bool { return n.out.Writable() }

// Full reports whether the connection takes no more direct replies either.
func (n *connection) Full() bool { return n.out.Full() }

// Cancelled says that the broker ended a consumer.
func (n *connection) Cancelled(gone broker.Cancellation) {
	number := uint16(gone.Channel)
	switch {
	case n.peer.cancelNotify:
		if c := n.find(number); c != nil && !c.holdBack(gone.ConsumerTag) {
			c.send(&amqp091.BasicCancel{ConsumerTag: gone.ConsumerTag, NoWait: true})
		}
	case gone.Cause == broker.AckTimeout:
		n.spawn(func() {
			if c := n.find(number); c != nil {
				c.failLater(amqp091.Errorf(amqp091.PreconditionFailed, 0, "delivery acknowledgement on channel %d timed out. Timeout value used: %d ms. "+
					"This timeout value can be configured, see consumers doc guide to learn more", number, gone.Timeout.Milliseconds()))
			}
		})
	}
}

// holdBack keeps the end of a consumer until the queue.delete that is under way on the channel is answered; false when
// none is.
func (c *channel) holdBack(tag string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deleting {
		c.ended = append(c.ended, tag)
	}
	return c.deleting
}
