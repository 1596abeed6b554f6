package cluster

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/hashicorp/raft"

	"github.com/warrenmq/warren/fsm/store/vfs"
)

// Config is what a node needs. Zero values take the documented defaults; Files, Network, Discovery and Stable are
// for tests that run whole clusters in memory.
type Config struct {
	NodeID  string // stable name of the node; "" takes the one on disk, or makes one
	DataDir string
	Version string // of the program, shown to operators

	RaftAddr        string // listens here, "127.0.0.1:5680"
	RaftAdvertise   string // others dial here; "" is the listener's address
	GossipAddr      string
	GossipAdvertise string
	// Clients are the advertised client addresses, gossiped so that every node can name every node's.
	Clients Addresses

	BootstrapExpect int      // voters of the first set; 1 bootstraps alone
	Join            []string // gossip addresses, own one may be among them

	Timing        Timing
	LogStore      string // "segments" (default) or "bolt"
	SegmentBytes  int64  // default 64 MiB
	SnapshotBytes int64  // log bytes that trigger a snapshot, default 64 MiB
	SnapshotAge   time.Duration
	DiskTimeout   time.Duration // the watchdog's limit, default 2 s

	FSM     raft.FSM
	Report  func() Report // this node's view of its state machine, for status
	Logger  *slog.Logger
	Files   vfs.FS
	Network Network
	// Discovery replaces memberlist; nil uses it.
	Discovery func(self Member) (Discovery, error)
	// Stable replaces the bolt file; nil uses it.
	Stable raft.StableStore
}

// Timing holds Raft's timeouts. Default: heartbeat and election 500 ms, lease 400 ms. Fast: 200/200/180.
type Timing struct{ Heartbeat, Election, Lease time.Duration }

// Addresses are a node's client addresses.
type Addresses struct{ Native, AMQP, HTTP string }

// Report is what a node says of its state machine.
type Report struct {
	AppliedIndex uint64
	StateHash    uint64
	HashIndex    uint64 // the index StateHash belongs to
	ClusterID    string // as written in the state, "" when not yet
}

// Network opens the node's stream listener and connections. Nil in Config is TCP.
type Network interface {
	Listen(address string) (net.Listener, error)
	Dial(ctx context.Context, address string) (net.Conn, error)
}

// Discovery tells a node of the others' presence. It is a hint only: Raft decides who leads and who is a member.
type Discovery interface {
	// Members returns everybody known and thought alive, this node included.
	Members() []Member
	// Changed is signalled (capacity 1) after Members may have changed; it is closed by Close.
	Changed() <-chan struct{}
	// Update replaces what is gossiped of this node.
	Update(self Member) error
	// Leave announces a planned departure.
	Leave(timeout time.Duration) error
	Close() error
}

// Member is one node as gossip and Raft know it.
type Member struct {
	NodeID    string
	Server    string // Raft server id: node id plus the data directory's incarnation (rule 4)
	ClusterID string // "" while it belongs to none
	Raft      string // addresses
	Gossip    string
	Clients   Addresses
	Version   string
	// Commands is the highest command version it understands.
	Commands uint16
	// Voter and Leader are Raft's view, false in gossip.
	Voter, Leader bool
}
