package amqp

import (
	"context"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// connection is one client. Its reader is run itself; its writer is the Outgoing's goroutine; a channel with requests
// that wait for the log has a worker of its own, so that no channel delays another.
type connection struct {
	server  *Server
	conn    net.Conn
	reads   deadlineReader
	reader  *amqp091.Reader
	out     *broker.Outgoing
	context context.Context // ends with the connection, or with its first exception
	cancel  context.CancelFunc
	work    sync.WaitGroup // writer, watcher, workers of channels

	// Set in the handshake, constant afterwards.
	peer       client
	frameMax   uint32 // bytes of a frame that goes out
	channelMax int
	heartbeat  time.Duration
	session    *broker.Session

	// Only the reader uses these.
	partial int    // bytes of bodies that have not come in completely
	kept    int    // bytes of them that went to the log and may have to be returned
	uploads uint64 // bodies that went to the log in parts
	pending pending
	names   amqp091.Strings

	held   atomic.Int64 // bytes of requests that wait on the channels
	queued atomic.Int64 // publishes among them
	opened atomic.Int64 // bytes of publishes in transactions that are not committed

	mu       sync.Mutex
	channels map[uint16]*channel // only the reader adds to it; guarded by mu
	failure  *amqp091.Error      // the exception that did not come from the reader; guarded by mu
	blocked  bool                // connection.blocked was sent and not taken back; guarded by mu
	leaving  bool                // the client has sent connection.close; guarded by mu
	ending   bool                // nothing new may be started in work; guarded by mu
}

func newConnection(s *Server, c net.Conn) *connection {
	n := &connection{server: s, conn: c, channels: map[uint16]*channel{}}
	n.reads.conn = c
	n.reads.before = func() { n.flush(); n.room() }
	n.reader = amqp091.NewReader(&n.reads, handshakeFrameMax)
	n.out = broker.NewOutgoing(c, n.drained)
	n.context, n.cancel = context.WithCancel(context.Background())
	return n
}

// run serves the connection until it has ended.
func (n *connection) run() {
	written := make(chan struct{})
	n.work.Go(func() {
		defer close(written)
		if n.out.Run() != nil {
			n.cancel() // the reader may wait for what is held up
			_ = n.conn.Close()
		}
	})
	end := n.greet()
	if end == nil {
		n.work.Go(n.watch)
		end = n.read()
		if end.asked {
			n.rest()
		}
	}
	n.cancel()
	n.release()
	n.end(end)
	n.out.Close()
	select {
	case <-written:
	case <-time.After(endTimeout): // the client does not read
	}
	_ = n.conn.Close()
	n.mu.Lock()
	n.ending = true
	n.mu.Unlock()
	n.work.Wait()
}

// release gives back what the client holds: consumers end, deliveries return, exclusive queues go. It waits until that
// is applied, so that a client may rely on it when it sees the end of its connection.
func (n *connection) release() {
	if n.session == nil {
		return
	}
	n.session.Close()
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	_ = n.session.Settled(ctx) // fails when the term is over: then the next one does it
}

// rest waits until all that the client asked for before connection.close is done. Publishes that are held up will not be
// made.
func (n *connection) rest() {
	n.mu.Lock()
	n.leaving = true
	channels := slices.Collect(maps.Values(n.channels))
	n.mu.Unlock()
	if n.server.broker.Blocked() { // if it comes to that later, watch does this
		n.cancel()
	}
	for _, c := range channels {
		c.requests.Rest()
	}
}

// giveUp ends the waiting of those who leave for publishes that are held up.
func (n *connection) giveUp() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.leaving {
		n.cancel()
	}
	for _, c := range n.channels {
		if c.is(leaving) {
			c.cancel()
		}
	}
}

// spawn runs a goroutine that run waits for; it does nothing when the connection has ended.
func (n *connection) spawn(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.ending {
		n.work.Go(f)
	}
}

// read serves frames until the connection ends, and says how it ended.
func (n *connection) read() *ended {
	defer n.flush()
	for {
		f, err := n.reader.Next()
		if err == nil {
			err = n.serve(f)
		}
		if err != nil {
			return n.endOf(err)
		}
	}
}

// raise ends the connection with an exception from a goroutine other than the reader's; it does nothing when the
// connection is ending already. It does not block.
func (n *connection) raise(e *amqp091.Error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.context.Err() == nil {
		n.failure = e
		n.cancel()
		n.reads.interrupt()
	}
}

// drained tells the broker that deliveries may go on.
func (n *connection) drained() {
	if s := n.session; s != nil {
		s.Drained()
	}
}

// room waits until the client has read enough of what it asked for.
func (n *connection) room() { n.out.WaitForRoom(n.context.Done()) }

// send appends a method to what goes out.
func (n *connection) send(channel uint16, m amqp091.Method) {
	n.out.Append(func(b []byte) []byte { return m.AppendFrame(b, channel) })
}

// watch ends the connection when its leadership does or an operator says so, and tells a client that has been blocked
// when it may go on.
func (n *connection) watch() {
	for {
		reason, changed := n.server.broker.Flow()
		if reason == "" {
			n.unblock()
		} else {
			n.giveUp()
			n.blockHeld()
		}
		select {
		case <-n.session.Ended():
			reason := n.session.Reason()
			if reason == "" {
				reason = leaderGone
			}
			n.raise(forced(reason))
			return
		case <-changed:
		case <-n.context.Done():
			return
		}
	}
}

// leaderGone is what a client reads when the leadership that served it is over.
const leaderGone = "the leader of the cluster has changed, connect again"

// block tells the client, once, that its publishes wait (connection.blocked, section 1.10 of the reference).
func (n *connection) block(reason string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.blocked && n.peer.blockedNotify {
		n.blocked = true
		n.send(0, &amqp091.ConnectionBlocked{Reason: reason})
	}
}

// blockHeld tells a client whose publishes have come in before and wait already: it may send no more until they are
// confirmed.
func (n *connection) blockHeld() {
	if n.queued.Load() > 0 && n.server.broker.Blocked() {
		n.block(n.server.broker.ShortOf())
	}
}

// hold is called by the reader ahead of a publish that will be held up. It waits when too much is held already.
func (n *connection) hold() {
	n.block(n.server.broker.ShortOf())
	for n.held.Load() >= maxHeld {
		reason, changed := n.server.broker.Flow()
		if reason == "" {
			return
		}
		select {
		case <-changed:
		case <-n.context.Done():
			return
		}
	}
}

func (n *connection) unblock() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.blocked {
		n.blocked = false
		n.send(0, &amqp091.ConnectionUnblocked{})
	}
}
