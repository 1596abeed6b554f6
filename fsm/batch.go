package fsm

import "bytes"

// Header is the head of a log entry.
type Header struct {
	Version uint8  // of the entry format
	Term    uint64 // of the leadership that made it; apply drops the batch if the entry's own term differs (rule 1)
	Number  uint64 // counts the batches of that leadership from 1; the proposer finds its waiters by it
	Clock   int64  // the leader's batch clock, Unix ms (rule 14)
	Count   uint32 // commands that follow
}

// An entry is [version][kind][msgpack array: term, number, clock, count][commands]. The four numbers have a fixed
// width, since the count is known last. A command is [opcode][msgpack fields][raw bytes].
const (
	entryVersion = 1
	entryBatch   = 1
	headerBytes  = 2 + 1 + 9 + 9 + 9 + 5
)

// Batch builds one log entry. Not safe for concurrent use. The slices of a command are copied into the entry by
// Append and may be reused after it.
type Batch struct {
	buf    []byte
	header Header
}

// Begin starts a new entry in a fresh buffer of the given capacity in bytes (raft keeps the old one).
func (b *Batch) Begin(term, number uint64, clock int64, capacity int) {
	b.header = Header{Version: entryVersion, Term: term, Number: number, Clock: clock}
	b.buf = make([]byte, 0, max(capacity, headerBytes))
	b.buf = append(b.buf, entryVersion, entryBatch, 0x94, 0xcf)
	b.buf = append(big.AppendUint64(b.buf, term), 0xcf)
	b.buf = append(big.AppendUint64(b.buf, number), 0xcf)
	b.buf = append(big.AppendUint64(b.buf, uint64(clock)), 0xce, 0, 0, 0, 0)
}

// Append adds a command.
func (b *Batch) Append(c Command) {
	b.buf = c.appendTo(append(b.buf, byte(c.opcode())))
	b.header.Count++
}

// AppendPublish is Append without the interface, for the hot path.
func (b *Batch) AppendPublish(p *Publish) {
	b.buf = p.encode(append(b.buf, byte(OpPublish)))
	b.header.Count++
}

// Check returns an error for a command that Append would take and apply could not read: an entry with it would stop
// every node, at every start. Whoever fills a command with what a client said asks this first.
func Check(c Command) error {
	d := decoder{b: c.appendTo(nil)}
	_, err := d.command(c.opcode())
	if err == nil && len(d.b) > 0 {
		err = ErrEntry
	}
	return err
}

// Count returns the number of commands so far.
func (b *Batch) Count() int { return int(b.header.Count) }

// Len returns the bytes of the entry so far.
func (b *Batch) Len() int { return len(b.buf) }

// Finish completes the header and returns the entry, which now belongs to the caller. Messages keep it in memory until
// they are in a file, so what was left over of its capacity is given back if it is much.
func (b *Batch) Finish() []byte {
	big.PutUint32(b.buf[headerBytes-4:], b.header.Count)
	entry := b.buf
	b.buf = nil
	if cap(entry)-len(entry) > len(entry)/8 {
		return bytes.Clone(entry)
	}
	return entry
}

func (d *decoder) header() (h Header) {
	h.Version = d.byte()
	kind := d.byte()
	d.want(4)
	h.Term, h.Number, h.Clock, h.Count = d.fixed(0xcf, 8), d.fixed(0xcf, 8), int64(d.fixed(0xcf, 8)), uint32(d.fixed(0xce, 4))
	if kind != entryBatch || uint64(h.Count)*2 > uint64(len(d.b)) { // a command has two bytes at least
		d.fail()
	}
	return h
}
