package fsm

// notBefore returns when position i is deliverable, 0 for at once.
func (c *chunk) notBefore(i int) int64 {
	if i >= len(c.deferred) {
		return 0
	}
	return c.deferred[i]
}

// times is what a message's times add to its contribution.
func (c *chunk) times(i int) int64 {
	at := c.notBefore(i)
	if at == 0 {
		return c.expiresAt(i)
	}
	return int64(mix(uint64(at), uint64(c.expiresAt(i))))
}

// postpone lets a live or dying message be deliverable from a batch clock value on, in ms.
func (m *messages) postpone(sequence uint64, at int64) {
	where, position, ok := m.slotOf(sequence)
	if !ok || !m.chunks[where].keeps(position) {
		return
	}
	c := m.writable(where)
	m.version++
	s := &c.slots[position]
	m.sum -= contribution(s.hash, sequence, s.state, c.times(position))
	if len(c.deferred) <= position {
		m.index -= c.weight()
		c.deferred = append(c.deferred, make([]int64, min(max(position+1, 2*len(c.deferred)), chunkSlots)-len(c.deferred))...)
		m.index += c.weight()
	}
	c.deferred[position] = at
	if !s.changed() {
		c.counted++
	}
	s.state |= slotDeferred
	m.sum += contribution(s.hash, sequence, s.state, c.times(position))
}
