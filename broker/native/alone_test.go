package native_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/broker/native"
	"github.com/warrenmq/warren/client"
	"github.com/warrenmq/warren/cluster"
	"github.com/warrenmq/warren/fsm"
)

// alone is a node without Raft: it leads whenever it is told to, and what is proposed is committed at once.
type alone struct {
	machine *fsm.Machine
	queue   chan func()
	done    sync.WaitGroup

	mu      sync.Mutex
	term    uint64
	leads   bool
	index   uint64
	changed chan struct{}
	address string
	boot    byte // of this process, as far as anybody can tell
}

func newAlone(m *fsm.Machine) *alone {
	a := &alone{machine: m, queue: make(chan func(), 16), changed: make(chan struct{})}
	a.done.Go(func() {
		for f := range a.queue {
			f()
		}
	})
	return a
}

func (a *alone) lead(leads bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.leads = leads
	a.term++
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *alone) Propose(entry []byte, done func(error)) {
	a.mu.Lock()
	term, leads := a.term, a.leads
	a.mu.Unlock()
	a.queue <- func() {
		if !leads {
			done(cluster.ErrNotWritten)
			return
		}
		a.index++
		_, err := a.machine.Apply(a.index, term, entry)
		done(err)
	}
}

func (a *alone) Leadership() cluster.Leadership {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := cluster.Leadership{Term: a.term, Local: a.leads}
	if a.leads {
		l.Server, l.Leader = "n1", a.self()
	}
	return l
}

func (a *alone) LeadershipChanged() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.changed
}

func (a *alone) self() cluster.Member {
	return cluster.Member{NodeID: "n1", Server: "n1", Clients: cluster.Addresses{Native: a.address}}
}
func (a *alone) VerifyLeader(context.Context) error                              { return nil }
func (a *alone) LeaseValid() bool                                                { return true }
func (a *alone) Barrier(context.Context) error                                   { return nil }
func (a *alone) Self() cluster.Member                                            { return a.self() }
func (a *alone) ClusterID() string                                               { return "c1" }
func (a *alone) Members() []cluster.Member                                       { return []cluster.Member{a.self()} }
func (a *alone) Status(context.Context) []cluster.MemberStatus                   { return nil }
func (a *alone) Boots() map[string][16]byte                                      { return map[string][16]byte{"n1": {a.boot}} }
func (a *alone) Voters() []string                                                { return []string{"n1"} }
func (a *alone) HandleStream(cluster.StreamKind, func(cluster.Member, net.Conn)) {}
func (a *alone) TransferLeadership(context.Context) error                        { return nil }
func (a *alone) Remove(context.Context, string) error                            { return nil }
func (a *alone) Stats() cluster.Stats                                            { return cluster.Stats{} }
func (a *alone) DialStream(context.Context, string, cluster.StreamKind) (net.Conn, error) {
	return nil, cluster.ErrClosed
}

// start runs a broker on such a node and returns the node and its address.
func start(t testing.TB) *alone { return startWith(t, broker.Config{}) }

func startWith(t testing.TB, config broker.Config) *alone {
	b := broker.New(config)
	m := fsm.New(fsm.Options{Observer: b})
	node := newAlone(m)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	node.address = listener.Addr().String()
	b.Attach(node, m)
	ctx, cancel := context.WithCancel(context.Background())
	server := native.NewServer(b, nil)
	var work sync.WaitGroup
	work.Go(func() { b.Run(ctx) })
	work.Go(func() { _ = server.Serve(listener) })
	node.lead(true)
	for changed := b.Changed(); !b.Where().Serving; changed = b.Changed() {
		<-changed
	}
	t.Cleanup(func() {
		_ = listener.Close()
		server.Close(ctx)
		cancel()
		work.Wait()
		close(node.queue)
		node.done.Wait()
	})
	return node
}

func dial(t testing.TB, node *alone) (*client.Connection, *client.Channel) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := client.Dial(ctx, []string{node.address}, client.WithHeartbeat(time.Minute)) // a busy machine is not what is tested
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	ch, err := c.Channel(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return c, ch
}

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
