// Package native is the wire format of Warren's own protocol: frames and their typed contents, bytes to values and
// back. It holds no state and knows no sockets.
//
// A frame is a type and a length, both uint32 and big-endian, and a payload: one msgpack array whose elements are a
// struct's fields in order. Elements that this side does not know are passed over and missing ones are zero, so that
// either side can grow.
//
// Each frame has one description, its fields method, which serves encoding and decoding alike. Byte slices that
// Decode sets alias the payload; Reader never writes to a payload again after it has handed it out, so they may be
// kept as long as wanted (at the price of the chunk they lie in) and must not be changed. Strings are copies.
package native

import (
	"encoding/binary"
	"fmt"
)

// Type says what a frame is. Numbers are written by hand and never reused.
type Type uint32

// The frame types.
const (
	TypeChannelOpen     Type = 0x01
	TypeChannelClose    Type = 0x02
	TypeExchangeDeclare Type = 0x03
	TypeExchangeDelete  Type = 0x04
	TypeQueueDeclare    Type = 0x05
	TypeQueueDelete     Type = 0x06
	TypeBind            Type = 0x07
	TypeUnbind          Type = 0x08
	TypePublish         Type = 0x09
	TypeConsume         Type = 0x0a
	TypeAck             Type = 0x0b
	TypeDeliver         Type = 0x0c // push
	TypeCancel          Type = 0x0d // request and push
	TypeNack            Type = 0x0e
	TypeGet             Type = 0x0f
	TypeQos             Type = 0x10
	TypeRedirect        Type = 0x11 // push
	TypeHello           Type = 0x12
	TypeHeartbeat       Type = 0x13 // both ways, never answered
	TypePurge           Type = 0x14
	TypeReturn          Type = 0x15 // push
	TypeFlow            Type = 0x16 // push
	TypeTx              Type = 0x17
	TypeList            Type = 0x18
	TypeClusterStatus   Type = 0x19
	TypeVhostPut        Type = 0x1a
	TypeVhostDelete     Type = 0x1b
	TypeBodyPart        Type = 0x1c // request and push
	TypePeek            Type = 0x1d
	TypeMove            Type = 0x1e
	TypePolicyPut       Type = 0x1f
	TypePolicyDelete    Type = 0x20

	// ResponseBit marks the answer to a request of the type without it.
	ResponseBit Type = 0x8000_0000
)

// IsResponse reports whether the frame answers a request, and Request is the type of that request.
func (t Type) IsResponse() bool { return t&ResponseBit != 0 }

// Request returns the type without the response bit.
func (t Type) Request() Type { return t &^ ResponseBit }

// Response returns the type of the answer to a request of type t.
func (t Type) Response() Type { return t | ResponseBit }

var typeNames = [...]string{
	TypeChannelOpen: "channel.open", TypeChannelClose: "channel.close",
	TypeExchangeDeclare: "exchange.declare", TypeExchangeDelete: "exchange.delete",
	TypeQueueDeclare: "queue.declare", TypeQueueDelete: "queue.delete", TypeBind: "bind", TypeUnbind: "unbind",
	TypePublish: "basic.publish", TypeConsume: "basic.consume", TypeAck: "basic.ack", TypeDeliver: "basic.deliver",
	TypeCancel: "basic.cancel", TypeNack: "basic.nack", TypeGet: "basic.get", TypeQos: "basic.qos",
	TypeRedirect: "redirect", TypeHello: "hello", TypeHeartbeat: "heartbeat", TypePurge: "queue.purge",
	TypeReturn: "basic.return", TypeFlow: "flow", TypeTx: "tx", TypeList: "list",
	TypeClusterStatus: "cluster status", TypeVhostPut: "vhost put", TypeVhostDelete: "vhost delete",
	TypeBodyPart: "body part", TypePeek: "peek", TypeMove: "move",
	TypePolicyPut: "policy put", TypePolicyDelete: "policy delete",
}

// String names the type as the protocol page does.
func (t Type) String() string {
	name := ""
	if r := t.Request(); int64(r) < int64(len(typeNames)) {
		name = typeNames[r]
	}
	if name == "" {
		return fmt.Sprintf("frame type 0x%x", uint32(t))
	}
	if t.IsResponse() {
		return name + " response"
	}
	return name
}

// Sizes and bounds, in bytes where nothing else is said.
const (
	HeaderBytes     = 8               // of a frame, in front of its payload
	DefaultFrameMax = 16<<20 + 64<<10 // payload length that both sides accept unless hello lowers it
	MinFrameMax     = 64 << 10        // the lowest that hello may agree on
	MaxInlineBody   = 1 << 20         // a larger body travels in parts, and so does one that its frame has no room for
	PartBytes       = 256 << 10       // of a body part, as this side cuts them, or fewer for smaller frames
	MaxRanges       = 65_536          // delivery tag ranges in one frame
	MaxTxOperations = 65_536          // in one tx
	MaxRows         = 10_000          // in one list response
	MaxFilters      = 64              // headers that a filter names
	MaxMembers      = 1_024           // in a redirect, a hello response or a cluster status
	ProtocolVersion = 1               // what hello says
)

// Head begins every payload. RID names a request among those in flight, chosen by the client; a response repeats
// it, a push carries 0 (a return carries the RID of its publish).
type Head struct {
	RID     uint64
	Channel uint32
}

func (h *Head) fields(c *codec) {
	c.uint64(&h.RID)
	c.uint32(&h.Channel)
}

// Frame is a frame's typed content: a pointer to one of this package's structs.
type Frame interface {
	FrameType() Type
	fields(c *codec)
}

// Append appends the whole frame, header and payload, to b.
func Append(b []byte, f Frame) []byte {
	b, at := appendHeader(b, f.FrameType())
	c := codec{b: b, encoding: true}
	f.fields(&c)
	return patchLength(c.b, at)
}

// Decode sets f from a payload. The error says what is wrong where; f is then partly set.
func Decode(payload []byte, f Frame) error {
	c := codec{b: payload}
	f.fields(&c)
	return c.finish(f.FrameType())
}

func appendHeader(b []byte, t Type) ([]byte, int) {
	at := len(b)
	return binary.BigEndian.AppendUint64(b, uint64(t)<<32), at
}

func patchLength(b []byte, at int) []byte {
	binary.BigEndian.PutUint32(b[at+4:], uint32(len(b)-at-HeaderBytes))
	return b
}

// PeekHead reads the request id and channel that begin a payload, and skips nothing: it is for answering a frame
// whose rest cannot be decoded.
func PeekHead(payload []byte) (Head, error) {
	var h headOnly
	err := Decode(payload, &h)
	return h.Head, err
}

type headOnly struct{ Head }

func (h *headOnly) FrameType() Type { return 0 }
func (h *headOnly) fields(c *codec) {
	c.begin(2)
	h.Head.fields(c)
	c.end()
}
