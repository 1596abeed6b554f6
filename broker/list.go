package broker

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/warrenmq/warren/fsm"
)

// The lists show what there is now, sorted, with names that contain a filter. They first wait until they see all
// that any client was told.

// Vhosts lists the vhosts.
func (s *Session) Vhosts(ctx context.Context, filter string) ([]fsm.VhostInfo, error) {
	if err := s.readable(ctx); err != nil {
		return nil, err
	}
	list := s.leadership.broker.machine.Vhosts()
	return slices.DeleteFunc(list, func(v fsm.VhostInfo) bool { return !contains(v.Name, filter) }), nil
}

// QueuesOf returns the queues of a vhost with their message counts, for sums.
func (s *Session) QueuesOf(vhost fsm.VhostInfo) []fsm.QueueInfo {
	return s.leadership.broker.machine.Queues(vhost.Number)
}

// Exchanges lists the exchanges of the session's vhost.
func (s *Session) Exchanges(ctx context.Context, filter string) ([]fsm.ExchangeInfo, error) {
	if err := s.readable(ctx); err != nil {
		return nil, err
	}
	list := s.leadership.broker.machine.Exchanges(s.Vhost.Number)
	return slices.DeleteFunc(list, func(e fsm.ExchangeInfo) bool { return !contains(e.Name, filter) }), nil
}

// QueueRow is a queue with what only the leader knows of it.
type QueueRow struct {
	fsm.QueueInfo
	Held      uint64
	Consumers int
}

// Queues lists the queues of the session's vhost.
func (s *Session) Queues(ctx context.Context, filter string) ([]QueueRow, error) {
	if err := s.readable(ctx); err != nil {
		return nil, err
	}
	var rows []QueueRow
	for _, q := range s.leadership.broker.machine.Queues(s.Vhost.Number) {
		if contains(q.Name, filter) {
			row := QueueRow{QueueInfo: q}
			if v := s.leadership.existingView(q.Number); v != nil {
				row.Held, row.Consumers = v.counts()
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// Bindings lists the bindings of the session's vhost whose source, destination or key contains the filter.
func (s *Session) Bindings(ctx context.Context, filter string) ([]fsm.BindingInfo, error) {
	if err := s.readable(ctx); err != nil {
		return nil, err
	}
	list := s.leadership.broker.machine.Bindings(s.Vhost.Number)
	return slices.DeleteFunc(list, func(b fsm.BindingInfo) bool {
		return !contains(b.Source, filter) && !contains(b.Destination, filter) && !contains(b.Key, filter)
	}), nil
}

// ConsumerRow describes a consumer.
type ConsumerRow struct {
	Queue, Tag         string
	Session            string
	Channel            uint32
	AutoAck, Exclusive bool
	Prefetch, Unacked  uint32
}

// Consumers lists the consumers of the session's vhost by queue and tag.
func (s *Session) Consumers(filter string) []ConsumerRow {
	var rows []ConsumerRow
	for _, other := range s.leadership.snapshot() {
		if other.Vhost.Number != s.Vhost.Number {
			continue
		}
		other.mu.Lock()
		for _, ch := range other.channels {
			ch.mu.Lock()
			for _, c := range ch.consumers {
				if contains(c.tag, filter) || contains(c.view.queue.Name, filter) {
					rows = append(rows, ConsumerRow{Queue: c.view.queue.Name, Tag: c.tag, Session: other.Name(), Channel: ch.ID,
						AutoAck: c.autoAck, Exclusive: c.exclusive, Prefetch: c.prefetch, Unacked: c.unacked})
				}
			}
			ch.mu.Unlock()
		}
		other.mu.Unlock()
	}
	slices.SortFunc(rows, func(a, b ConsumerRow) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Tag, b.Tag), cmp.Compare(a.Session, b.Session))
	})
	return rows
}

// ConnectionRow describes a connection.
type ConnectionRow struct {
	Name, Vhost string
	Client      Client
	Channels    int
	Connected   int64 // Unix ms
}

// Connections lists the connections of all vhosts.
func (s *Session) Connections(filter string) []ConnectionRow {
	var rows []ConnectionRow
	for _, other := range s.leadership.snapshot() {
		if !contains(other.Client.Name, filter) && !contains(other.Client.Peer, filter) {
			continue
		}
		other.mu.Lock()
		rows = append(rows, ConnectionRow{Name: other.Name(), Vhost: other.Vhost.Name, Client: other.Client, Channels: len(other.channels), Connected: other.Connected.UnixMilli()})
		other.mu.Unlock()
	}
	return rows
}

// Name identifies the connection among all of this cluster's.
func (s *Session) Name() string { return fmt.Sprintf("%d-%d", s.ID.Term, s.ID.Number) }

// snapshot returns the sessions by number.
func (l *leadership) snapshot() []*Session {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]*Session, 0, len(l.sessions))
	for _, n := range sortedKeys(l.sessions) {
		list = append(list, l.sessions[n])
	}
	return list
}
