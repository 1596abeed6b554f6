package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/warrenmq/warren/cluster"
	"github.com/warrenmq/warren/cluster/clustertest"
	"github.com/warrenmq/warren/cluster/stablestore"
	"github.com/warrenmq/warren/fsm/store/vfs"
)

// tape is a state machine that keeps the entries with their indexes.
type tape struct {
	mu      sync.Mutex
	entries []string
	index   uint64
}

func (t *tape) Apply(l *raft.Log) any {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entries, t.index = append(t.entries, string(l.Data)), l.Index
	return nil
}

func (t *tape) report() cluster.Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	return cluster.Report{AppliedIndex: t.index}
}

func (t *tape) all() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.entries)
}

func (t *tape) Snapshot() (raft.FSMSnapshot, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return &tapeSnapshot{Index: t.index, Entries: slices.Clone(t.entries)}, nil
}

func (t *tape) Restore(r io.ReadCloser) error {
	var s tapeSnapshot
	if err := errors.Join(json.NewDecoder(r).Decode(&s), r.Close()); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entries, t.index = s.Entries, s.Index
	return nil
}

type tapeSnapshot struct {
	Index   uint64
	Entries []string
}

func (s *tapeSnapshot) Persist(sink raft.SnapshotSink) error {
	return errors.Join(json.NewEncoder(sink).Encode(s), sink.Close())
}

func (s *tapeSnapshot) Release() {}

// machine is a simulated machine: what survives its processes, and the process.
type machine struct {
	name   string
	disk   *vfs.Mem
	stable *stablestore.Store
	node   *cluster.Node
	fsm    *tape
}

type simulation struct {
	t        *testing.T
	snapshot int64 // bytes of log that trigger one; 0 for the default
	size     int   // machines
	net      *clustertest.Network
	dir      *clustertest.Directory
	machines []*machine
}

func newSimulation(t *testing.T) *simulation { return newSimulationOf(t, 3, 0) }

// simulatedRate is the simulation's bound of the rate at which snapshots are sent.
const simulatedRate = 1 << 20

// newSimulationOf starts so many nodes that take a snapshot after so many bytes of log.
func newSimulationOf(t *testing.T, size int, snapshot int64) *simulation {
	s := &simulation{t: t, snapshot: snapshot, size: size, net: clustertest.NewNetwork(), dir: clustertest.NewDirectory()}
	for i := range size {
		m := &machine{name: fmt.Sprintf("n%d", i+1), disk: vfs.NewMem(), stable: stablestore.NewMem()}
		s.machines = append(s.machines, m)
		s.start(m)
	}
	return s
}

func (s *simulation) start(m *machine) {
	m.fsm = &tape{}
	m.stable = m.stable.Reopen()
	var err error
	m.node, err = cluster.Open(cluster.Config{NodeID: m.name, DataDir: "/data", RaftAddr: m.name + ":0", BootstrapExpect: s.size, Files: m.disk, Stable: m.stable,
		Network: s.net.Machine(m.name), Discovery: s.dir.Join, FSM: m.fsm, Report: m.fsm.report, SegmentBytes: 64 << 10, SnapshotBytes: s.snapshot, SnapshotRate: simulatedRate})
	if err != nil {
		s.t.Fatal(err)
	}
}

// crash ends the process at once and takes the power away.
func (s *simulation) crash(m *machine) {
	s.net.Kill(m.name)
	m.disk.Crash(nil)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_ = m.node.Close(ctx)
	m.node = nil
}

func (s *simulation) names() (out []string) {
	for _, m := range s.machines {
		out = append(out, m.name)
	}
	return out
}

func (s *simulation) leader() *machine {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		for _, m := range s.machines {
			if m.node != nil && m.node.Leadership().Local && m.node.LeaseValid() {
				return m
			}
		}
	}
	s.t.Fatal("no leader within a virtual minute")
	return nil
}

// put proposes and waits for at most a virtual second.
func (s *simulation) put(m *machine, entry string) error {
	done := make(chan error, 1)
	m.node.Propose([]byte(entry), func(err error) { done <- err })
	select {
	case err := <-done:
		return err
	case <-time.After(time.Second):
		return cluster.ErrOutcomeUnknown
	}
}

func (s *simulation) close() {
	s.net.Heal()
	for _, m := range s.machines {
		if m.node != nil {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			if err := m.node.Close(ctx); err != nil {
				s.t.Errorf("close %s: %v", m.name, err)
			}
			cancel()
		}
	}
}

// Every entry whose commit was reported is there at the end, on all nodes, in one order, whatever was cut and killed.
func TestSeededPartitionsAndCrashesLoseNothingCommitted(t *testing.T) {
	seeds := 8
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { partitions(t, uint64(seed)) })
		})
	}
}

func partitions(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	s := newSimulation(t)
	defer s.close()
	var committed []string
	lost := map[string]bool{}
	for round := range 12 {
		leader := s.leader()
		for i := range 5 {
			entry := fmt.Sprintf("%d.%d", round, i)
			if err := s.put(leader, entry); err == nil {
				committed = append(committed, entry)
			} else {
				lost[entry] = true
			}
		}
		victim := s.machines[r.IntN(3)]
		switch r.IntN(3) {
		case 0:
			s.net.Isolate(victim.name, s.names()...)
		case 1:
			victim = leader
			s.net.Isolate(leader.name, s.names()...)
			if err := s.put(leader, fmt.Sprintf("%d.cut", round)); err == nil {
				t.Errorf("seed %d: a leader without a majority committed", seed)
			}
		case 2:
			s.crash(victim)
		}
		<-time.After(time.Duration(r.IntN(4000)) * time.Millisecond)
		s.net.Heal()
		if victim.node == nil {
			s.start(victim)
		}
	}
	s.leader()
	for _, m := range s.machines {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := m.node.Barrier(ctx); err != nil {
			t.Fatalf("seed %d: %s: %v", seed, m.name, err)
		}
		cancel()
		all := m.fsm.all()
		for _, e := range committed {
			if !slices.Contains(all, e) {
				t.Errorf("seed %d: %s lost %s", seed, m.name, e)
			}
		}
		if first := s.machines[0].fsm.all(); !slices.Equal(all[:min(len(all), len(first))], first[:min(len(all), len(first))]) {
			t.Errorf("seed %d: %s applied another order", seed, m.name)
		}
	}
	if len(committed) < 20 {
		t.Errorf("seed %d: only %d entries were committed", seed, len(committed))
	}
}

// A leader that is cut off must know within its lease that it leads no more.
func TestRule10ALeaderWithoutMajorityLosesItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(t)
		defer s.close()
		leader := s.leader()
		s.net.Isolate(leader.name, s.names()...)
		<-time.After(450 * time.Millisecond)
		if leader.node.LeaseValid() {
			t.Error("the lease outlived the contact with the majority")
		}
		<-time.After(time.Second)
		if leader.node.Leadership().Local {
			t.Error("it still leads")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if leader.node.VerifyLeader(ctx) == nil {
			t.Error("it was verified")
		}
	})
}

// LeaderCh keeps one value, so a leadership lost and won again would not show there.
func TestRule01EveryTermIsALeadershipOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(t)
		defer s.close()
		seen := map[uint64]string{}
		for range 5 {
			leader := s.leader()
			l := leader.node.Leadership()
			if other, known := seen[l.Term]; known && other != leader.name {
				t.Errorf("term %d had two leaders, %s and %s", l.Term, other, leader.name)
			}
			seen[l.Term] = leader.name
			changed := leader.node.LeadershipChanged()
			s.net.Isolate(leader.name, s.names()...)
			<-changed
			if leader.node.Leadership() == l {
				t.Error("nothing has changed")
			}
			<-time.After(2 * time.Second)
			s.net.Heal()
		}
		if len(seen) < 5 {
			t.Errorf("only %d terms", len(seen))
		}
	})
}

// The power goes while the cluster forms: raft writes a term before it writes the first entry, and would take the term
// for a state that must not be bootstrapped again.
func TestRule23ACrashWhileTheClusterFormsIsNotItsEnd(t *testing.T) {
	for range 60 {
		synctest.Test(t, func(t *testing.T) {
			s := newSimulation(t)
			defer s.close()
			for _, m := range s.machines {
				s.crash(m)
			}
			for _, m := range s.machines {
				s.start(m)
			}
			s.leader()
		})
	}
}

func TestOneNodeLeadsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulationOf(t, 1, 0)
		defer s.close()
		for range 2 {
			began := time.Now()
			leader := s.leader()
			if took := time.Since(began); took > 400*time.Millisecond {
				t.Errorf("leading took %v", took)
			}
			s.crash(leader)
			s.start(leader)
		}
	})
}

// All nodes start again together: nobody waits for heartbeats that cannot come.
func TestRule22AStartWithEverybodyThereDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(t)
		defer s.close()
		began := time.Now()
		leader := s.leader()
		if took := time.Since(began); took > 400*time.Millisecond {
			t.Errorf("the first leader took %v", took)
		}
		if err := s.put(leader, "a"); err != nil {
			t.Fatal(err)
		}
		// Two nodes may stand at the same moment and split the vote, which costs an election by heartbeat; three times in
		// a row they do not.
		took := time.Hour
		for try := 0; try < 3 && took > 400*time.Millisecond; try++ {
			for _, m := range s.machines {
				s.crash(m)
			}
			for _, m := range s.machines {
				s.start(m)
			}
			began = time.Now()
			leader = s.leader()
			took = time.Since(began)
		}
		if took > 400*time.Millisecond {
			t.Errorf("the next leader took %v, three times", took)
		}
		if err := leader.node.Barrier(t.Context()); err != nil || !slices.Equal(leader.fsm.all(), []string{"a"}) {
			t.Errorf("%v, %v", leader.fsm.all(), err)
		}
	})
}

// A time-out says nothing: only a refused dial shows that the process is gone.
func TestRule21ACutOffLeaderIsReplacedByHeartbeatOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(t)
		defer s.close()
		leader := s.leader()
		term := leader.node.Leadership().Term
		s.net.Isolate(leader.name, s.names()...)
		<-time.After(450 * time.Millisecond)
		for _, m := range s.machines {
			if l := m.node.Leadership(); m != leader && l.Term != term {
				t.Errorf("%s is in term %d before the heartbeats can have shown anything", m.name, l.Term)
			}
		}
		<-time.After(2 * time.Second)
		if next := s.leader(); next == leader {
			t.Error("nobody took over")
		}
	})
}
