// Package fsm is Warren's state machine: what vhosts, exchanges, queues, bindings and messages are, and how each
// committed log entry changes them. The same entries in the same order give the same state, to the byte of its hash,
// on every node: nothing here reads a clock, draws a random number, ranges over a map into a result, or starts a
// goroutine while it applies.
package fsm

import (
	"sync"
	"sync/atomic"

	"github.com/warrenmq/warren/fsm/store/vfs"
)

// Result is what became of one command.
type Result struct {
	Code      Code
	Message   string  // one sentence for the client, AMQP style: "NOT_FOUND - no queue 'q' in vhost '/'"; empty when OK
	Routed    uint32  // publish: queues reached
	Duplicate bool    // publish: took effect earlier; Routed is the first outcome's
	Created   bool    // put: it was not there before
	Queue     uint64  // put queue: its number
	Longest   Backlog // publish: of the queues reached, the one with the most bytes
	Messages  uint64  // put, delete, purge, settle: see the command
	Parts     []Result
}

// Backlog is how much a queue holds right after a publish.
type Backlog struct {
	Queue uint64 // its number
	Bytes uint64 // of bodies
}

// Applied is what an Observer learns of one log entry.
type Applied struct {
	Index    uint64
	Term     uint64 // of the entry
	Number   uint64 // of the batch in its leadership; 0 when that was another than the entry's (rule 1)
	Results  []Result
	Grown    []uint64 // numbers of the queues that got messages, each once
	Deleted  []uint64 // numbers of the queues that are gone
	Dying    []uint64 // numbers of the queues in which messages died that are to be dead-lettered, each once
	Overfull bool     // a queue has more ready messages than its limits let it have: see Machine.Overfull
	Limited  []uint64 // numbers of the queues whose length has other limits than before
	// Suspect is set when the entry was an audit that this node's own hash at that index contradicts.
	Suspect *Audit
	// Replaced is set, alone, when the whole state was exchanged by a restore or a repair.
	Replaced bool
}

// Observer is told of each applied entry, in log order, by the goroutine that applies, with no lock held. It must
// not block and owns the slices it is given.
type Observer interface{ Applied(Applied) }

// VhostInfo describes a virtual host.
type VhostInfo struct {
	Number uint64
	Name   string
}

// Governed is what policies say to a queue or an exchange.
type Governed struct {
	Policy, OperatorPolicy string // their names, "" for none
	Definition             []byte // the settings in force, a field table without its length prefix
}

// ExchangeInfo describes an exchange.
type ExchangeInfo struct {
	Number     uint64
	Vhost      string
	Name       string
	Type       string
	Durable    bool
	AutoDelete bool
	Internal   bool
	Arguments  []byte
	Duplicates uint64 // messages that it had had before and did not route
	Governed
}

// QueueInfo describes a queue. Messages counts all live messages, held ones included.
type QueueInfo struct {
	Number       uint64
	Vhost        string
	Name         string
	Durable      bool
	Exclusive    bool
	AutoDelete   bool
	Arguments    []byte
	Owner        Session
	Messages     uint64
	MessageBytes uint64 // bodies
	Limited      bool   // its length is limited: what is delivered is claimed before (see Claim)
	Claimed      uint64
	FirstLive    uint64 // sequence of the first live message; Next when empty
	Next         uint64 // the sequence that the next message gets
	Mark         uint64
	Suspicion    uint64 // messages up to it may have been delivered in an earlier term
	HadConsumer  bool
	InUse        bool   // has a consumer, as far as the state knows
	UnusedSince  int64  // batch clock, ms; 0 while in use
	Duplicates   uint64 // messages that it had had before and did not take
	Governed
}

// BindingInfo describes a binding.
type BindingInfo struct {
	Vhost       string
	Source      string
	Kind        DestinationKind
	Destination string
	Key         string
	Arguments   []byte
}

// Message is a live message as the broker reads it. Its slices must not be changed.
type Message struct {
	Sequence      uint64
	Exchange      string
	RoutingKey    string
	Properties    []byte // without a BCC header
	Body          []byte
	DeliveryCount uint32
	Redelivered   bool      // it may have been delivered in an earlier term, or its delivery count is not zero
	ID            [2]uint64 // log index and position in the entry: unique in the cluster
	// Expires is the batch clock at which it expires, in ms; 0: never. Below 0 it expires at -Expires unless a consumer
	// takes it at once (a time to live of 0).
	Expires int64
	Deaths  uint8 // see DeadLetter
	Claimed bool  // see Claim
	// NotBefore is the batch clock before which it is not to be delivered again, in ms; 0: at once.
	NotBefore int64
}

// ExpiredAt reports whether the message has expired at a batch clock value, in ms.
func (m *Message) ExpiredAt(now int64) bool {
	return m.Expires != 0 && max(m.Expires, -m.Expires) <= now
}

// Totals are sums over the whole state.
type Totals struct {
	Vhosts, Exchanges, Queues, Bindings, Producers int
	Remembered                                     uint64 // values of headers, for deduplication
	Messages, MessageBytes                         uint64
	Waiting, WaitingBytes                          uint64 // delayed messages, which are in none of the queues
	IndexBytes, IndexPagedBytes                    uint64 // of all messages, on this node's heap and in its files
	// counters since the state began
	Published, Routed, Duplicates, Acknowledged, Rejected, Returned uint64
	Expired, DeadLettered, DeadUnrouted, OverDeliveryLimit          uint64
	Discarded, Moved, DroppedMaxLength, RefusedMaxLength            uint64
	Deduplicated                                                    uint64 // messages that an exchange or a queue had had before
	Delayed, Released, ReleasedUnrouted, DelayedDiscarded           uint64
}

// Machine is the replicated state. Apply is called by one goroutine; every other method may be called from any
// goroutine at any time and sees the state between two entries.
type Machine struct {
	options Options
	root    *messageRoot // nil: everything stays in memory

	progress progress // of a restore

	applying sync.Mutex   // held while the state changes and the observer is told, so that it hears of entries in order
	mu       sync.RWMutex // guards what follows
	state    *state
	files    *messageFiles // of root; replaced with the state
	hashes   hashRing
	failed   error // why nothing is applied any more

	exchanges atomic.Uint64 // see ExchangesVersion
}

// Options are what a machine needs from outside. The zero value keeps everything in memory and works in tests.
type Options struct {
	Observer Observer
	// OnFatal is told, at each entry from then on, that the state can no longer be trusted: the process must end. Nil panics.
	OnFatal func(error)
	// Files and Dir are where message files are kept. Without them everything stays in memory.
	Files vfs.FS
	Dir   string
	// BodyMemory is how many bytes of bodies may stay in memory once they are in files; 0 is DefaultBodyMemory.
	BodyMemory int64
	// Memory is how many bytes those bodies and the index of all messages may take together; 0 is no bound. Fewer bodies
	// stay the more messages there are, down to an eighth of BodyMemory.
	Memory int64
	// IndexMemoryMessages is how many messages of a queue, from its head on, have their index in memory whatever happens; 0 is
	// DefaultIndexMemoryMessages. What a longer queue has behind them is in files that the system reads when it is needed.
	IndexMemoryMessages int
	pageBytes           int // 0: pageBytes
	// End ends the process at once and does not return: a part of the state that was left to the disk cannot be read back. It is
	// called with locks held. Nil panics.
	End func(error)
	// A queue whose message files hold more than CollectRecords records (0: 2000) or CollectBytes (0: 64 MiB), over half of
	// it dead, and a file of more than CollectBytes, over half of it dead, is copied to a new file at a snapshot.
	CollectRecords int
	CollectBytes   int64
	// Room returns how many bytes there are for copies of that kind, and whether the disk is so full that smaller files
	// are worth a copy too. Nil is any number, and no.
	Room func() (bytes int64, short bool)
}

// DefaultBodyMemory is Options.BodyMemory when it is zero.
const DefaultBodyMemory = 512 << 20

// New returns an empty machine that knows the vhost "/" with its default and amq.* exchanges.
func New(o Options) *Machine {
	m := &Machine{options: o, root: newMessageRoot(o), state: genesis()}
	if m.root != nil {
		m.files, m.failed = m.root.make()
	}
	return m
}

// Apply decodes and applies one entry. An unknown format version or opcode, or bytes that no Batch makes, is an
// error: the node must stop rather than diverge. An index that was applied before is passed over.
func (m *Machine) Apply(index, term uint64, entry []byte) ([]Result, error) {
	m.applying.Lock()
	defer m.applying.Unlock()
	m.mu.Lock()
	s := m.state
	if m.failed != nil || index <= s.index {
		defer m.mu.Unlock()
		return nil, m.failed
	}
	h, results, err := s.apply(index, term, entry, &m.hashes)
	m.failed = err
	if s.rerouted {
		s.rerouted = false
		m.exchanges.Add(1)
	}
	if h.Term != term {
		h.Number = 0 // of another leadership: nobody waits for it here
	}
	applied := Applied{Index: index, Term: term, Number: h.Number, Results: results, Grown: s.grown, Deleted: s.deleted, Dying: s.died, Limited: s.limited, Overfull: s.overran, Suspect: s.suspect}
	m.mu.Unlock()
	if err == nil && m.options.Observer != nil {
		m.options.Observer.Applied(applied)
	}
	return results, err
}
