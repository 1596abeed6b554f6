// Package amqp is the AMQP 0-9-1 front end: it translates the frames of RabbitMQ's clients into calls of package broker
// and back. It decides nothing that another front end would have to decide again. It serves on the leader only; on a
// follower package relay brings the connections here.
package amqp

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/warrenmq/warren/broker"
)

// Config is what the server offers and allows. Zero values take the defaults in brackets.
type Config struct {
	FrameMax         uint32        // offered, bytes [131,072]
	ChannelMax       uint16        // channels of a connection, offered [2,047]
	Heartbeat        uint16        // offered, seconds [60]
	MaxMessage       uint64        // bytes of a message's body [128 MiB], at most 512 MiB
	HandshakeTimeout time.Duration // from the first byte to open-ok [10 s]
	Version          string        // of Warren, shown in connection.start ["devel"]
	ClusterName      func() string // shown in connection.start; nil shows none
	Logger           *slog.Logger  // nil says nothing
}

// Defaults and fixed bounds of a connection.
const (
	defaultFrameMax   = 131_072
	defaultChannelMax = 2047
	defaultHeartbeat  = 60
	defaultMaxMessage = 128 << 20
	defaultHandshake  = 10 * time.Second

	minFrameMax       = 4096
	handshakeFrameMax = 16 << 10         // a login may carry a long token
	maxBody           = 512 << 20        // bytes; more is a frame error whatever the configuration says
	penalty           = 3 * time.Second  // before the socket of a refused login, or of one that lost its framing, is closed
	closeOkTimeout    = 30 * time.Second // for a client to answer connection.close
	endTimeout        = 10 * time.Second // for what a connection leaves behind to be applied
	lingerTimeout     = 2 * time.Second  // for a client to close its end after close-ok
)

// Server serves AMQP connections. Safe for concurrent use.
type Server struct {
	broker *broker.Broker
	config Config
	log    *slog.Logger

	mu          sync.Mutex
	connections map[*connection]struct{} // guarded by mu
	closed      bool                     // guarded by mu
	work        sync.WaitGroup           // one for each connection
}

// NewServer returns a server in front of a broker.
func NewServer(b *broker.Broker, c Config) *Server {
	if c.FrameMax == 0 {
		c.FrameMax = defaultFrameMax
	}
	if c.ChannelMax == 0 {
		c.ChannelMax = defaultChannelMax
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = defaultHeartbeat
	}
	if c.MaxMessage == 0 {
		c.MaxMessage = defaultMaxMessage
	}
	c.MaxMessage = min(c.MaxMessage, maxBody)
	if c.HandshakeTimeout == 0 {
		c.HandshakeTimeout = defaultHandshake
	}
	if c.Version == "" {
		c.Version = "devel"
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Server{broker: b, config: c, log: c.Logger, connections: map[*connection]struct{}{}}
}

// ServeConn serves one client and returns when its connection has ended and nothing of it is left behind. It owns the
// connection. The address that counts is its RemoteAddr.
func (s *Server) ServeConn(c net.Conn) {
	n := newConnection(s, c)
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		_ = c.Close()
		return
	}
	s.connections[n] = struct{}{}
	s.work.Add(1)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.connections, n)
		s.mu.Unlock()
		s.work.Done()
	}()
	n.run()
}

// Close tells every client that the node stops and waits for the connections to end; when the context ends it cuts
// them off. Connections that come later are closed at once.
func (s *Server) Close(ctx context.Context) {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		for n := range s.connections {
			n.raise(forced("broker forced connection closure with reason 'shutdown'"))
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
	for n := range s.connections {
		_ = n.conn.Close()
	}
	s.mu.Unlock()
	<-done
}
