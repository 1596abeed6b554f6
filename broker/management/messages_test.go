package management_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/warrenmq/warren/client"
)

// list decodes a list of an answer of status 200.
func (n *node) list(method, path, body string) (list []map[string]any) {
	n.t.Helper()
	a := n.ask(method, path, body)
	if a.status != 200 || json.Unmarshal(a.body, &list) != nil {
		n.t.Fatalf("%s %s: %d %s", method, path, a.status, a.body)
	}
	return list
}

func (n *node) fill(queue string, bodies ...string) {
	n.t.Helper()
	_, ch := dial(n.t, n)
	if _, err := ch.DeclareQueue(n.t.Context(), client.Queue{Name: queue, Durable: true}); err != nil {
		n.t.Fatal(err)
	}
	for i, body := range bodies {
		if _, err := ch.Publish(n.t.Context(), "", queue, client.Message{Body: []byte(body), MessageID: fmt.Sprint("m", i), Priority: 3,
			Headers: map[string]any{"n": int64(i)}}); err != nil {
			n.t.Fatal(err)
		}
	}
}

// TestGetMessages: RabbitMQ's get takes messages and acknowledges them, or gives them back.
func TestGetMessages(t *testing.T) {
	n := start(t)
	n.fill("q", "one", "two", "\xff\xfe", "four")
	const path = "/api/queues/%2F/q/get"
	got := n.list("POST", path, `{"count":"3","ackmode":"ack_requeue_true","encoding":"auto","truncate":2}`)
	if len(got) != 3 || got[0]["payload"] != "on" || got[0]["payload_bytes"] != 3.0 || got[0]["payload_encoding"] != "string" || got[0]["message_count"] != 3.0 ||
		got[0]["redelivered"] != false || got[0]["exchange"] != "" || got[0]["routing_key"] != "q" || got[2]["payload"] != "//4=" || got[2]["payload_encoding"] != "base64" {
		t.Errorf("%v", got)
	}
	p := got[0]["properties"].(map[string]any)
	if p["message_id"] != "m0" || p["priority"] != 3.0 || p["delivery_mode"] != 2.0 || p["headers"].(map[string]any)["n"] != 0.0 {
		t.Errorf("properties %v", p)
	}
	got = n.list("POST", path, `{"count":2,"ackmode":"ack_requeue_false","encoding":"base64"}`)
	if len(got) != 2 || got[0]["payload"] != "b25l" || got[0]["redelivered"] != true || got[1]["payload"] != "dHdv" {
		t.Errorf("%v", got)
	}
	if got = n.list("POST", path, `{"count":100,"ackmode":"reject_requeue_false","encoding":"auto"}`); len(got) != 2 {
		t.Errorf("%v", got)
	}
	if got = n.list("POST", path, `{"count":1,"ackmode":"ack_requeue_false","encoding":"auto"}`); len(got) != 0 {
		t.Errorf("%v", got)
	}
	n.steps([]step{
		{"POST", path, `{"count":1}`, 400, "ackmode"},
		{"POST", path, `{"count":-1,"ackmode":"ack_requeue_true"}`, 400, "count"},
		{"POST", path, `{"count":1,"ackmode":"ack_requeue_true","encoding":"rot13"}`, 400, "encoding"},
		{"POST", "/api/queues/%2F/none/get", `{"count":1,"ackmode":"ack_requeue_true"}`, 404, ""},
		{"GET", path, "", 405, "POST"},
	})
}

// TestPeekAndMove: Warren's own ways to look at messages, move and delete them.
func TestPeekAndMove(t *testing.T) {
	n := start(t)
	n.fill("from", "one", "two", "three")
	n.fill("to")
	peeked := func(path string) (bodies string) {
		t.Helper()
		for _, m := range n.object(path)["messages"].([]any) {
			o := m.(map[string]any)
			bodies += fmt.Sprintf("%v %v %v ", o["sequence"], o["payload"], o["state"])
		}
		return bodies
	}
	if got := peeked("/api/queues/%2F/from/messages?offset=1&limit=1"); got != "2 two ready " {
		t.Error(got)
	}
	if got := peeked("/api/queues/%2F/from/messages?header=n%3D2&key=from"); got != "3 three ready " {
		t.Error(got)
	}
	n.steps([]step{
		{"POST", "/api/queues/%2F/from/move", `{"target":"queue","to":"to","headers":["n=1"],"dry_run":true}`, 200, `"moved":1`},
		{"POST", "/api/queues/%2F/from/move", `{"target":"queue","to":"to","headers":["n=1"]}`, 200, `"moved":1,"next":0`},
		{"POST", "/api/queues/%2F/from/move", `{"target":"exchange","to":"amq.fanout"}`, 200, `"kept":2`},
		{"POST", "/api/queues/%2F/from/move", `{"target":"nowhere","limit":1}`, 200, `"moved":1`},
		{"POST", "/api/queues/%2F/from/move", `{"target":"elsewhere"}`, 400, "target"},
		{"POST", "/api/queues/%2F/from/move", `{"target":"queue","to":"none"}`, 404, ""},
		{"POST", "/api/queues/%2F/from/move", `{"target":"nowhere","headers":"n"}`, 400, "headers"},
		{"GET", "/api/queues/%2F/from/messages?limit=x", "", 400, "limit"},
	})
	if got := peeked("/api/queues/%2F/from/messages"); got != "3 three ready " {
		t.Error(got)
	}
	if got := peeked("/api/queues/%2F/to/messages"); got != "1 two ready " {
		t.Error(got)
	}
}
