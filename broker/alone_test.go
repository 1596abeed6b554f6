package broker

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/warrenmq/warren/cluster"
	"github.com/warrenmq/warren/fsm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// alone is a node without Raft that leads from the start: what is proposed is committed at once, unless it is held.
type alone struct {
	t       testing.TB
	broker  *Broker
	machine *fsm.Machine
	queue   chan func()
	gate    sync.RWMutex // held for writing: nothing is committed
	changed chan struct{}
	index   uint64
}

func startAlone(t testing.TB, c Config) *alone {
	b := New(c)
	a := &alone{t: t, broker: b, machine: fsm.New(fsm.Options{Observer: b}), queue: make(chan func(), 64), changed: make(chan struct{})}
	b.Attach(a, a.machine)
	ctx, cancel := context.WithCancel(context.Background())
	var work, committing sync.WaitGroup
	committing.Go(func() {
		for f := range a.queue {
			a.gate.RLock()
			f()
			a.gate.RUnlock()
		}
	})
	work.Go(func() { b.Run(ctx) })
	for changed := b.Changed(); !b.Where().Serving; changed = b.Changed() {
		<-changed
	}
	t.Cleanup(func() {
		cancel()
		work.Wait()
		close(a.queue)
		committing.Wait()
	})
	return a
}

func (a *alone) Propose(entry []byte, done func(error)) {
	a.queue <- func() {
		a.index++
		_, err := a.machine.Apply(a.index, 1, entry)
		done(err)
	}
}
func (a *alone) Leadership() cluster.Leadership {
	return cluster.Leadership{Term: 1, Local: true, Server: "n1", Leader: a.Self()}
}
func (a *alone) LeadershipChanged() <-chan struct{}                              { return a.changed }
func (a *alone) VerifyLeader(context.Context) error                              { return nil }
func (a *alone) LeaseValid() bool                                                { return true }
func (a *alone) Barrier(context.Context) error                                   { return nil }
func (a *alone) Self() cluster.Member                                            { return cluster.Member{NodeID: "n1", Server: "n1"} }
func (a *alone) ClusterID() string                                               { return "c1" }
func (a *alone) Members() []cluster.Member                                       { return []cluster.Member{a.Self()} }
func (a *alone) Status(context.Context) []cluster.MemberStatus                   { return nil }
func (a *alone) Boots() map[string][16]byte                                      { return map[string][16]byte{"n1": {1}} }
func (a *alone) Voters() []string                                                { return []string{"n1"} }
func (a *alone) HandleStream(cluster.StreamKind, func(cluster.Member, net.Conn)) {}
func (a *alone) TransferLeadership(context.Context) error                        { return nil }
func (a *alone) Remove(context.Context, string) error                            { return nil }
func (a *alone) Stats() cluster.Stats                                            { return cluster.Stats{} }
func (a *alone) DialStream(context.Context, string, cluster.StreamKind) (net.Conn, error) {
	return nil, cluster.ErrClosed
}

// wire is a client's connection: it keeps what the broker sends.
type wire struct {
	t         testing.TB
	session   *Session
	delivered chan Delivery // copies
	cancelled chan Cancellation
	mu        sync.Mutex
	full      bool
}

func (a *alone) connect() *wire {
	a.t.Helper()
	w := &wire{t: a.t, delivered: make(chan Delivery, 10_000), cancelled: make(chan Cancellation, 100)}
	s, err := a.broker.Open(Client{Name: "test", Peer: "127.0.0.1:1", Local: "127.0.0.1:5672", User: "guest"}, "/", w)
	check(a.t, err)
	w.session = s
	a.t.Cleanup(s.Close)
	return w
}

func (w *wire) Deliver(d Delivery) {
	m := *d.Message
	d.Message = &m
	w.delivered <- d
}
func (w *wire) Writable() bool           { return true }
func (w *wire) Cancelled(c Cancellation) { w.cancelled <- c }
func (w *wire) Full() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.full
}

func (w *wire) channel(id uint32) *Channel {
	w.t.Helper()
	ch, err := w.session.Channel(id)
	check(w.t, err)
	return ch
}

// declare makes a queue; table is of its arguments.
func (w *wire) declare(q Queue) QueueState {
	w.t.Helper()
	state, err := w.session.DeclareQueue(within(w.t), q)
	check(w.t, err)
	return state
}

// publish sends bodies to a queue and waits until they are there.
func (w *wire) publish(key string, bodies ...string) {
	w.t.Helper()
	for _, b := range bodies {
		if routed := w.send(key, b); routed != 1 {
			w.t.Fatalf("%q reached %d queues", b, routed)
		}
	}
}

func (w *wire) send(key, body string) uint32 {
	w.t.Helper()
	done := make(chan fsm.Result, 1)
	check(w.t, w.session.Publish(within(w.t), []Publication{{RoutingKey: key, Body: []byte(body)}}, CompleterFunc(func(r fsm.Result) { done <- r })))
	r := <-done
	check(w.t, resultError(r))
	return r.Routed
}

func (w *wire) consume(ch *Channel, c Consumer) {
	w.t.Helper()
	check(w.t, ch.Consume(within(w.t), c, func(string) {}))
}

// next returns the next delivery and fails when it is another body or tag; "" is any.
func (w *wire) next(tag, body string) Delivery {
	w.t.Helper()
	select {
	case d := <-w.delivered:
		if body != "" && string(d.Message.Body) != body || tag != "" && d.ConsumerTag != tag {
			w.t.Fatalf("%q for %q came, want %q for %q", d.Message.Body, d.ConsumerTag, body, tag)
		}
		return d
	case <-within(w.t).Done():
		w.t.Fatalf("no delivery of %q came", body)
		return Delivery{}
	}
}

// nothing makes sure that nothing is delivered: all that was to come would have come before a get is answered.
func (w *wire) nothing() {
	w.t.Helper()
	select {
	case d := <-w.delivered:
		w.t.Fatalf("%q came for %q", d.Message.Body, d.ConsumerTag)
	default:
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused fails unless an error has a code and says something.
func refused(t testing.TB, err error, code fsm.Code, text string) {
	t.Helper()
	if err == nil || AsError(err).Code != code || !contains(err.Error(), text) {
		t.Fatalf("got %v, want code %d and %q", err, code, text)
	}
}

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// eventually waits for a condition that nothing announces.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	ctx := within(t)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("still not: %s", what)
		}
	}
}

// blocked waits until no consumer of a queue can take a message.
func (w *wire) blocked(queue string) {
	w.t.Helper()
	info, err := w.session.queue(queue)
	check(w.t, err)
	v := w.session.leadership.view(info.Number)
	eventually(w.t, "nobody can take a message of "+queue, func() bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		return v.pick() == nil
	})
}
