package fsm

import (
	"bytes"
	"slices"
	"strconv"
)

// A message with a delay waits in a hidden queue of its vhost, which has no name, and is routed when its time has come, by
// the bindings of then. The queue comes with the first such message and goes with the vhost; nobody can name it.

// delayHeader is the name of the header as it stands in a field table, after its length.
var delayHeader = []byte("\x07x-delay")

// delayOf returns for how many ms a message waits before it is routed, 0 when it does not.
func delayOf(properties []byte) int64 {
	if !haveHeaders(properties) || !bytes.Contains(properties, delayHeader) {
		return 0
	}
	if ms, ok := delayIn(messageHeaders(properties, nil)); ok && ms > 0 && ms <= maxPeriod {
		return ms
	}
	return 0
}

// delayIn returns the number in the header x-delay: of any integer or float type, or a text.
func delayIn(fields []field) (ms int64, ok bool) {
	f := find(fields, "x-delay")
	if f == nil {
		return 0, false
	}
	if ms, ok = f.integer(); ok {
		return ms, true
	}
	if x, ok := f.float(); ok {
		return int64(x), x > -maxPeriod && x <= maxPeriod
	}
	if f.tag == 'S' || f.tag == 'x' {
		ms, err := strconv.ParseInt(string(f.value), 10, 64)
		return ms, err == nil
	}
	return 0, false
}

// delayed returns property bytes that say that the message has waited: the header has its number negated.
func delayed(properties []byte) []byte {
	fields := messageHeaders(properties, nil)
	ms, ok := delayIn(fields)
	if !ok {
		return properties
	}
	var table []byte
	for i := range fields {
		if f := &fields[i]; f.name == "x-delay" {
			table = appendLong(table, f.name, -ms)
		} else {
			table = f.append(table)
		}
	}
	return withHeaders(properties, table)
}

// checkDelays refuses an exchange of the type x-delayed-message that does not say which type it is otherwise, with the
// answers of RabbitMQ's plugin.
func checkDelays(kind string, arguments []field) Result {
	if kind != delays {
		return Result{}
	}
	f := find(arguments, "x-delayed-type")
	if f == nil || f.tag != 'S' && f.tag != 'x' {
		return refuse(PreconditionFailed, "Invalid argument, 'x-delayed-type' must be an existing exchange type")
	}
	switch inner := string(f.value); inner {
	case delays:
		return refuse(PreconditionFailed, "Invalid argument, 'x-delayed-message' can't be used for 'x-delayed-type'")
	case direct, fanout, topic, headers:
		return Result{}
	default:
		return refuse(CommandInvalid, "unknown exchange type '%s'", inner)
	}
}

// hidden reports whether messages wait in the queue until they are routed.
func (q *queue) hidden() bool { return q.name == "" }

// hiddenQueues is how many there are.
func (s *state) hiddenQueues() (n int) {
	for _, v := range s.vhosts {
		if v.delayed != nil {
			n++
		}
	}
	return n
}

// hide enters a vhost's queue of delayed messages.
func (s *state) hide(q *queue) {
	q.vhost.delayed = q
	q.keepAll = true // what waits is kept whatever its delivery mode says
	q.messages.scheduleAll()
}

// delay lets a message wait.
func (s *state) delay(e *exchange, p *Publish, ms int64) *queue {
	q := e.vhost.delayed
	if q == nil {
		q = &queue{number: s.nextNumber(), vhost: e.vhost, durable: true, unusedSince: s.clock}
		s.insertQueue(q)
	}
	c := s.content()
	*c = content{exchange: e.name, routingKey: p.RoutingKey, properties: p.Properties, body: p.Body, id: [2]uint64{s.index, s.position}}
	if p.Upload != 0 {
		c.body = s.upload(p.Session, p.Upload).body()
	}
	s.position++
	c.hash = c.digest()
	q.messages.append(c, max(s.clock, 1)+ms)
	s.taken += contentBytes + uint64(len(c.body)+len(c.properties))
	s.waits(e.vhost, e.name, 1)
	s.remember(e.window, p.Properties)
	s.counters.delayed++
	s.touch(q)
	return q
}

// waits counts the messages of an exchange that wait. What it adds to the state's sum is the same for each of them.
func (s *state) waits(v *vhost, exchange string, n int) {
	now := v.waiting[exchange] + uint64(n)
	if now == 0 {
		delete(v.waiting, exchange)
	} else {
		v.waiting[exchange] = now
	}
	s.sum += uint64(n) * v.waitingDigest(exchange)
}

func (v *vhost) waitingDigest(exchange string) uint64 {
	return mixString(mix(seedWaiting, v.number), exchange)
}

func (s *state) applyRelease(c *Release) Result {
	p := &c.Message
	if p.Upload != 0 {
		defer s.dropUpload(p.Session, p.Upload)
	}
	q := s.queues[c.Queue]
	if q == nil || !q.hidden() {
		return Result{}
	}
	where, position, ok := q.messages.at(c.Sequence)
	if !ok || q.messages.chunks[where].expiresAt(position) > s.clock {
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
	var queues []*queue
	e := q.vhost.exchanges[p.Exchange]
	if e != nil {
		queues = s.routing.route(e, p.RoutingKey, p.Properties)
	}
	routed := uint32(len(queues))
	if routed == 0 {
		s.counters.releasedUnrouted++
	}
	if len(s.windows) > 0 {
		queues, _ = s.fresh(queues, p.Properties, uint64(len(body)))
	}
	if len(queues) > 0 {
		m := s.content()
		properties := delayed(p.Properties)
		*m = content{exchange: e.name, routingKey: p.RoutingKey, properties: properties, body: body,
			id: [2]uint64{s.index, s.position}, transient: isTransient(properties)}
		m.hash = m.digest()
		refused, _ := s.enqueue(queues, m) // by a full queue: as if it had been published now, without a confirm
		s.counters.routed += uint64(len(queues) - refused)
		routed -= uint32(refused)
	}
	s.position++
	s.counters.released++
	q.messages.remove(c.Sequence)
	q.messages.keepAppointments()
	if q.vhost.waiting[p.Exchange] > 0 {
		s.waits(q.vhost, p.Exchange, -1)
	}
	s.touch(q)
	return Result{Messages: 1, Routed: routed}
}

// scheduleAll makes the queue one whose messages are found by when they are due, one by one.
func (m *messages) scheduleAll() {
	m.schedule, m.expiring = new(schedule), nil
	for _, c := range m.chunks {
		for i := c.live.from(0); i >= 0; i = c.after(i) {
			*m.schedule = append(*m.schedule, appointment{c.expiresAt(i), c.first() + uint64(i)})
		}
	}
	m.schedule.heapify()
}

// keepAppointments takes what is gone off the front of the schedule.
func (m *messages) keepAppointments() {
	for len(*m.schedule) > 0 {
		if _, _, ok := m.at((*m.schedule)[0].sequence); ok {
			return
		}
		m.schedule.drop()
	}
}

// Delaying returns the numbers of the queues in which delayed messages are due at a batch clock value, in ms, ascending.
func (m *Machine) Delaying(now int64) (numbers []uint64) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.state.waiting == 0 {
		return nil
	}
	for _, v := range m.state.vhosts {
		if q := v.delayed; q != nil && len(*q.messages.schedule) > 0 && (*q.messages.schedule)[0].at <= now {
			numbers = append(numbers, q.number)
		}
	}
	slices.Sort(numbers)
	return numbers
}

// ReadDelayed returns delayed messages of a queue of Delaying that are due at a batch clock value, in ms, in the order in
// which they are, until count messages or bytes of bodies are reached, at least one if there is one. Properties are as
// published, BCC included; Expires is when the message is due. Errors are those of Read.
func (m *Machine) ReadDelayed(number uint64, now int64, count, bytes int) (out []Message, err error) {
	err = m.reading(number, &out, func(q *queue) (loads []pending) {
		if out = nil; q.messages.schedule == nil {
			return nil
		}
		var open opened
		for _, a := range q.messages.schedule.first(now, count) {
			where, position, ok := q.messages.at(a.sequence)
			if !ok {
				continue
			}
			c := q.messages.chunks[where]
			s := &open.slots(c)[position]
			if bytes -= int(s.body); bytes < 0 && len(out) > 0 {
				break
			}
			if s.content == nil {
				loads = append(loads, pending{at: len(out), slot: *s})
			}
			out = append(out, c.message(position, s))
		}
		return loads
	})
	return out, err
}

// Delayed returns how many messages wait in a vhost, by the name of the exchange that they were published to.
func (m *Machine) Delayed(vhost uint64) map[string]uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	v := m.state.vhosts[vhost]
	if v == nil || len(v.waiting) == 0 {
		return nil
	}
	counts := make(map[string]uint64, len(v.waiting))
	for exchange, n := range v.waiting {
		counts[exchange] = n
	}
	return counts
}
