// Package cluster runs one Raft node: its stores, transport, membership, elections and disk watchdog. It knows
// nothing of AMQP: the state machine is a raft.FSM and an entry is bytes.
package cluster

import (
	"context"
	"errors"
	"net"
	"time"
)

// Errors a caller can compare with errors.Is.
var (
	// ErrNotWritten: the entry is certainly not in the log; it may be proposed again within the same term (rule 6).
	ErrNotWritten = errors.New("not the leader")
	// ErrOutcomeUnknown: the entry may or may not take effect.
	ErrOutcomeUnknown = errors.New("leadership was lost before the outcome was known")
	// ErrNoLeader: nobody is known to lead.
	ErrNoLeader = errors.New("no leader is known")
	// ErrClosed: the node was shut down.
	ErrClosed = errors.New("the node is shut down")
)

// Node is one member of the cluster. All methods are safe for concurrent use.
type Node struct{}

// Leadership is who leads in which term, as this node knows it. A leadership is (node, term): the same node
// leading again in a later term is another leadership (rule 1).
type Leadership struct {
	Term   uint64
	Local  bool   // this node leads
	Server string // the leader's Raft server id, "" when unknown
	Leader Member // its addresses, as far as gossip has them
}

// Open reads the data directory, starts listening and takes part in the cluster. It returns once the node runs,
// not once there is a leader.
func Open(c Config) (*Node, error) { panic("not built yet") }

// Propose appends an entry to the log. It returns at once; done is called exactly once, from another goroutine,
// unless the node shuts down: with nil when the entry was committed and applied here, an error wrapping
// ErrNotWritten when it certainly was not written, and one wrapping ErrOutcomeUnknown otherwise. Entries proposed by one
// goroutine are appended in that order. Results travel through the state machine's observer, not through done.
func (n *Node) Propose(entry []byte, done func(error)) { panic("not built yet") }

// Leadership returns the current leadership.
func (n *Node) Leadership() Leadership { panic("not built yet") }

// LeadershipChanged returns a channel that is closed at the next change of term, leader or locality.
func (n *Node) LeadershipChanged() <-chan struct{} { panic("not built yet") }

// VerifyLeader returns nil once a majority has confirmed, after the call, that this node still leads.
func (n *Node) VerifyLeader(ctx context.Context) error { panic("not built yet") }

// LeaseValid reports whether a majority was heard of within the lease, by the monotonic clock (rule 10).
func (n *Node) LeaseValid() bool { panic("not built yet") }

// Barrier returns nil once everything committed before the call is applied here; on a follower it first asks the
// leader for its applied index. It serves reads on any node.
func (n *Node) Barrier(ctx context.Context) error { panic("not built yet") }

// Self returns this node as others see it.
func (n *Node) Self() Member { panic("not built yet") }

// ClusterID returns the id of the cluster this node belongs to, "" before it was formed or joined.
func (n *Node) ClusterID() string { panic("not built yet") }

// Members returns the servers of Raft's latest configuration with gossip's addresses, sorted by node id.
func (n *Node) Members() []Member { panic("not built yet") }

// MemberStatus is a member's own report, or why there is none.
type MemberStatus struct {
	Member
	Reachable    bool
	AppliedIndex uint64
	CommitIndex  uint64
	LastIndex    uint64
	StateHash    uint64
	HashIndex    uint64
	Quarantined  string // why this node may not vote, "" when it may
}

// Status asks every member for its report, all at once, and waits for no one longer than the context.
func (n *Node) Status(ctx context.Context) []MemberStatus { panic("not built yet") }

// Boots returns the boot ids of the members whose Raft connections are or were open since this process started,
// this node's included, by Raft server id (rule 13).
func (n *Node) Boots() map[string][16]byte { panic("not built yet") }

// Voters returns the Raft server ids of the voters.
func (n *Node) Voters() []string { panic("not built yet") }

// CaughtUp reports whether this node knows a leader and has applied what was committed when it last heard from it.
func (n *Node) CaughtUp() bool { panic("not built yet") }

// Stream kinds from 16 on are the application's; below are the node's own.
type StreamKind uint8

// HandleStream sets who serves incoming streams of a kind. Only members get through. The handler owns the connection.
func (n *Node) HandleStream(kind StreamKind, handler func(from Member, c net.Conn)) {
	panic("not built yet")
}

// DialStream opens a stream of a kind to a member by Raft server id.
func (n *Node) DialStream(ctx context.Context, server string, kind StreamKind) (net.Conn, error) {
	panic("not built yet")
}

// TransferLeadership hands leadership to the best follower; pause proposing first.
func (n *Node) TransferLeadership(ctx context.Context) error { panic("not built yet") }

// Remove takes a member out of the cluster by node id. Leader only.
func (n *Node) Remove(ctx context.Context, nodeID string) error { panic("not built yet") }

// Snapshot takes a snapshot now.
func (n *Node) Snapshot() error { panic("not built yet") }

// Stats are figures for metrics.
type Stats struct {
	State                        string // leader, follower, candidate, shutdown
	Term, CommitIndex, LastIndex uint64
	LogBytes                     int64
	SnapshotIndex                uint64
	SnapshotAge, SnapshotTook    time.Duration
	LastContact                  time.Duration
	Elections, Syncs             uint64
	SyncSeconds                  float64
}

// Stats returns current figures.
func (n *Node) Stats() Stats { panic("not built yet") }

// Failed is closed when the node must not go on: a hung or failing disk (rule 19), a state machine that cannot
// apply. Err then says why and the process should exit.
func (n *Node) Failed() <-chan struct{} { panic("not built yet") }

// Err returns why the node failed, nil while it has not.
func (n *Node) Err() error { panic("not built yet") }

// Close hands leadership over if it can, announces leaving, and stops everything. It waits for all goroutines.
func (n *Node) Close(ctx context.Context) error { panic("not built yet") }
