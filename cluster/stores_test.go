package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/warrenmq/warren/fsm/store/vfs"
)

func proposeMany(t *testing.T, n *testNode, from, to int) {
	t.Helper()
	pad := strings.Repeat("x", 1000)
	for i := from; i < to; i++ {
		if err := n.propose(t, fmt.Sprintf("%d-%s", i, pad)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRule16SnapshotsGoByBytesAndTheLogIsKeptBackToTheOldestOne(t *testing.T) {
	t.Parallel()
	n := start(t, Config{NodeID: "solo", DataDir: t.TempDir(), RaftAddr: "127.0.0.1:0", GossipAddr: "127.0.0.1:0", BootstrapExpect: 1,
		SnapshotBytes: 20 << 10, SegmentBytes: 8 << 10})
	eventually(t, "leadership", func() bool { return n.Leadership().Local })
	var indexes []uint64
	for i := range 4 {
		proposeMany(t, n, i*30, (i+1)*30)
		eventually(t, "a snapshot", func() bool {
			s := n.Stats().SnapshotIndex
			return s > 0 && !slices.Contains(indexes, s)
		})
		indexes = append(indexes, n.Stats().SnapshotIndex)
	}
	list, err := n.stores.snapshots.List()
	if err != nil || len(list) != keptSnapshots {
		t.Fatalf("%d snapshots, %v", len(list), err)
	}
	first, err := n.stores.log.FirstIndex()
	if oldest := list[len(list)-1].Index; err != nil || first > oldest+1 {
		t.Errorf("the log begins at %d, behind the oldest snapshot at %d", first, oldest)
	}
	if first <= 1 {
		t.Error("the log was never cut")
	}
}

func TestAFollowerFarBehindTakesASnapshot(t *testing.T) {
	configs := threeConfigs(t)
	for i := range configs {
		configs[i].SnapshotBytes, configs[i].SegmentBytes = 16<<10, 8<<10
	}
	nodes := startThree(t, configs)
	leader := leaderOf(t, nodes)
	behind := without(nodes, leader)[0]
	behind.stop(t)
	proposeMany(t, leader, 0, 150)
	eventually(t, "the leader's log to be cut", func() bool {
		_ = leader.Snapshot()
		first, _ := leader.stores.log.FirstIndex()
		if first <= 20 {
			_ = leader.propose(t, strings.Repeat("y", 1000))
		}
		return first > 20
	})
	back := start(t, behind.config)
	if err := back.Barrier(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(back.fsm.all(), leader.fsm.all()) {
		t.Errorf("applied %d of %d", len(back.fsm.all()), len(leader.fsm.all()))
	}
	eventually(t, "its log to begin behind the snapshot", func() bool {
		first, _ := back.stores.log.FirstIndex()
		return first == 0 || first > 20
	})
}

func TestALogInBoltLastsOverRestarts(t *testing.T) {
	configs := smallThree(t)
	for i := range configs {
		configs[i].LogStore = "bolt"
	}
	nodes := startThree(t, configs)
	leader := leaderOf(t, nodes)
	proposeMany(t, leader, 0, 50)
	if err := leader.Snapshot(); err != nil {
		t.Fatal(err)
	}
	proposeMany(t, leader, 50, 60)
	want := leader.fsm.all()
	for range 2 {
		for _, n := range nodes {
			n.stop(t)
		}
		nodes = startThree(t, configs)
		leaderOf(t, nodes)
		for _, n := range nodes {
			if err := n.Barrier(t.Context()); err != nil || !slices.Equal(n.fsm.all(), want) {
				t.Errorf("%s: %v, applied %d of %d", n.fixed.NodeID, err, len(n.fsm.all()), len(want))
			}
		}
	}
}

func TestRule18ADamagedNodeIsQuarantinedUntilItHasCaughtUp(t *testing.T) {
	configs := threeConfigs(t)
	nodes := startThree(t, configs)
	leader := leaderOf(t, nodes)
	proposeMany(t, leader, 0, 20)
	hurt := without(nodes, leader)[0]
	if err := hurt.Barrier(t.Context()); err != nil {
		t.Fatal(err)
	}
	hurt.stop(t)
	segments, err := filepath.Glob(filepath.Join(hurt.config.DataDir, "log", "seg-*"))
	if err != nil || len(segments) == 0 {
		t.Fatal(err, "no segments")
	}
	if err := vfs.FlipBit(vfs.OS{}, segments[0], 8*3000); err != nil {
		t.Fatal(err)
	}
	back := start(t, hurt.config)
	if !back.transport.quarantined.Load() {
		t.Fatal("it is not quarantined")
	}
	if _, err := os.Stat(filepath.Join(hurt.config.DataDir, "log.damaged-2")); err != nil {
		t.Error("the damaged log was not kept:", err)
	}
	eventually(t, "the end of the quarantine", func() bool { return !back.transport.quarantined.Load() })
	if err := back.Barrier(t.Context()); err != nil || !slices.Equal(back.fsm.all(), leader.fsm.all()) {
		t.Errorf("%v: applied %d of %d", err, len(back.fsm.all()), len(leader.fsm.all()))
	}
	if back.identity.get().Quarantined != "" || !slices.Contains(leader.Voters(), back.server) {
		t.Error("it is not what it was")
	}
}

// A node that does not know its vote any more, because both places are damaged, might vote twice in a term.
func TestRule18ANodeThatLostItsVoteIsQuarantinedUntilItHasCaughtUp(t *testing.T) {
	configs := threeConfigs(t)
	nodes := startThree(t, configs)
	leader := leaderOf(t, nodes)
	proposeMany(t, leader, 0, 20)
	hurt := without(nodes, leader)[0]
	hurt.stop(t)
	dir := filepath.Join(hurt.config.DataDir, "stable")
	for _, name := range []string{"stable.db", "copy"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), make([]byte, info.Size()), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	back := start(t, hurt.config)
	if !back.transport.quarantined.Load() || !strings.Contains(back.identity.get().Quarantined, filepath.Join(dir, "stable.db")) {
		t.Fatalf("it is not quarantined for it: %q", back.identity.get().Quarantined)
	}
	eventually(t, "the end of the quarantine", func() bool { return !back.transport.quarantined.Load() })
	if err := back.Barrier(t.Context()); err != nil || !slices.Equal(back.fsm.all(), leader.fsm.all()) {
		t.Errorf("%v: applied %d of %d", err, len(back.fsm.all()), len(leader.fsm.all()))
	}
}

func TestRule18AQuarantinedNodeNeitherVotesNorStands(t *testing.T) {
	nodes := startThree(t, threeConfigs(t))
	leader := leaderOf(t, nodes)
	n := without(nodes, leader)[0]
	n.transport.quarantined.Store(true)
	defer n.transport.quarantined.Store(false)
	for _, c := range []any{&raft.RequestVoteRequest{}, &raft.RequestPreVoteRequest{}, &raft.TimeoutNowRequest{}} {
		answer := make(chan raft.RPCResponse, 1)
		if n.transport.examine(&raft.RPC{Command: c, RespChan: answer}) {
			t.Errorf("%T reaches raft", c)
		} else if r := <-answer; r.Error == nil {
			t.Errorf("%T was answered %v", c, r.Response)
		}
	}
	for _, c := range []any{&raft.AppendEntriesRequest{}, &raft.InstallSnapshotRequest{}} {
		if !n.transport.examine(&raft.RPC{Command: c}) {
			t.Errorf("%T does not reach raft", c)
		}
	}
	id, to := raft.ServerID(leader.server), raft.ServerAddress(leader.server)
	if n.transport.RequestVote(id, to, &raft.RequestVoteRequest{}, &raft.RequestVoteResponse{}) == nil ||
		n.transport.RequestPreVote(id, to, &raft.RequestPreVoteRequest{}, &raft.RequestPreVoteResponse{}) == nil ||
		n.transport.TimeoutNow(id, to, &raft.TimeoutNowRequest{}, &raft.TimeoutNowResponse{}) == nil {
		t.Error("it sends votes")
	}
}

// A copy of a data directory that was taken before later starts is brought back.
func TestRule18AnOldDataDirectoryVotesOnlyWhenCaughtUp(t *testing.T) {
	configs := threeConfigs(t)
	nodes := startThree(t, configs)
	leader := leaderOf(t, nodes)
	n := without(nodes, leader)[0]
	for range 2 {
		n.stop(t)
		n = start(t, n.config)
		eventually(t, "the leader to know of this start", func() bool {
			return leader.identity.get().Peers[n.server] == n.identity.get().Boots
		})
	}
	proposeMany(t, leader, 0, 5)
	n.stop(t)
	if err := n.identity.change(func(v *identityRecord) { v.Boots, v.Peers = 1, nil }); err != nil {
		t.Fatal(err)
	}
	back := start(t, n.config)
	eventually(t, "more starts than anybody has seen, and the vote", func() bool {
		return back.identity.get().Boots > 3 && !back.transport.quarantined.Load() && !leader.streams.isStale(back.server)
	})
}

// gated is a network on which a node reaches nobody while the gate is shut, though everybody reaches it.
type gated struct {
	tcp
	open atomic.Bool
}

func (g *gated) Dial(ctx context.Context, address string) (net.Conn, error) {
	if !g.open.Load() {
		return nil, errors.New("the gate is shut")
	}
	return g.tcp.Dial(ctx, address)
}

// A node that has a leader at once asks nobody for anything, and yet must hear that its data directory is old.
func TestRule18AnOldDataDirectoryIsToldSoThoughTheLeaderComesFirst(t *testing.T) {
	nodes := startThree(t, threeConfigs(t))
	leader := leaderOf(t, nodes)
	n := without(nodes, leader)[0]
	for range 2 {
		n.stop(t)
		n = start(t, n.config)
		eventually(t, "the leader to know of this start", func() bool {
			return leader.identity.get().Peers[n.server] == n.identity.get().Boots
		})
	}
	n.stop(t)
	if err := n.identity.change(func(v *identityRecord) { v.Boots, v.Peers = 1, nil }); err != nil {
		t.Fatal(err)
	}
	gate := &gated{}
	n.config.Network = gate
	back := start(t, n.config)
	eventually(t, "a leader", func() bool { return back.Leadership().Server == leader.server })
	gate.open.Store(true)
	eventually(t, "more starts than anybody has seen, and the vote", func() bool {
		return back.identity.get().Boots > 3 && !back.transport.quarantined.Load() && !leader.streams.isStale(back.server)
	})
}

// Two handshakes with one process may be looked at in the wrong order, so that the later tells of fewer starts.
func TestRule18AHandshakeThatIsLateMakesNobodyStale(t *testing.T) {
	n := start(t, Config{NodeID: "solo", DataDir: t.TempDir(), RaftAddr: "127.0.0.1:0", GossipAddr: "127.0.0.1:0", BootstrapExpect: 1})
	process, copied := [16]byte{1}, [16]byte{2}
	for _, c := range []struct {
		boot         [16]byte
		boots, known uint64
		stale        bool
	}{
		{process, 2, 3, true},  // an old data directory
		{process, 4, 4, false}, // which has caught up
		{process, 2, 4, false}, // and had dialled before that
		{copied, 2, 4, true},   // it came back once more
	} {
		n.streams.met(Member{NodeID: "other", Server: "other@1", Boots: c.boots}, c.boot, c.known)
		if got := n.streams.isStale("other@1"); got != c.stale {
			t.Errorf("a process that tells of %d starts, of which %d are known: stale is %v", c.boots, c.known, got)
		}
	}
}

func TestDamageOfALoneNodeIsRefused(t *testing.T) {
	c := Config{NodeID: "solo", DataDir: t.TempDir(), RaftAddr: "127.0.0.1:0", GossipAddr: "127.0.0.1:0", BootstrapExpect: 1}
	n := start(t, c)
	eventually(t, "leadership", func() bool { return n.Leadership().Local })
	proposeMany(t, n, 0, 20)
	n.stop(t)
	segments, _ := filepath.Glob(filepath.Join(c.DataDir, "log", "seg-*"))
	if err := vfs.FlipBit(vfs.OS{}, segments[0], 8*3000); err != nil {
		t.Fatal(err)
	}
	c.FSM = &lines{}
	if _, err := Open(c); err == nil || !strings.Contains(err.Error(), "backup") {
		t.Errorf("opened with a damaged log: %v", err)
	}
}

// startFaulty starts three nodes whose disks can be made to fail; a timeout of 0 is long.
func startFaulty(t *testing.T, timeout time.Duration) ([]*testNode, map[*testNode]*vfs.Fault) {
	faults := map[*testNode]*vfs.Fault{}
	var nodes []*testNode
	for _, c := range threeConfigs(t) {
		fault := vfs.Faulty(vfs.OS{})
		c.Files, c.DiskTimeout = fault, timeout
		n := start(t, c)
		nodes, faults[n] = append(nodes, n), fault
	}
	return nodes, faults
}

// hashicorp/raft's issues 503, 614, 666 and 683: a leader whose disk hangs or fails keeps its heartbeats going.
func TestRule19ALeaderWhoseDiskFailsIsReplacedAndSaysSo(t *testing.T) {
	nodes, faults := startFaulty(t, 0)
	leader := leaderOf(t, nodes)
	faults[leader].Add(vfs.Rule{Op: vfs.OpSync, Path: "seg-*", Count: -1, Err: errors.New("input/output error")})
	if err := leader.propose(t, "x"); err == nil {
		t.Error("an entry was committed by a leader that cannot write")
	}
	select {
	case <-leader.Failed():
	case <-time.After(patience):
		t.Fatal("it has not failed")
	}
	if leader.Err() == nil || !strings.Contains(leader.Err().Error(), "input/output") {
		t.Error(leader.Err())
	}
	next := leaderOf(t, without(nodes, leader))
	if err := next.propose(t, "y"); err != nil {
		t.Error(err)
	}
}

// A hung sync is worse: the call does not return, and raft's main goroutine with it.
func TestRule19ALeaderWhoseDiskHangsIsReplaced(t *testing.T) {
	nodes, faults := startFaulty(t, 2*time.Second)
	leader := leaderOf(t, nodes)
	answer := make(chan struct{})
	defer close(answer)
	faults[leader].Add(vfs.Rule{Op: vfs.OpSync, Path: "seg-*", Count: -1, Hang: answer})
	leader.Propose([]byte("x"), func(error) {})
	select {
	case <-leader.Failed():
	case <-time.After(patience):
		t.Fatal("it has not failed")
	}
	if next := leaderOf(t, without(nodes, leader)); next.propose(t, "y") != nil {
		t.Error("the new leader cannot commit")
	}
}

// TestRule19ANodeThatCannotKeepItsTermStopsAndSaysSo: raft panics on that, and the process would end without a reason
// that an operator or a service manager understands.
func TestRule19ANodeThatCannotKeepItsTermStopsAndSaysSo(t *testing.T) {
	nodes, faults := startFaulty(t, 0)
	follower := without(nodes, leaderOf(t, nodes))[0]
	faults[follower].Add(vfs.Rule{Op: vfs.OpSync, Path: "copy", Count: -1, Err: errors.New("input/output error")})
	leader := leaderOf(t, nodes)
	next := without(without(nodes, leader), follower)[0]
	leader.stop(t) // another term begins, with the follower's vote or without
	select {
	case <-follower.Failed():
	case <-time.After(patience):
		t.Fatal("it has not failed")
	}
	if follower.Err() == nil || !strings.Contains(follower.Err().Error(), "input/output") {
		t.Error(follower.Err())
	}
	if next.Err() != nil {
		t.Error(next.Err())
	}
}
