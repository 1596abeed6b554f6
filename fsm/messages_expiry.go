package fsm

import (
	"container/heap"
	"slices"
)

// due says that no message of a chunk expires before a batch clock value, in ms.
type due struct {
	at    int64
	chunk uint64 // its index
}

// soonest is a min-heap of dues. One that says another time than its chunk does is out of date and passed over. What is
// in it follows from the messages: it is no part of the replicated state.
type soonest []due

func (h soonest) Len() int           { return len(h) }
func (h soonest) Less(i, j int) bool { return h[i].at < h[j].at }
func (h soonest) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *soonest) Push(x any)        { *h = append(*h, x.(due)) }
func (h *soonest) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// expireAt gives a message of a chunk that may be changed the time at which it expires (see Message.Expires).
func (m *messages) expireAt(c *chunk, position int, at int64) {
	if len(c.expires) <= position {
		m.index -= c.weight()
		c.expires = append(c.expires, make([]int64, min(max(position+1, 2*len(c.expires)), chunkSlots)-len(c.expires))...)
		m.index += c.weight()
	}
	c.expires[position] = at
	if m.schedule != nil {
		m.schedule.add(appointment{at, c.first() + uint64(position)})
		return
	}
	if at = max(at, -at); c.soonest == 0 || at < c.soonest {
		c.soonest = at
		heap.Push(&m.expiring, due{at, c.index})
	}
}

// firstDue returns a time before which no live message expires, 0 when none does at all.
func (m *messages) firstDue() int64 {
	if len(m.expiring) == 0 {
		return 0
	}
	return m.expiring[0].at
}

// expired returns live messages, ascending, that expire at a time or before: up to limit, and which they are then is open.
func (m *messages) expired(now int64, limit int) (sequences []uint64) {
	defer func() { // a due may be there twice
		slices.Sort(sequences)
		sequences = slices.Compact(sequences)
	}()
	for _, d := range m.expiring {
		if d.at > now {
			continue
		}
		where, ok := m.find(d.chunk)
		if !ok || m.chunks[where].soonest != d.at {
			continue
		}
		c := m.chunks[where]
		for i := c.live.from(0); i >= 0; i = c.after(i) {
			if at := c.expiresAt(i); at != 0 && max(at, -at) <= now {
				if sequences = append(sequences, c.first()+uint64(i)); len(sequences) >= limit {
					return sequences
				}
			}
		}
	}
	return sequences
}

// refresh brings the dues up to a time up to date with what is live.
func (m *messages) refresh(now int64) {
	var again []due
	for len(m.expiring) > 0 && m.expiring[0].at <= now {
		d := heap.Pop(&m.expiring).(due)
		where, ok := m.find(d.chunk)
		if !ok || m.chunks[where].soonest != d.at || slices.ContainsFunc(again, func(a due) bool { return a.chunk == d.chunk }) {
			continue
		}
		c := m.own(where)
		c.soonest = 0
		for i := c.live.from(0); i >= 0; i = c.after(i) {
			if at := c.expiresAt(i); at != 0 && (c.soonest == 0 || max(at, -at) < c.soonest) {
				c.soonest = max(at, -at)
			}
		}
		if c.soonest != 0 {
			again = append(again, due{c.soonest, c.index})
		}
	}
	for _, d := range again {
		heap.Push(&m.expiring, d)
	}
}
