// Package management serves the part of RabbitMQ's management HTTP API that its clients and tools call first. It reads
// and changes what the broker of this node serves, so it answers on the leader; package relay brings it the requests of
// the other nodes.
package management

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/protocol/native"
)

const (
	maxBody     = 1 << 20          // bytes of a request's
	answerLimit = 10 * time.Second // for one request
	healthLimit = 900 * time.Millisecond
)

// Config is what the API reads from.
type Config struct {
	Broker  *broker.Broker
	Status  func(ctx context.Context) (native.ClusterStatus, error)
	Version string
	Logger  *slog.Logger
}

// api is the handler. Nothing of it changes.
type api struct {
	Config
	endpoints []endpoint
	started   time.Time
	origin    *http.CrossOriginProtection
}

// New returns the handler of everything below /api. Safe for concurrent use.
func New(c Config) http.Handler {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &api{Config: c, endpoints: endpoints(), started: time.Now(), origin: http.NewCrossOriginProtection()}
}

// call is one request.
type call struct {
	*api
	w       http.ResponseWriter
	r       *http.Request
	context context.Context
	args    []string // what the path has in place of a pattern's {}
	user    string
	in      *broker.Inspection // nil for endpoints that are about this node only
}

// ServeHTTP answers one request.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, password, given := r.BasicAuth()
	if !given || a.Broker.Login(user, password, peer(r.RemoteAddr)) != nil {
		w.Header().Set("WWW-Authenticate", `Basic realm="Warren"`)
		answer(w, http.StatusUnauthorized, refusal{"not_authorized", "Login failed"})
		return
	}
	e, args, err := a.find(r.URL.EscapedPath())
	if err != nil {
		a.refuse(w, err)
		return
	}
	h := e.methods[method(r)]
	if h == nil {
		w.Header().Set("Allow", e.allow())
		answer(w, http.StatusMethodNotAllowed, refusal{"method_not_allowed", fmt.Sprintf("%.20s is not possible here; use %s", r.Method, e.allow())})
		return
	}
	if err := a.origin.Check(r); err != nil { // a browser sends a login along with what another site's page asks for
		answer(w, http.StatusForbidden, refusal{"not_authorised", "a page of another site may not change anything here"})
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	limit := answerLimit
	if e.health {
		limit = healthLimit
	}
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	c := &call{api: a, w: w, r: r, context: ctx, args: args, user: user}
	if !e.health {
		if c.in, err = a.Broker.Inspect(ctx); err != nil {
			a.refuse(w, err)
			return
		}
	}
	if err := h(c); err != nil {
		a.refuse(w, err)
	}
}

// method treats HEAD as GET: net/http leaves the body out.
func method(r *http.Request) string {
	if r.Method == http.MethodHead {
		return http.MethodGet
	}
	return r.Method
}

// peer is a request's address, as Login wants it.
func peer(address string) net.Addr {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil // then it is not this host's
	}
	return net.TCPAddrFromAddrPort(at)
}

// operate runs f in a session for this request.
func (c *call) operate(vhost string, f func(s *broker.Session) error) error {
	s, err := c.Broker.Operate(broker.Client{User: c.user, Peer: c.r.RemoteAddr, Protocol: "HTTP"}, vhost)
	if err != nil {
		return err
	}
	defer s.Close()
	return f(s)
}

var errNotFound = &failure{http.StatusNotFound, refusal{"Object Not Found", "Not Found"}}

// failure is an error with its answer.
type failure struct {
	status int
	refusal
}

func (f *failure) Error() string { return f.Reason }

func badRequest(format string, args ...any) error {
	return &failure{http.StatusBadRequest, refusal{"bad_request", fmt.Sprintf(format, args...)}}
}

// refuse answers an error.
func (a *api) refuse(w http.ResponseWriter, err error) {
	var f *failure
	if !errors.As(err, &f) {
		f = fromBroker(broker.AsError(err))
		if f.status >= http.StatusInternalServerError {
			a.Logger.Debug("a management request failed", "error", err)
		}
	}
	if f.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	answer(w, f.status, f.refusal)
}
