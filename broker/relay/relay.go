// Package relay lets clients connect to any node: on the node that serves it hands a connection to the protocol's
// front end, on every other it carries the bytes to the leader and back, through the Raft port. It knows of AMQP 0-9-1
// only where its frames end and how a connection is closed. HTTP requests go the same way (web.go).
package relay

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/cluster"
)

// Stream kinds between the nodes.
const (
	streamAMQP cluster.StreamKind = 18
	streamHTTP cluster.StreamKind = 19
)

// Bounds of a Server.
const (
	maxConnections = 65_536
	maxWaiting     = 4096                   // connections that have no leader yet; beyond, the oldest is closed
	maxDials       = 16                     // connects to the leader under way, so that no storm keeps other nodes out of its port
	handshakeLimit = 10 * time.Second       // for a client's first bytes, and then for a leader to be found
	dialLimit      = 2 * time.Second        // of one try
	dialAgain      = 200 * time.Millisecond // after a failed one, unless the leadership changes first
	goneGrace      = time.Second            // for the old leader to say itself that it is none any more
	writeLimit     = 30 * time.Second       // without a byte taken by the other side
	lingerLimit    = 2 * time.Second        // for a client to close after it was told to
	acceptAgain    = 20 * time.Millisecond
)

// Front serves connections of a protocol on the node that leads. ServeConn owns c and returns when it has ended.
type Front interface {
	ServeConn(c net.Conn)
}

// Broker says who serves; *broker.Broker is one.
type Broker interface {
	Where() broker.Where
	Changed() <-chan struct{}
}

// Node reaches the other nodes; *cluster.Node is one.
type Node interface {
	Leadership() cluster.Leadership
	HandleStream(kind cluster.StreamKind, handler func(from cluster.Member, c net.Conn))
	DialStream(ctx context.Context, server string, kind cluster.StreamKind) (net.Conn, error)
}

// Server serves AMQP clients, here or through the leader. Safe for concurrent use.
type Server struct {
	broker Broker
	node   Node
	front  Front
	log    *slog.Logger

	context context.Context // ends when Close is called
	cancel  context.CancelFunc
	dials   chan struct{}  // a slot for each connect under way
	work    sync.WaitGroup // one for each connection, and the watcher

	mu          sync.Mutex
	closed      bool                     // guarded by mu
	connections map[net.Conn]*connection // those that were accepted here, nil for those that front has; guarded by mu
	waiting     []*connection            // those without a leader yet, oldest first; guarded by mu
}

// NewServer returns a server and starts to accept what other nodes relay to this one. End it with Close.
func NewServer(b Broker, n Node, f Front, log *slog.Logger) *Server {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Server{broker: b, node: n, front: f, log: log, dials: make(chan struct{}, maxDials), connections: map[net.Conn]*connection{}}
	s.context, s.cancel = context.WithCancel(context.Background())
	n.HandleStream(streamAMQP, s.arrive)
	s.work.Go(s.watch)
	return s
}

// Serve accepts clients until the listener is closed. It owns the connections, not the listener.
func (s *Server) Serve(l net.Listener) error {
	for {
		c, err := l.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
			s.log.Warn("could not accept a client's connection", "error", err) // out of file descriptors, most likely
			select {
			case <-s.context.Done():
			case <-time.After(acceptAgain):
			}
			continue
		}
		s.start(c)
	}
}

// start gives a connection to the front end if this node serves, else to a relay.
func (s *Server) start(c net.Conn) {
	serving := s.broker.Where().Serving
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.connections) >= maxConnections {
		_ = c.Close()
		return
	}
	if serving {
		s.connections[c] = nil
		s.work.Go(func() {
			defer s.forget(c)
			s.front.ServeConn(c)
		})
		return
	}
	if len(s.waiting) >= maxWaiting {
		_ = s.waiting[0].client.Close()
		s.waiting = s.waiting[1:]
	}
	r := &connection{server: s, client: c}
	s.connections[c] = r
	s.waiting = append(s.waiting, r)
	s.work.Go(func() {
		defer s.forget(c)
		r.run()
	})
}

func (s *Server) forget(c net.Conn) {
	s.mu.Lock()
	delete(s.connections, c)
	s.mu.Unlock()
}

// settled takes a connection off those that wait for a leader.
func (s *Server) settled(r *connection) {
	s.mu.Lock()
	if i := slices.Index(s.waiting, r); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
	s.mu.Unlock()
}

// relayed returns the connections that this node relays.
func (s *Server) relayed() []*connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []*connection
	for _, r := range s.connections {
		if r != nil {
			list = append(list, r)
		}
	}
	return list
}

// watch tells the relayed connections when their leader may be none any more.
func (s *Server) watch() {
	for {
		changed := s.broker.Changed()
		at := s.node.Leadership()
		for _, r := range s.relayed() {
			r.observe(at)
		}
		select {
		case <-changed:
		case <-s.context.Done():
			return
		}
	}
}

// Close tells relayed clients to go and waits for all connections to end; when the context ends it cuts them off. The
// front end's own clients are sent away by the front end's Close, which should come first.
func (s *Server) Close(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	for _, r := range s.relayed() {
		r.abandon("this node is shutting down; connect to another one")
	}
	done := make(chan struct{})
	go func() { s.work.Wait(); close(done) }()
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	s.mu.Lock()
	for c := range s.connections {
		_ = c.Close()
	}
	s.mu.Unlock()
	<-done
}
