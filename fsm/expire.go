package fsm

import "slices"

// expiry returns when a message that comes now expires in a queue (see Message.Expires); own is the message's own time to
// live in ms, below 0 without one.
func (s *state) expiry(q *queue, own int64) int64 {
	ttl := q.rules.ttl
	if own >= 0 && (ttl < 0 || own < ttl) {
		ttl = own
	}
	switch {
	case ttl < 0:
		return 0
	case len(q.messages.expiring) == 0:
		s.timed[q.number] = q
	}
	now := max(s.clock, 1)
	if ttl == 0 {
		return -now
	}
	return now + ttl
}

func (s *state) applyExpire(c *Expire) Result {
	q := s.queues[c.Queue]
	if q == nil {
		return Result{}
	}
	s.touch(q)
	var n uint64
	for _, r := range c.Runs {
		for at, ok := q.messages.next(r.From); ok && at <= r.To; at, ok = q.messages.next(at + 1) {
			where, position, _ := q.messages.at(at)
			if e := q.messages.chunks[where].expiresAt(position); e != 0 && max(e, -e) <= s.clock && !q.messages.claimed(at) {
				s.die(q, at, Expired)
				n++
			}
		}
	}
	s.counters.expired += n
	q.messages.refresh(s.clock)
	if q.messages.firstDue() == 0 {
		delete(s.timed, q.number)
	}
	return Result{Messages: n}
}

// Due returns up to limit numbers of queues in which messages may have expired at a batch clock value, in ms, ascending.
// Its time follows the queues with messages that expire.
func (m *Machine) Due(now int64, limit int) (numbers []uint64) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for number, q := range m.state.timed {
		if q.messages.firstDue() <= now {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	return numbers[:min(len(numbers), limit)]
}

// LastSequence returns the last sequence that a queue has given, 0 for one that is gone.
func (m *Machine) LastSequence(queue uint64) uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if q := m.state.queues[queue]; q != nil {
		return q.messages.last
	}
	return 0
}

// ExpiredIn returns up to limit live messages of a queue that have expired at a batch clock value, in ms.
func (m *Machine) ExpiredIn(queue uint64, now int64, limit int) []uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if q := m.state.queues[queue]; q != nil {
		return q.messages.expired(now, limit)
	}
	return nil
}
