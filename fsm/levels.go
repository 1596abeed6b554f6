package fsm

import (
	"cmp"
	"slices"
)

// A queue with priorities has levels. Its plain level is the one of messages that say nothing. All others have a code,
// which is in the state of their slots, and a set of their own of what is live in them; the plain level, of code 0, is the
// rest. So a queue in which nobody asks for priority costs nothing, whatever it allows.

// priorities are a queue's rule: its highest level, 0 when it knows none, and its plain one.
type priorities struct{ highest, plain uint8 }

// The levels of a queue that was declared as a quorum queue.
var quorumPriorities = priorities{highest: 31, plain: 4}

// code returns the code of the level for a priority.
func (p priorities) code(priority uint8) uint8 {
	switch level := min(priority, p.highest); {
	case level == p.plain:
		return 0
	case p.plain > 0:
		return level + 1
	default:
		return level
	}
}

// level is the inverse of code.
func (p priorities) level(code uint8) uint8 {
	switch {
	case code == 0:
		return p.plain
	case p.plain > 0:
		return code - 1
	}
	return code
}

func levelCode(state uint32) uint8 { return uint8(state >> slotPriority) }

// level is the set of the live messages of one code, ascending: nothing of it is replicated, since it follows from the
// messages.
type level struct {
	code  uint8
	count uint64
	pages []levelPage // ascending by chunk, none empty
}

type levelPage struct {
	chunk uint64 // its index
	set   slotSet
}

func (l *level) find(chunk uint64) (at int, found bool) {
	switch n := len(l.pages); {
	case n == 0 || l.pages[n-1].chunk < chunk:
		return n, false
	case l.pages[n-1].chunk == chunk:
		return n - 1, true
	case l.pages[0].chunk == chunk:
		return 0, true
	}
	return slices.BinarySearchFunc(l.pages, chunk, func(p levelPage, chunk uint64) int { return cmp.Compare(p.chunk, chunk) })
}

func (l *level) add(chunk uint64, position int) {
	at, found := l.find(chunk)
	if !found {
		l.pages = slices.Insert(l.pages, at, levelPage{chunk: chunk})
	}
	l.pages[at].set.add(position)
	l.count++
}

func (l *level) remove(chunk uint64, position int) {
	at, found := l.find(chunk)
	if !found {
		return
	}
	l.pages[at].set.remove(position)
	l.count--
	switch {
	case l.pages[at].set != (slotSet{}):
	case at == 0:
		l.pages = l.pages[1:]
	default:
		l.pages = slices.Delete(l.pages, at, at+1)
	}
}

// next returns the first sequence of the level not below from.
func (l *level) next(from uint64) (uint64, bool) {
	from = max(from, 1)
	at, found := l.find((from - 1) / chunkSlots)
	position := 0
	if found {
		position = int((from - 1) % chunkSlots)
	}
	for ; at < len(l.pages); at++ {
		if i := l.pages[at].set.from(position); i >= 0 {
			return l.pages[at].chunk*chunkSlots + 1 + uint64(i), true
		}
		position = 0
	}
	return 0, false
}

// last returns the last sequence of a level that is not empty.
func (l *level) last() uint64 {
	p := &l.pages[len(l.pages)-1]
	return p.chunk*chunkSlots + 1 + uint64(p.set.last())
}

// levelOf returns the level with a code, nil when there is none.
func (m *messages) levelOf(code uint8) *level {
	for _, l := range m.levels {
		if l.code == code {
			return l
		}
	}
	return nil
}

// enterLevel makes a message of a chunk that may be changed one of its level.
func (m *messages) enterLevel(c *chunk, position int, state uint32) {
	code := levelCode(state)
	if code == 0 {
		return
	}
	l := m.levelOf(code)
	if l == nil {
		l = &level{code: code}
		at, _ := slices.BinarySearchFunc(m.levels, code, func(l *level, code uint8) int { return cmp.Compare(l.code, code) })
		m.levels = slices.Insert(m.levels, at, l)
	}
	l.add(c.index, position)
	c.leveled.add(position)
}

// leaveLevels takes messages of a chunk, whose slots are given, out of their levels. It leaves the chunk alone.
func (m *messages) leaveLevels(c *chunk, slots []slot, which slotSet) {
	for i := which.from(0); i >= 0; i = which.from(i + 1) {
		l := m.levelOf(levelCode(slots[i].state))
		l.remove(c.index, i)
		if l.count == 0 {
			m.levels = slices.DeleteFunc(m.levels, func(x *level) bool { return x == l })
		}
	}
}

// nextIn returns the first live sequence of a level not below from.
func (m *messages) nextIn(code uint8, from uint64) (uint64, bool) {
	if code != 0 {
		if l := m.levelOf(code); l != nil {
			return l.next(from)
		}
		return 0, false
	}
	if len(m.levels) == 0 {
		return m.next(from)
	}
	if from = max(from, 1); from > m.last {
		return 0, false
	}
	where, exact := m.find((from - 1) / chunkSlots)
	position := 0
	if exact {
		position = int((from - 1) % chunkSlots)
	}
	for ; where < len(m.chunks); where++ {
		c := m.chunks[where]
		plain := c.live.without(c.leveled)
		if i := plain.from(position); i >= 0 {
			return c.first() + uint64(i), true
		}
		position = 0
	}
	return 0, false
}

// codes appends the codes of the levels with live messages, the highest level first.
func (m *messages) codes(plain uint8, into []uint8) []uint8 {
	others := uint64(0)
	for _, l := range m.levels {
		others += l.count
	}
	rest := m.count > others
	for _, l := range slices.Backward(m.levels) {
		if rest && l.code <= plain { // codes above the plain level's are one more than their level
			into, rest = append(into, 0), false
		}
		into = append(into, l.code)
	}
	if rest {
		into = append(into, 0)
	}
	return into
}

// Level is a level of priority of a queue, as Levels lists it.
type Level struct {
	Code uint8  // names it for ReadLevel
	Last uint64 // no message in it has a higher sequence
}

// Levels appends the levels of a queue that have live messages, the highest first. A queue that is gone has none.
func (m *Machine) Levels(number uint64, into []Level) []Level {
	m.mu.RLock()
	defer m.mu.RUnlock()
	q := m.state.queues[number]
	if q == nil {
		return into
	}
	var codes [256]uint8
	for _, code := range q.messages.codes(q.rules.priorities.plain, codes[:0]) {
		last := q.messages.last
		if code != 0 {
			last = q.messages.levelOf(code).last()
		}
		into = append(into, Level{Code: code, Last: last})
	}
	return into
}

// LevelOf returns the code of a live message's level, 0 when it is not live.
func (m *Machine) LevelOf(number, sequence uint64) uint8 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if q := m.state.queues[number]; q != nil && len(q.messages.levels) > 0 {
		return levelCode(q.messages.state(sequence))
	}
	return 0
}

// ReadLevel is Read of one level.
func (m *Machine) ReadLevel(number uint64, code uint8, from uint64, count, bytes int, into []Message) (out []Message, next uint64, err error) {
	return m.read(number, from, count, bytes, into, func(q *queue, from uint64) (uint64, bool) { return q.messages.nextIn(code, from) })
}
