package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/warrenmq/warren/cluster"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// maxLeaders is how many leaders a client's first bytes are sent to, should each be lost before it answers.
const maxLeaders = 5

const leaderChanged = "the leader of the cluster has changed; connect again"

// connection is a client's connection to a node that did not serve when it came. Its run reads the client's first
// bytes and finds the leader; then one goroutine copies each way. Only the one from the leader writes to the client.
type connection struct {
	server *Server
	client net.Conn

	mu       sync.Mutex
	upstream net.Conn    // to the leader; guarded by mu
	leader   string      // the leader's Raft server id; guarded by mu
	node     string      // its node id; guarded by mu
	term     uint64      // guarded by mu
	grace    *time.Timer // runs while the leader seems to be another one; guarded by mu
	reason   string      // why the relay gives the leader up, as the client is told; guarded by mu
	leaving  bool        // the client has ended its side; guarded by mu
}

// run serves the client until it is gone.
func (r *connection) run() {
	defer r.client.Close()
	s := r.server
	defer s.settled(r)
	stop := context.AfterFunc(s.context, func() { _ = r.client.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	header := make([]byte, headerSize)
	_ = r.client.SetReadDeadline(time.Now().Add(handshakeLimit))
	if s.context.Err() != nil {
		return
	}
	if _, err := io.ReadFull(r.client, header); err != nil {
		return
	}
	if !known(header) {
		_, _ = r.client.Write(amqp091.ProtocolHeader[:])
		return
	}
	if !stop() { // from here on find and carry hear of a shutdown
		return
	}
	_ = r.client.SetReadDeadline(time.Time{})
	for range maxLeaders {
		upstream, err := r.find(s.context)
		if err != nil {
			turnAway(s.context, r.client, err.Error())
			return
		}
		if upstream == nil {
			s.settled(r)
			s.front.ServeConn(&peer{Conn: r.client, first: header, remote: r.client.RemoteAddr(), local: r.client.LocalAddr()})
			return
		}
		if lost := r.carry(upstream, header); !lost {
			return
		}
	}
	turnAway(s.context, r.client, "the leader keeps changing; connect again")
}

// find connects to the leader, waiting for one to be there. Nil without an error means that this node serves now.
func (r *connection) find(ctx context.Context) (net.Conn, error) {
	s := r.server
	ctx, cancel := context.WithTimeout(ctx, handshakeLimit)
	defer cancel()
	var failed error
	for {
		changed := s.broker.Changed()
		if s.broker.Where().Serving {
			return nil, nil
		}
		if at := s.node.Leadership(); at.Server != "" && !at.Local {
			c, err := r.dial(ctx, at)
			if err == nil {
				return c, nil
			}
			failed = fmt.Errorf("node '%s' leads, but cannot be reached from here", at.Leader.NodeID)
			s.log.Debug("a client could not be relayed", "leader", at.Leader.NodeID, "error", err)
		} else {
			failed = fmt.Errorf("no node leads now; a majority of the nodes must be up")
		}
		again := time.NewTimer(dialAgain)
		select {
		case <-changed:
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			if s.context.Err() != nil {
				failed = fmt.Errorf("this node is shutting down; connect to another one")
			}
			return nil, failed
		}
		again.Stop()
	}
}

// dial connects to a leader once, until it says that it serves.
func (r *connection) dial(ctx context.Context, at cluster.Leadership) (net.Conn, error) {
	c, err := r.server.reach(ctx, at.Server)
	if err != nil {
		return nil, err
	}
	_ = c.SetDeadline(time.Now().Add(dialLimit))
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	err = introduce(c, r.client)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	_ = c.SetDeadline(time.Time{})
	r.mu.Lock()
	r.upstream, r.leader, r.node, r.term = c, at.Server, at.Leader.NodeID, at.Term
	r.mu.Unlock()
	return c, nil
}

// reach opens a stream to the leader, one of at most maxDials at once.
func (s *Server) reach(ctx context.Context, server string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	select {
	case s.dials <- struct{}{}:
		defer func() { <-s.dials }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return s.node.DialStream(ctx, server, streamAMQP)
}

// observe hears of the leadership as it is now. An old leader has a moment to tell its clients itself.
func (r *connection) observe(at cluster.Leadership) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.upstream == nil {
		return
	}
	same := at.Server == r.leader && at.Term == r.term
	switch {
	case same && r.grace != nil && r.grace.Stop():
		r.grace = nil
	case !same && r.grace == nil:
		upstream := r.upstream
		r.grace = time.AfterFunc(goneGrace, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.upstream == upstream { // else the client is with another leader already, or gone
				r.leave(leaderChanged)
			}
		})
	}
}

// abandon gives the leader up: the client is told why, and to go.
func (r *connection) abandon(reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leave(reason)
}

// leave is abandon for callers that hold mu.
func (r *connection) leave(reason string) {
	if r.reason == "" {
		r.reason = reason
	}
	if r.upstream != nil {
		_ = r.upstream.Close()
	}
}

// carry copies both ways until both are done. It reports true if the leader was lost before it said anything to the
// client, which can then be carried to another one.
func (r *connection) carry(upstream net.Conn, header []byte) (lost bool) {
	defer func() {
		_ = upstream.Close()
		r.mu.Lock()
		if r.upstream = nil; r.grace != nil {
			r.grace.Stop()
			r.grace = nil
		}
		if lost && r.reason == leaderChanged { // it says nothing against the next one
			r.reason = ""
		}
		r.mu.Unlock()
	}()
	r.mu.Lock()
	if r.reason != "" { // abandoned while it was dialled
		_ = upstream.Close()
	}
	r.mu.Unlock()
	r.observe(r.server.node.Leadership())
	if _, err := upstream.Write(header); err != nil {
		return true
	}
	up := make(chan uint64, 1)
	go func() { up <- r.copyUp(upstream) }()
	f := r.copyDown(upstream)
	_ = upstream.Close()
	reason := r.whyEnded(f)
	if reason != "" && !f.begun {
		_ = r.client.SetReadDeadline(time.Unix(1, 0))
		if sent := <-up; sent > 0 || r.server.context.Err() != nil {
			return false
		}
		_ = r.client.SetReadDeadline(time.Time{})
		return true
	}
	r.server.settled(r)
	if reason != "" && f.between() {
		_ = r.client.SetWriteDeadline(time.Now().Add(lingerLimit))
		_, _ = r.client.Write(forced(reason))
	}
	// The client has time to read it: closing at once could take from it what was written last.
	_ = closeWrite(r.client)
	_ = r.client.SetReadDeadline(time.Now().Add(lingerLimit))
	<-up
	return false
}

// copyUp copies from the client to the leader until the client ends, and returns how much came. There is no limit to
// how long the leader may take, for it holds up publishers that way. Once the leader is gone it reads on, to the end.
func (r *connection) copyUp(upstream net.Conn) (sent uint64) {
	var b buffer
	defer b.release()
	for {
		n, err := r.client.Read(b.room())
		sent += uint64(n)
		if n > 0 {
			_, _ = upstream.Write(b.filled(n))
			b.drop(n)
		}
		if err != nil {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				r.mu.Lock()
				r.leaving = true
				r.mu.Unlock()
			}
			_ = upstream.SetReadDeadline(time.Now().Add(lingerLimit))
			_ = closeWrite(upstream)
			return sent
		}
	}
}

// copyDown copies from the leader to the client until one of them ends.
func (r *connection) copyDown(upstream net.Conn) (f boundaries) {
	var b buffer
	defer b.release()
	for {
		n, err := upstream.Read(b.room())
		held := b.filled(n)
		first := !f.begun
		if whole := f.pass(held, busyBuffer); whole > 0 {
			if first {
				r.server.settled(r)
			}
			_ = r.client.SetWriteDeadline(time.Now().Add(writeLimit))
			if _, err := r.client.Write(held[:whole]); err != nil {
				r.mu.Lock()
				r.leaving = true
				r.mu.Unlock()
				return f
			}
			b.drop(whole)
		}
		if err != nil {
			return f
		}
	}
}

// whyEnded says why the relay must close the client's connection itself; "" when the client or the leader has done so.
// A leader that closes without a word may mean it (a failed login), or may be dead: then it cannot be connected to.
func (r *connection) whyEnded(f boundaries) string {
	r.mu.Lock()
	reason, leaving, server, node, term := r.reason, r.leaving, r.leader, r.node, r.term
	r.mu.Unlock()
	if leaving || f.over {
		return ""
	}
	if reason != "" {
		return reason
	}
	if at := r.server.node.Leadership(); at.Server != server || at.Term != term {
		return leaderChanged
	}
	c, err := r.server.reach(r.server.context, server)
	if err != nil {
		return fmt.Sprintf("the connection to the leader, node '%s', was lost; connect again", node)
	}
	_ = c.Close()
	return ""
}
