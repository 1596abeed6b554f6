package fsm

import "slices"

// appointment is when a message is due, as a batch clock value in ms.
type appointment struct {
	at       int64
	sequence uint64
}

func (a appointment) before(b appointment) bool {
	return a.at < b.at || a.at == b.at && a.sequence < b.sequence
}

// schedule is a min-heap of the messages of a queue by when they are due: 16 bytes each, no timer, and the next one is
// found without looking at the others. Of messages due at the same time the earlier comes first. What is in it follows from
// the messages: it is no part of the replicated state.
type schedule []appointment

func (h *schedule) add(a appointment) {
	*h = append(*h, a)
	s := *h
	for i := len(s) - 1; i > 0; {
		parent := (i - 1) / 2
		if !s[i].before(s[parent]) {
			return
		}
		s[i], s[parent] = s[parent], s[i]
		i = parent
	}
}

// drop removes the first.
func (h *schedule) drop() {
	s := *h
	last := len(s) - 1
	s[0] = s[last]
	s = s[:last]
	s.down(0)
	if *h = s; cap(s) > 1024 && len(s) < cap(s)/4 {
		*h = slices.Clone(s)
	}
}

func (h schedule) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h[child+1].before(h[child]) {
			child++
		}
		if !h[child].before(h[i]) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}

// heapify orders what is in the heap in any order.
func (h schedule) heapify() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

// first returns up to limit of those due at a time or before, in order, without removing them: its time follows their
// number, not that of all.
func (h schedule) first(now int64, limit int) (due []appointment) {
	var open schedulePositions
	if len(h) > 0 {
		open.add(h, 0)
	}
	for len(open) > 0 && len(due) < limit {
		i := open.drop(h)
		if h[i].at > now {
			break
		}
		due = append(due, h[i])
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			open.add(h, child)
		}
	}
	return due
}

// schedulePositions is a min-heap of positions of a schedule: the next one in order is among them.
type schedulePositions []int

func (p *schedulePositions) add(h schedule, position int) {
	*p = append(*p, position)
	s := *p
	for i := len(s) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h[s[i]].before(h[s[parent]]) {
			return
		}
		s[i], s[parent] = s[parent], s[i]
		i = parent
	}
}

func (p *schedulePositions) drop(h schedule) (position int) {
	s := *p
	position = s[0]
	s[0] = s[len(s)-1]
	s = s[:len(s)-1]
	*p = s
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(s) {
			return position
		}
		if child+1 < len(s) && h[s[child+1]].before(h[s[child]]) {
			child++
		}
		if !h[s[child]].before(h[s[i]]) {
			return position
		}
		s[i], s[child] = s[child], s[i]
		i = child
	}
}
