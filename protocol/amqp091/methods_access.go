// Code generated from methods.txt by go generate; DO NOT EDIT.

package amqp091

// AccessRequest is access.request (30.10), sent by the client. Always granted; of AMQP 0-8.
type AccessRequest struct {
	Realm     string
	Exclusive bool
	Passive   bool
	Active    bool
	Write     bool
	Read      bool
}

// ID returns AccessRequestID.
func (*AccessRequest) ID() MethodID { return AccessRequestID }

// Decode implements Method.
func (m *AccessRequest) Decode(args []byte) error {
	a := arguments{b: args}
	m.Realm = a.short()
	bits := a.u8()
	m.Exclusive = bits&1 != 0
	m.Passive = bits&2 != 0
	m.Active = bits&4 != 0
	m.Write = bits&8 != 0
	m.Read = bits&16 != 0
	return a.end(AccessRequestID)
}

// Append implements Method.
func (m *AccessRequest) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(AccessRequestID))
	dst = appendShort(dst, m.Realm)
	dst = append(dst, bit(m.Exclusive, 0)|bit(m.Passive, 1)|bit(m.Active, 2)|bit(m.Write, 3)|bit(m.Read, 4))
	return dst
}

// AppendFrame implements Method.
func (m *AccessRequest) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// AccessRequestOk is access.request-ok (30.11), sent by the server.
type AccessRequestOk struct {
	Ticket uint16
}

// ID returns AccessRequestOkID.
func (*AccessRequestOk) ID() MethodID { return AccessRequestOkID }

// Decode implements Method.
func (m *AccessRequestOk) Decode(args []byte) error {
	a := arguments{b: args}
	m.Ticket = a.u16()
	return a.end(AccessRequestOkID)
}

// Append implements Method.
func (m *AccessRequestOk) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(AccessRequestOkID))
	dst = be.AppendUint16(dst, m.Ticket)
	return dst
}

// AppendFrame implements Method.
func (m *AccessRequestOk) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}
