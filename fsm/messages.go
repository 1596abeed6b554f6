package fsm

import (
	"math/bits"
	"slices"
	"sort"
	"unsafe"

	"github.com/warrenmq/warren/fsm/store"
)

// content is what never changes of a message. One content may be in many queues. In a message that is not in a file
// yet its slices alias the log entry that brought it.
type content struct {
	exchange, routingKey string
	properties, body     []byte
	hash                 uint64    // of everything here but transient's consequences; computed once (rule 15)
	id                   [2]uint64 // log index and position in the entry
	transient            bool      // goes at a cold start (rule 13)
	deaths               uint8     // entries at the front of its x-death header that stand for deaths here; a client wrote the others
}

// chunkSlots is how many sequence numbers a chunk covers: small enough that copying one on the first change after a
// snapshot is a microsecond, large enough that a million messages are a few thousand references.
const chunkSlots = 256

// slot is one message: in memory, in a file, or both. When the bodies of a chunk are only in files its slots are packed:
// see pack. A new field must be packed, too.
type slot struct {
	content *content // nil when the body is only in the file
	hash    uint64   // content.hash, kept when the content leaves memory
	offset  uint64   // of its record in the file
	file    uint32   // number of the queue's message file; 0 when not written yet
	length  uint32   // of its record, in bytes, head included
	body    uint32   // bytes of body
	state   uint32   // see below
}

// The bits of a slot's state.
const (
	maxDeliveryCount = 1<<18 - 1 // the count stops there
	slotClaimed      = 1 << 18   // a consumer of a queue with length limits holds it (rule 3)
	slotDeferred     = 1 << 19   // not deliverable before a time
	slotPriority     = 20        // eight bits: its level in the queue
	slotDying        = 1 << 28   // waits for its dead letter; why in the two bits above
	slotReason       = 29
	slotTransient    = 1 << 31

	slotFixed = slotTransient | 0xff<<slotPriority // never changes: it is in the record
)

func (s *slot) deliveries() uint32 { return s.state & maxDeliveryCount }

// contentBytes is what a content takes in memory beside its body and properties, which is most of a small message: itself,
// and what the log entry that it came in, or its own copies, have besides.
const contentBytes = 160

// changed reports whether something became of the message since it came, so that a manifest has to tell.
func (s *slot) changed() bool { return s.state&^slotFixed != 0 }

// size is what the content of a slot takes in memory.
func (s *slot) size() uint64 {
	if s.content == nil {
		return 0
	}
	return contentBytes + uint64(len(s.content.body)+len(s.content.properties))
}

// chunk is the messages of chunkSlots consecutive sequence numbers. One that a snapshot may be reading (its epoch is
// older than its queue's) is copied before it is changed.
type chunk struct {
	index     uint64 // its first sequence is index*chunkSlots + 1
	epoch     uint64
	serial    uint64      // of the queue's chunks and their copies each has another
	live      slotSet     // bit i: the message of slots[i] is live
	dying     slotSet     // bit i: it waits for its dead letter; it is kept as a live one is, and no consumer gets it
	leveled   slotSet     // live messages that are not of the plain level
	count     int         // messages, dying ones included, as in what follows
	unwritten int         // that are in no file
	counted   int         // of which a manifest has to tell
	held      int         // whose content is in memory
	slots     []slot      // the dead ones are zero; nil when packed
	packed    []byte      // or nil; never changes
	page      *store.Page // that packed is in; nil: on the heap
	sum       uint32      // of packed, when it is in a page
	rows      slotSet     // whose slots are in packed
	width     int         // how many slots there are when they are packed
	expires   []int64     // batch clock of slots, ms, 0 is never; nil while it is so for all; packed or not
	soonest   int64       // none expires earlier; 0: none does
	deferred  []int64     // batch clock before which slots are not deliverable, ms; nil while it is so for none; packed or not
}

func (c *chunk) first() uint64 { return c.index*chunkSlots + 1 }

// has reports whether position i is live.
func (c *chunk) has(i int) bool { return c.live.has(i) }

// keeps reports whether position i is live or dying.
func (c *chunk) keeps(i int) bool { return c.live.has(i) || c.dying.has(i) }

// from returns the first live position from i on, or -1.
func (c *chunk) from(i int) int { return c.live.from(i) }

// after returns the first live position behind i, or -1.
func (c *chunk) after(i int) int { return c.live.from(i + 1) }

// kept returns the live and the dying.
func (c *chunk) kept() slotSet { return c.live.or(c.dying) }

// expiresAt returns when position i expires, 0 for never.
func (c *chunk) expiresAt(i int) int64 {
	if i >= len(c.expires) {
		return 0
	}
	return c.expires[i]
}

// messages is the ordered set of live messages of one queue. Sequence numbers start at 1 and never repeat. Its zero
// value is empty and ready. All of it belongs to the machine's lock; a view may be read without.
//
// append, live, raise and remove take constant time, next constant time over neighbours. A chunk whose messages are
// all gone is freed. A message pins the log entry that brought it until the next snapshot, which either copies its
// content out or leaves it to the file; so what survivors pin is bounded by the log written between two snapshots.
type messages struct {
	last      uint64        // the last sequence given
	chunks    []*chunk      // ascending by index, none empty except perhaps the last
	epoch     uint64        // raised by each view
	version   uint64        // raised by each change
	count     uint64        // live messages
	bytes     uint64        // their bodies
	dying     dying         // that are no longer live
	levels    []*level      // ascending by code; none empty
	claims    claims        // that consumers hold
	expiring  soonest       // chunks by when their first message expires
	schedule  *schedule     // in their place, of a queue of delayed messages
	memory    uint64        // bytes of contents in memory
	unwritten uint64        // those of them that are in no file
	index     uint64        // bytes of the chunks
	serial    uint64        // the last one given to a chunk
	sum       uint64        // of contribution over the live and the dying messages
	viewed    *messagesView // the last view, until something changes
}

// contribution is what a message adds to its queue's sum.
func contribution(hash, sequence uint64, state uint32, expires int64) uint64 {
	x := hash ^ sequence*0x9e3779b97f4a7c15 ^ uint64(state&^slotTransient)*0xd6e8feb86659fd93 ^ uint64(expires)*0xa0761d6478bd642f
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// nextSequence returns the sequence that the next append gives.
func (m *messages) nextSequence() uint64 { return m.last + 1 }

// find returns the position of the chunk with the index, or where it would be.
func (m *messages) find(index uint64) (int, bool) {
	n := len(m.chunks)
	if n == 0 || index < m.chunks[0].index {
		return 0, false
	}
	if index > m.chunks[n-1].index {
		return n, false
	}
	if guess := index - m.chunks[0].index; guess < uint64(n) && m.chunks[guess].index == index {
		return int(guess), true
	}
	if back := m.chunks[n-1].index - index; back < uint64(n) && m.chunks[n-1-int(back)].index == index {
		return n - 1 - int(back), true
	}
	at := sort.Search(n, func(i int) bool { return m.chunks[i].index >= index })
	return at, m.chunks[at].index == index
}

// at returns the slot of a live message and the position of its chunk.
func (m *messages) at(sequence uint64) (where, position int, ok bool) {
	where, position, ok = m.slotOf(sequence)
	return where, position, ok && m.chunks[where].has(position)
}

// slotOf returns the slot that a sequence has, and the position of its chunk, if the chunk is there.
func (m *messages) slotOf(sequence uint64) (where, position int, ok bool) {
	if sequence == 0 || sequence > m.last {
		return 0, 0, false
	}
	where, ok = m.find((sequence - 1) / chunkSlots)
	return where, int((sequence - 1) % chunkSlots), ok
}

// own returns a chunk that no view shares.
func (m *messages) own(where int) *chunk {
	m.viewed = nil
	c := m.chunks[where]
	if c.epoch == m.epoch {
		return c
	}
	copied := *c
	if c.packed == nil {
		copied.slots = append(make([]slot, 0, cap(c.slots)), c.slots...)
	}
	copied.expires, copied.deferred = slices.Clone(c.expires), slices.Clone(c.deferred)
	m.replace(where, &copied)
	return &copied
}

// writable returns a chunk that no view shares and whose slots may be changed.
func (m *messages) writable(where int) *chunk {
	if m.chunks[where].packed != nil {
		m.unpack(where)
	}
	return m.own(where)
}

// replace puts a chunk that no view shares in place of another.
func (m *messages) replace(where int, c *chunk) {
	m.viewed = nil
	m.serial++
	c.epoch, c.serial = m.epoch, m.serial
	m.index += c.weight() - m.chunks[where].weight()
	m.chunks[where] = c
}

// chunkBytes is what a chunk takes in memory beside its slots.
const chunkBytes = 288

// weight is what a chunk takes in memory without contents.
func (c *chunk) weight() uint64 {
	heap := len(c.packed)
	if c.page != nil {
		heap = 0
	}
	return chunkBytes + uint64(cap(c.slots))*uint64(unsafe.Sizeof(slot{})) + uint64(heap) + 8*uint64(cap(c.expires)+cap(c.deferred))
}

// append adds a message that expires at a batch clock value in ms, 0 for never, and returns its sequence.
func (m *messages) append(c *content, expires int64) uint64 { return m.appendIn(0, c, expires) }

// appendIn is append to a level.
func (m *messages) appendIn(code uint8, c *content, expires int64) uint64 {
	s := slot{content: c, hash: c.hash, body: uint32(len(c.body)), state: uint32(code) << slotPriority}
	if c.transient {
		s.state |= slotTransient
	}
	m.last++
	m.put(m.last, s, expires)
	return m.last
}

// put adds a message at a sequence above all there are. The caller sets last.
func (m *messages) put(sequence uint64, s slot, expires int64) {
	index, n := (sequence-1)/chunkSlots, len(m.chunks)
	if n == 0 || m.chunks[n-1].index != index {
		if n > 0 && m.chunks[n-1].count == 0 {
			m.drop(n - 1)
			n--
		}
		m.insert(n, index)
		n++
	}
	m.place(m.writable(n-1), sequence, s, expires)
}

// insert makes an empty chunk with an index.
func (m *messages) insert(where int, index uint64) {
	m.serial++
	c := &chunk{index: index, epoch: m.epoch, serial: m.serial}
	m.chunks = slices.Insert(m.chunks, where, c)
	m.index += c.weight()
}

// place adds a message, live or dying, to a chunk that may be changed.
func (m *messages) place(c *chunk, sequence uint64, s slot, expires int64) {
	position := int(sequence - c.first())
	if position >= len(c.slots) {
		m.extend(c, position+1)
	}
	c.slots[position] = s
	if s.state&slotDying != 0 {
		c.dying.add(position)
		m.dying.add(sequence, s.body)
	} else {
		c.live.add(position)
		m.enterLevel(c, position, s.state)
		m.count++
		m.bytes += uint64(s.body)
		if s.state&slotClaimed != 0 {
			m.claims.add(c, position, s.body)
		}
	}
	if expires != 0 {
		m.expireAt(c, position, expires)
	}
	c.count++
	if s.content != nil {
		c.held++
		m.memory += s.size()
	}
	if s.file == 0 {
		c.unwritten++
		m.unwritten += s.size()
	}
	if s.changed() {
		c.counted++
	}
	m.version++
	m.sum += contribution(s.hash, sequence, s.state, expires)
}

// extend makes a chunk n slots long.
func (m *messages) extend(c *chunk, n int) {
	if n > cap(c.slots) {
		room := min(max(n, 4, 2*len(c.slots)), chunkSlots)
		if len(m.chunks) > 1 { // the queue is no small one
			room = chunkSlots
		}
		m.index -= c.weight()
		c.slots = append(make([]slot, 0, room), c.slots...)
		m.index += c.weight()
	}
	c.slots = c.slots[:n]
}

// next returns the first live sequence not below from.
func (m *messages) next(from uint64) (uint64, bool) {
	from = max(from, 1)
	if from > m.last {
		return 0, false
	}
	where, exact := m.find((from - 1) / chunkSlots)
	position := 0
	if exact {
		position = int((from - 1) % chunkSlots)
	}
	for ; where < len(m.chunks); where++ {
		if i := m.chunks[where].from(position); i >= 0 {
			return m.chunks[where].first() + uint64(i), true
		}
		position = 0
	}
	return 0, false
}

// first returns the first live sequence.
func (m *messages) first() (uint64, bool) { return m.next(1) }

// state returns the state of a live message, 0 for what is not live.
func (m *messages) state(sequence uint64) uint32 {
	where, position, ok := m.at(sequence)
	if !ok {
		return 0
	}
	if c := m.chunks[where]; c.packed == nil {
		return c.slots[position].state
	}
	var open opened
	return open.slots(m.chunks[where])[position].state
}

// transient reports whether a live message goes at a cold start. Who asks for one after the other keeps the chunk opened.
func (m *messages) transient(open *opened, sequence uint64) bool {
	where, position, ok := m.at(sequence)
	return ok && open.slots(m.chunks[where])[position].state&slotTransient != 0
}

// deliveries returns the delivery count of a live message.
func (m *messages) deliveries(sequence uint64) uint32 { return m.state(sequence) & maxDeliveryCount }

// raise adds one to the delivery count of a message; false when it is not live.
func (m *messages) raise(sequence uint64) bool {
	where, position, ok := m.at(sequence)
	if !ok {
		return false
	}
	c := m.writable(where)
	s := &c.slots[position]
	m.version++
	if s.deliveries() == maxDeliveryCount {
		return true
	}
	m.mark(c, position, s.state+1)
	return true
}

// mark gives a message another state. The caller has made the chunk writable.
func (m *messages) mark(c *chunk, position int, state uint32) {
	s, sequence, expires := &c.slots[position], c.first()+uint64(position), c.times(position)
	m.sum -= contribution(s.hash, sequence, s.state, expires)
	if !s.changed() {
		c.counted++
	}
	s.state = state
	if !s.changed() {
		c.counted--
	}
	m.sum += contribution(s.hash, sequence, s.state, expires)
}

// remove takes a message away; false when it is not live.
func (m *messages) remove(sequence uint64) bool {
	where, position, ok := m.at(sequence)
	if !ok {
		return false
	}
	var one slotSet
	one.add(position)
	m.removeFrom(where, one)
	return true
}

// drop frees an empty chunk.
func (m *messages) drop(where int) {
	m.index -= m.chunks[where].weight()
	if where == 0 {
		m.chunks[0] = nil
		m.chunks = m.chunks[1:]
		return
	}
	m.chunks = slices.Delete(m.chunks, where, where+1)
}

// liveIn counts the live messages in ascending, disjoint runs. Its time follows the chunks touched.
func (m *messages) liveIn(runs []Run) uint64 {
	var total uint64
	for _, r := range runs {
		if r.From == 0 {
			r.From = 1
		}
		r.To = min(r.To, m.last)
		if r.From > r.To {
			continue
		}
		where, _ := m.find((r.From - 1) / chunkSlots)
		for ; where < len(m.chunks) && m.chunks[where].first() <= r.To; where++ {
			total += m.chunks[where].liveBetween(r)
		}
	}
	return total
}

// liveBetween counts the live messages of a chunk that are in a run.
func (c *chunk) liveBetween(r Run) (total uint64) {
	covered, _ := within([]Run{r}, c.first())
	for w, live := range c.live {
		total += uint64(bits.OnesCount64(live & covered[w]))
	}
	return total
}

// into fills in what a content knows of a message.
func (c *content) into(msg *Message) {
	msg.Exchange, msg.RoutingKey = c.exchange, c.routingKey
	msg.Properties, msg.Body, msg.ID, msg.Deaths = c.properties, c.body, c.id, c.deaths
}

// messagesView is the state of a queue's messages at one moment. It may be read by any goroutine without a lock.
type messagesView struct {
	last, version, count, bytes, sum uint64 // dying messages are counted
	chunks                           []*chunk
}

// view returns the messages as they are now, at the cost of one reference a chunk, or nothing when they are as at the
// last view; later changes copy what they touch.
func (m *messages) view() messagesView {
	if m.viewed != nil {
		return *m.viewed
	}
	m.epoch++
	if m.count+m.dying.count == 0 {
		m.chunks, m.index = nil, 0
	}
	m.viewed = &messagesView{last: m.last, version: m.version, count: m.count + m.dying.count, bytes: m.bytes + m.dying.bytes, sum: m.sum,
		chunks: slices.Clone(m.chunks)}
	return *m.viewed
}

// all calls yield for each message of a view, dying ones included, in order until it returns false.
func (v *messagesView) all(yield func(c *chunk, position int, s *slot) bool) {
	var open opened
	for _, c := range v.chunks {
		slots := open.slots(c)
		for w, word := range c.kept() {
			for word != 0 {
				i := w*64 + bits.TrailingZeros64(word)
				word &= word - 1
				if !yield(c, i, &slots[i]) {
					return
				}
			}
		}
	}
}
