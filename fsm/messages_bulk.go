package fsm

import "math/bits"

// A removal goes chunk by chunk when its runs cover manyMessages sequence numbers and manyOfChunk for each chunk.
const (
	manyMessages = 4 * chunkSlots
	manyOfChunk  = 16
)

// removeRuns takes away the live messages in ascending, disjoint runs and returns how many there were. Its time
// follows the live messages in the runs, not their width, and is less for many: see removeMany.
func (m *messages) removeRuns(runs []Run) uint64 {
	many := max(manyMessages, manyOfChunk*uint64(len(m.chunks)))
	var width, removed uint64
	for _, r := range runs {
		if width += min(r.To-r.From, many) + 1; width >= many {
			return m.removeMany(runs, false)
		}
	}
	for at := uint64(1); len(runs) > 0; {
		at = max(at, runs[0].From)
		where, _ := m.find((at - 1) / chunkSlots)
		if where == len(m.chunks) {
			break
		}
		c := m.chunks[where]
		var goes slotSet
		goes, runs = within(runs, c.first())
		at = c.first() + chunkSlots
		if goes = goes.and(c.live); goes != (slotSet{}) {
			removed += uint64(goes.count())
			m.removeFrom(where, goes)
		}
	}
	return removed
}

// removeFrom takes live messages of a chunk away. A packed one stays packed.
func (m *messages) removeFrom(where int, which slotSet) {
	m.version++
	c := m.chunks[where]
	slots := c.slots
	if c.packed != nil {
		var open opened
		slots = open.slots(c)
	}
	m.tally(c, slots, which, ^uint64(0))
	m.strike(where, slots, which)
	m.dropEmpty(where)
}

// dropEmpty frees a chunk without messages.
func (m *messages) dropEmpty(where int) {
	c := m.chunks[where]
	if c.count == 0 && (where < len(m.chunks)-1 || c.length() == chunkSlots) {
		m.drop(where) // the last one, while it fills, stays for the next append
	}
}

// removeExcept takes away all live messages but those in ascending, disjoint runs, and returns how many went.
func (m *messages) removeExcept(held []Run) uint64 { return m.removeMany(held, true) }

// removeMany takes away the live messages in ascending, disjoint runs, or with others those in none of them, and
// returns how many went. Purging a large queue or acknowledging all of it holds up nobody: a chunk that goes or stays
// as a whole costs little, since the sums follow the fewer messages, those that go or those that stay.
func (m *messages) removeMany(runs []Run, others bool) uint64 {
	before, going := m.count, uint64(0)
	goes := make([]slotSet, len(m.chunks))
	for i, c := range m.chunks {
		goes[i], runs = within(runs, c.first())
		for w, live := range c.live {
			if others {
				goes[i][w] = ^goes[i][w]
			}
			goes[i][w] &= live
			going += uint64(bits.OnesCount64(goes[i][w]))
		}
	}
	if going == 0 {
		return 0
	}
	m.viewed = nil
	m.version++
	afresh := going > before/2 && m.dying.count == 0 // the sums are made of what stays rather than lessened by what goes
	if afresh {
		m.count, m.bytes, m.memory, m.unwritten, m.sum = 0, 0, 0, 0, 0
		m.claims = claims{}
	}
	kept := m.chunks[:0]
	var open opened
	for i, c := range m.chunks {
		stays := c.live
		for w := range stays {
			stays[w] &^= goes[i][w]
		}
		if afresh {
			m.tally(c, open.slots(c), stays, 1)
		} else {
			m.tally(c, open.slots(c), goes[i], ^uint64(0))
		}
		if stays == (slotSet{}) && c.dying == (slotSet{}) {
			if leveled := goes[i].and(c.leveled); leveled != (slotSet{}) {
				m.leaveLevels(c, open.slots(c), leveled)
			}
			m.index -= c.weight()
			continue
		}
		if goes[i] != (slotSet{}) {
			c = m.strike(i, open.slots(c), goes[i])
		}
		kept = append(kept, c)
	}
	clear(m.chunks[len(kept):])
	m.chunks = kept
	return going
}

// within returns the positions that runs cover in the chunk with a first sequence, and the runs that reach beyond it.
func within(runs []Run, first uint64) (covered slotSet, rest []Run) {
	for len(runs) > 0 && runs[0].From < first+chunkSlots {
		if r := runs[0]; r.To >= first {
			from, to := max(r.From, first)-first, min(r.To-first, chunkSlots-1)
			for w := from / 64; w <= to/64; w++ {
				word := ^uint64(0)
				if w == from/64 {
					word <<= from % 64
				}
				if w == to/64 {
					word &= ^uint64(0) >> (63 - to%64)
				}
				covered[w] |= word
			}
			if r.To >= first+chunkSlots {
				break
			}
		}
		runs = runs[1:]
	}
	return covered, runs
}

// tally adds some messages of a chunk to the sums, or with a sign of -1 takes them off.
func (m *messages) tally(c *chunk, slots []slot, which slotSet, sign uint64) {
	for i := which.from(0); i >= 0; i = which.from(i + 1) {
		s := &slots[i]
		m.count += sign
		m.bytes += sign * uint64(s.body)
		m.sum += sign * contribution(s.hash, c.first()+uint64(i), s.state, c.times(i))
		m.memory += sign * s.size()
		switch {
		case s.state&slotClaimed == 0:
		case sign == 1:
			m.claims.add(c, i, s.body)
		default:
			m.claims.remove(c, i, s.body)
		}
		if s.file == 0 {
			m.unwritten += sign * s.size()
		}
	}
}

// strike takes messages out of a chunk whose slots are given, and returns the chunk. What is packed is packed afresh
// when most of it is dead.
func (m *messages) strike(where int, slots []slot, which slotSet) *chunk {
	c := m.own(where)
	if leveled := which.and(c.leveled); leveled != (slotSet{}) {
		m.leaveLevels(c, slots, leveled)
		c.leveled = c.leveled.without(which)
	}
	for i := which.from(0); i >= 0; i = which.from(i + 1) {
		s := &slots[i]
		if s.content != nil {
			c.held--
		}
		if s.file == 0 {
			c.unwritten--
		}
		if s.changed() {
			c.counted--
		}
		c.count--
		if c.packed == nil {
			c.slots[i] = slot{}
		}
	}
	c.live = c.live.without(which)
	if c.packed != nil && 2*c.count < c.rows.count() {
		m.index -= c.weight()
		c.pack(slots)
		m.index += c.weight()
	}
	return c
}
