// Code generated from methods.txt by go generate; DO NOT EDIT.

package amqp091

// The methods.
const (
	ConnectionStartID          MethodID = 10<<16 | 10
	ConnectionStartOkID        MethodID = 10<<16 | 11
	ConnectionSecureID         MethodID = 10<<16 | 20
	ConnectionSecureOkID       MethodID = 10<<16 | 21
	ConnectionTuneID           MethodID = 10<<16 | 30
	ConnectionTuneOkID         MethodID = 10<<16 | 31
	ConnectionOpenID           MethodID = 10<<16 | 40
	ConnectionOpenOkID         MethodID = 10<<16 | 41
	ConnectionCloseID          MethodID = 10<<16 | 50
	ConnectionCloseOkID        MethodID = 10<<16 | 51
	ConnectionBlockedID        MethodID = 10<<16 | 60
	ConnectionUnblockedID      MethodID = 10<<16 | 61
	ConnectionUpdateSecretID   MethodID = 10<<16 | 70
	ConnectionUpdateSecretOkID MethodID = 10<<16 | 71

	ChannelOpenID    MethodID = 20<<16 | 10
	ChannelOpenOkID  MethodID = 20<<16 | 11
	ChannelFlowID    MethodID = 20<<16 | 20
	ChannelFlowOkID  MethodID = 20<<16 | 21
	ChannelCloseID   MethodID = 20<<16 | 40
	ChannelCloseOkID MethodID = 20<<16 | 41

	AccessRequestID   MethodID = 30<<16 | 10
	AccessRequestOkID MethodID = 30<<16 | 11

	ExchangeDeclareID   MethodID = 40<<16 | 10
	ExchangeDeclareOkID MethodID = 40<<16 | 11
	ExchangeDeleteID    MethodID = 40<<16 | 20
	ExchangeDeleteOkID  MethodID = 40<<16 | 21
	ExchangeBindID      MethodID = 40<<16 | 30
	ExchangeBindOkID    MethodID = 40<<16 | 31
	ExchangeUnbindID    MethodID = 40<<16 | 40
	ExchangeUnbindOkID  MethodID = 40<<16 | 51

	QueueDeclareID   MethodID = 50<<16 | 10
	QueueDeclareOkID MethodID = 50<<16 | 11
	QueueBindID      MethodID = 50<<16 | 20
	QueueBindOkID    MethodID = 50<<16 | 21
	QueuePurgeID     MethodID = 50<<16 | 30
	QueuePurgeOkID   MethodID = 50<<16 | 31
	QueueDeleteID    MethodID = 50<<16 | 40
	QueueDeleteOkID  MethodID = 50<<16 | 41
	QueueUnbindID    MethodID = 50<<16 | 50
	QueueUnbindOkID  MethodID = 50<<16 | 51

	BasicQosID          MethodID = 60<<16 | 10
	BasicQosOkID        MethodID = 60<<16 | 11
	BasicConsumeID      MethodID = 60<<16 | 20
	BasicConsumeOkID    MethodID = 60<<16 | 21
	BasicCancelID       MethodID = 60<<16 | 30
	BasicCancelOkID     MethodID = 60<<16 | 31
	BasicPublishID      MethodID = 60<<16 | 40
	BasicReturnID       MethodID = 60<<16 | 50
	BasicDeliverID      MethodID = 60<<16 | 60
	BasicGetID          MethodID = 60<<16 | 70
	BasicGetOkID        MethodID = 60<<16 | 71
	BasicGetEmptyID     MethodID = 60<<16 | 72
	BasicAckID          MethodID = 60<<16 | 80
	BasicRejectID       MethodID = 60<<16 | 90
	BasicRecoverAsyncID MethodID = 60<<16 | 100
	BasicRecoverID      MethodID = 60<<16 | 110
	BasicRecoverOkID    MethodID = 60<<16 | 111
	BasicNackID         MethodID = 60<<16 | 120

	ConfirmSelectID   MethodID = 85<<16 | 10
	ConfirmSelectOkID MethodID = 85<<16 | 11

	TxSelectID     MethodID = 90<<16 | 10
	TxSelectOkID   MethodID = 90<<16 | 11
	TxCommitID     MethodID = 90<<16 | 20
	TxCommitOkID   MethodID = 90<<16 | 21
	TxRollbackID   MethodID = 90<<16 | 30
	TxRollbackOkID MethodID = 90<<16 | 31
)

// methods are sorted by id.
var methods = []methodInfo{
	{ConnectionStartID, "connection.start", false, true, false},
	{ConnectionStartOkID, "connection.start-ok", true, false, false},
	{ConnectionSecureID, "connection.secure", false, true, false},
	{ConnectionSecureOkID, "connection.secure-ok", true, false, false},
	{ConnectionTuneID, "connection.tune", false, true, false},
	{ConnectionTuneOkID, "connection.tune-ok", true, false, false},
	{ConnectionOpenID, "connection.open", true, false, false},
	{ConnectionOpenOkID, "connection.open-ok", false, true, false},
	{ConnectionCloseID, "connection.close", true, true, false},
	{ConnectionCloseOkID, "connection.close-ok", true, true, false},
	{ConnectionBlockedID, "connection.blocked", false, true, false},
	{ConnectionUnblockedID, "connection.unblocked", false, true, false},
	{ConnectionUpdateSecretID, "connection.update-secret", true, false, false},
	{ConnectionUpdateSecretOkID, "connection.update-secret-ok", false, true, false},
	{ChannelOpenID, "channel.open", true, false, false},
	{ChannelOpenOkID, "channel.open-ok", false, true, false},
	{ChannelFlowID, "channel.flow", true, true, false},
	{ChannelFlowOkID, "channel.flow-ok", true, true, false},
	{ChannelCloseID, "channel.close", true, true, false},
	{ChannelCloseOkID, "channel.close-ok", true, true, false},
	{AccessRequestID, "access.request", true, false, false},
	{AccessRequestOkID, "access.request-ok", false, true, false},
	{ExchangeDeclareID, "exchange.declare", true, false, false},
	{ExchangeDeclareOkID, "exchange.declare-ok", false, true, false},
	{ExchangeDeleteID, "exchange.delete", true, false, false},
	{ExchangeDeleteOkID, "exchange.delete-ok", false, true, false},
	{ExchangeBindID, "exchange.bind", true, false, false},
	{ExchangeBindOkID, "exchange.bind-ok", false, true, false},
	{ExchangeUnbindID, "exchange.unbind", true, false, false},
	{ExchangeUnbindOkID, "exchange.unbind-ok", false, true, false},
	{QueueDeclareID, "queue.declare", true, false, false},
	{QueueDeclareOkID, "queue.declare-ok", false, true, false},
	{QueueBindID, "queue.bind", true, false, false},
	{QueueBindOkID, "queue.bind-ok", false, true, false},
	{QueuePurgeID, "queue.purge", true, false, false},
	{QueuePurgeOkID, "queue.purge-ok", false, true, false},
	{QueueDeleteID, "queue.delete", true, false, false},
	{QueueDeleteOkID, "queue.delete-ok", false, true, false},
	{QueueUnbindID, "queue.unbind", true, false, false},
	{QueueUnbindOkID, "queue.unbind-ok", false, true, false},
	{BasicQosID, "basic.qos", true, false, false},
	{BasicQosOkID, "basic.qos-ok", false, true, false},
	{BasicConsumeID, "basic.consume", true, false, false},
	{BasicConsumeOkID, "basic.consume-ok", false, true, false},
	{BasicCancelID, "basic.cancel", true, true, false},
	{BasicCancelOkID, "basic.cancel-ok", true, true, false},
	{BasicPublishID, "basic.publish", true, false, true},
	{BasicReturnID, "basic.return", false, true, true},
	{BasicDeliverID, "basic.deliver", false, true, true},
	{BasicGetID, "basic.get", true, false, false},
	{BasicGetOkID, "basic.get-ok", false, true, true},
	{BasicGetEmptyID, "basic.get-empty", false, true, false},
	{BasicAckID, "basic.ack", true, true, false},
	{BasicRejectID, "basic.reject", true, false, false},
	{BasicRecoverAsyncID, "basic.recover-async", true, false, false},
	{BasicRecoverID, "basic.recover", true, false, false},
	{BasicRecoverOkID, "basic.recover-ok", false, true, false},
	{BasicNackID, "basic.nack", true, true, false},
	{ConfirmSelectID, "confirm.select", true, false, false},
	{ConfirmSelectOkID, "confirm.select-ok", false, true, false},
	{TxSelectID, "tx.select", true, false, false},
	{TxSelectOkID, "tx.select-ok", false, true, false},
	{TxCommitID, "tx.commit", true, false, false},
	{TxCommitOkID, "tx.commit-ok", false, true, false},
	{TxRollbackID, "tx.rollback", true, false, false},
	{TxRollbackOkID, "tx.rollback-ok", false, true, false},
}

// New returns an empty method, or nil for an unknown id.
func New(id MethodID) Method {
	switch id {
	case ConnectionStartID:
		return new(ConnectionStart)
	case ConnectionStartOkID:
		return new(ConnectionStartOk)
	case ConnectionSecureID:
		return new(ConnectionSecure)
	case ConnectionSecureOkID:
		return new(ConnectionSecureOk)
	case ConnectionTuneID:
		return new(ConnectionTune)
	case ConnectionTuneOkID:
		return new(ConnectionTuneOk)
	case ConnectionOpenID:
		return new(ConnectionOpen)
	case ConnectionOpenOkID:
		return new(ConnectionOpenOk)
	case ConnectionCloseID:
		return new(ConnectionClose)
	case ConnectionCloseOkID:
		return new(ConnectionCloseOk)
	case ConnectionBlockedID:
		return new(ConnectionBlocked)
	case ConnectionUnblockedID:
		return new(ConnectionUnblocked)
	case ConnectionUpdateSecretID:
		return new(ConnectionUpdateSecret)
	case ConnectionUpdateSecretOkID:
		return new(ConnectionUpdateSecretOk)
	case ChannelOpenID:
		return new(ChannelOpen)
	case ChannelOpenOkID:
		return new(ChannelOpenOk)
	case ChannelFlowID:
		return new(ChannelFlow)
	case ChannelFlowOkID:
		return new(ChannelFlowOk)
	case ChannelCloseID:
		return new(ChannelClose)
	case ChannelCloseOkID:
		return new(ChannelCloseOk)
	case AccessRequestID:
		return new(AccessRequest)
	case AccessRequestOkID:
		return new(AccessRequestOk)
	case ExchangeDeclareID:
		return new(ExchangeDeclare)
	case ExchangeDeclareOkID:
		return new(ExchangeDeclareOk)
	case ExchangeDeleteID:
		return new(ExchangeDelete)
	case ExchangeDeleteOkID:
		return new(ExchangeDeleteOk)
	case ExchangeBindID:
		return new(ExchangeBind)
	case ExchangeBindOkID:
		return new(ExchangeBindOk)
	case ExchangeUnbindID:
		return new(ExchangeUnbind)
	case ExchangeUnbindOkID:
		return new(ExchangeUnbindOk)
	case QueueDeclareID:
		return new(QueueDeclare)
	case QueueDeclareOkID:
		return new(QueueDeclareOk)
	case QueueBindID:
		return new(QueueBind)
	case QueueBindOkID:
		return new(QueueBindOk)
	case QueuePurgeID:
		return new(QueuePurge)
	case QueuePurgeOkID:
		return new(QueuePurgeOk)
	case QueueDeleteID:
		return new(QueueDelete)
	case QueueDeleteOkID:
		return new(QueueDeleteOk)
	case QueueUnbindID:
		return new(QueueUnbind)
	case QueueUnbindOkID:
		return new(QueueUnbindOk)
	case BasicQosID:
		return new(BasicQos)
	case BasicQosOkID:
		return new(BasicQosOk)
	case BasicConsumeID:
		return new(BasicConsume)
	case BasicConsumeOkID:
		return new(BasicConsumeOk)
	case BasicCancelID:
		return new(BasicCancel)
	case BasicCancelOkID:
		return new(BasicCancelOk)
	case BasicPublishID:
		return new(BasicPublish)
	case BasicReturnID:
		return new(BasicReturn)
	case BasicDeliverID:
		return new(BasicDeliver)
	case BasicGetID:
		return new(BasicGet)
	case BasicGetOkID:
		return new(BasicGetOk)
	case BasicGetEmptyID:
		return new(BasicGetEmpty)
	case BasicAckID:
		return new(BasicAck)
	case BasicRejectID:
		return new(BasicReject)
	case BasicRecoverAsyncID:
		return new(BasicRecoverAsync)
	case BasicRecoverID:
		return new(BasicRecover)
	case BasicRecoverOkID:
		return new(BasicRecoverOk)
	case BasicNackID:
		return new(BasicNack)
	case ConfirmSelectID:
		return new(ConfirmSelect)
	case ConfirmSelectOkID:
		return new(ConfirmSelectOk)
	case TxSelectID:
		return new(TxSelect)
	case TxSelectOkID:
		return new(TxSelectOk)
	case TxCommitID:
		return new(TxCommit)
	case TxCommitOkID:
		return new(TxCommitOk)
	case TxRollbackID:
		return new(TxRollback)
	case TxRollbackOkID:
		return new(TxRollbackOk)
	}
	return nil
}
