// Code generated from methods.txt by go generate; DO NOT EDIT.

package amqp091

// BasicQos is basic.qos (60.10), sent by the client.
type BasicQos struct {
	PrefetchSize  uint32
	PrefetchCount uint16
	Global        bool
}

// ID returns BasicQosID.
func (*BasicQos) ID() MethodID { return BasicQosID }

// Decode implements Method.
func (m *BasicQos) Decode(args []byte) error {
	a := arguments{b: args}
	m.PrefetchSize = a.u32()
	m.PrefetchCount = a.u16()
	bits := a.u8()
	m.Global = bits&1 != 0
	return a.end(BasicQosID)
}

// Append implements Method.
func (m *BasicQos) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(BasicQosID))
	dst = be.AppendUint32(dst, m.PrefetchSize)
	dst = be.AppendUint16(dst, m.PrefetchCount)
	dst = append(dst, bit(m.Global, 0))
	return dst
}

// AppendFrame implements Method.
func (m *BasicQos) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// BasicQosOk is basic.qos-ok (60.11), sent by the server.
type BasicQosOk struct{}

// ID returns BasicQosOkID.
func (*BasicQosOk) ID() MethodID { return BasicQosOkID }

// Decode implements Method.
func (m *BasicQosOk) Decode(args []byte) error {
	a := arguments{b: args}
	return a.end(BasicQosOkID)
}

// Append implements Method.
func (m *BasicQosOk) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(BasicQosOkID))
	return dst
}

// AppendFrame implements Method.
func (m *BasicQosOk) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// BasicConsume is basic.consume (60.20), sent by the client.
type BasicConsume struct {
	Queue       string
	ConsumerTag string
	NoLocal     bool
	NoAck       bool
	Exclusive   bool
	NoWait      bool
	Arguments   Table
}

// ID returns BasicConsumeID.
func (*BasicConsume) ID() MethodID { return BasicConsumeID }

// Decode implements Method.
func (m *BasicConsume) Decode(args []byte) error {
	a := arguments{b: args}
	a.u16()
	m.Queue = a.short()
	m.ConsumerTag = a.short()
	bits := a.u8()
	m.NoLocal = bits&1 != 0
	m.NoAck = bits&2 != 0
	m.Exclusive = bits&4 != 0
	m.NoWait = bits&8 != 0
	m.Arguments = a.table()
	return a.end(BasicConsumeID)
}

// Append implements Method.
func (m *BasicConsume) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(BasicConsumeID))
	dst = append(dst, 0, 0)
	dst = appendShort(dst, m.Queue)
	dst = appendShort(dst, m.ConsumerTag)
	dst = append(dst, bit(m.NoLocal, 0)|bit(m.NoAck, 1)|bit(m.Exclusive, 2)|bit(m.NoWait, 3))
	dst = appendLong(dst, m.Arguments)
	return dst
}

// AppendFrame implements Method.
func (m *BasicConsume) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// BasicConsumeOk is basic.consume-ok (60.21), sent by the server.
type BasicConsumeOk struct {
	ConsumerTag string
}

// ID returns BasicConsumeOkID.
func (*BasicConsumeOk) ID() MethodID { return BasicConsumeOkID }

// Decode implements Method.
func (m *BasicConsumeOk) Decode(args []byte) error {
	a := arguments{b: args}
	m.ConsumerTag = a.short()
	return a.end(BasicConsumeOkID)
}

// Append implements Method.
func (m *BasicConsumeOk) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(BasicConsumeOkID))
	dst = appendShort(dst, m.ConsumerTag)
	return dst
}

// AppendFrame implements Method.
func (m *BasicConsumeOk) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// BasicCancel is basic.cancel (60.30), sent by either side.
type BasicCancel struct {
	ConsumerTag string
	NoWait      bool
}

// ID returns BasicCancelID.
func (*BasicCancel) ID() MethodID { return BasicCancelID }

// Decode implements Method.
func (m *BasicCancel) Decode(args []byte) error {
	a := arguments{b: args}
	m.ConsumerTag = a.short()
	bits := a.u8()
	m.NoWait = bits&1 != 0
	return a.end(BasicCancelID)
}

// Append implements Method.
func (m *BasicCancel) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(BasicCancelID))
	dst = appendShort(dst, m.ConsumerTag)
	dst = append(dst, bit(m.NoWait, 0))
	return dst
}

// AppendFrame implements Method.
func (m *BasicCancel) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// BasicCancelOk is basic.cancel-ok (60.31), sent by either side.
type BasicCancelOk struct {
	ConsumerTag string
}

// ID returns BasicCancelOkID.
func (*BasicCancelOk) ID() MethodID { return BasicCancelOkID }

// Decode implements Method.
func (m *BasicCancelOk) Decode(args []byte) error {
	a := arguments{b: args}
	m.ConsumerTag = a.short()
	return a.end(BasicCancelOkID)
}

// Append implements Method.
func (m *BasicCancelOk) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(BasicCancelOkID))
	dst = appendShort(dst, m.ConsumerTag)
	return dst
}

// AppendFrame implements Method.
func (m *BasicCancelOk) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// BasicPublish is basic.publish (60.40), sent by the client, with content. Exchange and routing key alias the frame.
type BasicPublish struct {
	Exchange   []byte
	RoutingKey []byte
	Mandatory  bool
	Immediate  bool
}

// ID returns BasicPublishID.
func (*BasicPublish) ID() MethodID { return BasicPublishID }

// Decode implements Method.
func (m *BasicPublish) Decode(args []byte) error {
	a := arguments{b: args}
	a.u16()
	m.Exchange = a.raw()
	m.RoutingKey = a.raw()
	bits := a.u8()
	m.Mandatory = bits&1 != 0
	m.Immediate = bits&2 != 0
	return a.end(BasicPublishID)
}

// Append implements Method.
func (m *BasicPublish) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(BasicPublishID))
	dst = append(dst, 0, 0)
	dst = appendShort(dst, m.Exchange)
	dst = appendShort(dst, m.RoutingKey)
	dst = append(dst, bit(m.Mandatory, 0)|bit(m.Immediate, 1))
	return dst
}

// AppendFrame implements Method.
func (m *BasicPublish) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// BasicReturn is basic.return (60.50), sent by the server, with content.
type BasicReturn struct {
	ReplyCode  uint16
	ReplyText  string
	Exchange   string
	RoutingKey string
}

// ID returns BasicReturnID.
func (*BasicReturn) ID() MethodID { return BasicReturnID }

// Decode implements Method.
func (m *BasicReturn) Decode(args []byte) error {
	a := arguments{b: args}
	m.ReplyCode = a.u16()
	m.ReplyText = string(a.raw())
	m.Exchange = string(a.raw())
	m.RoutingKey = string(a.raw())
	return a.end(BasicReturnID)
}

// Append implements Method.
func (m *BasicReturn) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(BasicReturnID))
	dst = be.AppendUint16(dst, m.ReplyCode)
	dst = appendShort(dst, m.ReplyText)
	dst = appendShort(dst, m.Exchange)
	dst = appendShort(dst, m.RoutingKey)
	return dst
}

// AppendFrame implements Method.
func (m *BasicReturn) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// BasicDeliver is basic.deliver (60.60), sent by the server, with content.
type BasicDeliver struct {
	ConsumerTag string
	DeliveryTag uint64
	Redelivered bool
	Exchange    string
	RoutingKey  string
}

// ID returns BasicDeliverID.
func (*BasicDeliver) ID() MethodID { return BasicDeliverID }

// Decode implements Method.
func (m *BasicDeliver) Decode(args []byte) error {
	a := arguments{b: args}
	m.ConsumerTag = string(a.raw())
	m.DeliveryTag = a.u64()
	bits := a.u8()
	m.Redelivered = bits&1 != 0
	m.Exchange = string(a.raw())
	m.RoutingKey = string(a.raw())
	return a.end(BasicDeliverID)
}

// Append implements Method.
func (m *BasicDeliver) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(BasicDeliverID))
	dst = appendShort(dst, m.ConsumerTag)
	dst = be.AppendUint64(dst, m.DeliveryTag)
	dst = append(dst, bit(m.Redelivered, 0))
	dst = appendShort(dst, m.Exchange)
	dst = appendShort(dst, m.RoutingKey)
	return dst
}

// AppendFrame implements Method.
func (m *BasicDeliver) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// BasicGet is basic.get (60.70), sent by the client.
type BasicGet struct {
	Queue string
	NoAck bool
}

// ID returns BasicGetID.
func (*BasicGet) ID() MethodID { return BasicGetID }

// Decode implements Method.
func (m *BasicGet) Decode(args []byte) error {
	a := arguments{b: args}
	a.u16()
	m.Queue = a.short()
	bits := a.u8()
	m.NoAck = bits&1 != 0
	return a.end(BasicGetID)
}

// Append implements Method.
func (m *BasicGet) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(BasicGetID))
	dst = append(dst, 0, 0)
	dst = appendShort(dst, m.Queue)
	dst = append(dst, bit(m.NoAck, 0))
	return dst
}

// AppendFrame implements Method.
func (m *BasicGet) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// BasicGetOk is basic.get-ok (60.71), sent by the server, with content.
type BasicGetOk struct {
	DeliveryTag  uint64
	Redelivered  bool
	Exchange     string
	RoutingKey   string
	MessageCount uint32
}

// ID returns BasicGetOkID.
func (*BasicGetOk) ID() MethodID { return BasicGetOkID }

// Decode implements Method.
func (m *BasicGetOk) Decode(args []byte) error {
	a := arguments{b: args}
	m.DeliveryTag = a.u64()
	bits := a.u8()
	m.Redelivered = bits&1 != 0
	m.Exchange = string(a.raw())
	m.RoutingKey = string(a.raw())
	m.MessageCount = a.u32()
	return a.end(BasicGetOkID)
}

// Append implements Method.
func (m *BasicGetOk) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(BasicGetOkID))
	dst = be.AppendUint64(dst, m.DeliveryTag)
	dst = append(dst, bit(m.Redelivered, 0))
	dst = appendShort(dst, m.Exchange)
	dst = appendShort(dst, m.RoutingKey)
	dst = be.AppendUint32(dst, m.MessageCount)
	return dst
}

// AppendFrame implements Method.
func (m *BasicGetOk) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// BasicGetEmpty is basic.get-empty (60.72), sent by the server.
type BasicGetEmpty struct{}

// ID returns BasicGetEmptyID.
func (*BasicGetEmpty) ID() MethodID { return BasicGetEmptyID }

// Decode implements Method.
func (m *BasicGetEmpty) Decode(args []byte) error {
	a := arguments{b: args}
	a.skipShort()
	return a.end(BasicGetEmptyID)
}

// Append implements Method.
func (m *BasicGetEmpty) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(BasicGetEmptyID))
	dst = append(dst, 0)
	return dst
}

// AppendFrame implements Method.
func (m *BasicGetEmpty) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// BasicAck is basic.ack (60.80), sent by either side.
type BasicAck struct {
	DeliveryTag uint64
	Multiple    bool
}

// ID returns BasicAckID.
func (*BasicAck) ID() MethodID { return BasicAckID }

// Decode implements Method.
func (m *BasicAck) Decode(args []byte) error {
	a := arguments{b: args}
	m.DeliveryTag = a.u64()
	bits := a.u8()
	m.Multiple = bits&1 != 0
	return a.end(BasicAckID)
}

// Append implements Method.
func (m *BasicAck) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(BasicAckID))
	dst = be.AppendUint64(dst, m.DeliveryTag)
	dst = append(dst, bit(m.Multiple, 0))
	return dst
}

// AppendFrame implements Method.
func (m *BasicAck) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// BasicReject is basic.reject (60.90), sent by the client.
type BasicReject struct {
	DeliveryTag uint64
	Requeue     bool
}

// ID returns BasicRejectID.
func (*BasicReject) ID() MethodID { return BasicRejectID }

// Decode implements Method.
func (m *BasicReject) Decode(args []byte) error {
	a := arguments{b: args}
	m.DeliveryTag = a.u64()
	bits := a.u8()
	m.Requeue = bits&1 != 0
	return a.end(BasicRejectID)
}

// Append implements Method.
func (m *BasicReject) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(BasicRejectID))
	dst = be.AppendUint64(dst, m.DeliveryTag)
	dst = append(dst, bit(m.Requeue, 0))
	return dst
}

// AppendFrame implements Method.
func (m *BasicReject) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// BasicRecoverAsync is basic.recover-async (60.100), sent by the client.
type BasicRecoverAsync struct {
	Requeue bool
}

// ID returns BasicRecoverAsyncID.
func (*BasicRecoverAsync) ID() MethodID { return BasicRecoverAsyncID }

// Decode implements Method.
func (m *BasicRecoverAsync) Decode(args []byte) error {
	a := arguments{b: args}
	bits := a.u8()
	m.Requeue = bits&1 != 0
	return a.end(BasicRecoverAsyncID)
}

// Append implements Method.
func (m *BasicRecoverAsync) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(BasicRecoverAsyncID))
	dst = append(dst, bit(m.Requeue, 0))
	return dst
}

// AppendFrame implements Method.
func (m *BasicRecoverAsync) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// BasicRecover is basic.recover (60.110), sent by the client.
type BasicRecover struct {
	Requeue bool
}

// ID returns BasicRecoverID.
func (*BasicRecover) ID() MethodID { return BasicRecoverID }

// Decode implements Method.
func (m *BasicRecover) Decode(args []byte) error {
	a := arguments{b: args}
	bits := a.u8()
	m.Requeue = bits&1 != 0
	return a.end(BasicRecoverID)
}

// Append implements Method.
func (m *BasicRecover) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(BasicRecoverID))
	dst = append(dst, bit(m.Requeue, 0))
	return dst
}

// AppendFrame implements Method.
func (m *BasicRecover) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// BasicRecoverOk is basic.recover-ok (60.111), sent by the server.
type BasicRecoverOk struct{}

// ID returns BasicRecoverOkID.
func (*BasicRecoverOk) ID() MethodID { return BasicRecoverOkID }

// Decode implements Method.
func (m *BasicRecoverOk) Decode(args []byte) error {
	a := arguments{b: args}
	return a.end(BasicRecoverOkID)
}

// Append implements Method.
func (m *BasicRecoverOk) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(BasicRecoverOkID))
	return dst
}

// AppendFrame implements Method.
func (m *BasicRecoverOk) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// BasicNack is basic.nack (60.120), sent by either side.
type BasicNack struct {
	DeliveryTag uint64
	Multiple    bool
	Requeue     bool
}

// ID returns BasicNackID.
func (*BasicNack) ID() MethodID { return BasicNackID }

// Decode implements Method.
func (m *BasicNack) Decode(args []byte) error {
	a := arguments{b: args}
	m.DeliveryTag = a.u64()
	bits := a.u8()
	m.Multiple = bits&1 != 0
	m.Requeue = bits&2 != 0
	return a.end(BasicNackID)
}

// Append implements Method.
func (m *BasicNack) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(BasicNackID))
	dst = be.AppendUint64(dst, m.DeliveryTag)
	dst = append(dst, bit(m.Multiple, 0)|bit(m.Requeue, 1))
	return dst
}

// AppendFrame implements Method.
func (m *BasicNack) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}
