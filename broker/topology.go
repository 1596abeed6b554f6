package broker

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/warrenmq/warren/fsm"
)

// Exchange is an exchange.declare.
type Exchange struct {
	Name, Kind                    string
	Durable, AutoDelete, Internal bool
	Arguments                     []byte
}

// Queue is a queue.declare.
type Queue struct {
	Name                           string
	Durable, Exclusive, AutoDelete bool
	Arguments                      []byte
}

// DeclareExchange creates an exchange or finds an equivalent one.
func (s *Session) DeclareExchange(ctx context.Context, e Exchange) error {
	c := fsm.PutExchange{Vhost: s.Vhost.Number, Name: e.Name, Type: e.Kind, Durable: e.Durable, AutoDelete: e.AutoDelete, Internal: e.Internal, Arguments: e.Arguments}
	_, err := s.lane.call(ctx, c)
	return err
}

// ExchangeExists answers a passive declare.
func (s *Session) ExchangeExists(ctx context.Context, name string) error {
	if err := s.readable(ctx); err != nil {
		return err
	}
	if _, ok := s.leadership.broker.machine.Exchange(s.Vhost.Number, name); !ok {
		return errorf(fsm.NotFound, "NOT_FOUND - no exchange '%s' in vhost '%s'", name, s.Vhost.Name)
	}
	return nil
}

// exchangeCache is what a session has found lately.
type exchangeCache struct {
	mu      sync.Mutex
	version uint64 // of the machine's exchanges; guarded by mu
	found   map[string]fsm.ExchangeInfo
}

// FindExchange finds an exchange in the state as it is applied here, at once: cheap enough for each publish. What the
// session has declared on the same channel and was answered is seen.
func (s *Session) FindExchange(name string) (fsm.ExchangeInfo, bool) {
	machine, c := s.leadership.broker.machine, &s.exchanges
	version := machine.ExchangesVersion()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.version != version || len(c.found) >= maxExchangesCached {
		c.version, c.found = version, nil
	}
	info, ok := c.found[name]
	if !ok {
		if info, ok = machine.Exchange(s.Vhost.Number, name); ok {
			if c.found == nil {
				c.found = map[string]fsm.ExchangeInfo{}
			}
			c.found[info.Name] = info
		}
	}
	return info, ok
}

// readable waits until a read of the state sees what this session has done and all that any client was told (rule 10).
func (s *Session) readable(ctx context.Context) error {
	if err := s.Settled(ctx); err != nil {
		return err
	}
	return s.leadership.verify(ctx)
}

// DeleteExchange removes an exchange.
func (s *Session) DeleteExchange(ctx context.Context, name string, ifUnused bool) error {
	_, err := s.lane.call(ctx, fsm.DeleteExchange{Vhost: s.Vhost.Number, Name: name, IfUnused: ifUnused})
	return err
}

// QueueState is what a declare answers.
type QueueState struct {
	Name      string
	Ready     uint64
	Consumers uint32
}

// DeclareQueue creates a queue or finds an equivalent one. An empty name is made up; only so does one come to be that
// begins with "amq.", and it cannot be declared again. Addresses for replies are found while somebody is there.
func (s *Session) DeclareQueue(ctx context.Context, q Queue) (QueueState, error) {
	if q.Name == "" {
		q.Name = generatedName("amq.gen-")
	} else if strings.HasPrefix(q.Name, ReplyQueue) {
		return s.replyState(q.Name)
	} else if strings.HasPrefix(q.Name, "amq.") {
		return QueueState{}, errorf(fsm.AccessRefused, "ACCESS_REFUSED - queue name '%s' contains reserved prefix 'amq.*'", q.Name)
	}
	if q.Exclusive {
		s.own()
	}
	r, err := s.lane.call(ctx, fsm.PutQueue{Vhost: s.Vhost.Number, Name: q.Name, Durable: q.Durable, Exclusive: q.Exclusive,
		AutoDelete: q.AutoDelete, Arguments: q.Arguments, Owner: s.ID})
	if err != nil {
		return QueueState{}, err
	}
	return s.state(q.Name, r.Queue, r.Messages), nil
}

// state subtracts what consumers hold.
func (s *Session) state(name string, number, messages uint64) QueueState {
	out := QueueState{Name: name, Ready: messages}
	if v := s.leadership.existingView(number); v != nil {
		held, consumers := v.counts()
		if q, ok := s.leadership.broker.machine.QueueByNumber(number); ok && q.Limited {
			held = max(held, q.Claimed)
		}
		out.Ready -= min(messages, held)
		out.Consumers = uint32(consumers)
	}
	return out
}

// replyState answers the declaration of an address for replies.
func (s *Session) replyState(name string) (QueueState, error) {
	if !s.ReplyAlive(name) {
		return QueueState{}, s.noQueue(name)
	}
	return QueueState{Name: name, Consumers: 1}, nil
}

// QueueExists answers a passive declare.
func (s *Session) QueueExists(ctx context.Context, name string) (QueueState, error) {
	if strings.HasPrefix(name, ReplyQueue) {
		return s.replyState(name)
	}
	if err := s.lane.show(ctx); err != nil {
		return QueueState{}, err
	}
	if err := s.readable(ctx); err != nil {
		return QueueState{}, err
	}
	q, err := s.queue(name)
	if err != nil {
		return QueueState{}, err
	}
	if v := s.leadership.existingView(q.Number); v != nil {
		if err := v.handOut(ctx); err != nil {
			return QueueState{}, err
		}
		if q, err = s.queue(name); err != nil {
			return QueueState{}, err
		}
	}
	return s.state(name, q.Number, q.Messages), nil
}

// DeleteQueue removes a queue and returns how many messages were ready. One that does not exist is no error.
func (s *Session) DeleteQueue(ctx context.Context, name string, ifUnused, ifEmpty bool) (uint64, error) {
	if err := s.Settled(ctx); err != nil {
		return 0, err
	}
	l := s.leadership
	info, err := s.queue(name)
	if err != nil {
		if AsError(err).Code == fsm.NotFound {
			return 0, nil
		}
		return 0, err
	}
	v := l.view(info.Number)
	if v == nil {
		return 0, nil
	}
	c := fsm.DeleteQueue{Vhost: s.Vhost.Number, Name: name, Number: info.Number, IfEmpty: ifEmpty, Session: s.ID}
	if ifUnused {
		v.mu.Lock()
		if v.deleting != nil || v.turns.n+v.joining > 0 {
			v.mu.Unlock()
			return 0, errorf(fsm.PreconditionFailed, "PRECONDITION_FAILED - queue '%s' in vhost '%s' in use", name, s.Vhost.Name)
		}
		deleting := make(chan struct{})
		v.deleting = deleting
		v.mu.Unlock()
		defer func() {
			v.mu.Lock()
			v.deleting = nil
			v.mu.Unlock()
			close(deleting)
		}()
	}
	return s.remove(ctx, v, func(held []fsm.Run) fsm.Command { c.Held = held; return c })
}

// Purge removes the ready messages of a queue and returns how many.
func (s *Session) Purge(ctx context.Context, name string) (uint64, error) {
	if err := s.Settled(ctx); err != nil {
		return 0, err
	}
	info, err := s.queue(name)
	if err != nil {
		return 0, err
	}
	v := s.leadership.view(info.Number)
	if v == nil {
		return 0, s.noQueue(name)
	}
	if err := v.handOut(ctx); err != nil {
		return 0, err
	}
	return s.remove(ctx, v, func(held []fsm.Run) fsm.Command { return fsm.Purge{Queue: info.Number, Held: held} })
}

// remove applies a command that removes ready messages. What is held is looked at when the batch is cut, and nothing
// is handed out from then until the result (rule 3).
func (s *Session) remove(ctx context.Context, v *view, command func(held []fsm.Run) fsm.Command) (uint64, error) {
	done := make(chan fsm.Result, 1)
	if err := s.submitFrozen(ctx, v, 4096, command, func(r fsm.Result) { done <- r }); err != nil {
		return 0, err
	}
	select {
	case r := <-done:
		return r.Messages, resultError(r)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// submitFrozen submits such a command, of a size in an entry, without waiting for its result.
func (s *Session) submitFrozen(ctx context.Context, v *view, size int, command func(held []fsm.Run) fsm.Command, done func(fsm.Result)) error {
	frozen := false // the proposer's goroutine writes it before the finisher reads it
	return s.lane.submit(ctx, true, submission{size: size, prepare: func() fsm.Command {
		held := v.freeze()
		frozen = true
		return command(held)
	}, done: CompleterFunc(func(r fsm.Result) {
		if frozen {
			v.thaw()
		}
		done(r)
	})})
}

// Binding is a bind or an unbind.
type Binding struct {
	Kind                     fsm.DestinationKind
	Destination, Source, Key string
	Arguments                []byte
}

// Bind makes a binding.
func (s *Session) Bind(ctx context.Context, b Binding) error {
	if err := b.check(); err != nil {
		return err
	}
	_, err := s.lane.call(ctx, fsm.PutBinding{Vhost: s.Vhost.Number, Source: b.Source, Kind: b.Kind, Destination: b.Destination, Key: b.Key, Arguments: b.Arguments, Session: s.ID})
	return err
}

// check names what would be a mistake in the log.
func (b *Binding) check() error {
	if b.Kind > fsm.ToExchange {
		return errorf(fsm.PreconditionFailed, "PRECONDITION_FAILED - a binding leads to a queue (0) or an exchange (1), not to a %d", b.Kind)
	}
	if b.Kind == fsm.ToQueue && strings.HasPrefix(b.Destination, ReplyQueue) {
		return errorf(fsm.AccessRefused, "ACCESS_REFUSED - cannot bind or unbind to a volatile (direct reply-to) queue")
	}
	return nil
}

// Unbind removes a binding.
func (s *Session) Unbind(ctx context.Context, b Binding) error {
	if err := b.check(); err != nil {
		return err
	}
	_, err := s.lane.call(ctx, fsm.DeleteBinding{Vhost: s.Vhost.Number, Source: b.Source, Kind: b.Kind, Destination: b.Destination, Key: b.Key, Arguments: b.Arguments, Session: s.ID})
	return err
}

// PutVhost creates a virtual host.
func (s *Session) PutVhost(ctx context.Context, name string) error {
	if name == "" || len(name) > fsm.MaxNameBytes {
		return errorf(fsm.PreconditionFailed, "PRECONDITION_FAILED - a vhost name has 1 to %d bytes, this one has %d", fsm.MaxNameBytes, len(name))
	}
	_, err := s.lane.call(ctx, fsm.PutVhost{Name: name})
	return err
}

// DeleteVhost removes a virtual host with all that is in it and ends the sessions there, this one too if it is in it.
func (s *Session) DeleteVhost(ctx context.Context, name string) error {
	info, there := s.leadership.broker.machine.Vhost(name)
	if _, err := s.lane.call(ctx, fsm.DeleteVhost{Name: name}); err != nil {
		return err
	}
	if there {
		s.leadership.endSessions(fmt.Sprintf("vhost '%s' is deleted", name), func(other *Session) bool { return other.Vhost.Number == info.Number })
	}
	return nil
}
