package fsm

// Read appends to into the live messages of a queue with sequences from 'from' on, in order, until count messages
// or bytes of bodies are reached (at least one message is returned if there is one), and returns the sequence to
// go on from. A queue that is gone yields nothing. A body that is damaged on disk is an error naming file and offset.
func (m *Machine) Read(queue, from uint64, count, bytes int, into []Message) (out []Message, next uint64, err error) {
	panic("not built yet")
}

// Get reads one live message; ok is false when it is not live or the queue is gone.
func (m *Machine) Get(queue, sequence uint64) (msg Message, ok bool, err error) {
	panic("not built yet")
}
