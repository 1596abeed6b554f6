package broker

import (
	"cmp"
	"slices"
)

// turns is whose turn it is among a queue's consumers: those of the highest priority that can take a message, one
// after the other. Finding the next costs the consumers that cannot, and those of one priority. The zero value is
// empty. The view's mu guards it.
type turns struct {
	levels []level // highest priority first, none empty
	n      int
}

// level is the consumers of one priority, in the order in which they came.
type level struct {
	priority  int64
	consumers []*consumer
	next      int // whose turn it is
	picked    int // whom pick returned last
}

func (t *turns) find(priority int64) (i int, found bool) {
	return slices.BinarySearchFunc(t.levels, priority, func(l level, p int64) int { return cmp.Compare(p, l.priority) })
}

func (t *turns) add(c *consumer) {
	i, found := t.find(c.priority)
	if !found {
		t.levels = slices.Insert(t.levels, i, level{priority: c.priority})
	}
	t.levels[i].consumers = append(t.levels[i].consumers, c)
	t.n++
}

// remove takes a consumer out and reports whether it was there.
func (t *turns) remove(c *consumer) bool {
	i, found := t.find(c.priority)
	if !found {
		return false
	}
	l := &t.levels[i]
	at := slices.Index(l.consumers, c)
	if at < 0 {
		return false
	}
	l.consumers = slices.Delete(l.consumers, at, at+1)
	if l.next > at {
		l.next--
	}
	if len(l.consumers) == 0 {
		t.levels = slices.Delete(t.levels, i, i+1)
	}
	t.n--
	return true
}

// pick returns whose turn it is of those that can take a message, nil when none can. The turn passes with served.
func (t *turns) pick() *consumer {
	for i := range t.levels {
		l := &t.levels[i]
		for n := range l.consumers {
			at := (l.next + n) % len(l.consumers)
			if c := l.consumers[at]; c.ready() {
				l.picked = at
				return c
			}
		}
	}
	return nil
}

// served passes the turn on from the consumer that pick returned just before.
func (t *turns) served(c *consumer) {
	if i, found := t.find(c.priority); found {
		t.levels[i].next = t.levels[i].picked + 1
	}
}

// first returns the consumer that came first of the highest priority, nil without any.
func (t *turns) first() *consumer {
	if len(t.levels) == 0 {
		return nil
	}
	return t.levels[0].consumers[0]
}

// all returns every consumer.
func (t *turns) all() []*consumer {
	list := make([]*consumer, 0, t.n)
	for _, l := range t.levels {
		list = append(list, l.consumers...)
	}
	return list
}

// isActive reports whether a consumer of the view receives.
func (v *view) isActive(c *consumer) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.single && v.active == nil {
		return v.turns.first() == c
	}
	return !v.single || v.active == c
}
