// Code generated from methods.txt by go generate; DO NOT EDIT.

package amqp091

// ConfirmSelect is confirm.select (85.10), sent by the client.
type ConfirmSelect struct {
	NoWait bool
}

// ID returns ConfirmSelectID.
func (*ConfirmSelect) ID() MethodID { return ConfirmSelectID }

// Decode implements Method.
func (m *ConfirmSelect) Decode(args []byte) error {
	a := arguments{b: args}
	bits := a.u8()
	m.NoWait = bits&1 != 0
	return a.end(ConfirmSelectID)
}

// Append implements Method.
func (m *ConfirmSelect) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(ConfirmSelectID))
	dst = append(dst, bit(m.NoWait, 0))
	return dst
}

// AppendFrame implements Method.
func (m *ConfirmSelect) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// ConfirmSelectOk is confirm.select-ok (85.11), sent by the server.
type ConfirmSelectOk struct{}

// ID returns ConfirmSelectOkID.
func (*ConfirmSelectOk) ID() MethodID { return ConfirmSelectOkID }

// Decode implements Method.
func (m *ConfirmSelectOk) Decode(args []byte) error {
	a := arguments{b: args}
	return a.end(ConfirmSelectOkID)
}

// Append implements Method.
func (m *ConfirmSelectOk) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(ConfirmSelectOkID))
	return dst
}

// AppendFrame implements Method.
func (m *ConfirmSelectOk) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}
