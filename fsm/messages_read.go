package fsm

import (
	"errors"

	"github.com/warrenmq/warren/fsm/store"
)

// readAttempts is how often a read looks again for a message whose file was collected in between.
const readAttempts = 5

// Read appends to into the live messages of a queue with sequences from 'from' on, in order, until count messages
// or bytes of bodies are reached (at least one message is returned if there is one), and returns the sequence to
// go on from. A queue that is gone yields nothing. A body that is damaged on disk is an error naming file and offset.
// Properties are as published without the BCC header: this is the one place where it is taken out (see StripBCC).
func (m *Machine) Read(number, from uint64, count, bytes int, into []Message) (out []Message, next uint64, err error) {
	return m.read(number, from, count, bytes, into, func(q *queue, from uint64) (uint64, bool) { return q.messages.next(from) })
}

func (m *Machine) read(number, from uint64, count, bytes int, into []Message, find func(*queue, uint64) (uint64, bool)) (out []Message, next uint64, err error) {
	out, next = into, from
	err = m.reading(number, &out, func(q *queue) (loads []pending) {
		out, next, loads = q.messages.listBy(func(from uint64) (uint64, bool) { return find(q, from) }, from, count, max(bytes, 1), into)
		for i := len(into); i < len(out); i++ {
			out[i].Redelivered = out[i].Redelivered || out[i].Sequence <= q.suspicion
		}
		return loads
	})
	if err != nil {
		return into, from, err
	}
	for i := len(into); i < len(out); i++ {
		out[i].Properties = StripBCC(out[i].Properties)
	}
	return out, next, nil
}

// reading lists messages of a queue under the lock and reads from files what list returns as left out. It looks again
// when a file was collected in between. A queue that is gone is not listed.
func (m *Machine) reading(number uint64, out *[]Message, list func(*queue) []pending) (err error) {
	for range readAttempts {
		m.mu.RLock()
		q, files := m.state.queues[number], m.files
		if q == nil {
			m.mu.RUnlock()
			return nil
		}
		loads := list(q)
		m.mu.RUnlock()
		if len(loads) == 0 {
			return nil
		}
		if err = fill(files.dir, number, *out, loads); err == nil {
			return nil
		}
		var damage *store.Damage
		if errors.As(err, &damage) {
			files.note(damage)
		}
		if !errors.Is(err, store.ErrGone) {
			break
		}
	}
	return err
}

// Get reads one live message; ok is false when it is not live or the queue is gone.
func (m *Machine) Get(queue, sequence uint64) (msg Message, ok bool, err error) {
	out, _, err := m.Read(queue, sequence, 1, 1, nil)
	if err != nil || len(out) == 0 || out[0].Sequence != sequence {
		return Message{}, false, err
	}
	return out[0], true, nil
}
