package broker

import (
	"container/heap"

	"github.com/warrenmq/warren/fsm"
)

// reading is how far a view has read its queue, or one level of priority of it. The view's mu guards it.
type reading struct {
	cursor   uint64        // the truth has been read up to here
	ahead    []fsm.Message // read and not handed out, before cursor
	returned sequenceHeap  // before ahead: live again
}

// readings are those of the levels of a queue with priorities. The plain level's is the view's own.
type readings struct {
	others map[uint8]*reading // by the codes of their levels
	levels []fsm.Level        // room for a list
}

// of returns the reading of a level, made at first use. The caller holds mu.
func (v *view) readingOf(code uint8) *reading {
	if code == 0 {
		return &v.reading
	}
	r := v.levels.others[code]
	if r == nil {
		r = &reading{cursor: v.queue.FirstLive}
		if v.levels.others == nil {
			v.levels.others = map[uint8]*reading{}
		}
		v.levels.others[code] = r
	}
	return r
}

// readingFor returns the reading of a live message's level. The caller holds mu.
func (v *view) readingFor(sequence uint64) *reading {
	if v.levels == nil {
		return &v.reading
	}
	return v.readingOf(v.leadership.broker.machine.LevelOf(v.queue.Number, sequence))
}

// putBack has a live message back that consumers do not hold any more. The caller holds mu.
func (v *view) putBack(sequence uint64) { heap.Push(&v.readingFor(sequence).returned, sequence) }

// readAfresh forgets what was read and not handed out: it may be gone. The caller holds mu.
func (v *view) readAfresh() {
	v.reading.afresh()
	if v.levels != nil {
		for _, r := range v.levels.others {
			r.afresh()
		}
	}
}

func (r *reading) afresh() {
	if len(r.ahead) > 0 {
		r.cursor, r.ahead = r.ahead[0].Sequence, nil
	}
}

// hasRead reports whether something was read and not handed out. The caller holds mu.
func (v *view) hasRead() bool {
	if len(v.ahead) > 0 {
		return true
	}
	if v.levels != nil {
		for _, r := range v.levels.others {
			if len(r.ahead) > 0 {
				return true
			}
		}
	}
	return false
}

// isDrained reports whether all that was read was handed out. The caller holds mu.
func (v *view) isDrained() bool {
	if v.levels != nil {
		for _, r := range v.levels.others {
			if len(r.ahead)+len(r.returned) > 0 {
				return false
			}
		}
	}
	return len(v.ahead)+len(v.returned) == 0
}

// front removes the first live message from the view, of the highest level that has one, and says whether it was handed
// out before. The caller holds mu.
func (v *view) front() (m fsm.Message, returned, ok bool) {
	if v.levels == nil {
		m, returned, ok, _ = v.frontOf(&v.reading, 0)
		return m, returned, ok
	}
	v.levels.levels = v.leadership.broker.machine.Levels(v.queue.Number, v.levels.levels[:0])
	for _, l := range v.levels.levels {
		r := v.readingOf(l.Code)
		if len(r.ahead)+len(r.returned) == 0 && r.cursor > l.Last {
			continue
		}
		var wait bool
		if m, returned, ok, wait = v.frontOf(r, l.Code); ok || wait {
			return m, returned, ok
		}
	}
	return m, false, false
}

// frontOf is front of one level. wait says that there is a message which may not be handed out yet. The caller holds mu.
func (v *view) frontOf(r *reading, code uint8) (m fsm.Message, returned, ok, wait bool) {
	machine, number := v.leadership.broker.machine, v.queue.Number
	for len(r.returned) > 0 && (len(r.ahead) == 0 || r.returned[0] < r.ahead[0].Sequence) {
		sequence := heap.Pop(&r.returned).(uint64)
		m, live, err := machine.Get(number, sequence)
		if err != nil {
			heap.Push(&r.returned, sequence)
			v.damaged(err)
			return m, false, false, true
		}
		if live {
			return m, true, true, false
		}
	}
	if len(r.ahead) == 0 {
		var messages []fsm.Message
		var next uint64
		var err error
		if v.levels == nil {
			messages, next, err = machine.Read(number, r.cursor, readAheadCount, readAheadBytes, r.ahead[:0])
		} else {
			messages, next, err = machine.ReadLevel(number, code, r.cursor, readAheadCount, readAheadBytes, r.ahead[:0])
		}
		if err != nil {
			v.damaged(err)
			return m, false, false, true
		}
		r.ahead, r.cursor = messages, max(next, r.cursor)
		if len(messages) == 0 {
			return m, false, false, false
		}
	}
	m = r.ahead[0]
	v.reserve(m.Sequence)
	if m.Sequence > v.mark {
		return m, false, false, true
	}
	r.ahead[0] = fsm.Message{}
	r.ahead = r.ahead[1:]
	return m, false, true, false
}

// sequenceHeap is a min-heap of sequence numbers.
type sequenceHeap []uint64

func (h sequenceHeap) Len() int           { return len(h) }
func (h sequenceHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h sequenceHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *sequenceHeap) Push(x any)        { *h = append(*h, x.(uint64)) }
func (h *sequenceHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
