// Package clustertest runs clusters in memory: a network between named machines that can be cut, healed, slowed and
// whose machines can vanish, and a discovery that knows everybody. It starts no goroutine and makes no system call, so
// that whole clusters run inside testing/synctest bubbles.
package clustertest

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// Network connects machines by name. Addresses are "machine:port". Safe for concurrent use.
type Network struct {
	mu        sync.Mutex // guards everything below
	listeners map[string]*listener
	cut       map[[2]string]bool
	delay     time.Duration
	pipes     map[*pipe]struct{}
	next      int // port for ":0"
}

// NewNetwork returns a network without delay in which everybody reaches everybody.
func NewNetwork() *Network {
	return &Network{listeners: map[string]*listener{}, cut: map[[2]string]bool{}, pipes: map[*pipe]struct{}{}, next: 10000}
}

func pair(a, b string) [2]string {
	if a > b {
		a, b = b, a
	}
	return [2]string{a, b}
}

// Delay makes every write arrive so much later.
func (n *Network) Delay(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.delay = d
}

// Cut lets nothing pass between two machines: bytes wait, dials time out. Connections do not end.
func (n *Network) Cut(a, b string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut[pair(a, b)] = true
}

// Heal undoes all cuts; what waited arrives.
func (n *Network) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.cut)
	for p := range n.pipes {
		p.wake()
	}
}

// Isolate cuts a machine from all the others named.
func (n *Network) Isolate(machine string, others ...string) {
	for _, o := range others {
		if o != machine {
			n.Cut(machine, o)
		}
	}
}

// Kill ends a machine's processes as kill -9 does: its listeners are gone, so that dials are refused, and its
// connections end.
func (n *Network) Kill(machine string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for a, l := range n.listeners {
		if l.machine == machine {
			delete(n.listeners, a)
			close(l.done)
		}
	}
	for p := range n.pipes {
		if p.from == machine {
			p.endWriter(syscall.ECONNRESET)
		}
		if p.to == machine {
			p.endReader(syscall.ECONNRESET)
		}
	}
}

// Break ends the connections between two machines, as a router does that has lost its memory; new ones can be made.
func (n *Network) Break(a, b string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for p := range n.pipes {
		if pair(p.from, p.to) == pair(a, b) {
			p.endWriter(syscall.ECONNRESET)
		}
	}
}

func (n *Network) isCut(a, b string) bool { return n.cut[pair(a, b)] }

// Machine is one machine's view of the network; it is a cluster.Network.
func (n *Network) Machine(name string) *Machine { return &Machine{n, name} }

// Machine listens and dials under its name.
type Machine struct {
	n    *Network
	name string
}

type addr string

func (addr) Network() string  { return "memory" }
func (a addr) String() string { return string(a) }

// Listen listens on a port of this machine; the host in the address does not matter.
func (m *Machine) Listen(address string) (net.Listener, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	m.n.mu.Lock()
	defer m.n.mu.Unlock()
	if port == "0" {
		m.n.next++
		port = fmt.Sprint(m.n.next)
	}
	a := m.name + ":" + port
	if m.n.listeners[a] != nil {
		return nil, fmt.Errorf("listen on %s: %w", a, syscall.EADDRINUSE)
	}
	l := &listener{n: m.n, machine: m.name, address: a, queue: make(chan net.Conn, 128), done: make(chan struct{})}
	m.n.listeners[a] = l
	return l, nil
}

// Dial connects to a listener. With nobody there it fails with ECONNREFUSED at once; over a cut it waits for the context.
func (m *Machine) Dial(ctx context.Context, address string) (net.Conn, error) {
	to, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	fail := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "memory", Addr: addr(address), Err: os.NewSyscallError("connect", err)}
	}
	m.n.mu.Lock()
	if m.n.isCut(m.name, to) {
		m.n.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
		}
		return fail(syscall.ETIMEDOUT)
	}
	defer m.n.mu.Unlock()
	l := m.n.listeners[address]
	if l == nil {
		return fail(syscall.ECONNREFUSED)
	}
	m.n.next++
	mine := fmt.Sprintf("%s:%d", m.name, m.n.next)
	there, back := m.n.newPipe(m.name, to), m.n.newPipe(to, m.name)
	select {
	case l.queue <- &conn{in: there, out: back, local: addr(address), remote: addr(mine)}:
	default:
		return fail(syscall.ECONNREFUSED)
	}
	return &conn{in: back, out: there, local: addr(mine), remote: addr(address)}, nil
}

type listener struct {
	n       *Network
	machine string
	address string
	queue   chan net.Conn
	done    chan struct{} // closed by Close or Kill, under n.mu, when taken out of n.listeners
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case <-l.done:
		return nil, net.ErrClosed
	default:
	}
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.n.mu.Lock()
	if l.n.listeners[l.address] == l {
		delete(l.n.listeners, l.address)
		close(l.done)
	}
	l.n.mu.Unlock()
	for {
		select {
		case c := <-l.queue:
			_ = c.Close()
		default:
			return nil
		}
	}
}

func (l *listener) Addr() net.Addr { return addr(l.address) }
