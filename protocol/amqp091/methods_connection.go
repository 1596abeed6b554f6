// Code generated from methods.txt by go generate; DO NOT EDIT.

package amqp091

// ConnectionStart is connection.start (10.10), sent by the server. Mechanisms and locales are separated by spaces.
type ConnectionStart struct {
	VersionMajor     uint8
	VersionMinor     uint8
	ServerProperties Table
	Mechanisms       string
	Locales          string
}

// ID returns ConnectionStartID.
func (*ConnectionStart) ID() MethodID { return ConnectionStartID }

// Decode implements Method.
func (m *ConnectionStart) Decode(args []byte) error {
	a := arguments{b: args}
	m.VersionMajor = a.u8()
	m.VersionMinor = a.u8()
	m.ServerProperties = a.table()
	m.Mechanisms = a.long()
	m.Locales = a.long()
	return a.end(ConnectionStartID)
}

// Append implements Method.
func (m *ConnectionStart) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(ConnectionStartID))
	dst = append(dst, m.VersionMajor)
	dst = append(dst, m.VersionMinor)
	dst = appendLong(dst, m.ServerProperties)
	dst = appendLong(dst, m.Mechanisms)
	dst = appendLong(dst, m.Locales)
	return dst
}

// AppendFrame implements Method.
func (m *ConnectionStart) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// ConnectionStartOk is connection.start-ok (10.11), sent by the client.
type ConnectionStartOk struct {
	ClientProperties Table
	Mechanism        string
	Response         string
	Locale           string
}

// ID returns ConnectionStartOkID.
func (*ConnectionStartOk) ID() MethodID { return ConnectionStartOkID }

// Decode implements Method.
func (m *ConnectionStartOk) Decode(args []byte) error {
	a := arguments{b: args}
	m.ClientProperties = a.table()
	m.Mechanism = a.short()
	m.Response = a.long()
	m.Locale = a.short()
	return a.end(ConnectionStartOkID)
}

// Append implements Method.
func (m *ConnectionStartOk) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(ConnectionStartOkID))
	dst = appendLong(dst, m.ClientProperties)
	dst = appendShort(dst, m.Mechanism)
	dst = appendLong(dst, m.Response)
	dst = appendShort(dst, m.Locale)
	return dst
}

// AppendFrame implements Method.
func (m *ConnectionStartOk) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// ConnectionSecure is connection.secure (10.20), sent by the server.
type ConnectionSecure struct {
	Challenge string
}

// ID returns ConnectionSecureID.
func (*ConnectionSecure) ID() MethodID { return ConnectionSecureID }

// Decode implements Method.
func (m *ConnectionSecure) Decode(args []byte) error {
	a := arguments{b: args}
	m.Challenge = a.long()
	return a.end(ConnectionSecureID)
}

// Append implements Method.
func (m *ConnectionSecure) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(ConnectionSecureID))
	dst = appendLong(dst, m.Challenge)
	return dst
}

// AppendFrame implements Method.
func (m *ConnectionSecure) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// ConnectionSecureOk is connection.secure-ok (10.21), sent by the client.
type ConnectionSecureOk struct {
	Response string
}

// ID returns ConnectionSecureOkID.
func (*ConnectionSecureOk) ID() MethodID { return ConnectionSecureOkID }

// Decode implements Method.
func (m *ConnectionSecureOk) Decode(args []byte) error {
	a := arguments{b: args}
	m.Response = a.long()
	return a.end(ConnectionSecureOkID)
}

// Append implements Method.
func (m *ConnectionSecureOk) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(ConnectionSecureOkID))
	dst = appendLong(dst, m.Response)
	return dst
}

// AppendFrame implements Method.
func (m *ConnectionSecureOk) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// ConnectionTune is connection.tune (10.30), sent by the server. The heartbeat is in seconds; 0 is no limit, or no heartbeats.
type ConnectionTune struct {
	ChannelMax uint16
	FrameMax   uint32
	Heartbeat  uint16
}

// ID returns ConnectionTuneID.
func (*ConnectionTune) ID() MethodID { return ConnectionTuneID }

// Decode implements Method.
func (m *ConnectionTune) Decode(args []byte) error {
	a := arguments{b: args}
	m.ChannelMax = a.u16()
	m.FrameMax = a.u32()
	m.Heartbeat = a.u16()
	return a.end(ConnectionTuneID)
}

// Append implements Method.
func (m *ConnectionTune) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(ConnectionTuneID))
	dst = be.AppendUint16(dst, m.ChannelMax)
	dst = be.AppendUint32(dst, m.FrameMax)
	dst = be.AppendUint16(dst, m.Heartbeat)
	return dst
}

// AppendFrame implements Method.
func (m *ConnectionTune) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// ConnectionTuneOk is connection.tune-ok (10.31), sent by the client.
type ConnectionTuneOk struct {
	ChannelMax uint16
	FrameMax   uint32
	Heartbeat  uint16
}

// ID returns ConnectionTuneOkID.
func (*ConnectionTuneOk) ID() MethodID { return ConnectionTuneOkID }

// Decode implements Method.
func (m *ConnectionTuneOk) Decode(args []byte) error {
	a := arguments{b: args}
	m.ChannelMax = a.u16()
	m.FrameMax = a.u32()
	m.Heartbeat = a.u16()
	return a.end(ConnectionTuneOkID)
}

// Append implements Method.
func (m *ConnectionTuneOk) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(ConnectionTuneOkID))
	dst = be.AppendUint16(dst, m.ChannelMax)
	dst = be.AppendUint32(dst, m.FrameMax)
	dst = be.AppendUint16(dst, m.Heartbeat)
	return dst
}

// AppendFrame implements Method.
func (m *ConnectionTuneOk) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// ConnectionOpen is connection.open (10.40), sent by the client.
type ConnectionOpen struct {
	VirtualHost string
}

// ID returns ConnectionOpenID.
func (*ConnectionOpen) ID() MethodID { return ConnectionOpenID }

// Decode implements Method.
func (m *ConnectionOpen) Decode(args []byte) error {
	a := arguments{b: args}
	m.VirtualHost = a.short()
	a.skipShort()
	a.u8()
	return a.end(ConnectionOpenID)
}

// Append implements Method.
func (m *ConnectionOpen) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(ConnectionOpenID))
	dst = appendShort(dst, m.VirtualHost)
	dst = append(dst, 0)
	dst = append(dst, 0)
	return dst
}

// AppendFrame implements Method.
func (m *ConnectionOpen) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// ConnectionOpenOk is connection.open-ok (10.41), sent by the server.
type ConnectionOpenOk struct{}

// ID returns ConnectionOpenOkID.
func (*ConnectionOpenOk) ID() MethodID { return ConnectionOpenOkID }

// Decode implements Method.
func (m *ConnectionOpenOk) Decode(args []byte) error {
	a := arguments{b: args}
	a.skipShort()
	return a.end(ConnectionOpenOkID)
}

// Append implements Method.
func (m *ConnectionOpenOk) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(ConnectionOpenOkID))
	dst = append(dst, 0)
	return dst
}

// AppendFrame implements Method.
func (m *ConnectionOpenOk) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// ConnectionClose is connection.close (10.50), sent by either side. Cause is the method that was at fault, or 0.
type ConnectionClose struct {
	ReplyCode uint16
	ReplyText string
	Cause     MethodID
}

// ID returns ConnectionCloseID.
func (*ConnectionClose) ID() MethodID { return ConnectionCloseID }

// Decode implements Method.
func (m *ConnectionClose) Decode(args []byte) error {
	a := arguments{b: args}
	m.ReplyCode = a.u16()
	m.ReplyText = a.short()
	m.Cause = MethodID(a.u32())
	return a.end(ConnectionCloseID)
}

// Append implements Method.
func (m *ConnectionClose) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(ConnectionCloseID))
	dst = be.AppendUint16(dst, m.ReplyCode)
	dst = appendShort(dst, m.ReplyText)
	dst = be.AppendUint32(dst, uint32(m.Cause))
	return dst
}

// AppendFrame implements Method.
func (m *ConnectionClose) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// ConnectionCloseOk is connection.close-ok (10.51), sent by either side.
type ConnectionCloseOk struct{}

// ID returns ConnectionCloseOkID.
func (*ConnectionCloseOk) ID() MethodID { return ConnectionCloseOkID }

// Decode implements Method.
func (m *ConnectionCloseOk) Decode(args []byte) error {
	a := arguments{b: args}
	return a.end(ConnectionCloseOkID)
}

// Append implements Method.
func (m *ConnectionCloseOk) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(ConnectionCloseOkID))
	return dst
}

// AppendFrame implements Method.
func (m *ConnectionCloseOk) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// ConnectionBlocked is connection.blocked (10.60), sent by the server.
type ConnectionBlocked struct {
	Reason string
}

// ID returns ConnectionBlockedID.
func (*ConnectionBlocked) ID() MethodID { return ConnectionBlockedID }

// Decode implements Method.
func (m *ConnectionBlocked) Decode(args []byte) error {
	a := arguments{b: args}
	m.Reason = a.short()
	return a.end(ConnectionBlockedID)
}

// Append implements Method.
func (m *ConnectionBlocked) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(ConnectionBlockedID))
	dst = appendShort(dst, m.Reason)
	return dst
}

// AppendFrame implements Method.
func (m *ConnectionBlocked) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// ConnectionUnblocked is connection.unblocked (10.61), sent by the server.
type ConnectionUnblocked struct{}

// ID returns ConnectionUnblockedID.
func (*ConnectionUnblocked) ID() MethodID { return ConnectionUnblockedID }

// Decode implements Method.
func (m *ConnectionUnblocked) Decode(args []byte) error {
	a := arguments{b: args}
	return a.end(ConnectionUnblockedID)
}

// Append implements Method.
func (m *ConnectionUnblocked) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(ConnectionUnblockedID))
	return dst
}

// AppendFrame implements Method.
func (m *ConnectionUnblocked) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// ConnectionUpdateSecret is connection.update-secret (10.70), sent by the client.
type ConnectionUpdateSecret struct {
	NewSecret string
	Reason    string
}

// ID returns ConnectionUpdateSecretID.
func (*ConnectionUpdateSecret) ID() MethodID { return ConnectionUpdateSecretID }

// Decode implements Method.
func (m *ConnectionUpdateSecret) Decode(args []byte) error {
	a := arguments{b: args}
	m.NewSecret = a.long()
	m.Reason = a.short()
	return a.end(ConnectionUpdateSecretID)
}

// Append implements Method.
func (m *ConnectionUpdateSecret) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(ConnectionUpdateSecretID))
	dst = appendLong(dst, m.NewSecret)
	dst = appendShort(dst, m.Reason)
	return dst
}

// AppendFrame implements Method.
func (m *ConnectionUpdateSecret) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// ConnectionUpdateSecretOk is connection.update-secret-ok (10.71), sent by the server.
type ConnectionUpdateSecretOk struct{}

// ID returns ConnectionUpdateSecretOkID.
func (*ConnectionUpdateSecretOk) ID() MethodID { return ConnectionUpdateSecretOkID }

// Decode implements Method.
func (m *ConnectionUpdateSecretOk) Decode(args []byte) error {
	a := arguments{b: args}
	return a.end(ConnectionUpdateSecretOkID)
}

// Append implements Method.
func (m *ConnectionUpdateSecretOk) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(ConnectionUpdateSecretOkID))
	return dst
}

// AppendFrame implements Method.
func (m *ConnectionUpdateSecretOk) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}
