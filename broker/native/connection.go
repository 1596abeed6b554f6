package native

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/fsm"
	"github.com/warrenmq/warren/protocol/native"
)

// connection is one client. Its reader is run itself; its writer is the Outgoing's goroutine; a channel with requests
// that wait for the log has a worker of its own, so that no channel delays another.
type connection struct {
	server  *Server
	conn    net.Conn
	reader  *native.Reader
	reads   deadlineReader
	out     *broker.Outgoing
	quit    chan struct{}   // closed by the server when it closes
	context context.Context // ends with the connection
	cancel  context.CancelFunc
	work    sync.WaitGroup // writer, watcher, workers

	frameMax int           // of what the client is sent, bytes of payload; greet sets it before there is anything to send
	uploads  atomic.Uint64 // bodies sent in parts

	// Only the reader uses these.
	hello    native.Hello
	user     string // as which the client logged in; empty: anonymous
	session  *broker.Session
	channels map[uint32]*channel // open
	closing  map[uint32]*channel // those whose close may not be answered yet
	pending  publishes

	mu      sync.Mutex
	current *broker.Session // session, for the other goroutines; guarded by mu
	opened  chan struct{}   // closed when current is set; guarded by mu
}

func newConnection(s *Server, c net.Conn) *connection {
	n := &connection{server: s, conn: c, quit: make(chan struct{}), channels: map[uint32]*channel{}, closing: map[uint32]*channel{}, opened: make(chan struct{})}
	n.reads.conn = c
	n.reader = native.NewReader(&n.reads, helloFrameMax)
	n.out = broker.NewOutgoing(c, n.drained)
	n.context, n.cancel = context.WithCancel(context.Background())
	return n
}

// run reads until the connection ends, then cleans up after it.
func (n *connection) run() {
	defer n.server.forget(n)
	n.work.Go(func() {
		_ = n.out.Run()
		n.cancel()
		_ = n.conn.Close() // everything is written, or nothing can be: the reader ends too
	})
	greeted := n.greet()
	n.server.greeted(n)
	if greeted {
		n.work.Go(n.watch)
		n.read()
	}
	n.cancel()
	if n.session != nil {
		n.session.Close()
	}
	n.out.Close()
	n.work.Wait()
}

// drained tells the broker that deliveries may go on.
func (n *connection) drained() {
	n.mu.Lock()
	s := n.current
	n.mu.Unlock()
	if s != nil {
		s.Drained()
	}
}

// greet reads hello and answers it; false ends the connection.
func (n *connection) greet() bool {
	_ = n.conn.SetReadDeadline(time.Now().Add(helloTimeout))
	t, payload, err := n.reader.Next()
	h := &n.hello
	switch {
	case errors.Is(err, native.ErrFrameTooLarge):
		return n.refuse(t, nil, native.FrameError, "FRAME_ERROR - "+err.Error())
	case err != nil:
		return false
	case t != native.TypeHello:
		return n.refuse(t, payload, native.CommandInvalid, "COMMAND_INVALID - the first frame of a connection is hello, this one is "+t.String())
	}
	if err := native.Decode(payload, h); err != nil {
		return n.refuse(t, payload, native.SyntaxError, "SYNTAX_ERROR - "+err.Error())
	}
	switch {
	case h.Version != native.ProtocolVersion:
		return n.refuse(t, payload, native.NotImplemented, "NOT_IMPLEMENTED - this node speaks version 1 of the protocol; use a client that does")
	case !n.authorized(h):
		return n.refuse(t, payload, native.AccessRefused, "ACCESS_REFUSED - login was refused using authentication mechanism "+clip(h.Mechanism))
	case h.FrameMax != 0 && h.FrameMax < native.MinFrameMax:
		return n.refuse(t, payload, native.NotAllowed, "NOT_ALLOWED - the frame maximum is at least 65536 bytes")
	}
	frameMax := uint32(native.DefaultFrameMax)
	if h.FrameMax != 0 {
		frameMax = min(frameMax, h.FrameMax)
	}
	heartbeat := min(h.Heartbeat, maxHeartbeat)
	n.reader.SetMax(frameMax)
	n.frameMax = int(frameMax)
	self, cluster := n.server.broker.Self()
	where := n.server.broker.Where()
	n.send(&native.HelloOK{Reply: native.Reply{Head: h.Head, Of: native.TypeHello}, NodeID: self.NodeID, ClusterID: cluster,
		Leader: where.Leader.Native, Members: addresses(where), FrameMax: frameMax, Heartbeat: heartbeat})
	_ = n.conn.SetReadDeadline(time.Time{})
	if heartbeat > 0 {
		every := time.Duration(heartbeat) * time.Second
		n.reads.timeout = 2 * every
		n.out.Beat(every/2, func() { n.send(&native.Heartbeat{}) })
	}
	return true
}

// authorized reports whether a login is good. Until there are users and permissions, whoever does not say who it is
// may do everything as well: the port belongs in a network that is trusted.
func (n *connection) authorized(h *native.Hello) bool {
	switch h.Mechanism {
	case "ANONYMOUS", "":
		return true
	case "PLAIN":
		empty, rest, _ := strings.Cut(string(h.Response), "\x00")
		user, password, found := strings.Cut(rest, "\x00")
		if empty != "" || !found || n.server.broker.Login(user, password, n.conn.RemoteAddr()) != nil {
			return false
		}
		n.user = user
		return true
	}
	return false
}

func addresses(w broker.Where) []string {
	var list []string
	for _, m := range w.Members {
		if m.Clients.Native != "" && len(list) < native.MaxMembers {
			list = append(list, m.Clients.Native)
		}
	}
	return list
}

// refuse answers a frame that ends the connection. It returns false, for its callers to return.
func (n *connection) refuse(t native.Type, payload []byte, code native.Code, text string) bool {
	n.server.broker.Rejected()
	head, _ := native.PeekHead(payload)
	n.send(&native.Reply{Head: head, Code: code, Message: text, Of: t.Request()})
	return false
}

// send appends a frame to what goes out.
func (n *connection) send(f native.Frame) {
	n.out.Append(func(b []byte) []byte { return native.Append(b, f) })
}

// watch tells a client who leads whenever that changes, and ends the connection when the leadership that served it
// does or the server closes.
func (n *connection) watch() {
	told, blocked := "", ""
	for {
		changed := n.server.broker.Changed()
		reason, flow := n.server.broker.Flow()
		if reason != blocked {
			blocked = reason
			n.send(&native.Flow{Blocked: reason != "", Reason: reason})
		}
		n.mu.Lock()
		s, opened := n.current, n.opened
		n.mu.Unlock()
		where := n.server.broker.Where()
		var ended <-chan struct{}
		if s != nil {
			ended, opened = s.Ended(), nil
		} else if !where.Serving && where.Leader.Native != told {
			told = where.Leader.Native
			n.redirect(where)
		}
		select {
		case <-ended:
			n.redirect(n.server.broker.Where())
			n.out.Close()
			return
		case <-n.quit:
			where.Leader.Native = ""
			n.redirect(where)
			n.out.Close()
			return
		case <-opened:
		case <-changed:
		case <-flow:
		case <-n.context.Done():
			return
		}
	}
}

func (n *connection) redirect(w broker.Where) {
	n.send(&native.Redirect{Leader: w.Leader.Native, Term: w.Term, Members: addresses(w)})
}

// open starts the session at the first channel.
func (n *connection) open() error {
	client := broker.Client{Name: strings.ToValidUTF8(clipTo(n.hello.ClientName, fsm.MaxNameBytes), "?"), Peer: n.conn.RemoteAddr().String(),
		Local: n.conn.LocalAddr().String(), User: n.user, Protocol: "native", Mechanism: n.hello.Mechanism}
	s, err := n.server.broker.Open(client, n.hello.Vhost, n)
	if err != nil {
		return err
	}
	n.session = s
	n.mu.Lock()
	n.current = s
	close(n.opened)
	n.mu.Unlock()
	return nil
}

// read serves frames until the connection ends.
func (n *connection) read() {
	defer n.flush()
	for {
		if !n.reader.Ready() {
			n.flush()
			n.out.WaitForRoom(n.context.Done())
		}
		t, payload, err := n.reader.Next()
		if errors.Is(err, native.ErrFrameTooLarge) {
			n.refuse(t, nil, native.FrameError, "FRAME_ERROR - "+err.Error())
			return
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
				n.server.log.Debug("a client's connection ended", "peer", n.conn.RemoteAddr().String(), "error", err)
			}
			return
		}
		if !n.serve(t, payload) {
			return
		}
	}
}
