package fsm

import "slices"

// die ends a live message: it waits for its dead letter, or is gone in a queue without a dead letter exchange.
func (s *state) die(q *queue, sequence uint64, why Reason) {
	if !q.rules.deadLetter {
		q.messages.remove(sequence)
		return
	}
	q.messages.kill(sequence, why)
	s.counters.died++
	s.dying[q.number] = q
	if !q.died {
		q.died = true
		s.died = append(s.died, q.number)
	}
}

// killRuns ends the live messages in ascending runs, as rejected, and returns how many there were.
func (s *state) killRuns(q *queue, runs []Run) (n uint64) {
	for _, r := range runs {
		for at, ok := q.messages.next(r.From); ok && at <= r.To; at, ok = q.messages.next(at + 1) {
			s.die(q, at, Rejected)
			n++
		}
	}
	return n
}

// applyDeadLetter moves a dying message to where its queue's rules lead it.
func (s *state) applyDeadLetter(c *DeadLetter) Result {
	p := &c.Message
	if p.Upload != 0 {
		defer s.dropUpload(p.Session, p.Upload)
	}
	q := s.queues[c.Queue]
	if q == nil {
		return Result{}
	}
	why, ok := q.messages.death(c.Sequence)
	if !ok {
		return Result{}
	}
	body := p.Body
	if p.Upload != 0 {
		u := s.upload(p.Session, p.Upload)
		if u == nil || u.received != u.total {
			return refuse(PreconditionFailed, "the body parts of upload %d are not all there", p.Upload)
		}
		body = u.body()
	}
	d := newDeath(q, why, c, s.clock)
	var queues []*queue
	var e *exchange
	if q.rules.deadLetter { // a policy may have gone since it died
		e = q.vhost.exchanges[q.rules.deadExchange]
	}
	if e != nil {
		queues = slices.DeleteFunc(s.routing.route(e, d.key, d.properties), d.cycle)
	}
	if q.rules.keepDead {
		if full := withoutRoom(queues, uint64(len(body)), q); full != nil {
			return refuse(QueueFull, "queue '%s' in vhost '%s' has no room for the dead letters of queue '%s'", full.name, full.vhost.name, q.name)
		}
	}
	if len(queues) == 0 && q.rules.keepDead {
		return refuse(NotFound, "no queue for the dead letters of queue '%s' in vhost '%s'", q.name, q.vhost.name)
	}
	s.touch(q)
	if len(queues) == 0 {
		s.counters.deadUnrouted++
	} else {
		letter := s.content()
		properties := StripBCC(d.properties)
		*letter = content{exchange: e.name, routingKey: d.key, properties: properties, body: body, deaths: d.deaths,
			id: [2]uint64{s.index, s.position}, transient: isTransient(properties)}
		letter.hash = letter.digest()
		s.checked = q.rules.keepDead
		refused, _ := s.enqueue(queues, letter)
		s.checked = false
		routed := len(queues) - refused
		if routed == 0 {
			s.counters.deadUnrouted++
		} else {
			s.counters.deadLettered++
		}
		s.counters.routed += uint64(routed)
		queues = queues[:routed]
	}
	s.position++
	q.messages.bury(c.Sequence)
	if q.messages.dying.count == 0 {
		delete(s.dying, q.number)
	}
	return Result{Routed: uint32(len(queues))}
}

// DyingQueues returns the numbers of the queues with messages whose dead letters are to be routed, ascending.
func (m *Machine) DyingQueues() (numbers []uint64) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for number := range m.state.dying {
		numbers = append(numbers, number)
	}
	slices.Sort(numbers)
	return numbers
}

// ReadDying returns dying messages of a queue with sequences from 'from' on, in order, until count messages or bytes of
// bodies are reached, at least one if there is one. Properties are as published, BCC included. Errors are those of Read.
func (m *Machine) ReadDying(number, from uint64, count, bytes int) (out []Message, err error) {
	err = m.reading(number, &out, func(q *queue) (loads []pending) {
		out, loads = q.messages.listDying(from, count, max(bytes, 1))
		return loads
	})
	return out, err
}
