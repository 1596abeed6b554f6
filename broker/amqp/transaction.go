package amqp

import (
	"context"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/fsm"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// transaction is what a transactional channel has gathered since its last commit or rollback. Publishes and
// acknowledgements take effect at commit as one log entry, all or none. Only the channel's requests, in turn, use it.
type transaction struct {
	channel    *channel
	operations []broker.Operation
	mandatory  map[int]*mandatory // by index in operations
}

// publish takes a message into the transaction.
func (t *transaction) publish(p broker.Publication, returned bool, done broker.Completer) error {
	bytes := int64(len(p.Body) + len(p.Properties) + len(p.Exchange) + len(p.RoutingKey))
	if returned && p.Upload != 0 {
		bytes += int64(len(done.(*mandatory).body))
	}
	t.channel.gathered.Add(bytes)
	if t.channel.connection.opened.Add(bytes) > fsm.MaxTransactionBytes || len(t.operations) >= fsm.MaxTransactionOperations {
		return t.tooLarge(amqp091.BasicPublishID)
	}
	if returned {
		if t.mandatory == nil {
			t.mandatory = map[int]*mandatory{}
		}
		t.mandatory[len(t.operations)] = done.(*mandatory)
	}
	t.operations = append(t.operations, broker.Operation{Publication: p})
	return nil
}

// settle takes the end of deliveries into the transaction: their tags are used up at once.
func (t *transaction) settle(kind fsm.SettleKind, tag uint64, multiple bool) error {
	if len(t.operations) >= fsm.MaxTransactionOperations {
		return t.tooLarge(0)
	}
	held, err := t.channel.Take(tag, multiple)
	if err != nil {
		return err
	}
	if held.Empty() { // everything, when nothing is outstanding
		t.channel.PutBack(held)
		return nil
	}
	t.operations = append(t.operations, broker.Operation{Settle: true, Kind: kind, Held: held})
	return nil
}

func (t *transaction) tooLarge(id amqp091.MethodID) error {
	return amqp091.Errorf(amqp091.PreconditionFailed, id, "a transaction holds at most %d operations, and those of a connection %d bytes", fsm.MaxTransactionOperations, fsm.MaxTransactionBytes)
}

// commit applies everything and answers. When a publish is refused nothing has taken effect.
func (t *transaction) commit(ctx context.Context) error {
	c, operations, returned := t.channel, t.operations, t.mandatory
	t.operations, t.mandatory = nil, nil
	defer c.forgetTransaction()
	if len(operations) > 0 {
		r, err := c.Commit(ctx, operations)
		if err != nil {
			e := broker.AsError(err)
			if e.Code < 600 || e.Code == fsm.QueueFull {
				return amqp091.Errorf(amqp091.PreconditionFailed, amqp091.TxCommitID, "partial tx completion: nothing was published: %s", e.Message)
			}
			return exceptionOf(err, amqp091.TxCommitID)
		}
		for i := range operations {
			if m := returned[i]; m != nil && r.Parts[i].Routed == 0 {
				m.giveBack()
			}
		}
	}
	c.send(&amqp091.TxCommitOk{})
	return nil
}

// rollback drops the publishes and makes the settled tags outstanding again.
func (t *transaction) rollback() {
	for _, o := range t.operations {
		if o.Settle {
			t.channel.PutBack(o.Held)
		}
	}
	t.reset()
	t.channel.send(&amqp091.TxRollbackOk{})
}

func (t *transaction) reset() {
	t.operations, t.mandatory = nil, nil
	t.channel.forgetTransaction()
}

// forgetTransaction gives back what the channel's transaction had of the connection's bytes.
func (c *channel) forgetTransaction() { c.connection.opened.Add(-c.gathered.Swap(0)) }
