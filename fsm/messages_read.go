package fsm

// Read appends to into the live messages of a queue with sequences from 'from' on, in order, until count messages
// or bytes of bodies are reached (at least one message is returned if there is one), and returns the sequence to
// go on from. A queue that is gone yields nothing. A body that is damaged on disk is an error naming file and offset.
func (m *Machine) Read(queue, from uint64, count, bytes int, into []Message) (out []Message, next uint64, err error) {
	for {
		m.mu.RLock()
		q, files := m.state.queues[queue], m.files
		if q == nil {
			m.mu.RUnlock()
			return into, from, nil
		}
		var loads []pending
		out, next, loads = q.messages.list(from, count, bytes, into)
		for i := len(into); i < len(out); i++ {
			out[i].Redelivered = out[i].Redelivered || out[i].Sequence <= q.suspicion
		}
		m.mu.RUnlock()
		if len(loads) == 0 {
			return out, next, nil
		}
		if err = fill(files.dir, queue, out, loads); err == nil {
			return out, next, nil
		}
		m.mu.RLock() // a restore or a collection may have taken the files away meanwhile: then look again
		moved := m.files != files || m.state.queues[queue] != q || q.moved(out, loads)
		m.mu.RUnlock()
		if !moved {
			return into, from, err
		}
	}
}

// moved reports whether a message listed before is no longer where it was.
func (q *queue) moved(out []Message, loads []pending) bool {
	for _, l := range loads {
		_, s, _, ok := q.messages.load(out[l.at].Sequence)
		if !ok || s.file != l.slot.file || s.offset != l.slot.offset {
			return true
		}
	}
	return false
}

// Get reads one live message; ok is false when it is not live or the queue is gone.
func (m *Machine) Get(queue, sequence uint64) (msg Message, ok bool, err error) {
	out, _, err := m.Read(queue, sequence, 1, 1, nil)
	if err != nil || len(out) == 0 || out[0].Sequence != sequence {
		return Message{}, false, err
	}
	return out[0], true, nil
}
