package failover

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/warrenmq/warren/client"
	"github.com/warrenmq/warren/protocol/native"
)

var (
	long    = flag.Bool("long", false, "run the long forms of the tests")
	program = flag.String("warren", "", "test this program instead of building it")
	keep    = flag.Bool("logs", false, "print the nodes' logs also when a test succeeds")

	warren string // path of the program
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if testing.Short() {
		return 0
	}
	dir, err := os.MkdirTemp("", "warren-failover")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if warren = *program; warren == "" {
		warren = filepath.Join(dir, "warren")
		build := exec.Command("go", "build", "-o", warren, "github.com/warrenmq/warren/cmd/warren")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build warren: %v\n%s", err, out)
			return 1
		}
	}
	return m.Run()
}

// cluster is a set of nodes that know of each other. It belongs to the goroutine of its test.
type cluster struct {
	t     *testing.T
	nodes []*node
	log   *os.File // of the clients
}

// layCluster prepares nodes n1, n2, … without starting them. args are further flags of each.
func layCluster(t *testing.T, size int, args ...string) *cluster {
	t.Helper()
	c := &cluster{t: t}
	dir := t.TempDir()
	var err error
	c.log, err = os.Create(filepath.Join(dir, "clients.log"))
	c.check(err)
	for i := range size {
		id := "n" + strconv.Itoa(i+1)
		c.nodes = append(c.nodes, &node{t: t, id: id, dir: filepath.Join(dir, id), logs: filepath.Join(dir, id+".log"),
			args: append([]string{"--bootstrap-expect", strconv.Itoa(size)}, args...)})
	}
	c.Readdress()
	t.Cleanup(c.end)
	return c
}

// startCluster starts a cluster and waits until every node is ready.
func startCluster(t *testing.T, size int, args ...string) *cluster {
	t.Helper()
	c := layCluster(t, size, args...)
	c.Start(c.nodes...)
	c.Ready()
	return c
}

func (c *cluster) end() {
	for _, n := range c.nodes {
		n.Kill()
	}
	if !c.t.Failed() && !*keep {
		return
	}
	for _, n := range c.nodes {
		log, _ := os.ReadFile(n.logs)
		if most := 200 << 10; len(log) > most {
			log = append([]byte("… "), log[len(log)-most:]...)
		}
		c.t.Logf("log of %s:\n%s", n.id, log)
	}
	log, _ := os.ReadFile(c.log.Name())
	c.t.Logf("log of the clients:\n%s", log)
	c.log.Close()
}

// Readdress gives every node new ports; no node may run.
func (c *cluster) Readdress() {
	c.t.Helper()
	var join []string
	for _, n := range c.nodes {
		n.addr = freshAddresses(c.t)
		join = append(join, n.addr.gossip)
	}
	for _, n := range c.nodes {
		n.join = nil
		if len(c.nodes) > 1 {
			n.join = join
		}
	}
}

// Start starts nodes in the order given.
func (c *cluster) Start(nodes ...*node) {
	c.t.Helper()
	for _, n := range nodes {
		n.Start()
	}
}

// Ready waits until all running nodes are ready.
func (c *cluster) Ready() {
	c.t.Helper()
	for _, n := range c.running() {
		n.Ready()
	}
}

func (c *cluster) running() []*node {
	return slices.DeleteFunc(slices.Clone(c.nodes), func(n *node) bool { return !n.Running() })
}

// Servers are the native addresses of all nodes.
func (c *cluster) Servers() (list []string) {
	for _, n := range c.nodes {
		list = append(list, n.addr.native)
	}
	return list
}

// Leader waits until one node says of itself that it leads, and is ready.
func (c *cluster) Leader() (leader *node) {
	c.t.Helper()
	await(c.t, time.Minute, "a leader", func() error {
		var last error
		for _, n := range c.running() {
			s, err := n.Status()
			if err == nil && s.Leader != n.id {
				err = fmt.Errorf("%s says that %q leads", n.id, s.Leader)
			}
			if err == nil {
				_, err = n.get("/healthz/ready")
			}
			if err == nil {
				leader = n
				return nil
			}
			last = err
		}
		return last
	})
	return leader
}

// Followers are the running nodes other than the leader.
func (c *cluster) Followers() []*node {
	c.t.Helper()
	leader := c.Leader()
	return slices.DeleteFunc(c.running(), func(n *node) bool { return n == leader })
}

// Agree waits until all members have applied the same index and returns the cluster's status then. Nobody may
// write meanwhile. Differing state hashes fail the test.
func (c *cluster) Agree() (s native.ClusterStatus) {
	c.t.Helper()
	leader := c.Leader()
	await(c.t, 30*time.Second, "the same index and state hash on every node", func() error {
		var err error
		if s, err = leader.Status(); err != nil {
			return err
		}
		if len(s.Members) != len(c.nodes) {
			return fmt.Errorf("%d members: %+v", len(s.Members), s.Members)
		}
		first := s.Members[0]
		for _, m := range s.Members {
			if m.StateHashIndex != first.StateHashIndex || m.StateHashIndex == 0 || m.State == native.StateNonvoter {
				return fmt.Errorf("%s is %s at %d, %s is %s at %d", first.ID, first.State, first.StateHashIndex, m.ID, m.State, m.StateHashIndex)
			}
			if m.StateHash != first.StateHash {
				c.t.Fatalf("at index %d, %s has the state hash %s and %s %s", m.StateHashIndex, first.ID, first.StateHash, m.ID, m.StateHash)
			}
		}
		return nil
	})
	return s
}

// Dial connects a client, closed with the test.
func (c *cluster) Dial(options ...client.Option) *client.Connection {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	log := slog.New(slog.NewTextHandler(c.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	conn, err := client.Dial(ctx, c.Servers(), append(options, client.WithLogger(log))...)
	if err != nil {
		c.t.Fatalf("dial: %v", err)
	}
	c.t.Cleanup(func() {
		ended, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(ended)
	})
	return conn
}

// Channel connects a client and opens a channel.
func (c *cluster) Channel(options ...client.Option) *client.Channel {
	c.t.Helper()
	ch, err := c.Dial(options...).Channel(c.t.Context())
	c.check(err)
	return ch
}

// Declare declares durable queues.
func (c *cluster) Declare(queues ...string) {
	c.t.Helper()
	ch := c.Channel()
	for _, q := range queues {
		_, err := ch.DeclareQueue(c.t.Context(), client.Queue{Name: q, Durable: true})
		c.check(err)
	}
}

// Depth is how many messages of a queue are ready.
func (c *cluster) Depth(queue string) uint64 {
	c.t.Helper()
	s, err := c.Channel().DeclareQueue(c.t.Context(), client.Queue{Name: queue, Passive: true})
	c.check(err)
	return s.Messages
}

func (c *cluster) check(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}
