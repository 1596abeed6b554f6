package amqp_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/broker/amqp/amqptest"
	"github.com/warrenmq/warren/broker/server"
	"github.com/warrenmq/warren/cluster"
	"github.com/warrenmq/warren/cluster/clustertest"
)

// trio is three nodes on a network that can be cut. Clients are on a machine of their own, from which everybody is reached.
type trio struct {
	t       *testing.T
	net     *clustertest.Network
	gossip  *clustertest.Directory
	members [3]*member
}

// member is one machine: its disk stays when its process ends.
type member struct {
	name    string
	dir     string
	process *server.Server // nil while it is down
	end     func()         // of the process; waits
	plug    *plug
	config  func(*server.Config)
}

// plug is the network as one process has it.
type plug struct {
	*clustertest.Machine
	pulled atomic.Bool
}

func (p *plug) Dial(ctx context.Context, address string) (net.Conn, error) {
	if p.pulled.Load() {
		return nil, syscall.ENETDOWN
	}
	return p.Machine.Dial(ctx, address)
}

var atOnce = make(chan struct{}, 2) // as many clusters run at the same time

func startTrio(t *testing.T, config func(*server.Config)) *trio {
	t.Helper()
	t.Parallel()
	atOnce <- struct{}{}
	c := &trio{t: t, net: clustertest.NewNetwork(), gossip: clustertest.NewDirectory()}
	t.Cleanup(func() {
		c.net.Heal()
		var ending sync.WaitGroup
		for _, m := range c.members {
			if m.process != nil {
				ending.Go(m.end)
			}
		}
		ending.Wait()
		<-atOnce
	})
	for i := range c.members {
		c.members[i] = &member{name: fmt.Sprintf("n%d", i+1), dir: t.TempDir(), config: config}
		c.start(c.members[i])
	}
	c.leader()
	return c
}

// timing loses no leader because the machine is busy for a moment.
var timing = cluster.Timing{Heartbeat: time.Second}

func (c *trio) start(m *member) {
	c.t.Helper()
	m.plug = &plug{Machine: c.net.Machine(m.name)}
	config := server.Config{AMQPAddr: m.name + ":5672", CloseWithin: time.Second, Cluster: cluster.Config{NodeID: m.name, DataDir: m.dir,
		RaftAddr: m.name + ":5680", GossipAddr: m.name + ":5690", BootstrapExpect: 3, Timing: timing, DiskTimeout: amqptest.Patience, Network: m.plug, Discovery: c.gossip.Join},
		Broker: broker.Config{LoopbackUsers: []string{}}}
	if m.config != nil {
		m.config(&config)
	}
	s, err := server.New(config)
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { _ = s.Run(ctx); close(done) }()
	m.process, m.end = s, func() { cancel(); <-done }
}

// stop ends a node gracefully.
func (c *trio) stop(m *member) {
	m.end()
	m.process = nil
}

// kill ends a node as kill -9 does: its connections end, and it says nothing more.
func (c *trio) kill(m *member) {
	m.plug.pulled.Store(true)
	c.net.Kill(m.name)
	c.stop(m)
}

// isolate cuts a node off from the others, not from clients.
func (c *trio) isolate(m *member) { c.net.Isolate(m.name, "n1", "n2", "n3") }

// leader waits until a node serves whom the others that are up and can be reached follow, and returns it.
func (c *trio) leader() *member {
	c.t.Helper()
	return c.leaderOf(c.members[:]...)
}

func (c *trio) leaderOf(members ...*member) *member {
	c.t.Helper()
	for until := time.Now().Add(amqptest.Patience); time.Now().Before(until); <-time.After(5 * time.Millisecond) {
		var leads *member
		for _, m := range members {
			if m.process != nil && m.process.Broker().Where().Serving {
				leads = m
			}
		}
		agreed := leads != nil
		for _, m := range members {
			agreed = agreed && (m.process == nil || m.process.Broker().Where().NodeID == leads.name)
		}
		if agreed {
			return leads
		}
	}
	c.t.Fatal("waited for a leader in vain")
	return nil
}

// followers returns those that do not lead.
func (c *trio) followers() (list []*member) {
	c.t.Helper()
	leader := c.leader()
	for _, m := range c.members {
		if m != leader && m.process != nil {
			list = append(list, m)
		}
	}
	return list
}

// connect opens a TCP connection to a node.
func (c *trio) connect(m *member) net.Conn {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), amqptest.Patience)
	defer cancel()
	conn, err := c.net.Machine("client").Dial(ctx, m.name+":5672")
	if err != nil {
		c.t.Fatalf("connect to %s: %v", m.name, err)
	}
	return conn
}

// dial opens an AMQP connection to a node, with channel 1. Like every client it tries again while leadership changes.
func (c *trio) dial(m *member) (*amqptest.Conn, *amqptest.Channel) {
	c.t.Helper()
	for until := time.Now().Add(amqptest.Patience); time.Now().Before(until); <-time.After(10 * time.Millisecond) {
		conn := amqptest.On(c.t, c.connect(m))
		if conn.TryOpen(amqptest.Options{}) {
			return conn, conn.Channel(1)
		}
		conn.Cut()
	}
	c.t.Fatal("no connection was opened")
	return nil, nil
}

// agree waits until all nodes that are up have the same state.
func (c *trio) agree() {
	c.t.Helper()
	for until := time.Now().Add(amqptest.Patience); time.Now().Before(until); <-time.After(10 * time.Millisecond) {
		states := map[string]bool{}
		for _, m := range c.members {
			if m.process != nil {
				index, hash := m.process.Machine().Hash()
				states[fmt.Sprint(index, hash)] = true
			}
		}
		if len(states) == 1 {
			return
		}
	}
	c.t.Fatal("the nodes do not agree")
}
