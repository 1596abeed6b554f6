// Code generated from methods.txt by go generate; DO NOT EDIT.

package amqp091

// ChannelOpen is channel.open (20.10), sent by the client.
type ChannelOpen struct{}

// ID returns ChannelOpenID.
func (*ChannelOpen) ID() MethodID { return ChannelOpenID }

// Decode implements Method.
func (m *ChannelOpen) Decode(args []byte) error {
	a := arguments{b: args}
	a.skipShort()
	return a.end(ChannelOpenID)
}

// Append implements Method.
func (m *ChannelOpen) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(ChannelOpenID))
	dst = append(dst, 0)
	return dst
}

// AppendFrame implements Method.
func (m *ChannelOpen) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// ChannelOpenOk is channel.open-ok (20.11), sent by the server.
type ChannelOpenOk struct{}

// ID returns ChannelOpenOkID.
func (*ChannelOpenOk) ID() MethodID { return ChannelOpenOkID }

// Decode implements Method.
func (m *ChannelOpenOk) Decode(args []byte) error {
	a := arguments{b: args}
	a.skipLong()
	return a.end(ChannelOpenOkID)
}

// Append implements Method.
func (m *ChannelOpenOk) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(ChannelOpenOkID))
	dst = append(dst, 0, 0, 0, 0)
	return dst
}

// AppendFrame implements Method.
func (m *ChannelOpenOk) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// ChannelFlow is channel.flow (20.20), sent by either side.
type ChannelFlow struct {
	Active bool
}

// ID returns ChannelFlowID.
func (*ChannelFlow) ID() MethodID { return ChannelFlowID }

// Decode implements Method.
func (m *ChannelFlow) Decode(args []byte) error {
	a := arguments{b: args}
	bits := a.u8()
	m.Active = bits&1 != 0
	return a.end(ChannelFlowID)
}

// Append implements Method.
func (m *ChannelFlow) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(ChannelFlowID))
	dst = append(dst, bit(m.Active, 0))
	return dst
}

// AppendFrame implements Method.
func (m *ChannelFlow) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// ChannelFlowOk is channel.flow-ok (20.21), sent by either side.
type ChannelFlowOk struct {
	Active bool
}

// ID returns ChannelFlowOkID.
func (*ChannelFlowOk) ID() MethodID { return ChannelFlowOkID }

// Decode implements Method.
func (m *ChannelFlowOk) Decode(args []byte) error {
	a := arguments{b: args}
	bits := a.u8()
	m.Active = bits&1 != 0
	return a.end(ChannelFlowOkID)
}

// Append implements Method.
func (m *ChannelFlowOk) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(ChannelFlowOkID))
	dst = append(dst, bit(m.Active, 0))
	return dst
}

// AppendFrame implements Method.
func (m *ChannelFlowOk) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// ChannelClose is channel.close (20.40), sent by either side. Cause is the method that was at fault, or 0.
type ChannelClose struct {
	ReplyCode uint16
	ReplyText string
	Cause     MethodID
}

// ID returns ChannelCloseID.
func (*ChannelClose) ID() MethodID { return ChannelCloseID }

// Decode implements Method.
func (m *ChannelClose) Decode(args []byte) error {
	a := arguments{b: args}
	m.ReplyCode = a.u16()
	m.ReplyText = a.short()
	m.Cause = MethodID(a.u32())
	return a.end(ChannelCloseID)
}

// Append implements Method.
func (m *ChannelClose) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(ChannelCloseID))
	dst = be.AppendUint16(dst, m.ReplyCode)
	dst = appendShort(dst, m.ReplyText)
	dst = be.AppendUint32(dst, uint32(m.Cause))
	return dst
}

// AppendFrame implements Method.
func (m *ChannelClose) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// ChannelCloseOk is channel.close-ok (20.41), sent by either side.
type ChannelCloseOk struct{}

// ID returns ChannelCloseOkID.
func (*ChannelCloseOk) ID() MethodID { return ChannelCloseOkID }

// Decode implements Method.
func (m *ChannelCloseOk) Decode(args []byte) error {
	a := arguments{b: args}
	return a.end(ChannelCloseOkID)
}

// Append implements Method.
func (m *ChannelCloseOk) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(ChannelCloseOkID))
	return dst
}

// AppendFrame implements Method.
func (m *ChannelCloseOk) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}
