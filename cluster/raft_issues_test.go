package cluster

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/warrenmq/warren/fsm/store/vfs"
)

// Each test is named after an issue of hashicorp/raft that is open or was closed without a remedy.

// Issue 404: AddVoter does not wait until the new server has caught up. A node whose disk hangs cannot catch up: it is
// a member meanwhile and no voter.
func TestRaftIssue404ANodeVotesOnlyWhenCaughtUp(t *testing.T) {
	configs := threeConfigs(t)
	nodes := startThree(t, configs)
	leader := leaderOf(t, nodes)
	proposeMany(t, leader, 0, 20)
	fault, released := vfs.Faulty(vfs.OS{}), make(chan struct{})
	fault.Add(vfs.Rule{Op: vfs.OpSync, Path: "seg-*", Nth: 2, Count: -1, Hang: released}) // the first is of an empty segment
	slow := Config{NodeID: "n4", DataDir: t.TempDir(), RaftAddr: "127.0.0.1:0", GossipAddr: "127.0.0.1:0", BootstrapExpect: 3,
		Join: configs[0].Join, Files: fault, DiskTimeout: time.Minute}
	fourth := start(t, slow)
	eventually(t, "it to be a member", func() bool { return len(leader.Members()) == 4 })
	for range 4 {
		<-time.After(membershipTick)
		if len(leader.Voters()) != 3 {
			t.Errorf("voters are %v", leader.Voters())
		}
	}
	close(released)
	eventually(t, "it to vote", func() bool { return slices.Contains(leader.Voters(), fourth.server) })
	last, _ := fourth.stores.log.LastIndex()
	if commit := leader.raft.CommitIndex(); last+1024 < commit {
		t.Errorf("it votes with a log up to %d, %d is committed", last, commit)
	}
}

// Issue 522: a snapshot of the leader that cannot be read is sent again and again, and the followers that need it never
// catch up.
func TestRaftIssue522AnUnreadableSnapshotOfTheLeaderIsReplaced(t *testing.T) {
	for _, c := range []struct {
		file string
		bad  int
	}{{"stream", 1}, {"layout", keptSnapshots}} {
		t.Run(c.file, func(t *testing.T) {
			nodes := startThree(t, smallThree(t))
			leader := leaderOf(t, nodes)
			behind := without(nodes, leader)[0]
			last, _ := behind.stores.log.LastIndex()
			behind.stop(t)
			eventually(t, "the leader's log to begin behind the other's", func() bool {
				proposeMany(t, leader, 0, 30)
				_ = leader.Snapshot()
				first, _ := leader.stores.log.FirstIndex()
				return first > last+1
			})
			damageSnapshots(t, leader, c.file, c.bad)
			back := start(t, behind.config)
			within, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := back.Barrier(within); err != nil || !slices.Equal(back.fsm.all(), leader.fsm.all()) {
				t.Errorf("%v: applied %d of %d", err, len(back.fsm.all()), len(leader.fsm.all()))
			}
			aside, _ := filepath.Glob(filepath.Join(leader.config.DataDir, "snapshots", "*.damaged"))
			if len(aside) == 0 {
				t.Error("the leader has not set the damaged snapshot aside")
			}
		})
	}
}

// Issue 524: a server that was removed and does not know it stands for election with ever higher terms.
func TestRaftIssue524ARemovedServerDoesNotUnsettleTheLeader(t *testing.T) {
	configs := threeConfigs(t)
	nodes := startThree(t, configs)
	leader := leaderOf(t, nodes)
	removed := without(nodes, leader)[0]
	before := leader.Leadership()
	if err := leader.Remove(t.Context(), removed.fixed.NodeID); err != nil {
		t.Fatal(err)
	}
	election := leader.Node.config.Timing.Election
	for round := range 2 {
		for end := time.Now().Add(4 * election); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
			if now := leader.Leadership(); now.Term != before.Term || !now.Local {
				t.Fatalf("round %d: the leadership was %+v and is %+v", round, before, now)
			}
		}
		if err := leader.propose(t, "x"); err != nil {
			t.Fatal(err)
		}
		if round == 0 {
			removed.stop(t)
			removed = start(t, removed.config)
		}
	}
}

// Issue 696: a leadership transfer that does not come to its end leaves a leader that takes no entries.
func TestRaftIssue696AFailedTransferLeavesALeaderThatWorks(t *testing.T) {
	nodes, faults := startFaulty(t, time.Minute)
	leader := leaderOf(t, nodes)
	hung := without(nodes, leader)[0]
	answer := make(chan struct{})
	faults[hung].Add(vfs.Rule{Op: vfs.OpSync, Path: "seg-*", Count: -1, Hang: answer})
	defer close(answer)
	if err := leader.propose(t, "what the target cannot write"); err != nil {
		t.Fatal(err)
	}
	err := leader.wait(t.Context(), func() raft.Future {
		return leader.raft.LeadershipTransferToServer(raft.ServerID(hung.server), raft.ServerAddress(hung.server))
	})
	if err == nil {
		t.Fatal("leadership went to a node that cannot write")
	}
	eventually(t, "an entry to be taken", func() bool {
		n := leaderOf(t, without(nodes, hung))
		err := n.propose(t, "after")
		if err != nil && !errors.Is(err, ErrNotWritten) {
			t.Fatal(err)
		}
		return err == nil
	})
}
