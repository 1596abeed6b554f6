package fsm

import (
	"bytes"
	"encoding/binary"
)

// Packed slots are those of the messages, live and dying, in order, each a hash of 8 bytes, which nothing foretells, and a byte that says what
// else is not as foretold by the slot before it: the record follows that one's in the same file and has its lengths and
// its state. Nearly always that byte is 0. What differs follows as varints in the order of these bits.
const (
	packedFile = 1 << iota
	packedOffset
	packedLength
	packedBody
	packedState
)

// packable reports whether the contents of all messages of a chunk are in files only.
func (c *chunk) packable() bool {
	return c.packed == nil && c.held == 0 && c.unwritten == 0 && c.count > 0
}

// pack packs the slots of a chunk if it can be done. Reading and removing leave them packed; what else changes one of them
// unpacks them, until the next snapshot. So a backlog costs about ten bytes a message and gives the collector no pointers
// to follow.
func (m *messages) pack(where int) {
	if c := m.chunks[where]; c.packable() {
		packed := *c
		packed.width, packed.slots = len(c.slots), nil
		packed.pack(c.slots)
		m.replace(where, &packed)
	}
}

// unpack is the inverse of pack.
func (m *messages) unpack(where int) {
	c := *m.chunks[where]
	c.slots = make([]slot, c.width)
	c.unpack(c.slots)
	c.packed, c.page, c.rows, c.width = nil, nil, slotSet{}, 0
	m.replace(where, &c)
}

// packAt packs the chunk of a sequence.
func (m *messages) packAt(sequence uint64) {
	if where, ok := m.find((sequence - 1) / chunkSlots); ok {
		m.pack(where)
	}
}

// pack keeps the slots of live and dying messages.
func (c *chunk) pack(slots []slot) {
	kept := c.kept()
	b, before := make([]byte, 0, 9*c.count+32), &slot{}
	for i := kept.from(0); i >= 0; i = kept.from(i + 1) {
		s := &slots[i]
		b = binary.LittleEndian.AppendUint64(b, s.hash)
		at := len(b)
		b = append(b, 0)
		add := func(differs bool, bit byte, value uint64) {
			if differs {
				b[at] |= bit
				b = binary.AppendUvarint(b, value)
			}
		}
		add(s.file != before.file, packedFile, uint64(s.file))
		add(s.offset != before.offset+uint64(before.length), packedOffset, s.offset)
		add(s.length != before.length, packedLength, uint64(s.length))
		add(s.body != before.body, packedBody, uint64(s.body))
		add(s.state != before.state, packedState, uint64(s.state))
		before = s
	}
	if cap(b)-len(b) > len(b)/8 {
		b = bytes.Clone(b)
	}
	c.packed, c.page, c.rows = b, nil, kept
}

// unpack fills in the slots of live and dying messages. The others are zero and stay so.
func (c *chunk) unpack(slots []slot) { c.guarded(func() { c.read(slots) }) }

func (c *chunk) read(slots []slot) {
	b := c.packed
	take := func() uint64 {
		v, n := binary.Uvarint(b)
		b = b[n:]
		return v
	}
	var s slot
	for i := c.rows.from(0); i >= 0; i = c.rows.from(i + 1) {
		s.hash = binary.LittleEndian.Uint64(b)
		differs := b[8]
		b = b[9:]
		s.offset += uint64(s.length)
		if differs != 0 {
			if differs&packedFile != 0 {
				s.file = uint32(take())
			}
			if differs&packedOffset != 0 {
				s.offset = take()
			}
			if differs&packedLength != 0 {
				s.length = uint32(take())
			}
			if differs&packedBody != 0 {
				s.body = uint32(take())
			}
			if differs&packedState != 0 {
				s.state = uint32(take())
			}
		}
		if c.keeps(i) {
			slots[i] = s
		}
	}
}

// length is how many slots the chunk has.
func (c *chunk) length() int {
	if c.packed != nil {
		return c.width
	}
	return len(c.slots)
}

// opened is room for the slots of one packed chunk at a time.
type opened struct {
	chunk *chunk // whose slots are in room
	room  [chunkSlots]slot
}

// slots returns a chunk's slots, for reading, until the next call.
func (o *opened) slots(c *chunk) []slot {
	if c.packed == nil {
		return c.slots
	}
	if o.chunk != c {
		if o.chunk != nil {
			clear(o.room[:])
		}
		c.unpack(o.room[:c.width])
		o.chunk = c
	}
	return o.room[:c.width]
}
