package cluster_test

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/warrenmq/warren/cluster"
)

// A follower's refusal says that nothing was written; a leader that is cut off, and one that is closed, cannot say what
// becomes of an entry, and nobody waits for ever to hear it.
func TestRule06AnOutcomeIsNotWrittenOrUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(t)
		defer s.close()
		leader := s.leader()
		outcome := func(m *machine, entry string) <-chan error {
			done := make(chan error, 1)
			m.node.Propose([]byte(entry), func(err error) { done <- err })
			return done
		}
		for _, m := range s.machines {
			if m == leader {
				continue
			}
			if err := <-outcome(m, "refused"); !errors.Is(err, cluster.ErrNotWritten) || errors.Is(err, cluster.ErrOutcomeUnknown) {
				t.Errorf("a follower answers %v", err)
			}
		}
		s.net.Isolate(leader.name, s.names()...)
		if err := <-outcome(leader, "unknown"); !errors.Is(err, cluster.ErrOutcomeUnknown) || errors.Is(err, cluster.ErrNotWritten) {
			t.Errorf("a leader without a majority answers %v", err)
		}
		s.net.Heal()
		next := s.leader()
		if err := <-outcome(next, "written"); err != nil {
			t.Error(err)
		}
		if err := next.node.Barrier(t.Context()); err != nil || slices.Contains(next.fsm.all(), "refused") || !slices.Contains(next.fsm.all(), "written") {
			t.Errorf("%v, %v", next.fsm.all(), err)
		}
		s.net.Isolate(next.name, s.names()...)
		var waiting []<-chan error
		for range 3 {
			waiting = append(waiting, outcome(next, "late"))
		}
		s.crash(next) // with Close, which must return though raft may never answer
		for _, w := range waiting {
			select {
			case err := <-w:
				// Close tries to hand leadership over first: what raft has not taken by then is not written.
				if !errors.Is(err, cluster.ErrOutcomeUnknown) && !errors.Is(err, cluster.ErrNotWritten) {
					t.Errorf("the outcome of an entry under way at the end is %v", err)
				}
			default:
			}
		}
	})
}

// A node that installs a snapshot does so on Raft's main goroutine and does not vote meanwhile. When the leader's packets
// vanish in the middle of it, its vote is needed.
func TestRule20APartitionDuringAnInstallCostsTenSecondsAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulationOf(t, 3, 256<<10)
		defer s.close()
		leader := s.leader()
		behind := s.machines[0]
		if behind == leader {
			behind = s.machines[1]
		}
		s.crash(behind)
		for range 48 {
			if err := s.put(leader, strings.Repeat("x", 128<<10)); err != nil {
				t.Fatal(err)
			}
			if err := leader.node.Snapshot(); err != nil {
				t.Fatal(err)
			}
		}
		s.net.Delay(30 * time.Millisecond)
		s.start(behind)
		for end := time.Now().Add(time.Minute); !installing(behind); <-time.After(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("no install within a virtual minute")
			}
		}
		s.net.Isolate(leader.name, s.names()...)
		began := time.Now()
		var next *machine
		for next == nil && time.Since(began) < time.Minute {
			<-time.After(10 * time.Millisecond)
			for _, m := range s.machines {
				if m != leader && m.node.Leadership().Local {
					next = m
				}
			}
		}
		if took := time.Since(began); next == nil || took > 10*time.Second {
			t.Fatalf("there was no leader for %v", took)
		}
		t.Logf("a leader after %v", time.Since(began))
		s.net.Heal()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := behind.node.Barrier(ctx); err != nil || len(behind.fsm.all()) != 48 {
			t.Errorf("%v, it applied %d entries", err, len(behind.fsm.all()))
		}
	})
}

// installing reports whether a snapshot is being received and has not come to its end.
func installing(m *machine) bool {
	names, _ := m.disk.ReadDir("/data/snapshots")
	return slices.ContainsFunc(names, func(n string) bool {
		if !strings.HasSuffix(n, ".tmp") {
			return false
		}
		info, err := m.disk.Stat(path.Join("/data/snapshots", n, "stream"))
		return err == nil && info.Size() > 0
	})
}
