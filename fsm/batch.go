package fsm

// Header is the head of a log entry.
type Header struct {
	Version uint8  // of the entry format
	Term    uint64 // of the leadership that made it; apply drops the batch if the entry's own term differs (rule 1)
	Number  uint64 // counts the batches of that leadership from 1; the proposer finds its waiters by it
	Clock   int64  // the leader's batch clock, Unix ms (rule 14)
	Count   uint32 // commands that follow
}

// Batch builds one log entry. Not safe for concurrent use. The slices of a command are copied into the entry by
// Append and may be reused after it.
type Batch struct {
	buf    []byte
	header Header
}

// Begin starts a new entry in a fresh buffer of the given capacity in bytes (raft keeps the old one).
func (b *Batch) Begin(term, number uint64, clock int64, capacity int) { panic("not built yet") }

// Append adds a command.
func (b *Batch) Append(c Command) { panic("not built yet") }

// AppendPublish is Append without the interface, for the hot path.
func (b *Batch) AppendPublish(p *Publish) { panic("not built yet") }

// Count returns the number of commands so far and Len the bytes of the entry so far.
func (b *Batch) Count() int { panic("not built yet") }

// Len returns the bytes of the entry so far.
func (b *Batch) Len() int { panic("not built yet") }

// Finish completes the header and returns the entry, which now belongs to the caller.
func (b *Batch) Finish() []byte { panic("not built yet") }

// Size returns an upper bound of what Append(c) adds, in bytes.
func Size(c Command) int { panic("not built yet") }
