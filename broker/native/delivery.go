package native

import (
	"fmt"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/protocol/native"
)

// Bytes of a frame beside the texts, properties and body in it: at most so many.
const (
	deliveryOverhead = 128 // of a deliver, a get response or a return
	partOverhead     = 64  // of a body part
)

// Deliver writes a delivery (broker.Receiver).
func (n *connection) Deliver(d broker.Delivery) {
	f := native.Deliver{Head: native.Head{Channel: d.Channel}, Delivery: delivery(&d)}
	n.deliver(f.Head, &f.Delivery, func(b []byte) []byte { return native.AppendDeliver(b, &f) })
}

func delivery(d *broker.Delivery) native.Delivery {
	return native.Delivery{ConsumerTag: d.ConsumerTag, DeliveryTag: d.Tag, Redelivered: d.Redelivered, Exchange: d.Message.Exchange,
		RoutingKey: d.Message.RoutingKey, Queue: d.Queue, Properties: d.Message.Properties, Body: d.Message.Body}
}

// deliver writes the frame of a delivery, and its body in parts in front of it when they do not go together. A message
// that does not fit into the client's frames even so ends the connection: it stays for another client.
func (n *connection) deliver(head native.Head, d *native.Delivery, frame func([]byte) []byte) {
	around := len(d.ConsumerTag) + len(d.Exchange) + len(d.RoutingKey) + len(d.Queue) + len(d.Properties)
	if around+deliveryOverhead > n.frameMax {
		n.unfit(fmt.Sprintf("a message of queue '%s' has %d bytes of properties", clip(d.Queue), len(d.Properties)))
		return
	}
	n.out.Append(func(b []byte) []byte { return frame(n.body(b, head, around, &d.Body, &d.Upload)) })
}

// giveBack returns a mandatory message that reached no queue. The publisher has the parts of a body that it sent in parts.
func (n *connection) giveBack(f *native.Return) {
	f.Code, f.Text = native.NoRoute, "NO_ROUTE"
	around := len(f.Exchange) + len(f.RoutingKey) + len(f.Properties)
	if around+deliveryOverhead > n.frameMax {
		n.unfit(fmt.Sprintf("a message to be returned has %d bytes of properties", len(f.Properties)))
		return
	}
	n.out.Append(func(b []byte) []byte { return native.Append(n.body(b, f.Head, around, &f.Body, &f.Upload), f) })
}

// body appends a body in parts and puts their upload number in its place, unless it can stay in the frame, which has
// so many bytes around it.
func (n *connection) body(b []byte, head native.Head, around int, body *[]byte, upload *uint64) []byte {
	whole := *body
	if len(whole) <= min(native.MaxInlineBody, n.frameMax-around-deliveryOverhead) {
		return b
	}
	*body, *upload = nil, 1<<63|n.uploads.Add(1) // the client's own numbers are not used
	size := min(native.PartBytes, n.frameMax-partOverhead)
	for at := 0; at < len(whole); at += size {
		part := native.BodyPart{Head: native.Head{Channel: head.Channel}, Upload: *upload, Offset: uint64(at), Total: uint64(len(whole)), Bytes: whole[at:min(at+size, len(whole))]}
		b = native.Append(b, &part)
	}
	return b
}

func (n *connection) unfit(what string) {
	n.send(&native.Reply{Code: native.FrameError, Of: native.TypeDeliver,
		Message: fmt.Sprintf("FRAME_ERROR - %s, and this connection agreed on frames of at most %d bytes: ask for more in hello", what, n.frameMax)})
	n.out.Close()
}
