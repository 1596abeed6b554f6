package amqp_test

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/warrenmq/warren/broker/amqp"
	"github.com/warrenmq/warren/broker/amqp/amqptest"
	"github.com/warrenmq/warren/broker/server"
	"github.com/warrenmq/warren/cluster"
	"github.com/warrenmq/warren/cluster/stablestore"
	"github.com/warrenmq/warren/fsm/store/vfs"
)

// against lets the rows be checked themselves: those that need nothing of this package's own run against any broker.
var against = flag.String("against", "", "run the tests against the broker at this address, which has to have user guest")

// common is the node that tests share. They use names of their own and can run side by side.
var common struct {
	once sync.Once
	node *node
}

// TestMain lets the tests, most of which wait, run side by side, and looks for what is left when the node has stopped.
func TestMain(m *testing.M) {
	flag.Parse()
	if fuzzing() {
		os.Exit(m.Run())
	}
	if err := flag.Set("test.parallel", "64"); err != nil {
		panic(err)
	}
	if *against != "" {
		run = "." + rand.Text()[:8]
	}
	code := m.Run()
	if common.node != nil {
		common.node.stop()
		_ = os.RemoveAll(common.node.dir)
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// fuzzing reports whether this process is a fuzzer or one of its workers, which are ended without notice.
func fuzzing() bool {
	return flag.Lookup("test.fuzz").Value.String() != "" || flag.Lookup("test.fuzzworker").Value.String() == "true"
}

// node is a running node with a data directory.
type node struct {
	*server.Server
	dir    string
	cancel context.CancelFunc
	done   chan error
}

// launch starts a node and waits until it serves.
func launch(config server.Config) (*node, error) {
	config.AMQPAddr = "127.0.0.1:0"
	config.Cluster.RaftAddr, config.Cluster.GossipAddr, config.Cluster.BootstrapExpect = "127.0.0.1:0", "127.0.0.1:0", 1
	s, err := server.New(config)
	if err != nil {
		return nil, err
	}
	n := &node{Server: s, dir: config.Cluster.DataDir, done: make(chan error, 1)}
	var ctx context.Context
	ctx, n.cancel = context.WithCancel(context.Background())
	go func() { n.done <- s.Run(ctx) }()
	for b := s.Broker(); ; {
		changed := b.Changed()
		if b.Where().Serving {
			return n, nil
		}
		select {
		case <-changed:
		case err := <-n.done:
			return nil, err
		}
	}
}

func (n *node) stop() {
	n.cancel()
	<-n.done
}

// start starts a node for one test.
func start(t testing.TB, config server.Config) *node {
	t.Helper()
	if config.Cluster.DataDir == "" {
		config.Cluster.DataDir = t.TempDir()
	}
	config.CloseWithin = 2 * time.Second
	n, err := launch(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sync.OnceFunc(n.cancel))
	t.Cleanup(func() { n.cancel(); <-n.done; n.done <- nil })
	return n
}

// shared returns the node that tests share.
func shared(t testing.TB) *node {
	t.Helper()
	common.once.Do(func() {
		config := server.Config{Cluster: cluster.Config{DataDir: "data", Files: vfs.NewMem(), Stable: stablestore.NewMem()}, CloseWithin: 2 * time.Second}
		var err error
		if !fuzzing() { // what takes the time that a disk takes shows more
			config.Cluster = cluster.Config{}
			if config.Cluster.DataDir, err = os.MkdirTemp("", "amqp-rows"); err != nil {
				t.Fatal(err)
			}
		}
		common.node, err = launch(config)
		if err != nil {
			t.Fatal(err)
		}
	})
	if common.node == nil {
		t.Fatal("the shared node did not start")
	}
	return common.node
}

// address is where the broker under test listens.
func address(t testing.TB) string {
	t.Helper()
	if *against != "" {
		return *against
	}
	return shared(t).AMQPAddr()
}

// configured serves the shared node's broker with another configuration as well.
func configured(t testing.TB, config amqp.Config) (address string) {
	t.Helper()
	s := amqp.NewServer(shared(t).Broker(), config)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() { s.ServeConn(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		s.Close(ctx)
		work.Wait()
	})
	return l.Addr().String()
}

// dial opens a connection to the broker under test.
func dial(t testing.TB) *amqptest.Conn {
	t.Helper()
	return amqptest.Dial(t, address(t))
}

// begin is how most tests begin: side by side with others, with a connection that has channel 1 open.
func begin(t *testing.T) (*amqptest.Conn, *amqptest.Channel) {
	t.Helper()
	t.Parallel()
	c := dial(t)
	return c, c.Channel(1)
}

// run tells this run's names from those of other runs against a broker that lives on.
var run string

// name makes a name that no other test has.
func name(t testing.TB, suffix string) string {
	return strings.ReplaceAll(t.Name(), "/", ".") + run + "." + suffix
}

// each runs a row's parts side by side.
func each[V any](t *testing.T, parts map[string]V, f func(t *testing.T, v V)) {
	for name, v := range parts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, v)
		})
	}
}
