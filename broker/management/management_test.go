package management_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/warrenmq/warren/broker/server"
	"github.com/warrenmq/warren/client"
	"github.com/warrenmq/warren/cluster"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// node is a whole node with its management API.
type node struct {
	*server.Server
	t *testing.T
}

func start(t *testing.T) *node {
	t.Helper()
	s, err := server.New(server.Config{NativeAddr: "127.0.0.1:0", HTTPAddr: "127.0.0.1:0", Cluster: cluster.Config{NodeID: "n1",
		DataDir: t.TempDir(), RaftAddr: "127.0.0.1:0", GossipAddr: "127.0.0.1:0", BootstrapExpect: 1}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() {
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		stop()
		work.Wait()
	})
	for changed := s.Broker().Changed(); !s.Broker().Where().Serving; changed = s.Broker().Changed() {
		<-changed
	}
	return &node{s, t}
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (n *node) ask(method, path, body string, headers ...string) answer {
	n.t.Helper()
	r, err := http.NewRequest(method, "http://"+n.HTTPAddr()+path, strings.NewReader(body))
	if err != nil {
		n.t.Fatal(err)
	}
	r.SetBasicAuth("guest", "guest")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		n.t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		n.t.Fatal(err)
	}
	return answer{a.StatusCode, a.Header, b}
}

// object decodes an answer of status 200.
func (n *node) object(path string) (o map[string]any) {
	n.t.Helper()
	a := n.ask("GET", path, "")
	if a.status != 200 || a.header.Get("Content-Type") != "application/json" || json.Unmarshal(a.body, &o) != nil {
		n.t.Fatalf("GET %s: %d %s %s", path, a.status, a.header.Get("Content-Type"), a.body)
	}
	return o
}

// names lists a field of the objects in a list.
func (n *node) names(path, field string) string {
	n.t.Helper()
	var list []map[string]any
	a := n.ask("GET", path, "")
	if a.status != 200 || json.Unmarshal(a.body, &list) != nil {
		n.t.Fatalf("GET %s: %d %s", path, a.status, a.body)
	}
	var names []string
	for _, o := range list {
		names = append(names, fmt.Sprint(o[field]))
	}
	return strings.Join(names, " ")
}

// step is a request and what comes back: a status, and a text in the body.
type step struct {
	method, path, body string
	status             int
	has                string
}

func (n *node) steps(steps []step) {
	n.t.Helper()
	for _, s := range steps {
		a := n.ask(s.method, s.path, s.body)
		if a.status != s.status || !bytes.Contains(a.body, []byte(s.has)) {
			n.t.Errorf("%s %s %s: %d %s, want %d with %s", s.method, s.path, s.body, a.status, a.body, s.status, s.has)
		}
		var f struct{ Error, Reason string }
		if a.status >= 400 && (json.Unmarshal(a.body, &f) != nil || f.Error == "" || f.Reason == "") {
			n.t.Errorf("%s %s: %s has no error and reason", s.method, s.path, a.body)
		}
	}
}

func TestEveryRequestNeedsALogin(t *testing.T) {
	n := start(t)
	for _, path := range []string{"/api/overview", "/api/health/checks/alarms", "/api/nothing", "/api/"} {
		for _, login := range []string{"", "Basic Z3Vlc3Q6d3Jvbmc=", "Bearer x"} {
			a := n.ask("GET", path, "", "Authorization", login)
			if a.status != 401 || !strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Basic realm=") ||
				string(a.body) != `{"error":"not_authorized","reason":"Login failed"}` {
				t.Errorf("%s with %q: %d %v %s", path, login, a.status, a.header, a.body)
			}
		}
	}
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	n := start(t)
	n.steps([]step{
		{"GET", "/api/nothing", "", 404, `"Object Not Found"`},
		{"GET", "/api/queues/%2F/a/b/c", "", 404, "Not Found"},
		{"POST", "/api/overview", "", 405, "use GET, HEAD"},
		{"PUT", "/api/queues/%2F/q", "{", 400, `"not_json"`},
		{"PUT", "/api/queues/%2F/q", "[]", 400, `"not_json"`},
		{"PUT", "/api/queues/%2F/q", `{"durable":"maybe"}`, 400, "durable is true or false"},
		{"PUT", "/api/queues/%2F/q", `{"arguments":5}`, 400, "arguments is an object"},
		{"PUT", "/api/queues/%2F/q", strings.Repeat(" ", 2<<20), 413, "1 MiB"},
		{"PUT", "/api/queues/none/q", "", 404, ""},
		{"PUT", "/api/queues/%2F/amq.mine", "", 401, "reserved prefix"},
		{"PUT", "/api/exchanges/%2F/x", `{"type":"wrong"}`, 400, "unknown exchange type"},
	})
	if a := n.ask("POST", "/api/overview", ""); a.header.Get("Allow") != "GET, HEAD" {
		t.Errorf("Allow is %q", a.header.Get("Allow"))
	}
	if a := n.ask("POST", "/api/bindings/%2F/e/amq.topic/e/amq.topic", "", "Sec-Fetch-Site", "cross-site"); a.status != 403 {
		t.Errorf("another site's page got %d", a.status)
	}
	if a := n.ask("HEAD", "/api/overview", ""); a.status != 200 || len(a.body) > 0 {
		t.Errorf("HEAD: %d %s", a.status, a.body)
	}
}

func TestQueues(t *testing.T) {
	n := start(t)
	const q = "/api/queues/%2f/orders"
	n.steps([]step{
		{"GET", "/api/queues", "", 200, "[]"},
		{"GET", q, "", 404, ""},
		{"PUT", q, `{"durable":"true","auto_delete":false,"arguments":{"x-max-length":6,"x-queue-type":"quorum","n":1.5,"l":[true,{}]},"node":"x"}`, 201, ""},
		{"PUT", q, `{"durable":true,"arguments":{"n":1.5,"x-queue-type":"quorum","x-max-length":6,"l":[true,{}]}}`, 204, ""},
		{"PUT", q, `{"durable":true}`, 400, "inequivalent arg"},
		{"GET", q + "/", "", 200, `"arguments":{"l":[true,{}],"n":1.5,"x-max-length":6,"x-queue-type":"quorum"}`},
		{"GET", q, "", 200, `"type":"quorum"`},
		{"GET", q, "", 200, `"consumer_details":[]`},
		{"GET", "/api/queues/none", "", 404, ""},
	})
	c, ch := dial(t, n)
	for range 3 {
		if _, err := ch.Publish(t.Context(), "", "orders", client.Message{Body: []byte("12345")}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ch.Get(t.Context(), "orders", false); err != nil {
		t.Fatal(err)
	}
	o := n.object(q)
	if o["messages"] != 3.0 || o["messages_ready"] != 2.0 || o["messages_unacknowledged"] != 1.0 || o["message_bytes"] != 15.0 {
		t.Errorf("%v", o)
	}
	if o := n.object(q + "?disable_stats=true"); o["messages"] != nil || o["name"] != "orders" {
		t.Errorf("without statistics: %v", o)
	}
	if o := n.object(q + "?disable_stats=true&enable_queue_totals=true"); o["messages"] != 3.0 || o["consumers"] != nil {
		t.Errorf("with totals only: %v", o)
	}
	n.steps([]step{
		{"DELETE", q + "?if-empty=true", "", 400, "not empty"},
		{"DELETE", q + "/contents", "", 204, ""},
	})
	if o := n.object(q); o["messages"] != 1.0 {
		t.Errorf("after the purge: %v", o)
	}
	_ = c.Close(t.Context())
	n.steps([]step{
		{"DELETE", q, "", 204, ""},
		{"DELETE", q, "", 404, ""},
		{"DELETE", q + "/contents", "", 404, ""},
		{"PUT", q, "", 201, ""}, // an empty body is all defaults
	})
}

// Names may have any character; the path is split before it is decoded.
func TestNames(t *testing.T) {
	n := start(t)
	n.steps([]step{{"PUT", "/api/vhosts/a%2Fb", "", 201, ""}})
	for path, name := range map[string]string{"a%2Fb": "a/b", "a+b": "a+b", "a%20b": "a b", "..": "..", "%C3%BC%23%3F%25": "ü#?%", "contents": "contents"} {
		n.steps([]step{{"PUT", "/api/queues/a%2fb/" + path, "{}", 201, ""}})
		if o := n.object("/api/queues/a%2Fb/" + path); o["name"] != name || o["vhost"] != "a/b" {
			t.Errorf("%s is %v", path, o)
		}
	}
	n.steps([]step{{"GET", "/api/queues/a+b", "", 404, ""}, {"DELETE", "/api/queues/a%2fb/contents/contents", "", 204, ""}})
}

func TestExchanges(t *testing.T) {
	n := start(t)
	const x = "/api/exchanges/%2F/orders"
	n.steps([]step{
		{"PUT", x, `{"type":"topic","durable":true,"internal":"false","arguments":{}}`, 201, ""},
		{"PUT", x, `{"type":"topic","durable":true}`, 204, ""},
		{"PUT", x, `{"type":"fanout","durable":true}`, 400, "inequivalent arg 'type'"},
		{"PUT", "/api/exchanges/%2F/plain", "", 201, ""},
		{"GET", x, "", 200, `"type":"topic"`},
		{"GET", "/api/exchanges/%2F/amq.default", "", 200, `"name":""`},
		{"DELETE", "/api/exchanges/%2F/amq.topic", "", 401, ""},
		{"PUT", "/api/queues/%2F/q", "", 201, ""},
		{"POST", "/api/bindings/%2F/e/orders/q/q", "", 201, ""},
		{"DELETE", x + "?if-unused=true", "", 400, "in use"},
		{"DELETE", x, "", 204, ""},
		{"DELETE", x, "", 404, ""},
	})
	if got := n.names("/api/exchanges/%2F", "name"); got != " amq.direct amq.fanout amq.headers amq.match amq.rabbitmq.trace amq.topic plain" {
		t.Error(got)
	}
}

func TestBindings(t *testing.T) {
	n := start(t)
	n.steps([]step{
		{"PUT", "/api/queues/%2F/q%2F1", "", 201, ""},
		{"PUT", "/api/exchanges/%2F/x", "", 201, ""},
		{"POST", "/api/bindings/%2F/e/amq.topic/q/none", "", 404, ""},
		{"POST", "/api/bindings/%2F/e/none/q/q%2F1", "", 404, ""},
		{"POST", "/api/bindings/%2F/e/amq.topic/e/x", `{"routing_key":"k"}`, 201, ""},
	})
	const between = "/api/bindings/%2F/e/amq.topic/q/q%2F1"
	for body, want := range map[string]string{
		`{"routing_key":"a.#"}`: "q%2F1/a.%2523",
		``:                      "q%2F1/~",
		`{"routing_key":"k_~/","arguments":{"x":1}}`: "q%2F1/k%255F%257E%252F~",
	} {
		for range 2 { // the second time it is there already
			a := n.ask("POST", between, body)
			if at := a.header.Get("Location"); a.status != 201 || !strings.HasPrefix(at, want) {
				t.Errorf("POST %s: %d, Location %q, want %q", body, a.status, at, want)
			}
		}
	}
	key, _, _ := strings.Cut(strings.SplitAfter(n.ask("POST", between, `{"arguments":{"x":1}}`).header.Get("Location"), "/")[1], "/")
	if o := n.object(between + "/" + key); o["routing_key"] != "" || o["arguments"].(map[string]any)["x"] != 1.0 {
		t.Errorf("at %s is %v", key, o)
	}
	if o := n.object(between + "/a.%2523"); o["routing_key"] != "a.#" || o["properties_key"] != "a.%23" || o["destination_type"] != "queue" {
		t.Errorf("%v", o)
	}
	if got := n.names("/api/queues/%2F/q%2F1/bindings?sort=source", "source"); got != " amq.topic amq.topic amq.topic amq.topic" {
		t.Error(got)
	}
	if got := n.names("/api/exchanges/%2F/amq.topic/bindings/source?sort=destination", "destination"); got != "q/1 q/1 q/1 q/1 x" {
		t.Error(got)
	}
	if got := n.names("/api/exchanges/%2F/x/bindings/destination", "routing_key"); got != "k" {
		t.Error(got)
	}
	if got := n.names("/api/bindings/%2F/e/amq.default/q/q%2F1/", "properties_key"); got != "q%2F1" {
		t.Error(got)
	}
	n.steps([]step{
		{"DELETE", between + "/~", "", 204, ""},
		{"DELETE", between + "/~", "", 404, ""},
		{"DELETE", between + "/" + key, "", 204, ""},
		{"DELETE", between + "/a.%2523", "", 204, ""},
		{"DELETE", "/api/bindings/%2F/e/amq.topic/e/x/k", "", 204, ""},
		{"DELETE", "/api/bindings/%2F/e/amq.default/q/q%2F1/q%252F1", "", 401, ""},
	})
	if got := n.names("/api/bindings", "routing_key"); got != "q/1 k_~/" {
		t.Error(got)
	}
}

func TestVhosts(t *testing.T) {
	n := start(t)
	n.steps([]step{
		{"PUT", "/api/vhosts/one", `{"description":"d","tags":["t"]}`, 201, ""},
		{"PUT", "/api/vhosts/one", "", 204, ""},
		{"GET", "/api/vhosts/one", "", 200, `"cluster_state":{"warren@n1":"running"}`},
		{"PUT", "/api/queues/one/q", "", 201, ""},
		{"GET", "/api/vhosts/one/connections", "", 200, "[]"},
		{"GET", "/api/vhosts/none/connections", "", 404, ""},
		{"PUT", "/api/permissions/one/guest", `{"configure":".*","write":".*","read":".*"}`, 204, ""},
		{"PUT", "/api/permissions/one/guest", `{"configure":".*","write":".*"}`, 400, "read"},
		{"PUT", "/api/permissions/one/guest", `{"configure":"","write":".*","read":".*"}`, 501, "later"},
		{"PUT", "/api/users/new", `{"password":"x","tags":""}`, 501, "later"},
		{"GET", "/api/users/guest", "", 200, `"administrator"`},
		{"GET", "/api/vhosts/one/permissions", "", 200, `"user":"guest"`},
		{"DELETE", "/api/vhosts/one", "", 204, ""},
		{"DELETE", "/api/vhosts/one", "", 404, ""},
	})
	if got := n.names("/api/vhosts", "name"); got != "/" {
		t.Error(got)
	}
}

func TestPages(t *testing.T) {
	n := start(t)
	for i := range 5 {
		n.steps([]step{{"PUT", fmt.Sprintf("/api/queues/%%2F/q%d", i), `{"arguments":{"x-max-length":9}}`, 201, ""}})
	}
	n.steps([]step{
		{"GET", "/api/queues?page=0", "", 400, "page is"},
		{"GET", "/api/queues?page=x", "", 400, ""},
		{"GET", "/api/queues?page=1&page_size=501", "", 400, "500"},
		{"GET", "/api/queues?page=1&name=(&use_regex=true", "", 400, "regular expression"},
		{"GET", "/api/queues?page=9", "", 200, `"items":[]`},
		{"GET", "/api/queues?columns=name,arguments.x-max-length&page=2&page_size=2", "", 200,
			`{"filtered_count":5,"item_count":2,"items":[{"arguments":{"x-max-length":9},"name":"q2"},{"arguments":{"x-max-length":9},"name":"q3"}],"page":2,"page_count":3,"page_size":2,"total_count":5}`},
		{"GET", "/api/queues?page=1&name=Q3", "", 200, `"filtered_count":1`},
		{"GET", "/api/queues?page=1&name=q[12]&use_regex=true", "", 200, `"filtered_count":2`},
	})
	if got := n.names("/api/queues?sort=name&sort_reverse=true", "name"); got != "q4 q3 q2 q1 q0" {
		t.Error(got)
	}
	if got := n.names("/api/queues?sort=", "name"); got != "q0 q1 q2 q3 q4" {
		t.Error(got)
	}
}

func dial(t *testing.T, n *node) (*client.Connection, *client.Channel) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := client.Dial(ctx, []string{n.NativeAddr()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	ch, err := c.Channel(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return c, ch
}

func TestConnectionsChannelsConsumers(t *testing.T) {
	n := start(t)
	_, ch := dial(t, n)
	n.steps([]step{{"PUT", "/api/queues/%2F/q", "", 201, ""}})
	if _, err := ch.Consume(t.Context(), "q", client.ConsumeOptions{Tag: "mine"}); err != nil {
		t.Fatal(err)
	}
	var list []struct {
		Name, State, Vhost string
		PeerPort           int `json:"peer_port"`
	}
	if err := json.Unmarshal(n.ask("GET", "/api/connections/", "").body, &list); err != nil || len(list) != 1 ||
		list[0].State != "running" || list[0].Vhost != "/" || list[0].PeerPort == 0 {
		t.Fatalf("%v %+v", err, list)
	}
	path := "/api/connections/" + strings.ReplaceAll(list[0].Name, " ", "%20")
	if o := n.object(path); o["name"] != list[0].Name || o["protocol"] != "native" {
		t.Errorf("%v", o)
	}
	if got := n.names("/api/consumers/%2F", "consumer_tag"); got != "mine" {
		t.Error(got)
	}
	if got := n.names("/api/channels?sort=consumer_count&sort_reverse=true", "consumer_count"); got != "1 0" { // the client has one of its own
		t.Error(got)
	}
	if got, want := n.names(path+"/channels", "name"), n.names("/api/vhosts/%2F/channels", "name"); got != want || got == "" {
		t.Errorf("%q %q", got, want)
	}
	if o := n.object("/api/queues/%2F/q"); len(o["consumer_details"].([]any)) != 1 || o["consumers"] != 1.0 {
		t.Errorf("%v", o)
	}
	if a := n.ask("DELETE", path, "", "X-Reason", "enough"); a.status != 204 {
		t.Errorf("%d %s", a.status, a.body)
	}
	for n.ask("GET", path, "").status == 200 { // it is closing
		if t.Context().Err() != nil {
			t.Fatal("the connection did not go")
		}
	}
	n.steps([]step{{"DELETE", path, "", 404, ""}, {"GET", path, "", 404, ""}, {"GET", "/api/channels/none", "", 404, ""}})
}

func TestOverviewAndHealth(t *testing.T) {
	n := start(t)
	o := n.object("/api/overview")
	totals, _ := o["object_totals"].(map[string]any)
	if o["product_name"] != "Warren" || o["node"] != "warren@n1" || totals["exchanges"] != 7.0 || totals["connections"] != 0.0 {
		t.Errorf("%v", o)
	}
	if o := n.object("/api/nodes/warren@n1"); o["running"] != true || o["os_pid"] == "" {
		t.Errorf("%v", o)
	}
	n.steps([]step{
		{"GET", "/api/whoami", "", 200, `{"name":"guest","tags":["administrator"]}`},
		{"GET", "/api/nodes", "", 200, `"partitions":[]`},
		{"GET", "/api/nodes/none", "", 404, ""},
		{"GET", "/api/aliveness-test/%2F", "", 200, `{"status":"ok"}`},
		{"GET", "/api/aliveness-test/%2F", "", 200, `{"status":"ok"}`},
		{"GET", "/api/aliveness-test/none", "", 404, ""},
		{"GET", "/api/health/checks/alarms", "", 200, `{"status":"ok"}`},
		{"GET", "/api/health/checks/local-alarms", "", 200, `{"status":"ok"}`},
		{"GET", "/api/health/checks/node-is-quorum-critical", "", 200, "single node cluster"},
		{"GET", "/healthz/live", "", 200, "live"},
	})
	if o := n.object("/api/queues/%2F/aliveness-test"); o["messages"] != 0.0 || o["durable"] != false {
		t.Errorf("the test left %v", o)
	}
}
