package fsm

// weights are the bytes that queues take in memory.
type weights struct {
	contents  uint64 // bodies, properties and what belongs to them; a message in several queues counts in each
	unwritten uint64 // those of them that are in no file yet: they cannot leave memory
	index     uint64 // what is there for every message
}

func (w *weights) remove(other weights) {
	w.contents -= other.contents
	w.unwritten -= other.unwritten
	w.index -= other.index
}

// weigh brings the state's sum up to date with what a queue keeps in memory.
func (s *state) weigh(q *queue) {
	now := q.messages.weights()
	s.memory.contents += now.contents - q.held.contents
	s.memory.unwritten += now.unwritten - q.held.unwritten
	s.memory.index += now.index - q.held.index
	q.held = now
}

func (m *messages) weights() weights { return weights{m.memory, m.unwritten, m.index} }

// bodyMemory returns how many bytes of bodies may stay in memory: the longer the queues, the fewer, for what they take
// without bodies comes out of the same Memory. The caller holds mu.
func (m *Machine) bodyMemory() uint64 {
	most := uint64(DefaultBodyMemory)
	if m.options.BodyMemory > 0 {
		most = uint64(m.options.BodyMemory)
	}
	if m.options.Memory <= 0 {
		return most
	}
	index, least := m.state.memory.index, most/leastBodies
	if total := uint64(m.options.Memory); index+least < total {
		return min(most, total-index)
	}
	return least
}

// leastBodies is the part of BodyMemory that bodies keep however many messages there are.
const leastBodies = 8

// Bodies returns the bytes that the contents of messages take in memory, and how many of them are in no file yet and so
// cannot leave it before the next snapshot. A message in several queues counts in each.
func (m *Machine) Bodies() (memory, unwritten uint64) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.state.memory.contents, m.state.memory.unwritten
}

// Taken returns the bytes of contents that queues have taken in since the start, or since the whole state came from
// another node; a message in several queues counts in each.
func (m *Machine) Taken() uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.state.taken
}
