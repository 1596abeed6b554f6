package fsm

import (
	"fmt"

	"github.com/warrenmq/warren/fsm/store"
)

// Bounds of one read from a message file.
const (
	readTogether = 4 << 20  // bytes
	readOver     = 64 << 10 // dead bytes between two live records that are read rather than skipped
)

// pending is a message that was listed and whose content has yet to be read from its file.
type pending struct {
	at   int // in the list of messages
	slot slot
}

// list appends live messages from a sequence on, until there are count of them or bytes of bodies, at least one; those
// whose content is in a file only are named in loads. The machine's lock is held.
func (m *messages) list(from uint64, count, bytes int, into []Message) (out []Message, next uint64, loads []pending) {
	return m.listBy(m.next, from, count, bytes, into)
}

// listBy is list of what a function finds.
func (m *messages) listBy(find func(from uint64) (uint64, bool), from uint64, count, bytes int, into []Message) (out []Message, next uint64, loads []pending) {
	out, next = into, max(from, 1)
	var open opened
	for sequence, ok := find(next); ok && count > 0 && bytes > 0; sequence, ok = find(next) {
		where, position, _ := m.at(sequence)
		c := m.chunks[where]
		s := &open.slots(c)[position]
		if len(out) > len(into) && int(s.body) > bytes {
			break
		}
		msg := c.message(position, s)
		if s.content == nil {
			loads = append(loads, pending{at: len(out), slot: *s})
		}
		out = append(out, msg)
		next, count, bytes = sequence+1, count-1, bytes-int(s.body)
	}
	return out, next, loads
}

// message returns what is known of a message, which is all of it when its content is in memory.
func (c *chunk) message(position int, s *slot) Message {
	msg := Message{Sequence: c.first() + uint64(position), DeliveryCount: s.deliveries(), Redelivered: s.deliveries() > 0, Claimed: s.state&slotClaimed != 0,
		Expires: c.expiresAt(position), NotBefore: c.notBefore(position)}
	if s.content != nil {
		s.content.into(&msg)
	}
	return msg
}

// fill reads what list left out, records that lie near each other with one read. No lock is held.
func fill(dir *store.Dir, queue uint64, out []Message, loads []pending) error {
	for len(loads) > 0 {
		first := &loads[0].slot
		from, to := int64(first.offset), int64(first.offset)+int64(first.length)
		n := 1
		for ; n < len(loads); n++ {
			s := &loads[n].slot
			start, end := int64(s.offset), int64(s.offset)+int64(s.length)
			if s.file != first.file || start < to || start-to > readOver || end-from > readTogether {
				break
			}
			to = end
		}
		b, err := dir.Read(queue, first.file, from, to)
		if err != nil {
			return fmt.Errorf("read messages of queue %d: %w", queue, err)
		}
		for _, l := range loads[:n] {
			at := int64(l.slot.offset)
			var r store.Record
			frame := b[at-from : at-from+int64(l.slot.length)]
			msg := &out[l.at]
			if err := dir.Decode(frame, queue, l.slot.file, at, msg.Sequence, &r); err != nil {
				return fmt.Errorf("read messages of queue %d: %w", queue, err)
			}
			if r.Hash != l.slot.hash {
				return fmt.Errorf("read messages of queue %d: %w", queue,
					&store.Damage{File: dir.Path(queue, l.slot.file), Offset: at, Queue: queue, What: "the record is another message's"})
			}
			contentOf(&r).into(msg)
		}
		loads = loads[n:]
	}
	return nil
}
