package simulation

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Delay of one packet, drawn between these. Without a delay virtual time would stand still while nodes talk.
const (
	minDelay = 50 * time.Microsecond
	maxDelay = 1500 * time.Microsecond
)

// windowBytes is how much one direction of a connection holds before its writer waits.
const windowBytes = 256 << 10

// Net is a network of named hosts in memory. What is sent over a cut path waits for the heal, as TCP would have it;
// a dial over one waits too. Everything waits on channels and timers only, so that virtual time goes on. Safe for
// concurrent use.
type Net struct {
	mu        sync.Mutex // guards everything below
	rand      *rand.Rand
	listeners map[string]*listener // by address
	cut       map[[2]string]bool   // from, to
	conns     map[*conn]struct{}   // both ends of each
	changed   chan struct{}        // closed and replaced when a path is cut or healed
	ports     int
}

// NewNet returns a network whose delays follow a seed.
func NewNet(seed uint64) *Net {
	return &Net{rand: rand.New(rand.NewPCG(seed, 1)), listeners: map[string]*listener{}, cut: map[[2]string]bool{},
		conns: map[*conn]struct{}{}, changed: make(chan struct{})}
}

// Cut loses the path from one host to another, in that direction.
func (n *Net) Cut(from, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut[[2]string{from, to}] = true
	n.wake()
}

// Heal mends all paths.
func (n *Net) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.cut)
	n.wake()
}

func (n *Net) wake() {
	close(n.changed)
	n.changed = make(chan struct{})
}

// path reports whether bytes get from one host to another, and what is closed when that may have changed.
func (n *Net) path(from, to string) (open bool, changed <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.cut[[2]string{from, to}], n.changed
}

func (n *Net) delay() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return minDelay + time.Duration(n.rand.Int64N(int64(maxDelay-minDelay)))
}

// Reset breaks every connection of a host, as a process's end does. A peer whose path from there is cut hears of it
// only after the heal.
func (n *Net) Reset(host string) {
	n.mu.Lock()
	var broken []*conn
	for c := range n.conns {
		if c.from == host {
			broken = append(broken, c)
		}
	}
	n.mu.Unlock()
	for _, c := range broken {
		c.reset()
	}
}

// Attachment is one process's access to the network: cluster.Network, and a dialer for clients.
type Attachment struct {
	net  *Net
	host string

	mu   sync.Mutex
	dead bool // guarded by mu
}

// Attach gives a process on a host access.
func (n *Net) Attach(host string) *Attachment { return &Attachment{net: n, host: host} }

// Kill ends the process's access: its listeners are gone, its connections broken.
func (a *Attachment) Kill() {
	a.mu.Lock()
	a.dead = true
	a.mu.Unlock()
	a.net.mu.Lock()
	var gone []*listener
	for _, l := range a.net.listeners {
		if l.owner == a {
			gone = append(gone, l)
		}
	}
	a.net.mu.Unlock()
	for _, l := range gone {
		_ = l.Close()
	}
	a.net.Reset(a.host)
}

func (a *Attachment) isDead() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.dead
}

// Listen listens on an address "host:port" of the process's own host.
func (a *Attachment) Listen(address string) (net.Listener, error) {
	host, _, _ := strings.Cut(address, ":")
	if a.isDead() || host != a.host {
		return nil, &net.OpError{Op: "listen", Net: "sim", Err: syscall.EADDRNOTAVAIL}
	}
	a.net.mu.Lock()
	defer a.net.mu.Unlock()
	if a.net.listeners[address] != nil {
		return nil, &net.OpError{Op: "listen", Net: "sim", Err: syscall.EADDRINUSE}
	}
	l := &listener{owner: a, address: address, accept: make(chan *conn, 128), closed: make(chan struct{})}
	a.net.listeners[address] = l
	return l, nil
}

// Dial connects to an address. It is refused when nobody listens there, and waits while either path is cut.
func (a *Attachment) Dial(ctx context.Context, address string) (net.Conn, error) {
	host, _, _ := strings.Cut(address, ":")
	fail := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "sim", Addr: addr(address), Err: err}
	}
	for {
		there, changed := a.net.path(a.host, host)
		back, _ := a.net.path(host, a.host)
		if there && back {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fail(ctx.Err())
		}
	}
	select {
	case <-time.After(a.net.delay()):
	case <-ctx.Done():
		return fail(ctx.Err())
	}
	a.net.mu.Lock()
	defer a.net.mu.Unlock()
	if a.isDead() {
		return fail(syscall.ENETDOWN)
	}
	l := a.net.listeners[address]
	if l == nil {
		return fail(syscall.ECONNREFUSED)
	}
	a.net.ports++
	local := fmt.Sprintf("%s:%d", a.host, 30000+a.net.ports)
	there, back := newStream(a.net, a.host, host), newStream(a.net, host, a.host)
	near := &conn{net: a.net, from: a.host, to: host, local: addr(local), remote: addr(address), in: back, out: there}
	far := &conn{net: a.net, from: host, to: a.host, local: addr(address), remote: addr(local), in: there, out: back}
	select {
	case l.accept <- far:
	default:
		return fail(syscall.ECONNREFUSED)
	}
	a.net.conns[near], a.net.conns[far] = struct{}{}, struct{}{}
	return near, nil
}

type addr string

func (addr) Network() string  { return "sim" }
func (a addr) String() string { return string(a) }

type listener struct {
	owner   *Attachment
	address string
	accept  chan *conn
	closed  chan struct{} // closed by Close
	once    sync.Once
}

func (l *listener) Addr() net.Addr { return addr(l.address) }

func (l *listener) Accept() (net.Conn, error) {
	select {
	case <-l.closed:
		return nil, net.ErrClosed
	default:
	}
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() {
		n := l.owner.net
		n.mu.Lock()
		delete(n.listeners, l.address)
		n.mu.Unlock()
		close(l.closed)
		for {
			select {
			case c := <-l.accept:
				c.reset()
				continue
			default:
			}
			break
		}
	})
	return nil
}

// conn is one end of a connection.
type conn struct {
	net           *Net
	from, to      string // hosts, this end's first
	local, remote addr
	in, out       *stream
}

func (c *conn) LocalAddr() net.Addr         { return c.local }
func (c *conn) RemoteAddr() net.Addr        { return c.remote }
func (c *conn) Read(b []byte) (int, error)  { return c.in.read(b) }
func (c *conn) Write(b []byte) (int, error) { return c.out.write(b) }

func (c *conn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.in.change(func(s *stream) { s.readUntil = t })
	return nil
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.out.change(func(s *stream) { s.writeUntil = t })
	return nil
}

// Close ends both directions: the peer reads what is on the way, then the end.
func (c *conn) Close() error {
	c.out.change(func(s *stream) { s.ended, s.endsAt = true, time.Now().Add(maxDelay) })
	c.in.change(func(s *stream) { s.unread = true })
	c.net.mu.Lock()
	delete(c.net.conns, c)
	c.net.mu.Unlock()
	return nil
}

func (c *conn) reset() {
	c.in.change(func(s *stream) { s.broken, s.unread = true, true })
	c.out.change(func(s *stream) { s.broken, s.ended = true, true })
	c.net.mu.Lock()
	delete(c.net.conns, c)
	c.net.mu.Unlock()
}

// stream is one direction of a connection.
type stream struct {
	net      *Net
	from, to string

	mu         sync.Mutex // guards everything below
	chunks     []chunk
	bytes      int
	ended      bool // the writer has closed: no more than the chunks, and not before endsAt
	endsAt     time.Time
	unread     bool // the reader has closed
	broken     bool
	readUntil  time.Time
	writeUntil time.Time
	changed    chan struct{} // closed and replaced by change
}

type chunk struct {
	at    time.Time // arrival
	bytes []byte
}

func newStream(n *Net, from, to string) *stream {
	return &stream{net: n, from: from, to: to, changed: make(chan struct{})}
}

func (s *stream) change(f func(*stream)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
	s.wake()
}

func (s *stream) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// await unlocks, waits for a change of the stream or the paths or for the time, if there is one, and locks again.
func (s *stream) await(until time.Time, healed <-chan struct{}) {
	changed := s.changed
	s.mu.Unlock()
	defer s.mu.Lock()
	var timer <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(time.Until(until))
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-changed:
	case <-healed:
	case <-timer:
	}
}

func passed(deadline time.Time) bool { return !deadline.IsZero() && !time.Now().Before(deadline) }

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func (s *stream) read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		open, healed := s.net.path(s.from, s.to)
		switch {
		case s.unread:
			return 0, net.ErrClosed
		case s.broken && open:
			return 0, syscall.ECONNRESET
		case passed(s.readUntil):
			return 0, os.ErrDeadlineExceeded
		case open && len(s.chunks) > 0 && !time.Now().Before(s.chunks[0].at):
			n := copy(b, s.chunks[0].bytes)
			if s.chunks[0].bytes = s.chunks[0].bytes[n:]; len(s.chunks[0].bytes) == 0 {
				s.chunks = s.chunks[1:]
			}
			s.bytes -= n
			s.wake()
			return n, nil
		case open && len(s.chunks) > 0:
			s.await(earlier(s.readUntil, s.chunks[0].at), healed)
		case open && s.ended && passed(s.endsAt):
			return 0, io.EOF
		case open && s.ended:
			s.await(earlier(s.readUntil, s.endsAt), healed)
		default:
			s.await(s.readUntil, healed)
		}
	}
}

func (s *stream) write(b []byte) (total int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		open, healed := s.net.path(s.to, s.from)
		switch {
		case s.ended:
			return total, net.ErrClosed
		case (s.broken || s.unread) && open:
			return total, syscall.EPIPE
		case passed(s.writeUntil):
			return total, os.ErrDeadlineExceeded
		case len(b) == 0:
			return total, nil
		case s.bytes < windowBytes:
			n := min(len(b), windowBytes-s.bytes)
			at := time.Now().Add(s.net.delay())
			if last := len(s.chunks) - 1; last >= 0 && at.Before(s.chunks[last].at) {
				at = s.chunks[last].at
			}
			s.chunks = append(s.chunks, chunk{at, append([]byte(nil), b[:n]...)})
			s.bytes += n
			total += n
			b = b[n:]
			s.wake()
		default:
			s.await(s.writeUntil, healed)
		}
	}
}
