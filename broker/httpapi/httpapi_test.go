package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/cluster"
	"github.com/warrenmq/warren/fsm"
	"github.com/warrenmq/warren/protocol/native"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func config() Config {
	return Config{
		Live:    func() error { return nil },
		Ready:   func(context.Context) error { return nil },
		Barrier: func(context.Context) error { return nil },
		Status: func(context.Context) (native.ClusterStatus, error) {
			return native.ClusterStatus{ClusterID: "c", NodeID: "n1", Leader: "n1", Term: 3,
				Members: []native.MemberStatus{{ID: "n1", State: native.StateLeader, AppliedIndex: 7, StateHash: "0a"}}}, nil
		},
		Broker: func() broker.Stats {
			h := broker.Histogram{Bounds: []float64{.001, .01}, Counts: []uint64{5, 2, 1}, Sum: .25}
			return broker.Stats{Connections: 4, Publishes: 9, Confirms: 8, Deliveries: 7, Acks: 6, Commit: h, Wait: h,
				Apply: broker.Histogram{Bounds: []float64{.001}, Counts: []uint64{3, 1}, Sum: .5}}
		},
		Node: func() cluster.Stats {
			return cluster.Stats{State: "leader", Term: 3, CommitIndex: 12, LastIndex: 13, LogBytes: 64 << 20, SnapshotAge: time.Minute, SnapshotTook: time.Second}
		},
		Machine: func() fsm.Totals { return fsm.Totals{Queues: 2, Messages: 11, MessageBytes: 1100} },
		Applied: func() (uint64, uint64) { return 12, 3 },
		Version: "v0<1>",
	}
}

func ask(h http.Handler, method, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w
}

func TestEndpoints(t *testing.T) {
	down := config()
	down.Live = func() error { return errors.New("the disk hangs") }
	down.Ready = func(context.Context) error { return errors.New("no leader is known") }
	down.Barrier = func(context.Context) error { return errors.New("no\nleader") }
	broken := config()
	broken.Status = func(context.Context) (native.ClusterStatus, error) {
		return native.ClusterStatus{}, errors.New("shut down")
	}
	for _, c := range []struct {
		config       Config
		method, path string
		status       int
		has          string
	}{
		{config(), "GET", "/healthz/live", 200, `"status": "live"`},
		{config(), "GET", "/healthz/ready", 200, `"status": "ready"`},
		{config(), "GET", "/v1/cluster", 200, "\n      \"state\": \"leader\""},
		{config(), "GET", "/metrics", 200, "warren_raft_term 3"},
		{config(), "GET", "/", 200, "Warren v0&lt;1&gt;"},
		{config(), "HEAD", "/healthz/live", 200, ""},
		{down, "GET", "/healthz/live", 503, `"message": "the disk hangs"`},
		{down, "GET", "/healthz/ready", 503, `"code": "not_ready"`},
		{down, "GET", "/v1/cluster", 200, `"cluster_id": "c"`},
		{broken, "GET", "/v1/cluster", 503, `"shut down"`},
		{Config{}, "GET", "/healthz/ready", 200, `"ready"`},
		{Config{}, "GET", "/v1/cluster", 503, `"unavailable"`},
		{Config{}, "GET", "/metrics", 200, "go_goroutines"},
		{config(), "GET", "/v1/nothing", 404, `"code": "not_found"`},
		{config(), "GET", "/healthz/live/x", 404, `"code": "not_found"`},
		{config(), "POST", "/v1/cluster", 405, `"code": "method_not_allowed"`},
		{config(), "DELETE", "/", 405, `use GET`},
		{config(), "PUT", "/v2", 404, `not_found`},
	} {
		w := ask(New(c.config), c.method, c.path)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.has) {
			t.Errorf("%s %s: %d %s; want %d with %s", c.method, c.path, w.Code, w.Body, c.status, c.has)
		}
		if w.Code >= 400 {
			var f failure
			if err := json.Unmarshal(w.Body.Bytes(), &f); err != nil || f.Code == "" || f.Message == "" {
				t.Errorf("%s %s: %s is not {code, message}: %v", c.method, c.path, w.Body, err)
			}
		}
		if w.Code == 405 && w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s %s: Allow is %q", c.method, c.path, w.Header().Get("Allow"))
		}
	}
	if stale := ask(New(down), "GET", "/v1/cluster").Header().Get("Warren-Stale"); stale != "no leader" {
		t.Errorf("Warren-Stale is %q", stale)
	}
}

func TestStatusWaitsForTheLeadersIndex(t *testing.T) {
	var order []string
	c := config()
	status := c.Status
	c.Barrier = func(ctx context.Context) error {
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("the wait has no bound")
		}
		order = append(order, "barrier")
		return nil
	}
	c.Status = func(ctx context.Context) (native.ClusterStatus, error) {
		order = append(order, "status")
		return status(ctx)
	}
	var got native.ClusterStatus
	if err := json.Unmarshal(ask(New(c), "GET", "/v1/cluster").Body.Bytes(), &got); err != nil || got.Members[0].AppliedIndex != 7 {
		t.Errorf("%+v %v", got, err)
	}
	if strings.Join(order, " ") != "barrier status" {
		t.Error(order)
	}
}

func TestMetrics(t *testing.T) {
	calls := 0
	c := config()
	node := c.Node
	c.Node = func() cluster.Stats { calls++; return node() }
	r := newRegistry(c)
	if problems, err := testutil.GatherAndLint(r); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
	if calls != 1 {
		t.Errorf("one scrape asked the node %d times", calls)
	}
	const want = `
# HELP warren_apply_seconds Applying one committed entry to the state machine of this node, leader or not.
# TYPE warren_apply_seconds histogram
warren_apply_seconds_bucket{le="0.001"} 3
warren_apply_seconds_bucket{le="+Inf"} 4
warren_apply_seconds_sum 0.5
warren_apply_seconds_count 4
# HELP warren_commit_seconds From handing an entry to Raft until it is committed and applied on this leader.
# TYPE warren_commit_seconds histogram
warren_commit_seconds_bucket{le="0.001"} 5
warren_commit_seconds_bucket{le="0.01"} 7
warren_commit_seconds_bucket{le="+Inf"} 8
warren_commit_seconds_sum 0.25
warren_commit_seconds_count 8
# HELP warren_raft_state 1 for the state this node is in, 0 for the others.
# TYPE warren_raft_state gauge
warren_raft_state{state="candidate"} 0
warren_raft_state{state="follower"} 0
warren_raft_state{state="leader"} 1
warren_raft_state{state="shutdown"} 0
# HELP warren_queue_messages Messages in all queues, unacknowledged ones included.
# TYPE warren_queue_messages gauge
warren_queue_messages 11
# HELP warren_publishes_total Messages that clients of this node published.
# TYPE warren_publishes_total counter
warren_publishes_total 9
`
	if err := testutil.GatherAndCompare(r, strings.NewReader(want),
		"warren_apply_seconds", "warren_commit_seconds", "warren_raft_state", "warren_queue_messages", "warren_publishes_total"); err != nil {
		t.Error(err)
	}
}

// Connections beyond the limit are closed as they arrive, and a closed one gives its place back.
func TestConnectionLimit(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer(New(config()))
	var work sync.WaitGroup
	work.Go(func() { _ = server.Serve(Limit(inner, 1)) })
	defer work.Wait()
	defer server.Close()
	request := func() (net.Conn, string) {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		_, _ = io.WriteString(c, "GET /healthz/live HTTP/1.1\r\nHost: x\r\n\r\n")
		line := make([]byte, 12)
		n, _ := io.ReadFull(c, line)
		return c, string(line[:n])
	}
	first, line := request()
	if line != "HTTP/1.1 200" {
		t.Fatalf("the first connection got %q", line)
	}
	second, line := request()
	if line != "" {
		t.Errorf("a connection beyond the limit got %q", line)
	}
	second.Close()
	first.Close()
	for deadline := time.Now().Add(time.Minute); ; {
		c, line := request()
		c.Close()
		if line == "HTTP/1.1 200" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the place was not given back")
		}
	}
}

func TestHeadersAreBounded(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	server.Config = NewServer(New(config()))
	server.Start()
	defer server.Close()
	r, _ := http.NewRequest("GET", server.URL+"/healthz/live", nil)
	r.Header.Set("X", strings.Repeat("x", 64<<10))
	answer, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("64 KiB of headers: %s", answer.Status)
	}
}
