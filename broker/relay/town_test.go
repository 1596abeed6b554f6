package relay

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/cluster"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// patience bounds every wait for what should come soon, on a machine that may be busy.
const patience = time.Minute

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// town is a cluster without Raft: it leads who the test says.
type town struct {
	work sync.WaitGroup // of handlers

	mu       sync.Mutex
	leader   string
	term     uint64
	serving  bool
	changed  chan struct{}
	handlers map[string]map[cluster.StreamKind]func(cluster.Member, net.Conn)
	streams  map[string][]net.Conn // that lead to a node
	dead     map[string]bool
	dialled  int
}

func newTown() *town {
	return &town{changed: make(chan struct{}), handlers: map[string]map[cluster.StreamKind]func(cluster.Member, net.Conn){},
		streams: map[string][]net.Conn{}, dead: map[string]bool{}}
}

// lead makes a node the leader in a new term; "" leaves the town without one.
func (n *town) lead(server string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leader, n.serving = server, true
	n.term++
	close(n.changed)
	n.changed = make(chan struct{})
}

// kill ends a node as kill -9 does; nobody has noticed yet.
func (n *town) kill(server string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dead[server] = true
	for _, c := range n.streams[server] {
		_ = c.Close()
	}
}

// resident is a node of the town.
type resident struct {
	*town
	name string
}

func (r *resident) Leadership() cluster.Leadership {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := cluster.Leadership{Term: r.term, Local: r.leader == r.name, Server: r.leader}
	l.Leader.NodeID = r.leader
	return l
}

func (r *resident) Where() broker.Where {
	r.mu.Lock()
	defer r.mu.Unlock()
	return broker.Where{Serving: r.leader == r.name && r.serving}
}

func (r *resident) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

func (r *resident) HandleStream(kind cluster.StreamKind, handler func(cluster.Member, net.Conn)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.handlers[r.name] == nil {
		r.handlers[r.name] = map[cluster.StreamKind]func(cluster.Member, net.Conn){}
	}
	r.handlers[r.name][kind] = handler
}

func (r *resident) DialStream(ctx context.Context, server string, kind cluster.StreamKind) (net.Conn, error) {
	near, far, err := pair()
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dialled++
	handler := r.handlers[server][kind]
	if handler == nil || r.dead[server] {
		_, _ = near.Close(), far.Close()
		return nil, errors.New("connection refused")
	}
	r.streams[server] = append(r.streams[server], far)
	r.work.Go(func() { handler(cluster.Member{NodeID: r.name}, far) })
	return near, nil
}

// pair returns both ends of a TCP connection.
func pair() (near, far net.Conn, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	if near, err = net.Dial("tcp", l.Addr().String()); err != nil {
		return nil, nil, err
	}
	far, err = l.Accept()
	return near, far, err
}

// frontFunc is a front end.
type frontFunc func(c net.Conn)

func (f frontFunc) ServeConn(c net.Conn) { f(c) }

// polite is a front end that reads a header, says start with its name, and then says back whatever frames come. A
// frame of type 99 makes it close without a word.
func polite(name string) frontFunc {
	return func(c net.Conn) {
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(patience))
		if _, err := io.ReadFull(c, make([]byte, headerSize)); err != nil {
			return
		}
		_, _ = c.Write(start(name + " " + c.RemoteAddr().String() + " " + c.LocalAddr().String()))
		for {
			f, err := readFrame(c)
			if err != nil || f[0] == 99 {
				return
			}
			if _, err := c.Write(f); err != nil {
				return
			}
		}
	}
}

// start returns a connection.start that says something.
func start(text string) []byte {
	m := amqp091.ConnectionStart{VersionMinor: 9, Mechanisms: text}
	return m.AppendFrame(nil, 0)
}

func frame(kind byte, payload []byte) []byte {
	b := []byte{kind, 0, 1}
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	return append(append(b, payload...), 0xCE)
}

func readFrame(r io.Reader) ([]byte, error) {
	head := make([]byte, frameHead)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[3:])
	if size > 1<<20 {
		return nil, errors.New("no frame")
	}
	f := append(head, make([]byte, size+1)...)
	_, err := io.ReadFull(r, f[frameHead:])
	return f, err
}

// node is a relay on a listener.
type node struct {
	*resident
	server  *Server
	address string
	close   func()
}

// start runs a relay on a node of the town until the test ends.
func (n *town) start(t *testing.T, name string, front Front) *node {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &resident{n, name}
	s := NewServer(r, r, front, nil)
	var work sync.WaitGroup
	work.Go(func() { _ = s.Serve(l) })
	out := &node{resident: r, server: s, address: l.Addr().String()}
	out.close = sync.OnceFunc(func() {
		_ = l.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		s.Close(ctx)
		work.Wait()
	})
	t.Cleanup(func() {
		n.kill(name)
		out.close()
		n.work.Wait()
	})
	return out
}

// connect dials a node.
func connect(t *testing.T, n *node) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", n.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return c
}

// greet dials a node, sends the header and returns what start says.
func greet(t *testing.T, n *node) (net.Conn, string) {
	t.Helper()
	c := connect(t, n)
	if _, err := c.Write(amqp091.ProtocolHeader[:]); err != nil {
		t.Fatal(err)
	}
	return c, expectStart(t, c)
}

func expectStart(t *testing.T, c net.Conn) string {
	t.Helper()
	var m amqp091.ConnectionStart
	if err := m.Decode([]byte(expect(t, c, amqp091.ConnectionStartID))); err != nil {
		t.Fatal(err)
	}
	return m.Mechanisms
}

// expect reads a method frame and returns its arguments.
func expect(t *testing.T, c net.Conn, want amqp091.MethodID) string {
	t.Helper()
	f, err := readFrame(c)
	if err != nil {
		t.Fatalf("waiting for %v: %v", want, err)
	}
	if got := method(f); got != want {
		t.Fatalf("got %v, want %v: %q", got, want, f)
	}
	return string(f[frameHead+4 : len(f)-1])
}

// expectForced reads a connection.close 320 and then the end.
func expectForced(t *testing.T, c net.Conn) string {
	t.Helper()
	a := expect(t, c, amqp091.ConnectionCloseID)
	if code := binary.BigEndian.Uint16([]byte(a)); code != uint16(amqp091.ConnectionForced) {
		t.Fatalf("closed with %d: %q", code, a)
	}
	if _, err := readFrame(c); !errors.Is(err, io.EOF) {
		t.Fatalf("after the close came %v", err)
	}
	return a[3 : len(a)-4]
}
