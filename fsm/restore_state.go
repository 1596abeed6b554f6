package fsm

import (
	"fmt"

	"github.com/warrenmq/warren/fsm/store"
)

// state makes a state from an image and the messages of its queues. The image's numbers and names are checked, since
// the bytes may be another node's.
func (i *image) state(queues map[uint64]*messages) (*state, error) {
	s := newState()
	s.index, s.term, s.clock, s.cluster, s.leader = i.Index, i.Term, i.Clock, i.Cluster, i.Leader
	s.lastNumber, s.lastStamp = i.LastNumber, i.LastStamp
	s.cursor = dropCursor{i.Cursor[0], i.Cursor[1]}
	for at, n := range s.counters.all() {
		if at < len(i.Counters) {
			*n = i.Counters[at]
		}
	}
	for _, b := range i.Boots {
		s.boots = append(s.boots, MemberBoot{Server: b.Server, Boot: b.Boot})
	}
	exchanges := make(map[uint64]*exchange, len(i.Exchanges))
	for _, u := range i.Users {
		s.setUserLimits(u.Name, resourceLimits{connections: u.Limits[0], channels: u.Limits[1]})
	}
	for _, v := range i.Vhosts {
		made := s.insertVhost(v.Number, v.Name, resourceLimits{connections: v.Limits[0], queues: v.Limits[1]})
		for _, w := range v.Waiting {
			s.waits(made, w.Exchange, int(w.Messages))
		}
	}
	for _, p := range i.Policies {
		v := s.vhosts[p.Vhost]
		if v == nil || checkPattern(p.Pattern) != "" {
			return nil, fmt.Errorf("%w: policy '%s' has no vhost %d, or a pattern that is none", store.ErrManifest, p.Name, p.Vhost)
		}
		s.insertPolicy(&policy{vhost: v, operator: p.Operator, name: p.Name, pattern: p.Pattern, applyTo: p.ApplyTo, priority: p.Priority, definition: p.Definition})
	}
	for _, e := range i.Exchanges {
		v := s.vhosts[e.Vhost]
		if v == nil {
			return nil, unknown("exchange", e.Number, "vhost", e.Vhost)
		}
		exchanges[e.Number] = &exchange{number: e.Number, vhost: v, name: e.Name, kind: e.Kind, durable: e.Durable,
			autoDelete: e.AutoDelete, internal: e.Internal, arguments: e.Arguments}
		s.insertExchange(exchanges[e.Number])
	}
	for _, q := range i.Queues {
		v, m := s.vhosts[q.Vhost], queues[q.Number]
		if v == nil {
			return nil, unknown("queue", q.Number, "vhost", q.Vhost)
		}
		if m == nil {
			return nil, unknown("queue", q.Number, "list of messages", q.Number)
		}
		s.insertQueue(&queue{number: q.Number, vhost: v, name: q.Name, durable: q.Durable, exclusive: q.Exclusive, autoDelete: q.AutoDelete,
			arguments: q.Arguments, owner: Session{q.OwnerTerm, q.OwnerNumber}, mark: q.Mark, suspicion: q.Suspicion,
			hadConsumer: q.HadConsumer, inUse: q.InUse, unusedSince: q.UnusedSince, awaited: q.Awaited, messages: *m})
	}
	for _, b := range i.Bindings {
		made := &binding{source: exchanges[b.Source], queue: s.queues[b.Destination], exchange: exchanges[b.Destination], key: b.Key, arguments: b.Arguments}
		if made.source == nil || made.queue == nil && made.exchange == nil {
			return nil, unknown("binding from exchange", b.Source, "destination", b.Destination)
		}
		s.insertBinding(made)
	}
	for _, p := range i.Producers {
		made := &producer{memory: &memory{id: p.ID, highest: p.Highest, used: p.Used, stamp: p.Stamp}}
		for o := p.Outcomes; len(o) >= 3; o = o[3:] {
			made.outcomes = append(made.outcomes, outcome{from: o[0], to: o[1], routed: uint32(o[2])})
		}
		s.insertProducer(made)
	}
	for n := range i.Windows {
		if w := &i.Windows[n]; !s.restoreWindow(w) {
			return nil, unknown("deduplication window", w.Number, "exchange, queue or list of values", w.Number)
		}
	}
	for _, u := range i.Uploads {
		s.insertUpload(Session{u.Term, u.Session}, u.Number, u.Total, u.Parts...)
	}
	return s, nil
}

func unknown(kind string, number uint64, of string, other uint64) error {
	return fmt.Errorf("%w: %s %d has no %s %d", store.ErrManifest, kind, number, of, other)
}
