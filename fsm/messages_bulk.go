package fsm

import "math/bits"

// A removal goes chunk by chunk when its runs cover manyMessages sequence numbers and manyOfChunk for each chunk.
const (
	manyMessages = 4 * chunkSlots
	manyOfChunk  = 16
)

// slotSet is a set of positions in a chunk, as chunk.live is.
type slotSet [chunkSlots / 64]uint64

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
	for _, r := range runs {
		for at, ok := m.next(r.From); ok && at <= r.To; at, ok = m.next(at + 1) {
			m.remove(at)
			removed++
		}
	}
	return removed
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
	afresh := going > before/2 // the sums are made of what stays rather than lessened by what goes
	if afresh {
		m.count, m.bytes, m.memory, m.unwritten, m.sum = 0, 0, 0, 0, 0
	}
	kept := m.chunks[:0]
	for i, c := range m.chunks {
		stays := c.live
		for w := range stays {
			stays[w] &^= goes[i][w]
		}
		if afresh {
			m.tally(c, stays, 1)
		} else {
			m.tally(c, goes[i], ^uint64(0))
		}
		if stays == (slotSet{}) {
			continue
		}
		if goes[i] != (slotSet{}) {
			c = m.writable(i)
			c.clear(goes[i])
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
func (m *messages) tally(c *chunk, which slotSet, sign uint64) {
	for w, word := range which {
		for ; word != 0; word &= word - 1 {
			i := w*64 + bits.TrailingZeros64(word)
			s := &c.slots[i]
			m.count += sign
			m.bytes += sign * uint64(s.body)
			m.sum += sign * contribution(s.hash, c.first()+uint64(i), s.deliveries())
			m.memory += sign * s.size()
			if s.file == 0 {
				m.unwritten += sign * s.size()
			}
		}
	}
}

// clear takes live messages out of a chunk that may be changed.
func (c *chunk) clear(which slotSet) {
	for w, word := range which {
		c.live[w] &^= word
		for ; word != 0; word &= word - 1 {
			s := &c.slots[w*64+bits.TrailingZeros64(word)]
			if s.content != nil {
				c.held--
			}
			if s.file == 0 {
				c.unwritten--
			}
			if s.deliveries() > 0 {
				c.counted--
			}
			*s = slot{}
			c.count--
		}
	}
}
