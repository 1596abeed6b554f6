package fsm

import "slices"

// overflow is what a queue does with a message for which there is no room.
type overflow uint8

const (
	dropHead      overflow = iota // ready messages die for it, the oldest first
	rejectPublish                 // it is refused
	rejectDead                    // it is refused, and dies
)

// maxDropped is how many messages die at once for room. Only a message that displaces more than that, or a limit that is
// lowered, leaves more than the limit lets, until Trim has done the rest.
const maxDropped = 65_536

// limits are how many messages may be ready in a queue, and how many bytes of bodies.
type limits struct {
	length, bytes int64 // -1: no limit
	overflow      overflow
}

func (l *limits) limited() bool { return l.length >= 0 || l.bytes >= 0 }

// refuses reports whether a publish may be refused for want of room.
func (l *limits) refuses() bool { return l.overflow != dropHead && l.limited() }

func (l *limits) exceeded(count, bytes uint64) bool {
	return l.length >= 0 && count > uint64(l.length) || l.bytes >= 0 && bytes > uint64(l.bytes)
}

func (s *settings) limits(quorum bool) limits {
	if _, grouped := s.text("x-group-key"); grouped { // see groupKey; a policy's limits do nothing
		return limits{length: -1, bytes: -1}
	}
	l := limits{length: s.integer("x-max-length"), bytes: s.integer("x-max-length-bytes")}
	switch value, _ := s.text("x-overflow"); {
	case value == "reject-publish":
		l.overflow = rejectPublish
	case value == "reject-publish-dlx" && !quorum: // as in RabbitMQ, whose quorum queues drop then
		l.overflow = rejectDead
	}
	return l
}

// ready returns what the limits count: messages that nobody holds. Where dead letters stay until they have arrived they
// count, too.
func (q *queue) ready() (count, bytes uint64) {
	m := &q.messages
	count, bytes = m.count-m.claims.count, m.bytes-m.claims.bytes
	if q.rules.keepDead {
		count, bytes = count+m.dying.count, bytes+m.dying.bytes
	}
	return count, bytes
}

// hasRoom reports whether the queue takes so many more messages, with bodies of so many bytes.
func (q *queue) hasRoom(messages, bytes uint64) bool {
	if !q.rules.refuses() || q.awaited >= messages {
		return true
	}
	count, size := q.ready()
	return !q.rules.exceeded(count+messages-q.awaited, size+bytes)
}

// nextToDrop returns the ready message that goes first when there are too many: the oldest of the lowest priority.
func (q *queue) nextToDrop() (sequence uint64, ok bool) {
	m := &q.messages
	if len(m.levels) == 0 {
		return m.firstReady()
	}
	var room [256]uint8
	for _, code := range slices.Backward(m.codes(q.rules.plain, room[:0])) {
		for sequence, ok = m.nextIn(code, 1); ok; sequence, ok = m.nextIn(code, sequence+1) {
			if !m.claimed(sequence) {
				return sequence, true
			}
		}
	}
	return 0, false
}

// makeRoom lets ready messages die until the queue is within its limits, up to a number, and returns how many did. What
// remains is for Trim.
func (s *state) makeRoom(q *queue, most int) (dropped uint64) {
	if !q.rules.limited() || q.rules.overflow != dropHead {
		return 0
	}
	for q.rules.exceeded(q.ready()) {
		if most == 0 {
			if s.overfull[q.number] == nil {
				s.overfull[q.number] = q
			}
			s.overran = true
			return dropped
		}
		sequence, ok := q.nextToDrop()
		if !ok {
			break
		}
		if where, _, _ := q.messages.at(sequence); q.messages.chunks[where].packed != nil {
			q.messages.writable(where) // its neighbours are next
		}
		s.die(q, sequence, MaxLength)
		s.counters.droppedMaxLength++
		dropped, most = dropped+1, most-1
	}
	delete(s.overfull, q.number)
	return dropped
}

// limitsChanged follows up on other rules of a queue: what is too much goes with Trim.
func (s *state) limitsChanged(q *queue) {
	s.limited = append(s.limited, q.number)
	delete(s.refusing, q.number)
	if q.rules.refuses() {
		s.refusing[q.number] = q
	}
	delete(s.overfull, q.number)
	if q.rules.overflow == dropHead && q.rules.exceeded(q.ready()) {
		s.overfull[q.number] = q
		s.overran = true
	}
}

// refuseFor takes note of a message that a queue has no room for. One that dies for that is in the queue, dying, until its
// dead letter is routed.
func (s *state) refuseFor(q *queue, c *content) {
	s.counters.refusedMaxLength++
	if q.rules.overflow != rejectDead || !q.rules.deadLetter {
		return
	}
	s.touch(q)
	s.die(q, q.messages.append(c, 0), MaxLength)
	s.counters.routed++
	s.counters.droppedMaxLength++
}

// queueFull is the outcome of a publish that a queue refused and others, so many, have taken.
func queueFull(routed uint32) Result {
	return Result{Code: QueueFull, Routed: routed, Message: "QUEUE_FULL - a queue that the message leads to has no room for it and refuses it (x-overflow)"}
}

// withoutRoom returns a queue that would refuse a message with a body of so many bytes, or nil. It is in one already.
func withoutRoom(queues []*queue, body uint64, in *queue) *queue {
	for _, q := range queues {
		if q != in && !q.hasRoom(1, body) {
			return q
		}
	}
	return nil
}

// fullFor returns a queue that would refuse what a transaction publishes, or nil. What the transaction settles makes no
// room: what is ready counts, and consumers hold what is settled.
func (s *state) fullFor(c *Transaction) *queue {
	if len(s.refusing) == 0 {
		return nil
	}
	type need struct{ messages, bytes uint64 }
	needs := make(map[*queue]need)
	for _, o := range c.Operations {
		p, ok := o.(*Publish)
		if !ok {
			continue
		}
		if known := s.producers.byID[string(p.Producer)]; known != nil {
			if _, duplicate := known.outcome(p.Sequence); duplicate {
				continue
			}
		}
		body := uint64(len(p.Body))
		if p.Upload != 0 {
			body = s.upload(p.Session, p.Upload).total
		}
		for _, q := range s.routing.route(s.vhosts[p.Vhost].exchanges[p.Exchange], p.RoutingKey, p.Properties) {
			if !q.rules.refuses() {
				continue
			}
			n := needs[q]
			n.messages, n.bytes = n.messages+1, n.bytes+body
			if needs[q] = n; !q.hasRoom(n.messages, n.bytes) {
				return q
			}
		}
	}
	return nil
}

// Trim lets up to Limit ready messages of a queue die that are more than its limits let it have. Result.Messages is how
// many did. It is repeated until the queue is not among Overfull any more.
type Trim struct {
	Queue uint64
	Limit uint32
}

func (Trim) opcode() Opcode { return OpTrim }

func (c Trim) appendTo(b []byte) []byte {
	return appendUint(appendUint(appendArray(b, 2), c.Queue), uint64(c.Limit))
}

func (s *state) applyTrim(c *Trim) Result {
	q := s.queues[c.Queue]
	if q == nil {
		return Result{}
	}
	s.touch(q)
	return Result{Messages: s.makeRoom(q, int(c.Limit))}
}

// Overfull returns the numbers of the queues that have more ready messages than their limits let them have, and drop
// them, ascending.
func (m *Machine) Overfull() (numbers []uint64) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for number := range m.state.overfull {
		numbers = append(numbers, number)
	}
	slices.Sort(numbers)
	return numbers
}

// ClaimedRuns returns what is claimed of a queue as ascending, disjoint runs.
func (m *Machine) ClaimedRuns(queue uint64) []Run {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if q := m.state.queues[queue]; q != nil {
		return q.messages.claimedRuns()
	}
	return nil
}

// Claimed returns those of some messages of a queue that are live and claimed.
func (m *Machine) Claimed(queue uint64, sequences []uint64) (claimed []uint64) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if q := m.state.queues[queue]; q != nil {
		for _, sequence := range sequences {
			if q.messages.claimed(sequence) {
				claimed = append(claimed, sequence)
			}
		}
	}
	return claimed
}
