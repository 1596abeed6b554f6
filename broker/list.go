package broker

import (
	"context"
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
			rows = append(rows, s.leadership.queueRow(q))
		}
	}
	return rows, nil
}

func (l *leadership) queueRow(q fsm.QueueInfo) QueueRow {
	row := QueueRow{QueueInfo: q}
	if v := l.existingView(q.Number); v != nil {
		row.Held, row.Consumers = v.counts()
		row.Held = max(row.Held, q.Claimed)
	}
	return row
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
