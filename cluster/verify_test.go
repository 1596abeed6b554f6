package cluster

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// stalling is a network on which what a node dialled for brings no answers while it is stalled, and takes nothing once it is
// cut.
type stalling struct {
	tcp
	stalled atomic.Pointer[chan struct{}] // closed when the answers may go on
	waiting atomic.Int32                  // connections whose answer has come and is held
	cut     atomic.Bool
}

type stallingConn struct {
	net.Conn
	n *stalling
}

func (n *stalling) Dial(ctx context.Context, address string) (net.Conn, error) {
	c, err := n.tcp.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	return &stallingConn{c, n}, nil
}

func (c *stallingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if until := c.n.stalled.Load(); until != nil && err == nil {
		c.n.waiting.Add(1)
		<-*until
		c.n.waiting.Add(-1)
	}
	return n, err
}

func (c *stallingConn) Write(b []byte) (int, error) {
	if c.n.cut.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// Answers that the followers gave before the call say nothing of the time after it.
func TestRule10OldAnswersDoNotVerifyALeader(t *testing.T) {
	var nodes []*testNode
	networks := map[*testNode]*stalling{}
	for _, c := range threeConfigs(t) {
		network := &stalling{}
		c.Network, c.Timing = network, Timing{Heartbeat: time.Second}
		n := start(t, c)
		nodes, networks[n] = append(nodes, n), network
	}
	leader := leaderOf(t, nodes)
	if err := leader.VerifyLeader(t.Context()); err != nil {
		t.Fatal(err)
	}
	network, goOn := networks[leader], make(chan struct{})
	network.stalled.Store(&goOn)
	eventually(t, "answers of both followers", func() bool { return network.waiting.Load() >= 2 })
	network.cut.Store(true)
	verified := make(chan error, 1)
	go func() { verified <- leader.VerifyLeader(context.Background()) }()
	<-time.After(50 * time.Millisecond) // raft's main goroutine has taken it up, or else there is nothing to see
	close(goOn)
	if err := <-verified; !errors.Is(err, ErrNotWritten) {
		t.Errorf("a leader that is cut off was verified: %v", err)
	}
}

// What raft has not answered at its shutdown it never answers.
func TestRule06CloseLeavesNoCallBehind(t *testing.T) {
	nodes := startThree(t, threeConfigs(t))
	for range 3 {
		leader := leaderOf(t, nodes)
		var asking sync.WaitGroup
		for range 100 {
			asking.Go(func() {
				for !errors.Is(leader.VerifyLeader(context.Background()), ErrClosed) {
				}
			})
		}
		leader.stop(t)
		asking.Wait()
		if left := leader.calls.Load(); left != 0 {
			t.Errorf("%d calls are left behind", left)
		}
		i := slices.Index(nodes, leader)
		nodes[i] = start(t, leader.config)
	}
}
