package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

const (
	// maxUnknown bounds the connections that have not said yet who they are; more are closed at once.
	maxUnknown = 128
	// prefaceLimit is how long one may take to say it.
	prefaceLimit = 2 * time.Second
	// dialPatience is how long a dial by raft goes on trying. raft waits up to 10 s after a dozen failed calls; as long
	// as the dial itself waits, a server that comes back is found at once.
	dialPatience = 30 * time.Second
	dialRetry    = 100 * time.Millisecond
	refusalEvery = 10 * time.Second // in the log
)

// streams is everything that comes and goes through the Raft port. It is raft's StreamLayer for streams of kind 1.
type streams struct {
	strangers sparse // what is said of connections that are none of ours

	n        *Node
	listener net.Listener
	unknown  chan struct{} // a slot for each connection before its preface is checked
	accepted chan net.Conn // for raft; never closed
	gone     func(server string)

	mu       sync.Mutex // guards what follows
	conns    map[net.Conn]struct{}
	inbound  map[string]int // open raft connections by the server that dialled
	boots    map[string][16]byte
	told     map[string]uint64 // the boot counter of this node that a server was last told of
	starts   map[string]uint64 // the highest boot counter of a server's present process, whose boot id is in boots
	handlers map[StreamKind]func(Member, net.Conn)
	stale    map[string]bool // servers that came with a boot counter lower than one known (rule 18)
	closed   bool
	// refusedAt and refusedWhy are of the last refusal that was logged.
	refusedAt  time.Time
	refusedWhy string
}

func newStreams(n *Node, l net.Listener) *streams {
	return &streams{n: n, listener: l, unknown: make(chan struct{}, maxUnknown), accepted: make(chan net.Conn),
		conns: map[net.Conn]struct{}{}, inbound: map[string]int{}, boots: map[string][16]byte{}, told: map[string]uint64{},
		starts: map[string]uint64{}, stale: map[string]bool{}, handlers: map[StreamKind]func(Member, net.Conn){}}
}

// serve accepts until the listener is closed.
func (s *streams) serve() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			if s.n.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			s.n.log.Warn("accepting a connection from another node failed", "error", err)
			select {
			case <-s.n.ctx.Done():
				return
			case <-time.After(50 * time.Millisecond):
				continue
			}
		}
		select {
		case s.unknown <- struct{}{}:
		default:
			_ = c.Close()
			continue
		}
		if !s.n.spawn(func() { s.greet(c) }) {
			_ = c.Close()
		}
	}
}

// track makes sure that Close ends a connection; untrack undoes it.
func (s *streams) track(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.conns[c] = struct{}{}
	return true
}

func (s *streams) untrack(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// greet reads who dials and for what, and passes the connection on.
func (s *streams) greet(c net.Conn) {
	release := sync.OnceFunc(func() { <-s.unknown })
	defer release()
	if !s.track(c) {
		_ = c.Close()
		return
	}
	refuse := func() { s.untrack(c); _ = c.Close() }
	_ = c.SetDeadline(time.Now().Add(prefaceLimit))
	var h hello
	second, err := readPreface(c, &h)
	if err != nil {
		if errors.Is(err, errPreface) {
			s.strangers.warn(s.n.log, "refused a connection to the Raft port", "remote", c.RemoteAddr(), "error", err)
		}
		refuse()
		return
	}
	kind, from := StreamKind(second), h.From.member()
	w := welcome{From: toWire(s.n.Self()), Boot: s.n.boot}
	handler, reason := s.admit(kind, from, h)
	if reason == "" {
		if w.Known, err = s.n.identity.seenBoots(from.Server, from.Boots); err != nil {
			reason = "this node cannot write its data directory"
		}
	}
	if reason != "" {
		s.logRefusal(c, from, reason)
		w.Reason = reason
		_ = writePreface(c, statusRefused, &w)
		refuse()
		return
	}
	s.met(from, h.Boot, w.Known)
	w.From = toWire(s.n.Self()) // with the cluster id, if it was adopted just now
	if err := writePreface(c, statusOK, &w); err != nil {
		refuse()
		return
	}
	_ = c.SetDeadline(time.Time{})
	release()
	if kind != streamRaft {
		defer s.untrack(c)
		handler(from, c)
		return
	}
	s.mu.Lock()
	s.inbound[from.Server]++
	s.mu.Unlock()
	pc := &progressConn{Conn: c, incoming: true, onClose: func() { s.untrack(c); s.left(from.Server) }}
	select {
	case s.accepted <- pc:
	case <-s.n.ctx.Done():
		_ = pc.Close()
	}
}

// logRefusal says so once in refusalEvery, for refused nodes try again at once.
func (s *streams) logRefusal(c net.Conn, from Member, reason string) {
	s.mu.Lock()
	quiet := time.Since(s.refusedAt) < refusalEvery && s.refusedWhy == reason
	if !quiet {
		s.refusedAt, s.refusedWhy = time.Now(), reason
	}
	s.mu.Unlock()
	if !quiet {
		s.n.log.Warn("refused a node's connection", "node", from.NodeID, "remote", c.RemoteAddr(), "reason", reason)
	}
}

// admit decides on a connection; a reason refuses it.
func (s *streams) admit(kind StreamKind, from Member, h hello) (handler func(Member, net.Conn), reason string) {
	n := s.n
	if h.To != n.server {
		return nil, fmt.Sprintf("it looks for server %s, this is %s", h.To, n.server)
	}
	if from.ClusterID == "" {
		return nil, "it belongs to no cluster yet"
	}
	adopted, belongs, err := n.identity.adopt(from.ClusterID)
	if err != nil {
		return nil, "this node cannot write its data directory"
	}
	if !belongs {
		return nil, fmt.Sprintf("it belongs to cluster %s, this node to cluster %s; two clusters never merge", from.ClusterID, n.ClusterID())
	}
	if adopted {
		n.log.Info("joined the cluster", "cluster", from.ClusterID, "through", from.NodeID)
		n.wake()
	}
	if kind == streamRaft {
		return nil, ""
	}
	s.mu.Lock()
	handler = s.handlers[kind]
	s.mu.Unlock()
	if handler == nil {
		return nil, fmt.Sprintf("streams of kind %d are not served here", kind)
	}
	if kind >= firstAppKind && !n.isMember(from.Server) {
		return nil, "it is no member of this cluster"
	}
	return handler, ""
}

// met notes what a handshake told of a server.
func (s *streams) met(m Member, boot [16]byte, known uint64) {
	s.n.book.learn(m)
	s.mu.Lock()
	defer s.mu.Unlock()
	boots := m.Boots
	if s.boots[m.Server] == boot { // of two handshakes with one process the later one may be looked at first
		boots = max(boots, s.starts[m.Server])
	}
	if len(s.boots) < maxBook {
		s.boots[m.Server], s.starts[m.Server] = boot, boots
	}
	if stale := boots < known; stale != s.stale[m.Server] {
		s.stale[m.Server] = stale
		if stale {
			s.n.log.Error("a node came back with an older data directory; its votes are refused until it has caught up",
				"node", m.NodeID, "boots", boots, "known", known)
		}
	}
}

// hasTold reports whether a server was told of a boot counter of this node.
func (s *streams) hasTold(server string, boots uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told[server] == boots
}

func (s *streams) isStale(server string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stale[server]
}

func (s *streams) connected(server string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inbound[server] > 0
}

// left is called when an incoming raft connection has ended.
func (s *streams) left(server string) {
	s.mu.Lock()
	s.inbound[server]--
	last := s.inbound[server] <= 0
	if last {
		delete(s.inbound, server)
	}
	s.mu.Unlock()
	if last {
		s.gone(server)
	}
}

// open dials a server once and shakes hands. The error of a refused dial wraps syscall.ECONNREFUSED.
func (s *streams) open(ctx context.Context, server string, kind StreamKind) (net.Conn, error) {
	m, ok := s.n.book.find(server)
	if !ok || m.Raft == "" {
		return nil, fmt.Errorf("where is %s? gossip has not told yet", server)
	}
	c, err := s.n.config.Network.Dial(ctx, m.Raft)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	self := s.n.Self()
	w, err := s.shake(c, server, kind, self)
	if err == nil && !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		stop()
		_ = c.Close()
		return nil, fmt.Errorf("connect to %s at %s: %w", server, m.Raft, err)
	}
	known, err := s.n.identity.seenBoots(server, w.From.Boots)
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	s.met(w.From.member(), w.Boot, known)
	s.mu.Lock()
	s.told[server] = self.Boots // the book, which has the server's address, bounds it
	s.mu.Unlock()
	if w.Known > s.n.identity.get().Boots {
		s.n.outdated(w.Known, w.From.NodeID)
	}
	return c, nil
}

func (s *streams) shake(c net.Conn, server string, kind StreamKind, self Member) (w welcome, err error) {
	_ = c.SetDeadline(time.Now().Add(prefaceLimit))
	if err := writePreface(c, byte(kind), &hello{From: toWire(self), To: server, Boot: s.n.boot}); err != nil {
		return w, err
	}
	status, err := readPreface(c, &w)
	if err != nil {
		return w, err
	}
	if status != statusOK {
		return w, &RefusedError{Server: server, Reason: w.Reason}
	}
	if w.From.ClusterID != s.n.ClusterID() {
		return w, &RefusedError{Server: server, Reason: "it answers for cluster " + w.From.ClusterID}
	}
	return w, c.SetDeadline(time.Time{})
}

// RefusedError is another node's refusal to talk.
type RefusedError struct{ Server, Reason string }

func (e *RefusedError) Error() string { return e.Server + " refused: " + e.Reason }

// Accept is raft's.
func (s *streams) Accept() (net.Conn, error) {
	select {
	case c := <-s.accepted:
		return c, nil
	case <-s.n.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Close ends what raft's transport cannot: the node does the rest.
func (s *streams) Close() error { return nil }

type serverAddr string

func (serverAddr) Network() string  { return "warren" }
func (a serverAddr) String() string { return string(a) }

// Addr is the server id, which raft takes for an address (rule 4).
func (s *streams) Addr() net.Addr { return serverAddr(s.n.server) }

// Dial is raft's. It waits for a server that is down, so that raft does not count failures meanwhile.
func (s *streams) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	patience, cancel := context.WithTimeout(s.n.ctx, dialPatience)
	defer cancel()
	for {
		changed := s.n.book.change()
		ctx, cancel := context.WithTimeout(patience, timeout)
		c, err := s.open(ctx, string(address), streamRaft)
		cancel()
		if err == nil {
			if !s.track(c) {
				_ = c.Close()
				return nil, net.ErrClosed
			}
			return &progressConn{Conn: c, onClose: func() { s.untrack(c) }}, nil
		}
		var refused *RefusedError
		if errors.As(err, &refused) || !s.n.isMember(string(address)) {
			return nil, err
		}
		select {
		case <-patience.Done():
			return nil, err
		case <-changed:
		case <-time.After(dialRetry):
		}
	}
}

// shut closes the listener and every connection.
func (s *streams) shut() {
	_ = s.listener.Close()
	s.mu.Lock()
	s.closed = true
	conns := make([]net.Conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
}

// HandleStream sets who serves incoming streams of a kind. Only members get through. The handler owns the connection.
func (n *Node) HandleStream(kind StreamKind, handler func(from Member, c net.Conn)) {
	n.streams.mu.Lock()
	defer n.streams.mu.Unlock()
	n.streams.handlers[kind] = handler
}

// DialStream opens a stream of a kind to a member by Raft server id.
func (n *Node) DialStream(ctx context.Context, server string, kind StreamKind) (net.Conn, error) {
	return n.streams.open(ctx, server, kind)
}

// Boots returns the boot ids of the members whose Raft connections are or were open since this process started,
// this node's included, by Raft server id (rule 13).
func (n *Node) Boots() map[string][16]byte {
	n.streams.mu.Lock()
	defer n.streams.mu.Unlock()
	out := map[string][16]byte{n.server: n.boot}
	for s, b := range n.streams.boots {
		out[s] = b
	}
	return out
}
