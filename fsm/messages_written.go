package fsm

// place is where a record is.
type place struct {
	sequence uint64
	offset   int64
	length   uint32
	file     uint32
}

// written notes that a message's record is in a file, and replaces its content by copied, nil to let it go. A
// message that is gone, or whose record another file has (from), is left alone.
func (m *messages) written(p place, from uint32, copied *content) {
	where, position, ok := m.slotOf(p.sequence)
	if !ok || !m.chunks[where].keeps(position) {
		return
	}
	c := m.writable(where)
	s := &c.slots[position]
	if s.file != from {
		return
	}
	if from == 0 {
		c.unwritten--
		m.unwritten -= s.size()
		if copied == nil {
			m.forget(c, s)
		} else {
			s.content = copied
		}
	}
	s.file, s.offset, s.length = p.file, uint64(p.offset), p.length
}

// forget lets the content of a slot leave memory.
func (m *messages) forget(c *chunk, s *slot) {
	if s.content != nil {
		c.held--
		m.memory -= s.size()
		s.content = nil
	}
}

// evict lets contents that are in files leave memory, the last first, until at most keep bytes are left or the
// chunks are through, at most limit chunks a call counted from position end down. It returns where to go on, 0 at
// the end.
func (m *messages) evict(keep uint64, end, limit int) int {
	end = min(end, len(m.chunks))
	for ; end > 0 && limit > 0 && m.memory > keep; end, limit = end-1, limit-1 {
		if c := m.chunks[end-1]; c.held == c.unwritten {
			continue // nothing in it is both in memory and in a file
		}
		c := m.writable(end - 1)
		for i := len(c.slots) - 1; i >= 0 && m.memory > keep; i-- {
			if c.slots[i].file != 0 {
				m.forget(c, &c.slots[i])
			}
		}
		m.pack(end - 1)
	}
	if m.memory <= keep {
		return 0
	}
	return end
}
