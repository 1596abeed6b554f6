// Package fsm is Warren's state machine: what vhosts, exchanges, queues, bindings and messages are, and how each
// committed log entry changes them. The same entries in the same order give the same state, to the byte of its hash,
// on every node: nothing here reads a clock, draws a random number, ranges over a map into a result, or starts a
// goroutine while it applies.
package fsm

// Result is what became of one command.
type Result struct {
	Code      Code
	Message   string // one sentence for the client, AMQP style: "NOT_FOUND - no queue 'q' in vhost '/'"; empty when OK
	Routed    uint32 // publish: queues reached
	Duplicate bool   // publish: took effect earlier; Routed is the first outcome's
	Created   bool   // put: it was not there before
	Queue     uint64 // put queue: its number
	Messages  uint64 // put, delete, purge, settle: see the command
	Parts     []Result
}

// Applied is what an Observer learns of one log entry.
type Applied struct {
	Index   uint64
	Term    uint64 // of the entry
	Number  uint64 // of the batch in its leadership
	Results []Result
	Grown   []uint64 // numbers of the queues that got messages, each once
	Deleted []uint64 // numbers of the queues that are gone
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
	FirstLive    uint64 // sequence of the first live message; Next when empty
	Next         uint64 // the sequence that the next message gets
	Mark         uint64
	Suspicion    uint64 // messages up to it may have been delivered in an earlier term
	HadConsumer  bool
	InUse        bool  // has a consumer, as far as the state knows
	UnusedSince  int64 // batch clock, ms; 0 while in use
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
	Properties    []byte
	Body          []byte
	DeliveryCount uint32
	Redelivered   bool      // it may have been delivered in an earlier term, or its delivery count is not zero
	ID            [2]uint64 // log index and position in the entry: unique in the cluster
}

// Totals are sums over the whole state.
type Totals struct {
	Vhosts, Exchanges, Queues, Bindings, Producers int
	Messages, MessageBytes                         uint64
	// counters since the state began
	Published, Routed, Duplicates, Acknowledged, Rejected, Returned uint64
}
