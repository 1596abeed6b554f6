package fsm

// bodies are the bytes of bodies and properties that queues keep in memory; a message in several queues counts in each.
type bodies struct {
	memory    uint64
	unwritten uint64 // those that are in no file yet: they cannot leave memory
}

func (b *bodies) remove(other bodies) {
	b.memory -= other.memory
	b.unwritten -= other.unwritten
}

// weigh brings the state's sum up to date with what a queue keeps in memory.
func (s *state) weigh(q *queue) {
	s.bodies.memory += q.messages.memory - q.held.memory
	s.bodies.unwritten += q.messages.unwritten - q.held.unwritten
	q.held = bodies{q.messages.memory, q.messages.unwritten}
}

// indexBytes is what a message takes in memory when its body does not: its slot and its part of the chunk.
const indexBytes = 48

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
	index, least := m.state.messages*indexBytes, most/leastBodies
	if total := uint64(m.options.Memory); index+least < total {
		return min(most, total-index)
	}
	return least
}

// leastBodies is the part of BodyMemory that bodies keep however many messages there are.
const leastBodies = 8

// Bodies returns the bytes of bodies and properties that are in memory, and how many of them are in no file yet and so
// cannot leave it before the next snapshot. A message in several queues counts in each.
func (m *Machine) Bodies() (memory, unwritten uint64) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.state.bodies.memory, m.state.bodies.unwritten
}
