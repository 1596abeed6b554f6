// Package ledger accounts for messages: which were confirmed, which were delivered and how often. Each message says in
// its body who published it, as which one, and when.
package ledger

import (
	"encoding/binary"
	"math/bits"
	"sync"
)

// StampBytes is how much of a body a stamp takes.
const StampBytes = 32

// Stamp names a message.
type Stamp struct {
	Run       uint64 // one run of a tool, so that what an earlier one left in the queue does not count
	Publisher uint64 // from 0
	Sequence  uint64 // from 0, of its publisher
	Sent      int64  // nanoseconds since the run's beginning
}

// Put writes the stamp to the first StampBytes of a body.
func (s Stamp) Put(body []byte) {
	binary.LittleEndian.PutUint64(body, s.Run)
	binary.LittleEndian.PutUint64(body[8:], s.Publisher)
	binary.LittleEndian.PutUint64(body[16:], s.Sequence)
	binary.LittleEndian.PutUint64(body[24:], uint64(s.Sent))
}

// Read returns the stamp of a body; false when the body is too short to have one.
func Read(body []byte) (Stamp, bool) {
	if len(body) < StampBytes {
		return Stamp{}, false
	}
	return Stamp{binary.LittleEndian.Uint64(body), binary.LittleEndian.Uint64(body[8:]), binary.LittleEndian.Uint64(body[16:]),
		int64(binary.LittleEndian.Uint64(body[24:]))}, true
}

// Ledger is the account of one run. Safe for concurrent use.
type Ledger struct {
	run    uint64
	tracks []track
}

// maxSequence bounds what a stamp can make a ledger grow to: 128 MiB of bits a publisher.
const maxSequence = 1 << 30

type track struct {
	mu                   sync.Mutex // guards all below
	confirmed, delivered set
	totals               Totals
}

// Totals are counts of messages.
type Totals struct {
	Confirmed  uint64 // distinct
	Delivered  uint64 // distinct
	Duplicated uint64 // deliveries of what was delivered before
	Unmarked   uint64 // those of them without the redelivered flag
	Lost       uint64 // confirmed but not delivered
}

// New returns the ledger of a run with a number of publishers.
func New(run uint64, publishers int) *Ledger {
	return &Ledger{run: run, tracks: make([]track, publishers)}
}

// Confirmed notes a confirm.
func (l *Ledger) Confirmed(publisher, sequence uint64) {
	t := &l.tracks[publisher]
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.confirmed.add(sequence) {
		t.totals.Confirmed++
	}
}

// Delivered notes a delivery; false when it is none of this run's messages.
func (l *Ledger) Delivered(s Stamp, redelivered bool) bool {
	if s.Run != l.run || s.Publisher >= uint64(len(l.tracks)) || s.Sequence >= maxSequence {
		return false
	}
	t := &l.tracks[s.Publisher]
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.delivered.add(s.Sequence) {
		t.totals.Delivered++
		return true
	}
	t.totals.Duplicated++
	if !redelivered {
		t.totals.Unmarked++
	}
	return true
}

// Totals sums up.
func (l *Ledger) Totals() Totals {
	var sum Totals
	for i := range l.tracks {
		t := &l.tracks[i]
		t.mu.Lock()
		sum.Confirmed += t.totals.Confirmed
		sum.Delivered += t.totals.Delivered
		sum.Duplicated += t.totals.Duplicated
		sum.Unmarked += t.totals.Unmarked
		sum.Lost += t.confirmed.without(&t.delivered)
		t.mu.Unlock()
	}
	return sum
}

// set is a set of small numbers, one bit each.
type set struct{ words []uint64 }

func (s *set) add(n uint64) (fresh bool) {
	word, bit := n/64, uint64(1)<<(n%64)
	for uint64(len(s.words)) <= word {
		s.words = append(s.words, 0)
	}
	fresh = s.words[word]&bit == 0
	s.words[word] |= bit
	return fresh
}

// without counts what is in s and not in other.
func (s *set) without(other *set) (n uint64) {
	for i, word := range s.words {
		if i < len(other.words) {
			word &^= other.words[i]
		}
		n += uint64(bits.OnesCount64(word))
	}
	return n
}
