// Package cluster runs one Raft node: its stores, transport, membership, elections and disk watchdog. It knows
// nothing of AMQP: the state machine is a raft.FSM and an entry is bytes.
package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
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

// StreamKind says what a connection to the Raft port is for. Kinds from 16 on are the application's; below are the
// node's own.
type StreamKind uint8

// Node is one member of the cluster. All methods are safe for concurrent use.
type Node struct {
	config   Config
	log      *slog.Logger
	identity *identity
	server   string // the Raft server id
	boot     [16]byte
	fixed    Member // of Self, what never changes in this process
	empty    atomic.Bool

	stores    *stores
	streams   *streams
	transport *transport
	machine   *machine
	book      *book
	discovery Discovery
	raft      *raft.Raft
	snap      snapshotting

	proposals chan proposal
	pending   chan pending // closed by hand
	inFlight  atomic.Int64
	calls     atomic.Int64  // of raft that somebody waits for, or waited for
	awaited   chan struct{} // closed by await at its end
	stopping  chan struct{} // closed at the beginning of Close
	poked     chan struct{} // raft may have changed; capacity 1
	woken     chan struct{} // membership may have changed; capacity 1

	leaderMu      sync.Mutex // guards the two that follow
	leader        Leadership // without Leader
	leaderChanged chan struct{}

	crashMu    sync.Mutex // guards the three that follow
	crashTerm  uint64     // the last term that this node ended by itself
	crashTimes []time.Time
	crashOther time.Time // when a server earlier in line was last told that the leader is gone

	barrierTerm atomic.Uint64 // the term whose beginning is applied here
	knownBoots  atomic.Uint64 // a higher boot counter that a peer told of
	elections   atomic.Uint64
	syncs       atomic.Uint64
	syncTime    atomic.Int64 // nanoseconds

	ctx    context.Context // of every goroutine; ends in Close
	cancel context.CancelFunc
	runMu  sync.Mutex // guards closed, and wg against a late Add
	closed bool
	wg     sync.WaitGroup

	failOnce  sync.Once
	failed    chan struct{} // closed by fail
	err       error         // written before failed is closed
	closeOnce sync.Once
	closeErr  error
}

// Open reads the data directory, starts listening and takes part in the cluster. It returns once the node runs,
// not once there is a leader.
func Open(c Config) (*Node, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	n := &Node{config: c, log: c.Logger, book: newBook(), proposals: make(chan proposal), pending: make(chan pending, maxProposals),
		stopping: make(chan struct{}), awaited: make(chan struct{}), poked: make(chan struct{}, 1), woken: make(chan struct{}, 1), leaderChanged: make(chan struct{}),
		failed: make(chan struct{})}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	_, _ = rand.Read(n.boot[:])
	if err := n.open(); err != nil {
		n.abandon()
		return nil, err
	}
	return n, nil
}

func (n *Node) open() error {
	c := n.config
	var err error
	if n.identity, _, err = openIdentity(c.Files, c.DataDir, c.NodeID); err != nil {
		return err
	}
	n.server = n.identity.server()
	id := n.identity.get()
	n.log = n.log.With("node", id.NodeID)
	n.machine = &machine{fsm: c.FSM, observe: c.ObserveApply, report: c.Report, fatal: n.fail, restored: n.restoredState, progress: c.Restoring, log: n.log,
		newest: func() uint64 { i, _ := n.stores.newestSnapshot(); return i }}
	if n.stores, err = n.openStores(); err != nil {
		return err
	}
	if err := n.forgetHalfBootstrap(); err != nil {
		return fmt.Errorf("finish forming the cluster: %w", err)
	}
	used, err := raft.HasExistingState(n.stores.log, n.stores.stable, n.stores.snapshots)
	if err != nil {
		return fmt.Errorf("read the raft state: %w", err)
	}
	if used && id.Boots == 1 {
		return fmt.Errorf("%s holds a raft log but its identity file is gone: restore that file, or move the whole directory aside to join as new", c.DataDir)
	}
	n.empty.Store(!used && n.identity.get().Quarantined == "")

	listener, err := c.Network.Listen(c.RaftAddr)
	if err != nil {
		return fmt.Errorf("listen for other nodes: %w", err)
	}
	n.streams = newStreams(n, listener)
	n.streams.gone = n.connectionEnded
	n.streams.handlers[streamRequest] = n.answer
	n.fixed = Member{NodeID: id.NodeID, Server: n.server, Raft: or(c.RaftAdvertise, listener.Addr().String()),
		Gossip: or(c.GossipAdvertise, c.GossipAddr), Clients: c.Clients, Version: c.Version, Commands: c.Commands}

	if err := n.discover(); err != nil {
		return err
	}
	n.snap.index, _ = n.stores.newestSnapshot()
	n.snap.at = time.Now()
	n.snap.bytes = n.stateReport().Bytes
	n.transport = newTransport(raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{Stream: n.streams, MaxPool: 3,
		MaxRPCsInFlight: 2, Timeout: rpcTimeout, Logger: raftLogger(n.log)}), n.streams)
	if reason := n.identity.get().Quarantined; reason != "" {
		n.transport.quarantined.Store(true)
		n.log.Error("this node takes no part in elections until it has caught up", "reason", reason)
	}
	if lost := n.stores.lost; lost != nil {
		n.quarantine(fmt.Sprintf("messages are missing: %v", lost))
	}
	served := &servedSnapshots{n.stores.snapshots, n.snapshotSpoiled}
	tail, found, err := n.stores.tailOf(n.snap.index)
	if err != nil {
		return fmt.Errorf("read the end of the log: %w", err)
	}
	if err := n.startRaft(served); err != nil {
		return fmt.Errorf("start raft: %w", err)
	}
	if found {
		n.spawn(func() { n.tellReplay(tail) })
	}
	n.raft.RegisterObserver(raft.NewObserver(nil, false, n.observeRaft))
	n.run()
	return nil
}

// startRaft makes an error of the panic with which raft meets a log entry that cannot be read. (Once it runs, the watchdog
// keeps such entries from it.)
func (n *Node) startRaft(snapshots raft.SnapshotStore) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("read the raft log: %v", p)
		}
	}()
	n.raft, err = raft.NewRaft(n.raftConfig(), n.machine, n.stores.log, n.stores.stable, snapshots, n.transport)
	n.stores.watchdog.Run()
	return err
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (n *Node) raftConfig() *raft.Config {
	c, t := raft.DefaultConfig(), n.config.Timing
	c.LocalID = raft.ServerID(n.server)
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = t.Heartbeat, t.Election, t.Lease
	c.CommitTimeout = 20 * time.Millisecond
	c.MaxAppendEntries = 64
	c.NoLegacyTelemetry = true
	c.ShutdownOnRemove = false
	c.Logger = raftLogger(n.log)
	c.NoSnapshotRestoreOnStart = true // restoreNewest did it
	// Snapshots go by bytes (keepSnapshots), and so does cutting the log (keptLog).
	c.SnapshotThreshold, c.SnapshotInterval, c.TrailingLogs = math.MaxUint64, 24*time.Hour, 1
	return c
}

func (n *Node) discover() (err error) {
	if n.config.Discovery != nil {
		n.discovery, err = n.config.Discovery(n.Self())
		return err
	}
	g, err := newGossip(n.config, n.Self(), n.log)
	if err != nil {
		return err
	}
	n.fixed.Gossip = g.address()
	n.discovery = g
	return nil
}

// run starts the goroutines, each of which ends with n.ctx.
func (n *Node) run() {
	n.spawn(func() { n.transport.forward(n.ctx.Done()) })
	if len(n.identity.get().Founders) > 0 || n.config.BootstrapExpect == 1 {
		if err := n.maybeBootstrap(); err != nil {
			n.log.Error("cannot form the cluster", "error", err)
		}
	}
	n.spawn(n.streams.serve)
	n.spawn(n.watchLeadership)
	n.spawn(n.keepMembership)
	n.spawn(n.keepSnapshots)
	n.spawn(n.electAtStart)
	n.spawn(n.introduce)
	n.spawn(n.hand)
	go n.await()
}

// spawn runs f on a goroutine that Close waits for; false when it is too late.
func (n *Node) spawn(f func()) bool {
	n.runMu.Lock()
	defer n.runMu.Unlock()
	if n.closed {
		return false
	}
	n.wg.Go(f)
	return true
}

func (n *Node) observeSync(_ string, d time.Duration) {
	n.syncs.Add(1)
	n.syncTime.Add(int64(d))
}

// fail takes this node out: it talks to nobody from now on, so that the others elect a leader (rule 19).
func (n *Node) fail(err error) {
	n.failOnce.Do(func() {
		n.err = err
		close(n.failed)
		n.log.Error("this node cannot go on", "error", err)
		if n.streams != nil {
			n.streams.shut()
		}
	})
}

// Failed is closed when the node must not go on: a hung or failing disk (rule 19), a state machine that cannot
// apply. Err then says why and the process should exit.
func (n *Node) Failed() <-chan struct{} { return n.failed }

// Err returns why the node failed, nil while it has not.
func (n *Node) Err() error {
	select {
	case <-n.failed:
		return n.err
	default:
		return nil
	}
}

// Close hands leadership over if it can, announces leaving, and stops everything. It waits for all goroutines.
func (n *Node) Close(ctx context.Context) error {
	n.closeOnce.Do(func() { n.closeErr = n.close(ctx) })
	return n.closeErr
}

func (n *Node) close(ctx context.Context) error {
	close(n.stopping)
	var errs []error
	if n.Err() == nil {
		if n.raft.State() == raft.Leader && len(n.Voters()) > 1 {
			handing, cancel := context.WithTimeout(ctx, 2*n.config.Timing.Election)
			if err := n.TransferLeadership(handing); err != nil && !errors.Is(err, errNobodyThere) {
				n.log.Warn("leadership could not be handed over", "error", err)
			}
			cancel()
		}
		settle(ctx, &n.inFlight)
		if err := n.discovery.Leave(200 * time.Millisecond); err != nil {
			n.log.Debug("leaving gossip", "error", err)
		}
	}
	n.cancel()
	if n.Err() == nil {
		settle(ctx, &n.calls)
	}
	n.streams.shut()
	stopped := n.raft.Shutdown()
	done := make(chan error, 1)
	go func() {
		err := stopped.Error()
		n.runMu.Lock()
		n.closed = true
		n.runMu.Unlock()
		n.wg.Wait()
		select {
		case <-n.awaited:
		case <-time.After(100 * time.Millisecond):
		}
		done <- errors.Join(err, n.discovery.Close(), n.transport.Close(), n.stores.close())
	}()
	select {
	case err := <-done:
		errs = append(errs, err)
	case <-ctx.Done():
		errs = append(errs, fmt.Errorf("stopping the node: %w", ctx.Err()))
	}
	return errors.Join(errs...)
}

// settle waits, for at most two seconds, until what raft has been asked is answered: it may not be once raft is shut down
// (rule 6).
func settle(ctx context.Context, open *atomic.Int64) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	for open.Load() > 0 {
		select {
		case <-time.After(2 * time.Millisecond):
		case <-ctx.Done():
			return
		}
	}
}

// abandon undoes a failed Open.
func (n *Node) abandon() {
	n.cancel()
	if n.streams != nil {
		n.streams.shut()
	}
	if n.transport != nil {
		_ = n.transport.Close()
	}
	if n.discovery != nil {
		_ = n.discovery.Close()
	}
	if n.stores != nil {
		_ = n.stores.close()
	}
}
