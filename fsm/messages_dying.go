package fsm

// Reason is why a message died (AMQP: the reason in its x-death header).
type Reason uint8

// The reasons, in two bits of a slot's state.
const (
	Rejected Reason = iota
	Expired
	MaxLength
	DeliveryLimit
)

func (r Reason) String() string {
	return [...]string{"rejected", "expired", "maxlen", "delivery_limit"}[r]
}

// dying are the messages of a queue that died and whose dead letters are still to be routed. They stay where they are
// until then: an entry moves each to where it goes.
type dying struct {
	count, bytes uint64
	from         uint64 // none is below
}

func (d *dying) add(sequence uint64, body uint32) {
	if d.count == 0 || sequence < d.from {
		d.from = sequence
	}
	d.count++
	d.bytes += uint64(body)
}

// kill makes a live message a dying one; false when it is not live.
func (m *messages) kill(sequence uint64, why Reason) bool {
	where, position, ok := m.at(sequence)
	if !ok {
		return false
	}
	c := m.writable(where)
	m.version++
	if c.slots[position].state&slotClaimed != 0 {
		m.claims.remove(c, position, c.slots[position].body)
	}
	m.mark(c, position, c.slots[position].state&^slotClaimed|slotDying|uint32(why)<<slotReason)
	if c.leveled.has(position) {
		var one slotSet
		one.add(position)
		m.leaveLevels(c, c.slots, one)
		c.leveled.remove(position)
	}
	c.live.remove(position)
	c.dying.add(position)
	m.count--
	m.bytes -= uint64(c.slots[position].body)
	m.dying.add(sequence, c.slots[position].body)
	return true
}

// death returns why a message is dying; ok is false when it is not.
func (m *messages) death(sequence uint64) (why Reason, ok bool) {
	where, position, ok := m.slotOf(sequence)
	if !ok || !m.chunks[where].dying.has(position) {
		return 0, false
	}
	var open opened
	return Reason(open.slots(m.chunks[where])[position].state >> slotReason & 3), true
}

// bury takes a dying message away.
func (m *messages) bury(sequence uint64) {
	where, position, ok := m.slotOf(sequence)
	if !ok || !m.chunks[where].dying.has(position) {
		return
	}
	c := m.writable(where)
	s := &c.slots[position]
	m.version++
	m.dying.count--
	m.dying.bytes -= uint64(s.body)
	if m.dying.from == sequence {
		m.dying.from++
	}
	m.sum -= contribution(s.hash, sequence, s.state, c.times(position))
	m.memory -= s.size()
	if s.file == 0 {
		m.unwritten -= s.size()
	}
	c.dying.remove(position)
	var one slotSet
	one.add(position)
	m.strike(where, c.slots, one)
	m.dropEmpty(where)
}

// nextDying returns the first dying sequence not below from.
func (m *messages) nextDying(from uint64) (uint64, bool) {
	if from = max(from, m.dying.from, 1); m.dying.count == 0 || from > m.last {
		return 0, false
	}
	where, exact := m.find((from - 1) / chunkSlots)
	position := 0
	if exact {
		position = int((from - 1) % chunkSlots)
	}
	for ; where < len(m.chunks); where++ {
		if i := m.chunks[where].dying.from(position); i >= 0 {
			return m.chunks[where].first() + uint64(i), true
		}
		position = 0
	}
	return 0, false
}

// listDying is list for the dying messages.
func (m *messages) listDying(from uint64, count, bytes int) (out []Message, loads []pending) {
	var open opened
	for sequence, ok := m.nextDying(from); ok && count > 0 && bytes > 0; sequence, ok = m.nextDying(sequence + 1) {
		where, position, _ := m.slotOf(sequence)
		c := m.chunks[where]
		s := &open.slots(c)[position]
		msg := c.message(position, s)
		if s.content == nil {
			loads = append(loads, pending{at: len(out), slot: *s})
		}
		out = append(out, msg)
		count, bytes = count-1, bytes-int(s.body)
	}
	return out, loads
}
