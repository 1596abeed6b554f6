package fsm

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/warrenmq/warren/fsm/store"
)

// rebuilt is a queue's messages on their way back into memory. They come file by file, nearly always in order; what a
// collection copied does not.
type rebuilt struct {
	queue    *store.Queue
	messages *messages
	at       uint64 // the sequence that came last
	paging   paging
}

func (r *restored) rebuilt(q *store.Queue) *rebuilt {
	b := &rebuilt{queue: q, messages: &messages{last: q.Last}}
	if r.files != nil {
		b.paging.pager = r.files.pager
	}
	return b
}

// add adds a message that is in a file or has a content. Those that came before are packed.
func (b *rebuilt) add(e *store.Entry, file uint32, c *content) error {
	if e.Sequence == 0 || e.Sequence > b.queue.Last {
		return fmt.Errorf("%w: message %d, the last is %d", store.ErrManifest, e.Sequence, b.queue.Last)
	}
	s := slot{content: c, hash: e.Hash, offset: uint64(e.Offset), file: file, length: e.Length, body: e.Body}
	var notBefore int64
	if i, ok := slices.BinarySearchFunc(b.queue.Changes, e.Sequence, bySequence); ok {
		s.state = b.queue.Changes[i].State &^ slotFixed
		notBefore = b.queue.Changes[i].Time
	}
	s.state |= uint32(e.Priority) << slotPriority
	if e.Transient {
		s.state |= slotTransient
	}
	if b.at > 0 && (b.at-1)/chunkSlots != (e.Sequence-1)/chunkSlots {
		b.messages.packAt(b.at)
		b.paging.grown(b.messages)
	}
	b.at = e.Sequence
	if !b.messages.restore(e.Sequence, s, e.Expires) {
		return fmt.Errorf("%w: message %d is there twice", store.ErrManifest, e.Sequence)
	}
	if notBefore != 0 {
		b.messages.postpone(e.Sequence, notBefore)
	}
	return nil
}

func bySequence(d store.Change, sequence uint64) int { return cmp.Compare(d.Sequence, sequence) }

// restore adds a message at any sequence up to last; false when it is there.
func (m *messages) restore(sequence uint64, s slot, expires int64) bool {
	where, ok := m.find((sequence - 1) / chunkSlots)
	if !ok {
		m.insert(where, (sequence-1)/chunkSlots)
	}
	c := m.writable(where)
	if c.keeps(int(sequence - c.first())) {
		return false
	}
	m.place(c, sequence, s, expires)
	return true
}

// enter checks a queue against the manifest and makes it one of the state's.
func (r *restored) enter(b *rebuilt) error {
	q, m := b.queue, b.messages
	if b.at > 0 {
		m.packAt(b.at)
	}
	b.paging.whole(m)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queues[q.Number] = m
	if m.count+m.dying.count == q.Count && m.bytes+m.dying.bytes == q.Bytes && m.sum == q.Sum {
		return nil
	}
	for _, d := range r.damaged {
		if d.Queue == q.Number {
			return nil
		}
	}
	return fmt.Errorf("%w: it has %d messages of %d bytes with sum %x, the manifest says %d, %d, %x", store.ErrManifest,
		m.count+m.dying.count, m.bytes+m.dying.bytes, m.sum, q.Count, q.Bytes, q.Sum)
}
