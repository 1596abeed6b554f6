package broker

import (
	"context"

	"github.com/warrenmq/warren/fsm"
)

// Inspection reads what there is in the whole cluster, whatever the vhost, for operators. It sees all that any client
// was told before Inspect returned. Safe for concurrent use.
type Inspection struct {
	leadership *leadership
}

// Inspect waits until this node has made sure that it leads. It fails with NotLeader or NoLeader when it does not serve.
func (b *Broker) Inspect(ctx context.Context) (*Inspection, error) {
	l := b.serving()
	if l == nil {
		return nil, b.refusal()
	}
	if err := l.verify(ctx); err != nil {
		return nil, err
	}
	return &Inspection{l}, nil
}

// Vhosts lists the vhosts by name.
func (i *Inspection) Vhosts() []fsm.VhostInfo { return i.leadership.broker.machine.Vhosts() }

// Vhost finds a vhost.
func (i *Inspection) Vhost(name string) (fsm.VhostInfo, bool) {
	return i.leadership.broker.machine.Vhost(name)
}

// Exchanges lists the exchanges of a vhost by name.
func (i *Inspection) Exchanges(v fsm.VhostInfo) []fsm.ExchangeInfo {
	return i.leadership.broker.machine.Exchanges(v.Number)
}

// Exchange finds an exchange.
func (i *Inspection) Exchange(v fsm.VhostInfo, name string) (fsm.ExchangeInfo, bool) {
	return i.leadership.broker.machine.Exchange(v.Number, name)
}

// Delayed returns how many delayed messages wait in a vhost, by the name of the exchange that they were published to.
func (i *Inspection) Delayed(v fsm.VhostInfo) map[string]uint64 {
	return i.leadership.broker.machine.Delayed(v.Number)
}

// Queues lists the queues of a vhost by name.
func (i *Inspection) Queues(v fsm.VhostInfo) []QueueRow {
	list := i.leadership.broker.machine.Queues(v.Number)
	rows := make([]QueueRow, len(list))
	for n, q := range list {
		rows[n] = i.leadership.queueRow(q)
	}
	return rows
}

// Queue finds a queue.
func (i *Inspection) Queue(v fsm.VhostInfo, name string) (QueueRow, bool) {
	q, ok := i.leadership.broker.machine.Queue(v.Number, name)
	return i.leadership.queueRow(q), ok
}

// Bindings lists the bindings of a vhost by source, destination and key, those of the default exchange left out.
func (i *Inspection) Bindings(v fsm.VhostInfo) []fsm.BindingInfo {
	return i.leadership.broker.machine.Bindings(v.Number)
}

// Owner returns the name that operators know the owner of an exclusive queue by; "" when it is gone.
func (i *Inspection) Owner(q fsm.QueueInfo) string {
	l := i.leadership
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.sessions[q.Owner.Number]; s != nil && s.ID == q.Owner {
		return s.Client.Label()
	}
	return ""
}

// Operate starts a session for an operator's requests. It is no connection: no list shows it, nobody can end it. The
// vhost may be "" for requests that are about none. Close it soon.
func (b *Broker) Operate(client Client, vhost string) (*Session, error) {
	return b.open(client, vhost, nobody{}, true)
}

// nobody receives nothing.
type nobody struct{}

func (nobody) Deliver(Delivery)       {}
func (nobody) Writable() bool         { return false }
func (nobody) Full() bool             { return true }
func (nobody) Cancelled(Cancellation) {}
