package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warrenmq/warren/cluster/snapshotstore"
	"github.com/warrenmq/warren/fsm/store/vfs"
)

// damageSnapshots flips a bit in a file of each of a stopped node's snapshots, newest first, at most so many.
func damageSnapshots(t *testing.T, n *testNode, file string, atMost int) {
	t.Helper()
	list, err := n.stores.snapshots.List()
	if err != nil || len(list) == 0 {
		t.Fatalf("%d snapshots, %v", len(list), err)
	}
	for _, meta := range list[:min(atMost, len(list))] {
		if err := vfs.FlipBit(vfs.OS{}, filepath.Join(n.config.DataDir, "snapshots", meta.ID, file), 7); err != nil {
			t.Fatal(err)
		}
	}
}

// cutLog proposes and takes snapshots until the log of a node begins behind its first entry.
func cutLog(t *testing.T, leader, n *testNode) {
	t.Helper()
	eventually(t, "the log to be cut", func() bool {
		proposeMany(t, leader, 0, 30)
		if err := n.Barrier(t.Context()); err != nil {
			t.Fatal(err)
		}
		_ = n.Snapshot()
		first, _ := n.stores.log.FirstIndex()
		list, _ := n.stores.snapshots.List()
		return first > 1 && len(list) == keptSnapshots
	})
}

// smallThree makes snapshots happen within a test, and elections not even on a busy machine.
func smallThree(t *testing.T) []Config {
	configs := threeConfigs(t)
	for i := range configs {
		configs[i].Timing = Timing{Heartbeat: 3 * time.Second, Election: 3 * time.Second, Lease: 3 * time.Second}
		configs[i].SnapshotBytes, configs[i].SegmentBytes = 16<<10, 8<<10
	}
	return configs
}

func asides(t *testing.T, n *testNode) (snapshots, logs int) {
	t.Helper()
	s, err := filepath.Glob(filepath.Join(n.config.DataDir, "snapshots", "*.damaged"))
	l, err2 := filepath.Glob(filepath.Join(n.config.DataDir, "log*.damaged-*"))
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return len(s), len(l)
}

// caughtUp waits until a quarantined node votes again and compares what it has applied.
func caughtUp(t *testing.T, back, leader *testNode) {
	t.Helper()
	eventually(t, "the end of the quarantine", func() bool { return !back.transport.quarantined.Load() })
	if err := back.Barrier(t.Context()); err != nil || !slices.Equal(back.fsm.all(), leader.fsm.all()) {
		t.Errorf("%v: applied %d of %d", err, len(back.fsm.all()), len(leader.fsm.all()))
	}
}

func TestRule18ANodeThatCanRestoreNoSnapshotFetchesTheState(t *testing.T) {
	for _, c := range []struct{ log, file string }{{"segments", "stream"}, {"segments", "meta"}, {"bolt", "layout"}} {
		t.Run(c.log+"/"+c.file, func(t *testing.T) {
			configs := smallThree(t)
			for i := range configs {
				configs[i].LogStore = c.log
			}
			nodes := startThree(t, configs)
			leader := leaderOf(t, nodes)
			hurt := without(nodes, leader)[0]
			cutLog(t, leader, hurt)
			hurt.stop(t)
			damageSnapshots(t, hurt, c.file, keptSnapshots)
			back := start(t, hurt.config)
			if s, l := asides(t, back); s != keptSnapshots || l != 1 {
				t.Errorf("%d snapshots and %d logs were moved aside", s, l)
			}
			caughtUp(t, back, leader)
		})
	}
}

func TestANodeWhoseNewestSnapshotIsDamagedTakesTheOlderAndItsLog(t *testing.T) {
	configs := smallThree(t)
	nodes := startThree(t, configs)
	leader := leaderOf(t, nodes)
	hurt := without(nodes, leader)[0]
	cutLog(t, leader, hurt)
	hurt.stop(t)
	damageSnapshots(t, hurt, "stream", 1)
	back := start(t, hurt.config)
	if back.transport.quarantined.Load() {
		t.Error("it is quarantined, though nothing is missing")
	}
	if s, l := asides(t, back); s != 1 || l != 0 {
		t.Errorf("%d snapshots and %d logs were moved aside", s, l)
	}
	caughtUp(t, back, leader)
}

// After an install the log is empty and the older snapshot's successors are nowhere: the node must not vote with it.
func TestRule18AnOlderSnapshotWithoutItsLogIsNotVotedWith(t *testing.T) {
	nodes := startThree(t, smallThree(t))
	leader := leaderOf(t, nodes)
	hurt := without(nodes, leader)[0]
	cutLog(t, leader, hurt)
	last, _ := hurt.stores.log.LastIndex()
	hurt.stop(t)
	eventually(t, "the leader's log to begin behind the other's", func() bool {
		proposeMany(t, leader, 0, 30)
		_ = leader.Snapshot()
		first, _ := leader.stores.log.FirstIndex()
		return first > last+1
	})
	hurt.config.SnapshotBytes = 1 << 30 // no snapshot of its own
	hurt = start(t, hurt.config)
	if err := hurt.Barrier(t.Context()); err != nil {
		t.Fatal(err)
	}
	hurt.stop(t)
	list, _ := hurt.stores.snapshots.List()
	if len(list) < 2 || list[0].Index <= last || list[1].Index > last {
		t.Fatalf("of %d snapshots the newest is at %d and the oldest at %d, expected them on both sides of %d", len(list), list[0].Index,
			list[len(list)-1].Index, last)
	}
	damageSnapshots(t, hurt, "stream", 1)
	back := start(t, hurt.config)
	if s, l := asides(t, back); s != 1 || l != 1 {
		t.Errorf("%d snapshots and %d logs were moved aside", s, l)
	}
	caughtUp(t, back, leader)
}

func soloConfig(t *testing.T) Config {
	return Config{NodeID: "solo", DataDir: t.TempDir(), RaftAddr: "127.0.0.1:0", GossipAddr: "127.0.0.1:0", BootstrapExpect: 1,
		SnapshotBytes: 16 << 10, SegmentBytes: 8 << 10}
}

func TestSnapshotsOfALoneNode(t *testing.T) {
	t.Parallel()
	n := start(t, soloConfig(t))
	eventually(t, "leadership", func() bool { return n.Leadership().Local })
	cutLog(t, n, n)
	had := n.fsm.all()
	n.stop(t)

	damageSnapshots(t, n, "stream", 1)
	n = start(t, n.config)
	eventually(t, "leadership", func() bool { return n.Leadership().Local })
	if err := n.Barrier(t.Context()); err != nil || !slices.Equal(n.fsm.all(), had) {
		t.Errorf("with the older snapshot: %v, %d entries of %d", err, len(n.fsm.all()), len(had))
	}
	_ = n.Snapshot()
	n.stop(t)

	refused := n.config
	refused.FSM = &lines{}
	damageSnapshots(t, n, "stream", keptSnapshots)
	refused.Unreadable = func(error) bool { return false }
	if _, err := Open(refused); err == nil || !strings.Contains(err.Error(), "restore snapshot") {
		t.Errorf("an error that is not the snapshot's fault: %v", err)
	}
	refused.Unreadable = nil
	for range 2 {
		if _, err := Open(refused); err == nil || !strings.Contains(err.Error(), "alone") || !strings.Contains(err.Error(), "backup") {
			t.Errorf("opened without a readable snapshot: %v", err)
		}
	}
	if s, l := asides(t, n); s != 1 || l != 0 {
		t.Errorf("%d snapshots and %d logs were moved aside", s, l)
	}
}

// A whole log needs no snapshot.
func TestALoneNodeWithAWholeLogNeedsNoSnapshot(t *testing.T) {
	t.Parallel()
	c := soloConfig(t)
	c.SnapshotBytes = 1 << 20
	n := start(t, c)
	eventually(t, "leadership", func() bool { return n.Leadership().Local })
	proposeMany(t, n, 0, 30)
	if err := n.Snapshot(); err != nil {
		t.Fatal(err)
	}
	if first, _ := n.stores.log.FirstIndex(); first != 1 {
		t.Fatalf("the log begins at %d", first)
	}
	had := n.fsm.all()
	n.stop(t)
	damageSnapshots(t, n, "stream", 1)
	n = start(t, n.config)
	eventually(t, "leadership", func() bool { return n.Leadership().Local })
	if err := n.Barrier(t.Context()); err != nil || !slices.Equal(n.fsm.all(), had) {
		t.Errorf("%v, %d entries of %d", err, len(n.fsm.all()), len(had))
	}
	if id := snapshotstore.IndexOf("2-30-946684801750-1"); id != 30 {
		t.Error("the index in a snapshot's id is", id)
	}
	if _, err := os.Stat(filepath.Join(c.DataDir, "snapshots")); err != nil {
		t.Error(err)
	}
}
