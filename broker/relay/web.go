package relay

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"time"

	"github.com/warrenmq/warren/cluster"
)

// Bounds of a Web.
const (
	webLeaderWait    = 900 * time.Millisecond // for a leader: who asks for health wants an answer within a second
	webAnswerLimit   = 15 * time.Second       // for the leader's first byte
	webIdleLimit     = 30 * time.Second
	webConnections   = 64 // of one node to the leader
	webHeaderLimit   = 5 * time.Second
	webHeaderMaximum = 16 << 10
)

// peerHeader tells the leader which client asked. It is believed only when it comes from another node.
const peerHeader = "Warren-Peer"

// Web is an HTTP handler that has every request answered where the broker serves: here, or by the leader, over the
// Raft port. Safe for concurrent use.
type Web struct {
	broker Broker
	node   Node
	local  http.Handler
	proxy  *httputil.ReverseProxy
	server *http.Server // of what other nodes send
	queue  *streamListener
	work   sync.WaitGroup
}

// NewWeb returns a handler in front of the one that answers on the leader. End it with Close.
func NewWeb(b Broker, n Node, local http.Handler, l *slog.Logger) *Web {
	if l == nil {
		l = slog.New(slog.DiscardHandler)
	}
	w := &Web{broker: b, node: n, local: local, queue: newStreamListener()}
	w.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.Header.Set(peerHeader, r.In.RemoteAddr) },
		Transport: &http.Transport{DialContext: w.dial, MaxConnsPerHost: webConnections, MaxIdleConnsPerHost: webConnections,
			IdleConnTimeout: webIdleLimit, ResponseHeaderTimeout: webAnswerLimit, DisableCompression: true},
		ErrorHandler: func(rw http.ResponseWriter, _ *http.Request, err error) {
			l.Debug("a request could not be passed to the leader", "error", err)
			unavailable(rw, "the leader cannot be reached from here now")
		},
		ErrorLog: log.New(io.Discard, "", 0),
	}
	w.server = &http.Server{Handler: http.HandlerFunc(w.fromNode), ReadHeaderTimeout: webHeaderLimit, IdleTimeout: 2 * webIdleLimit,
		MaxHeaderBytes: webHeaderMaximum + 1024, ErrorLog: log.New(io.Discard, "", 0)}
	n.HandleStream(streamHTTP, w.queue.put)
	w.work.Go(func() { _ = w.server.Serve(w.queue) })
	return w
}

// ServeHTTP answers a client.
func (w *Web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	server, here := w.where(r.Context())
	switch {
	case here:
		r.Header.Del(peerHeader)
		w.local.ServeHTTP(rw, r)
	case server == "":
		unavailable(rw, "no node leads now; a majority of the nodes must be up")
	default:
		r = r.Clone(r.Context())
		r.URL.Scheme, r.URL.Host = "http", hex.EncodeToString([]byte(server)) // the transport keeps its connections by this
		w.proxy.ServeHTTP(rw, r)
	}
}

// where waits a moment for somebody to serve.
func (w *Web) where(ctx context.Context) (server string, here bool) {
	limit := time.NewTimer(webLeaderWait)
	defer limit.Stop()
	for {
		changed := w.broker.Changed()
		if w.broker.Where().Serving {
			return "", true
		}
		if at := w.node.Leadership(); at.Server != "" && !at.Local {
			return at.Server, false
		}
		select {
		case <-changed:
		case <-limit.C:
			return "", false
		case <-ctx.Done():
			return "", false
		}
	}
}

func (w *Web) dial(ctx context.Context, _, address string) (net.Conn, error) {
	name, _, _ := strings.Cut(address, ":")
	server, err := hex.DecodeString(name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	return w.node.DialStream(ctx, string(server), streamHTTP)
}

// fromNode answers what another node was asked. It never passes it on, so that nothing goes in circles.
func (w *Web) fromNode(rw http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), webLeaderWait)
	_, here := w.where(ctx)
	cancel()
	if !here {
		unavailable(rw, "leadership is moving; try again")
		return
	}
	if peer := r.Header.Get(peerHeader); peer != "" {
		r.RemoteAddr = peer
		r.Header.Del(peerHeader)
	}
	w.local.ServeHTTP(rw, r)
}

// Close waits for what other nodes have asked; when the context ends it cuts them off.
func (w *Web) Close(ctx context.Context) {
	if w.server.Shutdown(ctx) != nil {
		_ = w.server.Close()
	}
	w.work.Wait()
	w.proxy.Transport.(*http.Transport).CloseIdleConnections()
}

// unavailable answers as the management API does.
func unavailable(rw http.ResponseWriter, reason string) {
	b, _ := json.Marshal(map[string]string{"error": "service_unavailable", "reason": reason}) // strings always encode
	rw.Header().Set("Content-Type", "application/json")
	rw.Header().Set("Retry-After", "1")
	rw.WriteHeader(http.StatusServiceUnavailable)
	_, _ = rw.Write(b)
}

// streamListener is a net.Listener of streams from other nodes.
type streamListener struct {
	conns  chan net.Conn // never closed
	closed chan struct{} // closed by Close
	once   sync.Once
}

func newStreamListener() *streamListener {
	return &streamListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *streamListener) put(_ cluster.Member, c net.Conn) {
	select {
	case l.conns <- c:
	case <-l.closed:
		_ = c.Close()
	}
}

// Accept returns the next stream.
func (l *streamListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (l *streamListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr is of no use to anybody.
func (l *streamListener) Addr() net.Addr { return textAddr("nodes") }
