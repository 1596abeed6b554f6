package client

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/warrenmq/warren/protocol/native"
)

// topology is what was declared through the connection and is not durable by itself or in doubt: it is declared again
// over each new link, which does no harm where it is still there. Guarded by the Connection's mu.
type topology struct {
	exchanges map[string]native.ExchangeDeclare
	queues    map[string]native.QueueDeclare
	bindings  map[string]native.Binding
}

func (t *topology) init() {
	if t.exchanges == nil {
		t.exchanges, t.queues, t.bindings = map[string]native.ExchangeDeclare{}, map[string]native.QueueDeclare{},
			map[string]native.Binding{}
	}
}

func bindingName(b *native.Binding) string {
	return fmt.Sprintf("%d %q %q %q %x", b.DestinationKind, b.Destination, b.Exchange, b.BindingKey, b.Arguments)
}

// forget drops the bindings from and to what was deleted.
func (t *topology) forget(kind uint8, name string) {
	for k, b := range t.bindings {
		if b.DestinationKind == kind && b.Destination == name || kind == native.ToExchange && b.Exchange == name {
			delete(t.bindings, k)
		}
	}
}

// Exchange describes an exchange to be declared.
type Exchange struct {
	Name       string
	Kind       string // direct, fanout, topic, headers, or x-delayed-message
	Durable    bool
	AutoDelete bool
	Internal   bool
	Arguments  map[string]any
	Passive    bool // only ask whether it is there
}

// Queue describes a queue to be declared. An empty name gets one made up, which it keeps.
type Queue struct {
	Name       string
	Durable    bool
	Exclusive  bool
	AutoDelete bool
	Arguments  map[string]any
	Passive    bool // only ask whether it is there
}

// QueueState is what the broker tells of a queue when it is declared.
type QueueState struct {
	Name      string
	Messages  uint64 // ready
	Consumers uint32
}

// DeclareExchange creates an exchange; it succeeds when an equal one is there.
func (ch *Channel) DeclareExchange(ctx context.Context, e Exchange) error {
	args, err := native.EncodeTable(nil, e.Arguments)
	if err != nil {
		return err
	}
	d := native.ExchangeDeclare{Head: ch.head(0), Name: e.Name, Kind: e.Kind, Durable: e.Durable, AutoDelete: e.AutoDelete,
		Internal: e.Internal, Arguments: args, Passive: e.Passive}
	return ch.do(ctx, &call{after: func(*call) {
		if !d.Passive {
			ch.conn.topology.init()
			ch.conn.topology.exchanges[d.Name] = d
		}
	}}, func(rid uint64) native.Frame { d.RID = rid; return &d })
}

// DeclareQueue creates a queue; it succeeds when an equal one is there.
func (ch *Channel) DeclareQueue(ctx context.Context, q Queue) (QueueState, error) {
	args, err := native.EncodeTable(nil, q.Arguments)
	if err != nil {
		return QueueState{}, err
	}
	if q.Name == "" && !q.Passive { // chosen here, so that a repeated declare makes no second queue
		q.Name = "warren.gen-" + rand.Text()
	}
	d := native.QueueDeclare{Head: ch.head(0), Name: q.Name, Durable: q.Durable, Exclusive: q.Exclusive, AutoDelete: q.AutoDelete,
		Arguments: args, Passive: q.Passive}
	var ok native.QueueDeclareOK
	err = ch.do(ctx, &call{answer: &ok, after: func(*call) {
		if !d.Passive {
			ch.conn.topology.init()
			ch.conn.topology.queues[d.Name] = d
		}
	}}, func(rid uint64) native.Frame { d.RID = rid; return &d })
	return QueueState{ok.Name, ok.Messages, ok.Consumers}, err
}

// DeleteExchange removes an exchange, with ifUnused only when no binding leads from it.
func (ch *Channel) DeleteExchange(ctx context.Context, name string, ifUnused bool) error {
	return ch.do(ctx, &call{after: func(*call) {
		delete(ch.conn.topology.exchanges, name)
		ch.conn.topology.forget(native.ToExchange, name)
	}}, func(rid uint64) native.Frame {
		return &native.ExchangeDelete{Head: ch.head(rid), Name: name, IfUnused: ifUnused}
	})
}

// DeleteQueue removes a queue and returns how many ready messages went with it. The number is 0 when the answer to a
// first try was lost.
func (ch *Channel) DeleteQueue(ctx context.Context, name string, ifUnused, ifEmpty bool) (uint64, error) {
	var ok native.QueueDeleteOK
	err := ch.do(ctx, &call{answer: &ok, after: func(*call) {
		delete(ch.conn.topology.queues, name)
		ch.conn.topology.forget(native.ToQueue, name)
	}}, func(rid uint64) native.Frame {
		return &native.QueueDelete{Head: ch.head(rid), Name: name, IfUnused: ifUnused, IfEmpty: ifEmpty}
	})
	return ok.Messages, err
}

// Purge removes the ready messages of a queue and returns how many they were.
func (ch *Channel) Purge(ctx context.Context, queue string) (uint64, error) {
	var ok native.PurgeOK
	err := ch.do(ctx, &call{answer: &ok}, func(rid uint64) native.Frame {
		return &native.Purge{Head: ch.head(rid), Name: queue}
	})
	return ok.Messages, err
}

// Bind binds a queue to an exchange.
func (ch *Channel) Bind(ctx context.Context, exchange, queue, key string, arguments map[string]any) error {
	return ch.bind(ctx, native.ToQueue, exchange, queue, key, arguments)
}

// BindExchange binds the exchange destination to the exchange source.
func (ch *Channel) BindExchange(ctx context.Context, source, destination, key string, arguments map[string]any) error {
	return ch.bind(ctx, native.ToExchange, source, destination, key, arguments)
}

func (ch *Channel) bind(ctx context.Context, kind uint8, source, destination, key string, arguments map[string]any) error {
	args, err := native.EncodeTable(nil, arguments)
	if err != nil {
		return err
	}
	b := native.Binding{DestinationKind: kind, Destination: destination, Exchange: source, BindingKey: key, Arguments: args}
	return ch.do(ctx, &call{after: func(*call) {
		ch.conn.topology.init()
		ch.conn.topology.bindings[bindingName(&b)] = b
	}}, func(rid uint64) native.Frame { return &native.Bind{Head: ch.head(rid), Binding: b} })
}

// Unbind removes the binding of a queue that was made with exactly these values.
func (ch *Channel) Unbind(ctx context.Context, exchange, queue, key string, arguments map[string]any) error {
	return ch.unbind(ctx, native.ToQueue, exchange, queue, key, arguments)
}

// UnbindExchange removes the binding between two exchanges that was made with exactly these values.
func (ch *Channel) UnbindExchange(ctx context.Context, source, destination, key string, arguments map[string]any) error {
	return ch.unbind(ctx, native.ToExchange, source, destination, key, arguments)
}

func (ch *Channel) unbind(ctx context.Context, kind uint8, source, destination, key string, arguments map[string]any) error {
	args, err := native.EncodeTable(nil, arguments)
	if err != nil {
		return err
	}
	b := native.Binding{DestinationKind: kind, Destination: destination, Exchange: source, BindingKey: key, Arguments: args}
	return ch.do(ctx, &call{after: func(*call) { delete(ch.conn.topology.bindings, bindingName(&b)) }},
		func(rid uint64) native.Frame { return &native.Unbind{Head: ch.head(rid), Binding: b} })
}
