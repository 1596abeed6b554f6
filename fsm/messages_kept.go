package fsm

// Kept is a message that a queue has: a live one, which consumers get, or a dying one, which waits for its dead letter.
type Kept struct {
	Message       // Properties are as published, BCC included
	Dying    bool // why: Reason
	Reason   Reason
	Claimed  bool  // a consumer of a queue with length limits holds it
	Deferred bool  // not deliverable yet
	Priority uint8 // its level in the queue
}

// ReadKept returns live and dying messages of a queue with sequences from from to to, in order, until count messages or
// bytes of bodies are reached, at least one if there is one, and the sequence to go on from: 0 when there is nothing
// more. It changes nothing. A queue that is gone yields nothing. Errors are those of Read.
func (m *Machine) ReadKept(number, from, to uint64, count, bytes int) (out []Kept, next uint64, err error) {
	var messages []Message
	var states []uint32
	var suspicion uint64
	var levels priorities
	err = m.reading(number, &messages, func(q *queue) (loads []pending) {
		suspicion, levels = q.suspicion, q.rules.priorities
		messages, states, next, loads = q.messages.listKept(from, to, count, max(bytes, 1))
		return loads
	})
	if err != nil {
		return nil, from, err
	}
	out = make([]Kept, len(messages))
	for i, msg := range messages {
		state := states[i]
		msg.Redelivered = msg.Redelivered || msg.Sequence <= suspicion
		out[i] = Kept{Message: msg, Dying: state&slotDying != 0, Claimed: state&slotClaimed != 0, Deferred: state&slotDeferred != 0,
			Priority: levels.level(levelCode(state))}
		if out[i].Dying {
			out[i].Reason = Reason(state >> slotReason & 3)
		}
	}
	return out, next, nil
}

// SkipKept returns the sequence behind the next n live and dying messages of a queue from a sequence on, and how many
// there were. It takes no look at the messages.
func (m *Machine) SkipKept(number, from, n uint64) (next, skipped uint64) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if q := m.state.queues[number]; q != nil {
		return q.messages.skipKept(from, n)
	}
	return from, 0
}

// keptBehind calls yield for the live and dying messages from a sequence on, until it returns false.
func (m *messages) keptBehind(from uint64, yield func(c *chunk, position int) bool) {
	if from = max(from, 1); from > m.last {
		return
	}
	where, exact := m.find((from - 1) / chunkSlots)
	position := 0
	if exact {
		position = int((from - 1) % chunkSlots)
	}
	for ; where < len(m.chunks); where++ {
		c := m.chunks[where]
		kept := c.kept()
		for i := kept.from(position); i >= 0; i = kept.from(i + 1) {
			if !yield(c, i) {
				return
			}
		}
		position = 0
	}
}

// listKept is list for the live and dying messages up to a sequence, with their states. The machine's lock is held.
func (m *messages) listKept(from, to uint64, count, bytes int) (out []Message, states []uint32, next uint64, loads []pending) {
	var open opened
	m.keptBehind(from, func(c *chunk, i int) bool {
		sequence := c.first() + uint64(i)
		if sequence > to {
			return false
		}
		s := &open.slots(c)[i]
		if len(out) >= count || len(out) > 0 && int(s.body) > bytes {
			next = sequence
			return false
		}
		if s.content == nil {
			loads = append(loads, pending{at: len(out), slot: *s})
		}
		out, states, bytes = append(out, c.message(i, s)), append(states, s.state), bytes-int(s.body)
		return true
	})
	return out, states, next, loads
}

// skipKept is SkipKept. Its time follows the chunks.
func (m *messages) skipKept(from, n uint64) (next, skipped uint64) {
	next = max(from, 1)
	where, exact := m.find((next - 1) / chunkSlots)
	for ; where < len(m.chunks) && skipped < n; where, exact = where+1, false {
		c := m.chunks[where]
		kept := c.kept()
		first := 0
		if exact {
			first = int((next - 1) % chunkSlots)
		}
		if count := uint64(kept.count()); first == 0 && skipped+count <= n {
			skipped, next = skipped+count, c.first()+chunkSlots
			continue
		}
		for i := kept.from(first); i >= 0 && skipped < n; i = kept.from(i + 1) {
			skipped, next = skipped+1, c.first()+uint64(i)+1
		}
	}
	return next, skipped
}
