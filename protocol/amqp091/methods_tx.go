// Code generated from methods.txt by go generate; DO NOT EDIT.

package amqp091

// TxSelect is tx.select (90.10), sent by the client.
type TxSelect struct{}

// ID returns TxSelectID.
func (*TxSelect) ID() MethodID { return TxSelectID }

// Decode implements Method.
func (m *TxSelect) Decode(args []byte) error {
	a := arguments{b: args}
	return a.end(TxSelectID)
}

// Append implements Method.
func (m *TxSelect) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(TxSelectID))
	return dst
}

// AppendFrame implements Method.
func (m *TxSelect) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// TxSelectOk is tx.select-ok (90.11), sent by the server.
type TxSelectOk struct{}

// ID returns TxSelectOkID.
func (*TxSelectOk) ID() MethodID { return TxSelectOkID }

// Decode implements Method.
func (m *TxSelectOk) Decode(args []byte) error {
	a := arguments{b: args}
	return a.end(TxSelectOkID)
}

// Append implements Method.
func (m *TxSelectOk) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(TxSelectOkID))
	return dst
}

// AppendFrame implements Method.
func (m *TxSelectOk) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// TxCommit is tx.commit (90.20), sent by the client.
type TxCommit struct{}

// ID returns TxCommitID.
func (*TxCommit) ID() MethodID { return TxCommitID }

// Decode implements Method.
func (m *TxCommit) Decode(args []byte) error {
	a := arguments{b: args}
	return a.end(TxCommitID)
}

// Append implements Method.
func (m *TxCommit) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(TxCommitID))
	return dst
}

// AppendFrame implements Method.
func (m *TxCommit) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// TxCommitOk is tx.commit-ok (90.21), sent by the server.
type TxCommitOk struct{}

// ID returns TxCommitOkID.
func (*TxCommitOk) ID() MethodID { return TxCommitOkID }

// Decode implements Method.
func (m *TxCommitOk) Decode(args []byte) error {
	a := arguments{b: args}
	return a.end(TxCommitOkID)
}

// Append implements Method.
func (m *TxCommitOk) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(TxCommitOkID))
	return dst
}

// AppendFrame implements Method.
func (m *TxCommitOk) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// TxRollback is tx.rollback (90.30), sent by the client.
type TxRollback struct{}

// ID returns TxRollbackID.
func (*TxRollback) ID() MethodID { return TxRollbackID }

// Decode implements Method.
func (m *TxRollback) Decode(args []byte) error {
	a := arguments{b: args}
	return a.end(TxRollbackID)
}

// Append implements Method.
func (m *TxRollback) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(TxRollbackID))
	return dst
}

// AppendFrame implements Method.
func (m *TxRollback) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}

// TxRollbackOk is tx.rollback-ok (90.31), sent by the server.
type TxRollbackOk struct{}

// ID returns TxRollbackOkID.
func (*TxRollbackOk) ID() MethodID { return TxRollbackOkID }

// Decode implements Method.
func (m *TxRollbackOk) Decode(args []byte) error {
	a := arguments{b: args}
	return a.end(TxRollbackOkID)
}

// Append implements Method.
func (m *TxRollbackOk) Append(dst []byte) []byte {
	dst = be.AppendUint32(dst, uint32(TxRollbackOkID))
	return dst
}

// AppendFrame implements Method.
func (m *TxRollbackOk) AppendFrame(dst []byte, channel uint16) []byte {
	return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))
}
