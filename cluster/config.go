package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"regexp"
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
	// Commands is the highest command version that the state machine understands; gossiped.
	Commands uint16

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
	SnapshotRate  int64         // bytes a second of the state sent to followers that need all of it, together; 0 is no bound, else at least MinSnapshotRate
	DiskTimeout   time.Duration // the watchdog's limit, default 2 s

	// FSM may have a method Reset() error: it is called when no snapshot could be restored at start, so that the machine
	// takes the log's first entry.
	FSM raft.FSM
	// Unreadable reports whether an error of FSM.Restore says that the snapshot is damaged, so that another one, or
	// another node's, is taken instead; after any other error Open fails. Nil takes every error for damage.
	Unreadable func(error) bool

	// Incomplete, if set, says what the state machine could not restore though it restored the rest. A node that has
	// others takes no part in elections then until it returns nil; one that is alone takes an older snapshot, or Open fails.
	Incomplete func() error

	// Restoring, if set, says how far FSM.Restore is, for the log; it is called meanwhile.
	Restoring func() Progress

	// ObserveApply is told how long the state machine took for each log entry; nil for nobody. It must not block.
	ObserveApply func(time.Duration)
	Report       func() Report // this node's view of its state machine, for status
	Logger       *slog.Logger
	Files        vfs.FS
	Network      Network
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
	Bytes        uint64 // of what snapshots keep on disk and may let go of
	SnapshotDue  bool   // a snapshot would free memory that is soon needed
	Resources
}

// Resources is what a node says of its memory and disk.
type Resources struct {
	Alarm       string // why it takes no publishes, "" when it does
	Short       string // of what: memory, disk, both
	DiskFree    uint64 // bytes
	MinDiskFree uint64 // bytes; it takes no publishes below
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
	Empty    bool   // it has no Raft state yet and waits to be taken in
	Boots    uint64 // how often its data directory was started; the higher of two reports is the newer
	// Voter and Leader are Raft's view, false in gossip.
	Voter, Leader bool
}

// Defaults of Config.
const (
	DefaultRaftAddr      = "127.0.0.1:5680"
	DefaultGossipAddr    = "127.0.0.1:5690"
	DefaultSegmentBytes  = 64 << 20
	DefaultSnapshotBytes = 64 << 20
	DefaultSnapshotAge   = time.Hour
)

// FastTiming replaces a vanished leader in about half a second, on machines that are never busy for long.
var FastTiming = Timing{200 * time.Millisecond, 200 * time.Millisecond, 180 * time.Millisecond}

var nodeIDs = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// withDefaults fills in what was left out and returns all problems at once.
func (c Config) withDefaults() (Config, error) {
	var problems []error
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if c.NodeID != "" && !nodeIDs.MatchString(c.NodeID) {
		wrong("node id %q: use 1 to 63 letters, digits, '.', '_' or '-', beginning with a letter or digit", c.NodeID)
	}
	if c.DataDir == "" {
		wrong("no data directory given")
	}
	if c.FSM == nil {
		wrong("no state machine given")
	}
	if c.BootstrapExpect < 0 || c.BootstrapExpect > 9 {
		wrong("bootstrap-expect %d: use 1, 3, 5, 7 or 9", c.BootstrapExpect)
	}
	if c.LogStore != "" && c.LogStore != "segments" && c.LogStore != "bolt" {
		wrong("log store %q: use \"segments\" or \"bolt\"", c.LogStore)
	}
	def := func(v *string, d string) {
		if *v == "" {
			*v = d
		}
	}
	def(&c.RaftAddr, DefaultRaftAddr)
	def(&c.GossipAddr, DefaultGossipAddr)
	def(&c.LogStore, "segments")
	if c.SegmentBytes <= 0 {
		c.SegmentBytes = DefaultSegmentBytes
	}
	if c.SnapshotBytes <= 0 {
		c.SnapshotBytes = DefaultSnapshotBytes
	}
	if c.SnapshotAge <= 0 {
		c.SnapshotAge = DefaultSnapshotAge
	}
	if c.Timing.Heartbeat == 0 {
		c.Timing.Heartbeat = 500 * time.Millisecond
	}
	if c.Timing.Election == 0 {
		c.Timing.Election = c.Timing.Heartbeat
	}
	if c.Timing.Lease == 0 {
		c.Timing.Lease = c.Timing.Heartbeat * 4 / 5
	}
	if t := c.Timing; t.Lease > t.Heartbeat || t.Election < t.Heartbeat || t.Lease < 5*time.Millisecond {
		wrong("timing %v/%v/%v: the lease must be at least 5ms and not exceed the heartbeat, nor the heartbeat the election", t.Heartbeat, t.Election, t.Lease)
	}
	if c.SnapshotRate < 0 || c.SnapshotRate > 0 && c.SnapshotRate < MinSnapshotRate {
		wrong("snapshot rate %d: use 0 for no bound, or at least %d bytes a second", c.SnapshotRate, MinSnapshotRate)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Files == nil {
		c.Files = vfs.OS{}
	}
	if c.Network == nil {
		c.Network = tcp{}
	}
	return c, errors.Join(problems...)
}
