package cluster

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/goleak"

	"github.com/warrenmq/warren/cluster/loopback"
)

// patience bounds every wait for what should come soon. It costs nothing while all is well, and a busy machine may be slow.
const patience = time.Minute

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "6") // most of these tests wait most of the time; the command line may still say otherwise
	goleak.VerifyTestMain(m)
}

// lines is a state machine that keeps entries.
type lines struct {
	mu    sync.Mutex
	lines []string
	index uint64
}

func (f *lines) Apply(l *raft.Log) any {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lines, f.index = append(f.lines, string(l.Data)), l.Index
	return nil
}

func (f *lines) all() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.lines)
}

func (f *lines) Snapshot() (raft.FSMSnapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return &linesSnapshot{slices.Clone(f.lines), f.index}, nil
}

func (f *lines) Restore(r io.ReadCloser) error {
	defer r.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lines = nil
	in := bufio.NewReader(r) // else Fscanln reads byte by byte
	if _, err := fmt.Fscanln(in, &f.index); err != nil {
		return err
	}
	for {
		var s string
		if _, err := fmt.Fscanln(in, &s); err != nil {
			return nil
		}
		f.lines = append(f.lines, s)
	}
}

func (f *lines) report() Report {
	f.mu.Lock()
	defer f.mu.Unlock()
	return Report{AppliedIndex: f.index}
}

type linesSnapshot struct {
	lines []string
	index uint64
}

func (s *linesSnapshot) Persist(sink raft.SnapshotSink) error {
	fmt.Fprintln(sink, s.index)
	for _, l := range s.lines {
		if _, err := fmt.Fprintln(sink, l); err != nil {
			return err
		}
	}
	return sink.Close()
}

func (s *linesSnapshot) Release() {}

type testNode struct {
	*Node
	fsm    *lines
	config Config
}

// start opens a node and closes it at the end of the test. Neither is a leader lost nor a disk taken for one that hangs because
// the machine is busy, unless the test says so.
func start(t *testing.T, c Config) *testNode {
	t.Helper()
	f := &lines{}
	if c.Timing == (Timing{}) {
		c.Timing.Heartbeat = time.Second
	}
	if c.DiskTimeout == 0 {
		c.DiskTimeout = patience
	}
	c.FSM, c.Report = f, f.report
	if testing.Verbose() {
		level := slog.LevelInfo
		if os.Getenv("DEBUG") != "" {
			level = slog.LevelDebug
		}
		c.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: level}))
	}
	n, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	tn := &testNode{n, f, c}
	t.Cleanup(func() { tn.stop(t) })
	return tn
}

func (n *testNode) stop(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := n.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !cond(); {
		if time.Now().After(end) {
			t.Fatalf("waited %v in vain for %s", patience, what)
		}
		<-time.After(2 * time.Millisecond)
	}
}

// propose waits for the outcome.
func (n *testNode) propose(t *testing.T, entry string) error {
	t.Helper()
	done := make(chan error, 1)
	n.Propose([]byte(entry), func(err error) { done <- err })
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		t.Fatalf("no outcome within %v", patience)
		return nil
	}
}

func freeAddresses(t *testing.T, n int) []string {
	t.Helper()
	out, err := loopback.Addresses(n)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// threeConfigs are those of a cluster of three. The test runs beside others of its kind.
func threeConfigs(t *testing.T) []Config {
	t.Parallel()
	gossip := freeAddresses(t, 3)
	var out []Config
	for i := range 3 {
		out = append(out, Config{NodeID: fmt.Sprintf("n%d", i+1), DataDir: t.TempDir(), RaftAddr: "127.0.0.1:0", GossipAddr: gossip[i],
			BootstrapExpect: 3, Join: gossip, Version: "test"})
	}
	return out
}

func startThree(t *testing.T, configs []Config) []*testNode {
	var out []*testNode
	for _, c := range configs {
		out = append(out, start(t, c))
	}
	return out
}

func leaderOf(t *testing.T, nodes []*testNode) (leader *testNode) {
	t.Helper()
	eventually(t, "a leader that all follow", func() bool {
		leader = nil
		for _, n := range nodes {
			if n.Leadership().Local {
				leader = n
			}
		}
		return leader != nil && !slices.ContainsFunc(nodes, func(n *testNode) bool { return n.Leadership().Server != leader.server })
	})
	return leader
}

func TestOneNodeLeads(t *testing.T) {
	c := Config{NodeID: "solo", DataDir: t.TempDir(), RaftAddr: "127.0.0.1:0", GossipAddr: "127.0.0.1:0", BootstrapExpect: 1}
	n := start(t, c)
	eventually(t, "leadership", func() bool { return n.Leadership().Local })
	if err := n.propose(t, "a"); err != nil {
		t.Fatal(err)
	}
	if !n.LeaseValid() || n.VerifyLeader(t.Context()) != nil || n.Barrier(t.Context()) != nil {
		t.Error("a lone leader has no lease")
	}
	id := n.ClusterID()
	n.stop(t)
	n = start(t, c)
	eventually(t, "leadership", func() bool { return n.Leadership().Local })
	if err := n.Barrier(t.Context()); err != nil || !slices.Equal(n.fsm.all(), []string{"a"}) || n.ClusterID() != id {
		t.Errorf("after the restart: %v, %v, cluster %s of %s", n.fsm.all(), err, n.ClusterID(), id)
	}
}

func TestThreeNodesElectProposeAndApply(t *testing.T) {
	nodes := startThree(t, threeConfigs(t))
	leader := leaderOf(t, nodes)
	for i := range 100 {
		if err := leader.propose(t, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range nodes {
		if err := n.Barrier(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := len(n.fsm.all()); got != 100 {
			t.Errorf("%s applied %d of 100", n.fixed.NodeID, got)
		}
		if len(n.Members()) != 3 || len(n.Voters()) != 3 || n.ClusterID() != leader.ClusterID() {
			t.Errorf("members %v", n.Members())
		}
	}
	if len(leader.Boots()) != 3 {
		t.Errorf("the leader knows the boots %v", leader.Boots())
	}
	for _, s := range leader.Status(t.Context()) {
		if !s.Reachable || s.AppliedIndex == 0 {
			t.Errorf("status of %s: %+v", s.NodeID, s)
		}
	}
}
