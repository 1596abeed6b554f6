package fsm

import (
	"maps"
	"math/bits"
	"slices"
)

// claims are the live messages that consumers hold, or that are on their way to one, in a queue whose length is limited
// (rule 3): its other live messages are its ready ones. What is here follows from the slots' states, which snapshots
// and the hash have; a queue without claims has nothing of it.
type claims struct {
	chunks       map[uint64]*slotSet // by the chunks' indexes
	count, bytes uint64
	from         uint64 // no ready message is below
}

func (h *claims) add(c *chunk, position int, body uint32) {
	set := h.chunks[c.index]
	if set == nil {
		if h.chunks == nil {
			h.chunks = make(map[uint64]*slotSet)
		}
		set = new(slotSet)
		h.chunks[c.index] = set
	}
	set.add(position)
	h.count++
	h.bytes += uint64(body)
}

func (h *claims) remove(c *chunk, position int, body uint32) {
	set := h.chunks[c.index]
	set.remove(position)
	if *set == (slotSet{}) {
		delete(h.chunks, c.index)
	}
	h.count--
	h.bytes -= uint64(body)
}

// claimed reports whether a message is claimed.
func (m *messages) claimed(sequence uint64) bool {
	if m.claims.count == 0 || sequence == 0 {
		return false
	}
	set := m.claims.chunks[(sequence-1)/chunkSlots]
	return set != nil && set.has(int((sequence-1)%chunkSlots))
}

// claim claims a message; false when it is not live or claimed already.
func (m *messages) claim(sequence uint64) bool {
	where, position, ok := m.at(sequence)
	if !ok || m.claimed(sequence) {
		return false
	}
	c := m.writable(where)
	m.version++
	m.mark(c, position, c.slots[position].state|slotClaimed)
	m.claims.add(c, position, c.slots[position].body)
	return true
}

// unclaim makes a claimed message a ready one; false when it is not claimed.
func (m *messages) unclaim(sequence uint64) bool {
	if !m.claimed(sequence) {
		return false
	}
	where, position, _ := m.at(sequence)
	c := m.writable(where)
	m.version++
	m.mark(c, position, c.slots[position].state&^slotClaimed)
	m.claims.remove(c, position, c.slots[position].body)
	m.claims.from = min(m.claims.from, sequence)
	return true
}

// unclaimAll makes all messages ready ones. Its time follows the claims.
func (m *messages) unclaimAll() {
	for _, r := range m.claimedRuns() {
		for sequence := r.From; sequence <= r.To; sequence++ {
			m.unclaim(sequence)
		}
	}
}

// claimedRuns returns what is claimed as ascending, disjoint runs.
func (m *messages) claimedRuns() (runs []Run) {
	if m.claims.count == 0 {
		return nil
	}
	for _, index := range slices.Sorted(maps.Keys(m.claims.chunks)) {
		set := m.claims.chunks[index]
		for i := set.from(0); i >= 0; i = set.from(i + 1) {
			sequence := index*chunkSlots + 1 + uint64(i)
			if n := len(runs); n > 0 && runs[n-1].To+1 == sequence {
				runs[n-1].To = sequence
			} else {
				runs = append(runs, Run{sequence, sequence})
			}
		}
	}
	return runs
}

// unclaimedIn returns the messages in ascending, disjoint runs that nobody has claimed.
func (m *messages) unclaimedIn(runs []Run) []Run {
	if m.claims.count == 0 {
		return runs
	}
	var out []Run
	for _, r := range runs {
		for at, ok := m.next(r.From); ok && at <= r.To; at, ok = m.next(at + 1) {
			switch n := len(out); {
			case m.claimed(at):
			case n > 0 && out[n-1].To+1 == at:
				out[n-1].To = at
			default:
				out = append(out, Run{at, at})
			}
		}
	}
	return out
}

// withClaimed returns runs, which are ascending and disjoint, together with what is claimed.
func (m *messages) withClaimed(runs []Run) []Run {
	if m.claims.count == 0 {
		return runs
	}
	return ascending(append(m.claimedRuns(), runs...))
}

// readyOutside counts the live messages that are neither claimed nor in ascending, disjoint runs.
func (m *messages) readyOutside(runs []Run) uint64 {
	taken := m.liveIn(runs) + m.claims.count
	for index, set := range m.claims.chunks {
		covered, _ := within(runs, index*chunkSlots+1)
		for w, word := range set {
			taken -= uint64(bits.OnesCount64(word & covered[w])) // in both
		}
	}
	return m.count - taken
}

// firstReady returns the first live message that nobody has claimed.
func (m *messages) firstReady() (uint64, bool) {
	if m.claims.count == 0 {
		return m.first()
	}
	from := max(m.claims.from, 1)
	where, exact := m.find((from - 1) / chunkSlots)
	position := 0
	if exact {
		position = int((from - 1) % chunkSlots)
	}
	for ; where < len(m.chunks); where++ {
		c := m.chunks[where]
		ready := c.live
		if set := m.claims.chunks[c.index]; set != nil {
			ready = ready.without(*set)
		}
		if i := ready.from(position); i >= 0 {
			m.claims.from = c.first() + uint64(i)
			return m.claims.from, true
		}
		position = 0
	}
	m.claims.from = m.last + 1
	return 0, false
}
