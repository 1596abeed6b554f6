// Code generated from methods.txt by go generate; DO NOT EDIT.

package amqp091

// QueueDeclare is queue.declare (50.10), sent by the client.
type QueueDeclare struct {
	Queue      string
	Passive    bool
	Durable    bool
	Exclusive  bool
	AutoDelete bool
	NoWait     bool
	Arguments  Table
}

// ID returns QueueDeclareID.
func (*QueueDeclare) ID() MethodID { return QueueDeclareID }

// Decode implements Method.
func (m *QueueDeclare) Decode(args []byte) error {
	a := arguments{b: args}
	a.u16()
	m.Queue = a.short()
	bits := a.u8()
	m.Passive = bits&1 != 0
	m.Durable = bits&2 != 0
	m.Exclusive = bits&4 != 0
	m.AutoDelete = bits&8 != 0
	m.NoWait = bits&16 != 0
	m.Arguments = a.table()
	return a.end(QueueDeclareID)
}

// Append implements Method.
func (m *QueueDeclare) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(QueueDeclareID))
	dst = append(dst, 0, 0)
	dst = appendShort(dst, m.Queue)
	dst = append(dst, bit(m.Passive, 0)|bit(m.Durable, 1)|bit(m.Exclusive, 2)|bit(m.AutoDelete, 3)|bit(m.NoWait, 4))
	dst = appendLong(dst, m.Arguments)
	return dst
}

// AppendFrame implements Method.
func (m *QueueDeclare) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// QueueDeclareOk is queue.declare-ok (50.11), sent by the server.
type QueueDeclareOk struct {
	Queue         string
	MessageCount  uint32
	ConsumerCount uint32
}

// ID returns QueueDeclareOkID.
func (*QueueDeclareOk) ID() MethodID { return QueueDeclareOkID }

// Decode implements Method.
func (m *QueueDeclareOk) Decode(args []byte) error {
	a := arguments{b: args}
	m.Queue = a.short()
	m.MessageCount = a.u32()
	m.ConsumerCount = a.u32()
	return a.end(QueueDeclareOkID)
}

// Append implements Method.
func (m *QueueDeclareOk) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(QueueDeclareOkID))
	dst = appendShort(dst, m.Queue)
	dst = be.AppendUint32(dst, m.MessageCount)
	dst = be.AppendUint32(dst, m.ConsumerCount)
	return dst
}

// AppendFrame implements Method.
func (m *QueueDeclareOk) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// QueueBind is queue.bind (50.20), sent by the client.
type QueueBind struct {
	Queue      string
	Exchange   string
	RoutingKey string
	NoWait     bool
	Arguments  Table
}

// ID returns QueueBindID.
func (*QueueBind) ID() MethodID { return QueueBindID }

// Decode implements Method.
func (m *QueueBind) Decode(args []byte) error {
	a := arguments{b: args}
	a.u16()
	m.Queue = a.short()
	m.Exchange = a.short()
	m.RoutingKey = a.short()
	bits := a.u8()
	m.NoWait = bits&1 != 0
	m.Arguments = a.table()
	return a.end(QueueBindID)
}

// Append implements Method.
func (m *QueueBind) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(QueueBindID))
	dst = append(dst, 0, 0)
	dst = appendShort(dst, m.Queue)
	dst = appendShort(dst, m.Exchange)
	dst = appendShort(dst, m.RoutingKey)
	dst = append(dst, bit(m.NoWait, 0))
	dst = appendLong(dst, m.Arguments)
	return dst
}

// AppendFrame implements Method.
func (m *QueueBind) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// QueueBindOk is queue.bind-ok (50.21), sent by the server.
type QueueBindOk struct{}

// ID returns QueueBindOkID.
func (*QueueBindOk) ID() MethodID { return QueueBindOkID }

// Decode implements Method.
func (m *QueueBindOk) Decode(args []byte) error {
	a := arguments{b: args}
	return a.end(QueueBindOkID)
}

// Append implements Method.
func (m *QueueBindOk) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(QueueBindOkID))
	return dst
}

// AppendFrame implements Method.
func (m *QueueBindOk) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// QueuePurge is queue.purge (50.30), sent by the client.
type QueuePurge struct {
	Queue  string
	NoWait bool
}

// ID returns QueuePurgeID.
func (*QueuePurge) ID() MethodID { return QueuePurgeID }

// Decode implements Method.
func (m *QueuePurge) Decode(args []byte) error {
	a := arguments{b: args}
	a.u16()
	m.Queue = a.short()
	bits := a.u8()
	m.NoWait = bits&1 != 0
	return a.end(QueuePurgeID)
}

// Append implements Method.
func (m *QueuePurge) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(QueuePurgeID))
	dst = append(dst, 0, 0)
	dst = appendShort(dst, m.Queue)
	dst = append(dst, bit(m.NoWait, 0))
	return dst
}

// AppendFrame implements Method.
func (m *QueuePurge) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// QueuePurgeOk is queue.purge-ok (50.31), sent by the server.
type QueuePurgeOk struct {
	MessageCount uint32
}

// ID returns QueuePurgeOkID.
func (*QueuePurgeOk) ID() MethodID { return QueuePurgeOkID }

// Decode implements Method.
func (m *QueuePurgeOk) Decode(args []byte) error {
	a := arguments{b: args}
	m.MessageCount = a.u32()
	return a.end(QueuePurgeOkID)
}

// Append implements Method.
func (m *QueuePurgeOk) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(QueuePurgeOkID))
	dst = be.AppendUint32(dst, m.MessageCount)
	return dst
}

// AppendFrame implements Method.
func (m *QueuePurgeOk) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// QueueDelete is queue.delete (50.40), sent by the client.
type QueueDelete struct {
	Queue    string
	IfUnused bool
	IfEmpty  bool
	NoWait   bool
}

// ID returns QueueDeleteID.
func (*QueueDelete) ID() MethodID { return QueueDeleteID }

// Decode implements Method.
func (m *QueueDelete) Decode(args []byte) error {
	a := arguments{b: args}
	a.u16()
	m.Queue = a.short()
	bits := a.u8()
	m.IfUnused = bits&1 != 0
	m.IfEmpty = bits&2 != 0
	m.NoWait = bits&4 != 0
	return a.end(QueueDeleteID)
}

// Append implements Method.
func (m *QueueDelete) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(QueueDeleteID))
	dst = append(dst, 0, 0)
	dst = appendShort(dst, m.Queue)
	dst = append(dst, bit(m.IfUnused, 0)|bit(m.IfEmpty, 1)|bit(m.NoWait, 2))
	return dst
}

// AppendFrame implements Method.
func (m *QueueDelete) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// QueueDeleteOk is queue.delete-ok (50.41), sent by the server.
type QueueDeleteOk struct {
	MessageCount uint32
}

// ID returns QueueDeleteOkID.
func (*QueueDeleteOk) ID() MethodID { return QueueDeleteOkID }

// Decode implements Method.
func (m *QueueDeleteOk) Decode(args []byte) error {
	a := arguments{b: args}
	m.MessageCount = a.u32()
	return a.end(QueueDeleteOkID)
}

// Append implements Method.
func (m *QueueDeleteOk) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(QueueDeleteOkID))
	dst = be.AppendUint32(dst, m.MessageCount)
	return dst
}

// AppendFrame implements Method.
func (m *QueueDeleteOk) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// QueueUnbind is queue.unbind (50.50), sent by the client. It has no no-wait.
type QueueUnbind struct {
	Queue      string
	Exchange   string
	RoutingKey string
	Arguments  Table
}

// ID returns QueueUnbindID.
func (*QueueUnbind) ID() MethodID { return QueueUnbindID }

// Decode implements Method.
func (m *QueueUnbind) Decode(args []byte) error {
	a := arguments{b: args}
	a.u16()
	m.Queue = a.short()
	m.Exchange = a.short()
	m.RoutingKey = a.short()
	m.Arguments = a.table()
	return a.end(QueueUnbindID)
}

// Append implements Method.
func (m *QueueUnbind) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(QueueUnbindID))
	dst = append(dst, 0, 0)
	dst = appendShort(dst, m.Queue)
	dst = appendShort(dst, m.Exchange)
	dst = appendShort(dst, m.RoutingKey)
	dst = appendLong(dst, m.Arguments)
	return dst
}

// AppendFrame implements Method.
func (m *QueueUnbind) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// QueueUnbindOk is queue.unbind-ok (50.51), sent by the server.
type QueueUnbindOk struct{}

// ID returns QueueUnbindOkID.
func (*QueueUnbindOk) ID() MethodID { return QueueUnbindOkID }

// Decode implements Method.
func (m *QueueUnbindOk) Decode(args []byte) error {
	a := arguments{b: args}
	return a.end(QueueUnbindOkID)
}

// Append implements Method.
func (m *QueueUnbindOk) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(QueueUnbindOkID))
	return dst
}

// AppendFrame implements Method.
func (m *QueueUnbindOk) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}
