package fsm

import "container/list"

// dropLooks is how many queues and messages DropTransient looks at for each thing it may delete.
const dropLooks = 64

// numbered is a list of objects ascending by number: numbers only grow, so what is added last has the highest.
type numbered = list.List

// droppable is what can be deleted in steps. Finding the next of it takes constant time, however much there is.
type droppable struct {
	exclusive map[uint64]*numbered // exclusive queues by their owner's term
	queues    numbered             // transient ones, exclusive ones included
	exchanges numbered             // transient ones
}

func (d *droppable) addQueue(q *queue) {
	if !q.durable {
		q.inTransient = d.queues.PushBack(q)
	}
	if !q.exclusive {
		return
	}
	if d.exclusive == nil {
		d.exclusive = make(map[uint64]*numbered)
	}
	term := d.exclusive[q.owner.Term]
	if term == nil {
		term = new(numbered)
		d.exclusive[q.owner.Term] = term
	}
	q.inExclusive = term.PushBack(q)
}

func (d *droppable) removeQueue(q *queue) {
	if !q.durable {
		d.queues.Remove(q.inTransient)
	}
	if !q.exclusive {
		return
	}
	term := d.exclusive[q.owner.Term]
	term.Remove(q.inExclusive)
	if term.Len() == 0 {
		delete(d.exclusive, q.owner.Term)
	}
}

// before returns the exclusive queues of the lowest term that is below one, nil when there are none, and how many
// queues there are in all such terms. Leaderships that left queues behind are few.
func (d *droppable) before(term uint64) (lowest *numbered, count int) {
	first := term
	for t, queues := range d.exclusive {
		if t < term {
			count += queues.Len()
			first = min(first, t)
		}
	}
	if first < term {
		lowest = d.exclusive[first]
	}
	return lowest, count
}

// applyDropExclusive deletes the queues of the lowest term first, in it the lowest number first.
func (s *state) applyDropExclusive(c *DropExclusive, term uint64) Result {
	queues, remain := s.drop.before(term)
	for limit := c.Limit; limit > 0 && remain > 0; limit-- {
		s.deleteQueue(queues.Front().Value.(*queue))
		if remain--; queues.Len() == 0 {
			queues, remain = s.drop.before(term)
		}
	}
	return Result{Messages: uint64(remain)}
}

// applyDropTransient deletes non-durable queues, then non-durable exchanges, then transient messages, lowest number
// first, looking at a bounded number of them. Result.Messages is at least 1 until nothing transient remains.
func (s *state) applyDropTransient(c *DropTransient) Result {
	limit := int(c.Limit)
	for ; limit > 0 && s.drop.queues.Len() > 0; limit-- {
		s.deleteQueue(s.drop.queues.Front().Value.(*queue))
	}
	for ; limit > 0 && s.drop.exchanges.Len() > 0; limit-- {
		s.deleteExchange(s.drop.exchanges.Front().Value.(*exchange))
	}
	if remain := s.drop.queues.Len() + s.drop.exchanges.Len(); remain > 0 || limit <= 0 {
		return Result{Messages: uint64(max(remain, 1))}
	}
	if !s.dropTransientMessages(limit) {
		return Result{Messages: 1}
	}
	return Result{}
}

// dropTransientMessages goes on from the cursor and reports whether it came to the end.
func (s *state) dropTransientMessages(limit int) bool {
	looks := limit * dropLooks
	var open opened
	for e := s.queueFrom(s.cursor.queue); e != nil; e = e.Next() {
		if looks <= 0 {
			return false
		}
		q := e.Value.(*queue)
		if q.hidden() { // it keeps everything
			continue
		}
		looks--
		if q.number > s.cursor.queue {
			s.cursor = dropCursor{queue: q.number}
		}
		if q.keepAll {
			continue
		}
		for at, ok := q.messages.next(s.cursor.sequence); ok; at, ok = q.messages.next(s.cursor.sequence) {
			if limit <= 0 || looks <= 0 {
				return false
			}
			looks--
			s.cursor.sequence = at + 1
			if q.messages.transient(&open, at) {
				q.messages.remove(at)
				s.counters.discarded++
				s.touch(q)
				limit--
			}
		}
	}
	return true
}

// queueFrom returns the place of the first queue with at least a number. Only when the queue with that number is
// gone does it search.
func (s *state) queueFrom(number uint64) *list.Element {
	if q := s.queues[number]; q != nil {
		return q.inAll
	}
	e := s.byNumber.Front()
	for e != nil && e.Value.(*queue).number < number {
		e = e.Next()
	}
	return e
}
