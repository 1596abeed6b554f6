package fsm

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/warrenmq/warren/fsm/store"
)

// errOrder says that a message does not come behind the one before it.
var errOrder = errors.New("out of order")

// rebuilt is a queue's messages on their way back into memory.
type rebuilt struct {
	queue      *store.Queue
	messages   *messages
	deliveries []store.Delivery // of messages still to come
	before     uint64           // the last sequence
}

func newRebuilt(q *store.Queue) *rebuilt {
	return &rebuilt{queue: q, messages: &messages{last: q.Last}, deliveries: q.Deliveries}
}

// add adds a message; its error is errOrder, or an ErrManifest.
func (b *rebuilt) add(e *store.Entry, file uint32, c *content) error {
	if e.Sequence <= b.before {
		return errOrder
	}
	if e.Sequence > b.queue.Last {
		return fmt.Errorf("%w: message %d, the last is %d", store.ErrManifest, e.Sequence, b.queue.Last)
	}
	b.before = e.Sequence
	s := slot{content: c, hash: e.Hash, offset: uint64(e.Offset), file: file, length: e.Length, body: e.Body}
	for len(b.deliveries) > 0 && b.deliveries[0].Sequence < e.Sequence {
		b.deliveries = b.deliveries[1:]
	}
	if len(b.deliveries) > 0 && b.deliveries[0].Sequence == e.Sequence {
		s.state = min(b.deliveries[0].Count, maxDeliveryCount)
	}
	if e.Transient {
		s.state |= slotTransient
	}
	b.messages.put(e.Sequence, s)
	return nil
}

// build makes a queue's messages from what a snapshot says of each, in any order.
func (r *restored) build(q *store.Queue, placed []placedEntry) error {
	bySequence := func(a, b placedEntry) int { return cmp.Compare(a.Sequence, b.Sequence) }
	if !slices.IsSortedFunc(placed, bySequence) { // a collection copied records out of turn
		slices.SortFunc(placed, bySequence)
	}
	b := newRebuilt(q)
	for i := range placed {
		p := &placed[i]
		if err := b.add(&p.Entry, p.file, p.content); errors.Is(err, errOrder) {
			return fmt.Errorf("%w: message %d is there twice", store.ErrManifest, p.Sequence)
		} else if err != nil {
			return err
		}
	}
	return r.enter(b)
}

// enter checks a queue against the manifest and makes it one of the state's.
func (r *restored) enter(b *rebuilt) error {
	q, m := b.queue, b.messages
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queues[q.Number] = m
	if m.count == q.Count && m.bytes == q.Bytes && m.sum == q.Sum {
		return nil
	}
	for _, d := range r.damaged {
		if d.Queue == q.Number {
			return nil
		}
	}
	return fmt.Errorf("%w: it has %d messages of %d bytes with sum %x, the manifest says %d, %d, %x", store.ErrManifest,
		m.count, m.bytes, m.sum, q.Count, q.Bytes, q.Sum)
}
