// Code generated from methods.txt by go generate; DO NOT EDIT.

package amqp091

// ExchangeDeclare is exchange.declare (40.10), sent by the client.
type ExchangeDeclare struct {
	Exchange   string
	Type       string
	Passive    bool
	Durable    bool
	AutoDelete bool
	Internal   bool
	NoWait     bool
	Arguments  Table
}

// ID returns ExchangeDeclareID.
func (*ExchangeDeclare) ID() MethodID { return ExchangeDeclareID }

// Decode implements Method.
func (m *ExchangeDeclare) Decode(args []byte) error {
	a := arguments{b: args}
	a.u16()
	m.Exchange = a.short()
	m.Type = a.short()
	bits := a.u8()
	m.Passive = bits&1 != 0
	m.Durable = bits&2 != 0
	m.AutoDelete = bits&4 != 0
	m.Internal = bits&8 != 0
	m.NoWait = bits&16 != 0
	m.Arguments = a.table()
	return a.end(ExchangeDeclareID)
}

// Append implements Method.
func (m *ExchangeDeclare) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(ExchangeDeclareID))
	dst = append(dst, 0, 0)
	dst = appendShort(dst, m.Exchange)
	dst = appendShort(dst, m.Type)
	dst = append(dst, bit(m.Passive, 0)|bit(m.Durable, 1)|bit(m.AutoDelete, 2)|bit(m.Internal, 3)|bit(m.NoWait, 4))
	dst = appendLong(dst, m.Arguments)
	return dst
}

// AppendFrame implements Method.
func (m *ExchangeDeclare) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// ExchangeDeclareOk is exchange.declare-ok (40.11), sent by the server.
type ExchangeDeclareOk struct{}

// ID returns ExchangeDeclareOkID.
func (*ExchangeDeclareOk) ID() MethodID { return ExchangeDeclareOkID }

// Decode implements Method.
func (m *ExchangeDeclareOk) Decode(args []byte) error {
	a := arguments{b: args}
	return a.end(ExchangeDeclareOkID)
}

// Append implements Method.
func (m *ExchangeDeclareOk) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(ExchangeDeclareOkID))
	return dst
}

// AppendFrame implements Method.
func (m *ExchangeDeclareOk) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// ExchangeDelete is exchange.delete (40.20), sent by the client.
type ExchangeDelete struct {
	Exchange string
	IfUnused bool
	NoWait   bool
}

// ID returns ExchangeDeleteID.
func (*ExchangeDelete) ID() MethodID { return ExchangeDeleteID }

// Decode implements Method.
func (m *ExchangeDelete) Decode(args []byte) error {
	a := arguments{b: args}
	a.u16()
	m.Exchange = a.short()
	bits := a.u8()
	m.IfUnused = bits&1 != 0
	m.NoWait = bits&2 != 0
	return a.end(ExchangeDeleteID)
}

// Append implements Method.
func (m *ExchangeDelete) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(ExchangeDeleteID))
	dst = append(dst, 0, 0)
	dst = appendShort(dst, m.Exchange)
	dst = append(dst, bit(m.IfUnused, 0)|bit(m.NoWait, 1))
	return dst
}

// AppendFrame implements Method.
func (m *ExchangeDelete) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// ExchangeDeleteOk is exchange.delete-ok (40.21), sent by the server.
type ExchangeDeleteOk struct{}

// ID returns ExchangeDeleteOkID.
func (*ExchangeDeleteOk) ID() MethodID { return ExchangeDeleteOkID }

// Decode implements Method.
func (m *ExchangeDeleteOk) Decode(args []byte) error {
	a := arguments{b: args}
	return a.end(ExchangeDeleteOkID)
}

// Append implements Method.
func (m *ExchangeDeleteOk) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(ExchangeDeleteOkID))
	return dst
}

// AppendFrame implements Method.
func (m *ExchangeDeleteOk) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// ExchangeBind is exchange.bind (40.30), sent by the client.
type ExchangeBind struct {
	Destination string
	Source      string
	RoutingKey  string
	NoWait      bool
	Arguments   Table
}

// ID returns ExchangeBindID.
func (*ExchangeBind) ID() MethodID { return ExchangeBindID }

// Decode implements Method.
func (m *ExchangeBind) Decode(args []byte) error {
	a := arguments{b: args}
	a.u16()
	m.Destination = a.short()
	m.Source = a.short()
	m.RoutingKey = a.short()
	bits := a.u8()
	m.NoWait = bits&1 != 0
	m.Arguments = a.table()
	return a.end(ExchangeBindID)
}

// Append implements Method.
func (m *ExchangeBind) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(ExchangeBindID))
	dst = append(dst, 0, 0)
	dst = appendShort(dst, m.Destination)
	dst = appendShort(dst, m.Source)
	dst = appendShort(dst, m.RoutingKey)
	dst = append(dst, bit(m.NoWait, 0))
	dst = appendLong(dst, m.Arguments)
	return dst
}

// AppendFrame implements Method.
func (m *ExchangeBind) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// ExchangeBindOk is exchange.bind-ok (40.31), sent by the server.
type ExchangeBindOk struct{}

// ID returns ExchangeBindOkID.
func (*ExchangeBindOk) ID() MethodID { return ExchangeBindOkID }

// Decode implements Method.
func (m *ExchangeBindOk) Decode(args []byte) error {
	a := arguments{b: args}
	return a.end(ExchangeBindOkID)
}

// Append implements Method.
func (m *ExchangeBindOk) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(ExchangeBindOkID))
	return dst
}

// AppendFrame implements Method.
func (m *ExchangeBindOk) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// ExchangeUnbind is exchange.unbind (40.40), sent by the client.
type ExchangeUnbind struct {
	Destination string
	Source      string
	RoutingKey  string
	NoWait      bool
	Arguments   Table
}

// ID returns ExchangeUnbindID.
func (*ExchangeUnbind) ID() MethodID { return ExchangeUnbindID }

// Decode implements Method.
func (m *ExchangeUnbind) Decode(args []byte) error {
	a := arguments{b: args}
	a.u16()
	m.Destination = a.short()
	m.Source = a.short()
	m.RoutingKey = a.short()
	bits := a.u8()
	m.NoWait = bits&1 != 0
	m.Arguments = a.table()
	return a.end(ExchangeUnbindID)
}

// Append implements Method.
func (m *ExchangeUnbind) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(ExchangeUnbindID))
	dst = append(dst, 0, 0)
	dst = appendShort(dst, m.Destination)
	dst = appendShort(dst, m.Source)
	dst = appendShort(dst, m.RoutingKey)
	dst = append(dst, bit(m.NoWait, 0))
	dst = appendLong(dst, m.Arguments)
	return dst
}

// AppendFrame implements Method.
func (m *ExchangeUnbind) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// ExchangeUnbindOk is exchange.unbind-ok (40.51), sent by the server. The number is 51, not 41.
type ExchangeUnbindOk struct{}

// ID returns ExchangeUnbindOkID.
func (*ExchangeUnbindOk) ID() MethodID { return ExchangeUnbindOkID }

// Decode implements Method.
func (m *ExchangeUnbindOk) Decode(args []byte) error {
	a := arguments{b: args}
	return a.end(ExchangeUnbindOkID)
}

// Append implements Method.
func (m *ExchangeUnbindOk) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(ExchangeUnbindOkID))
	return dst
}

// AppendFrame implements Method.
func (m *ExchangeUnbindOk) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}
