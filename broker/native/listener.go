// Package native is the front end of Warren's own protocol: it accepts connections, translates frames into calls of
// package broker and back, and sends clients of a follower to the leader. It decides nothing that another front end
// would have to decide again.
package native

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/warrenmq/warren/broker"
)

// Bounds of the listener.
const (
	maxConnections = 65_536
	maxUngreeted   = 1024             // connections that have not said hello yet
	helloTimeout   = 10 * time.Second // from accept to a complete hello
	helloFrameMax  = 64 << 10         // bytes of the frame that says hello
	maxHeartbeat   = 60               // seconds
	acceptRetry    = 20 * time.Millisecond
)

// Server serves the native protocol on any number of listeners.
type Server struct {
	broker *broker.Broker
	log    *slog.Logger

	mu          sync.Mutex
	connections map[*connection]struct{} // guarded by mu
	ungreeted   []*connection            // those that have not said hello, oldest first; guarded by mu
	closed      bool                     // guarded by mu
	work        sync.WaitGroup           // one for each connection
}

// NewServer returns a server in front of a broker.
func NewServer(b *broker.Broker, log *slog.Logger) *Server {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Server{broker: b, log: log, connections: map[*connection]struct{}{}}
}

// Serve accepts connections until the listener is closed. It owns the listener's connections, not the listener.
func (s *Server) Serve(l net.Listener) error {
	for {
		c, err := l.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
			s.log.Warn("could not accept a client's connection", "error", err) // out of file descriptors, most likely
			time.Sleep(acceptRetry)
			continue
		}
		s.start(c)
	}
}

func (s *Server) start(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.connections) >= maxConnections {
		s.broker.Rejected()
		_ = c.Close()
		return
	}
	if len(s.ungreeted) >= maxUngreeted { // whoever says nothing must not keep others out
		s.broker.Rejected()
		_ = s.ungreeted[0].conn.Close()
		s.ungreeted = s.ungreeted[1:]
	}
	conn := newConnection(s, c)
	s.connections[conn] = struct{}{}
	s.ungreeted = append(s.ungreeted, conn)
	s.work.Go(conn.run)
}

func (s *Server) greeted(c *connection) {
	s.mu.Lock()
	if i := slices.Index(s.ungreeted, c); i >= 0 {
		s.ungreeted = slices.Delete(s.ungreeted, i, i+1)
	}
	s.mu.Unlock()
}

func (s *Server) forget(c *connection) {
	s.mu.Lock()
	delete(s.connections, c)
	s.mu.Unlock()
}

// Close sends every client away and waits for the connections to end; when the context ends it cuts them off.
func (s *Server) Close(ctx context.Context) {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		for c := range s.connections {
			close(c.quit)
		}
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() { s.work.Wait(); close(done) }()
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	s.mu.Lock()
	for c := range s.connections {
		_ = c.conn.Close()
	}
	s.mu.Unlock()
	<-done
}
