package fsm

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Applied returns the last applied index and its term.
func (m *Machine) Applied() (index, term uint64) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.state.index, m.state.term
}

// Clock returns the batch clock of the last applied entry, Unix ms.
func (m *Machine) Clock() int64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.state.clock
}

// Hash returns the state hash with the index it belongs to; HashVersion is its definition's number.
func (m *Machine) Hash() (index, hash uint64) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.state.index, m.state.hash()
}

// HashAt returns the hash after the entry at index, for the last 1,024 entries.
func (m *Machine) HashAt(index uint64) (hash uint64, ok bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.hashes.get(index)
}

// ClusterID returns the id that FoundCluster wrote, or "".
func (m *Machine) ClusterID() string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.state.cluster
}

// Boots returns the boot ids recorded in the state, sorted by server.
func (m *Machine) Boots() []MemberBoot {
	m.mu.RLock()
	defer m.mu.RUnlock()
	boots := slices.Clone(m.state.boots)
	slices.SortFunc(boots, func(a, b MemberBoot) int { return strings.Compare(a.Server, b.Server) })
	return boots
}

// Totals returns sums over the state; its time follows the vhosts.
func (m *Machine) Totals() Totals {
	m.mu.RLock()
	defer m.mu.RUnlock()
	s := m.state
	var paged int64
	if m.root != nil {
		paged = m.root.pager.pages.Bytes()
	}
	return Totals{IndexBytes: s.memory.index, IndexPagedBytes: uint64(paged), Vhosts: len(s.vhosts), Exchanges: s.exchanges.count, Queues: len(s.queues) - s.hiddenQueues(), Bindings: s.bindings.count,
		Producers: len(s.producers.byID), Remembered: s.remembered, Messages: s.messages, MessageBytes: s.bytes,
		Published: s.counters.published, Routed: s.counters.routed, Duplicates: s.counters.duplicates,
		Acknowledged: s.counters.acknowledged, Rejected: s.counters.rejected, Returned: s.counters.returned, Expired: s.counters.expired,
		DeadLettered: s.counters.deadLettered, DeadUnrouted: s.counters.deadUnrouted, OverDeliveryLimit: s.counters.overDeliveryLimit, Discarded: s.counters.discarded,
		Moved: s.counters.moved, Deduplicated: s.counters.deduplicated, Waiting: s.waiting, WaitingBytes: s.waitingBytes,
		Delayed: s.counters.delayed, Released: s.counters.released, ReleasedUnrouted: s.counters.releasedUnrouted, DelayedDiscarded: s.counters.delayedDiscarded,
		DroppedMaxLength: s.counters.droppedMaxLength, RefusedMaxLength: s.counters.refusedMaxLength}
}

// Vhost finds a vhost by name.
func (m *Machine) Vhost(name string) (VhostInfo, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	v := m.state.vhostNames[name]
	if v == nil {
		return VhostInfo{}, false
	}
	return VhostInfo{Number: v.number, Name: v.name}, true
}

// Vhosts lists the vhosts by name.
func (m *Machine) Vhosts() []VhostInfo {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var list []VhostInfo
	for _, name := range slices.Sorted(maps.Keys(m.state.vhostNames)) {
		list = append(list, VhostInfo{Number: m.state.vhostNames[name].number, Name: name})
	}
	return list
}

// Exchanges lists the exchanges of a vhost by name.
func (m *Machine) Exchanges(vhost uint64) []ExchangeInfo {
	m.mu.RLock()
	defer m.mu.RUnlock()
	v := m.state.vhosts[vhost]
	if v == nil {
		return nil
	}
	var list []ExchangeInfo
	for _, name := range slices.Sorted(maps.Keys(v.exchanges)) {
		list = append(list, v.exchanges[name].info())
	}
	return list
}

// Queues lists the queues of a vhost by name.
func (m *Machine) Queues(vhost uint64) []QueueInfo {
	m.mu.RLock()
	defer m.mu.RUnlock()
	v := m.state.vhosts[vhost]
	if v == nil {
		return nil
	}
	var list []QueueInfo
	for _, name := range slices.Sorted(maps.Keys(v.queues)) {
		list = append(list, v.queues[name].info())
	}
	return list
}

// Bindings lists the bindings of a vhost by source, destination, key; those of the default exchange are left out.
func (m *Machine) Bindings(vhost uint64) []BindingInfo {
	m.mu.RLock()
	v := m.state.vhosts[vhost]
	var list []BindingInfo
	if v != nil {
		for _, b := range v.bindings {
			list = append(list, b.info())
		}
	}
	m.mu.RUnlock()
	slices.SortFunc(list, func(a, b BindingInfo) int {
		return cmp.Or(strings.Compare(a.Source, b.Source), strings.Compare(a.Destination, b.Destination), cmp.Compare(a.Kind, b.Kind),
			strings.Compare(a.Key, b.Key), strings.Compare(string(a.Arguments), string(b.Arguments)))
	})
	return list
}

// ExchangesVersion is another one whenever exchanges have come or gone since: what Exchange said holds as long as the
// version that was read before asking. It costs nothing.
func (m *Machine) ExchangesVersion() uint64 { return m.exchanges.Load() }

// Exchange finds an exchange by name.
func (m *Machine) Exchange(vhost uint64, name string) (ExchangeInfo, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if v := m.state.vhosts[vhost]; v != nil && v.exchanges[name] != nil {
		return v.exchanges[name].info(), true
	}
	return ExchangeInfo{}, false
}

// Queue finds a queue by name.
func (m *Machine) Queue(vhost uint64, name string) (QueueInfo, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if v := m.state.vhosts[vhost]; v != nil && v.queues[name] != nil {
		return v.queues[name].info(), true
	}
	return QueueInfo{}, false
}

// QueueByNumber finds a queue by number.
func (m *Machine) QueueByNumber(number uint64) (QueueInfo, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if q := m.state.queues[number]; q != nil {
		return q.info(), true
	}
	return QueueInfo{}, false
}

// QueueNumbers returns the numbers of all queues, ascending.
func (m *Machine) QueueNumbers() []uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.Sorted(maps.Keys(m.state.queues))
}

// Check says what PutExchange, PutQueue, DeleteExchange or PutPolicy would answer now, without changing anything, for a fast
// refusal before consensus. Other commands get OK.
func (m *Machine) Check(c Command) (r Result) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	switch c := c.(type) {
	case PutExchange:
		_, _, r = m.state.checkPutExchange(&c)
	case *PutExchange:
		_, _, r = m.state.checkPutExchange(c)
	case PutQueue:
		_, _, r = m.state.checkPutQueue(&c)
	case *PutQueue:
		_, _, r = m.state.checkPutQueue(c)
	case DeleteExchange:
		_, r = m.state.checkDeleteExchange(&c)
	case *DeleteExchange:
		_, r = m.state.checkDeleteExchange(c)
	case PutPolicy:
		_, _, r = m.state.checkPutPolicy(&c)
	case *PutPolicy:
		_, _, r = m.state.checkPutPolicy(c)
	}
	return r
}

// Live reports how many live messages a queue has in the runs, which are ascending and disjoint.
func (m *Machine) Live(queue uint64, runs []Run) uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if q := m.state.queues[queue]; q != nil {
		return q.messages.liveIn(runs)
	}
	return 0
}

func (e *exchange) info() ExchangeInfo {
	return ExchangeInfo{Number: e.number, Vhost: e.vhost.name, Name: e.name, Type: e.kind, Durable: e.durable,
		AutoDelete: e.autoDelete, Internal: e.internal, Arguments: e.arguments, Duplicates: e.window.had(), Governed: e.policies.info()}
}

func (q *queue) info() QueueInfo {
	first, ok := q.messages.first()
	if !ok {
		first = q.messages.nextSequence()
	}
	return QueueInfo{Number: q.number, Vhost: q.vhost.name, Name: q.name, Durable: q.durable, Exclusive: q.exclusive,
		AutoDelete: q.autoDelete, Arguments: q.arguments, Owner: q.owner, Messages: q.messages.count,
		MessageBytes: q.messages.bytes, Limited: q.rules.limited(), Claimed: q.messages.claims.count, FirstLive: first, Next: q.messages.nextSequence(), Mark: q.mark,
		Suspicion: q.suspicion, HadConsumer: q.hadConsumer, InUse: q.inUse, UnusedSince: q.unusedSince, Duplicates: q.window.had(), Governed: q.policies.info()}
}

func (b *binding) info() BindingInfo {
	i := BindingInfo{Vhost: b.source.vhost.name, Source: b.source.name, Key: b.key, Arguments: b.arguments}
	if b.queue != nil {
		i.Kind, i.Destination = ToQueue, b.queue.name
	} else {
		i.Kind, i.Destination = ToExchange, b.exchange.name
	}
	return i
}

// UnusedQueue is a queue to delete: nobody has used it since a batch clock value, in ms.
type UnusedQueue struct {
	Number uint64
	Since  int64
}

// UnusedQueues returns up to limit queues that were not used for as long as their x-expires says at a batch clock
// value, in ms, ascending by number. Its time follows the queues that can expire.
func (m *Machine) UnusedQueues(now int64, limit int) []UnusedQueue {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var unused []UnusedQueue
	for _, q := range m.state.expiring {
		if !q.inUse && q.unusedSince+q.rules.expires <= now {
			unused = append(unused, UnusedQueue{q.number, q.unusedSince})
		}
	}
	slices.SortFunc(unused, func(a, b UnusedQueue) int { return cmp.Compare(a.Number, b.Number) })
	return unused[:min(len(unused), limit)]
}

// AbandonedQueues returns up to limit numbers of auto-delete queues that had a consumer and have had none since a
// batch clock value not after before, in ms (rule 12), ascending.
func (m *Machine) AbandonedQueues(before int64, limit int) []uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var numbers []uint64
	for n, q := range m.state.queues {
		if q.autoDelete && q.hadConsumer && !q.inUse && q.unusedSince <= before {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers[:min(len(numbers), limit)]
}
