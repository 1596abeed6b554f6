// Package httpapi serves a node's health, cluster status and metrics over HTTP. It reads everything through the
// functions of its Config, so it needs no running broker.
package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/cluster"
	"github.com/warrenmq/warren/fsm"
	"github.com/warrenmq/warren/protocol/native"
)

const (
	// readyTimeout bounds one question about readiness.
	readyTimeout = 2 * time.Second
	// barrierTimeout is how long a read waits for this node to catch up with the leader.
	barrierTimeout = 2 * time.Second
	// statusTimeout bounds asking all members for their reports.
	statusTimeout = 5 * time.Second
	// maxScrapes bounds scrapes of /metrics under way at once; more are answered 503.
	maxScrapes = 4
)

// Config is what the endpoints read from. All functions are called from several goroutines at once. A nil function
// leaves its part out: Live and Ready then say yes, Barrier does not wait, Status answers 503, and the metrics of
// the others are not exported.
type Config struct {
	Live    func() error                                            // nil while the process is worth keeping
	Ready   func(ctx context.Context) error                         // nil when this node knows a leader and has caught up
	Status  func(ctx context.Context) (native.ClusterStatus, error) // what this node knows of the cluster
	Barrier func(ctx context.Context) error                         // nil once this node has applied what the leader has
	Remove  func(ctx context.Context, nodeID string) error          // takes a member out of the cluster; only on the leader

	Broker  func() broker.Stats
	Node    func() cluster.Stats
	Machine func() fsm.Totals
	Applied func() (index, term uint64)
	Version string
}

// api is the handler. It has no state of its own.
type api struct {
	Config
	mux *http.ServeMux
}

// New returns the handler of all endpoints. Each call makes a metrics registry of its own, so several nodes run in
// one process. Safe for concurrent use.
func New(c Config) http.Handler {
	a := &api{Config: c, mux: http.NewServeMux()}
	a.read("/{$}", a.index)
	a.read("/healthz/live", a.live)
	a.read("/healthz/ready", a.ready)
	a.read("/v1/cluster", a.cluster)
	a.mux.HandleFunc("DELETE /v1/cluster/members/{node}", a.remove)
	a.read("/metrics", promhttp.HandlerFor(newRegistry(c), promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes}).ServeHTTP)
	a.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, "not_found", fmt.Sprintf("there is nothing at %.200q; GET / names the endpoints", r.URL.Path))
	})
	return a.mux
}

// read serves GET and HEAD at a path and refuses other methods.
func (a *api) read(path string, serve http.HandlerFunc) {
	a.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			refuse(w, http.StatusMethodNotAllowed, "method_not_allowed",
				fmt.Sprintf("%.20s is not possible at %s; use GET", r.Method, r.URL.Path))
			return
		}
		serve(w, r)
	})
}

func (a *api) index(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	_, _ = io.WriteString(w, strings.Replace(indexPage, "{version}", html.EscapeString(a.Version), 1))
}

func (a *api) live(w http.ResponseWriter, _ *http.Request) {
	if a.Live != nil {
		if err := a.Live(); err != nil {
			refuse(w, http.StatusServiceUnavailable, "not_live", err.Error())
			return
		}
	}
	answer(w, http.StatusOK, health{"live"})
}

func (a *api) ready(w http.ResponseWriter, r *http.Request) {
	if a.Ready != nil {
		ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
		defer cancel()
		if err := a.Ready(ctx); err != nil {
			refuse(w, http.StatusServiceUnavailable, "not_ready", err.Error())
			return
		}
	}
	answer(w, http.StatusOK, health{"ready"})
}

type health struct {
	Status string `json:"status"`
}

// cluster answers without a leader too, because that is when the status is needed most: the Warren-Stale header
// then says why this node could not catch up first.
func (a *api) cluster(w http.ResponseWriter, r *http.Request) {
	if a.Status == nil {
		refuse(w, http.StatusServiceUnavailable, "unavailable", "this node takes no part in a cluster")
		return
	}
	if err := a.barrier(r.Context()); err != nil {
		w.Header().Set("Warren-Stale", oneLine(err))
	}
	ctx, cancel := context.WithTimeout(r.Context(), statusTimeout)
	defer cancel()
	status, err := a.Status(ctx)
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, "unavailable", err.Error())
		return
	}
	if status.Members == nil {
		status.Members = []native.MemberStatus{}
	}
	answer(w, http.StatusOK, status)
}

// remove takes a member out of the cluster for good. Another node than the leader refuses with 409.
func (a *api) remove(w http.ResponseWriter, r *http.Request) {
	if a.Remove == nil {
		refuse(w, http.StatusServiceUnavailable, "unavailable", "this node takes no part in a cluster")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), statusTimeout)
	defer cancel()
	if err := a.Remove(ctx, r.PathValue("node")); err != nil {
		refuse(w, http.StatusConflict, "not_removed", err.Error())
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (a *api) barrier(ctx context.Context) error {
	if a.Barrier == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, barrierTimeout)
	defer cancel()
	return a.Barrier(ctx)
}

// failure is the body of every answer that is not a success.
type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	answer(w, status, failure{code, message})
}

func answer(w http.ResponseWriter, status int, body any) {
	data, err := json.MarshalIndent(body, "", "  ")
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"code":"internal","message":"the answer cannot be encoded"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n')) // a client that went away is no error
}

// oneLine makes an error fit for a header.
func oneLine(err error) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, fmt.Sprintf("%.300s", err))
}
