package tools

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/warrenmq/warren/cmd/internal/demo"
)

func TestOneNodeThroughTheTools(t *testing.T) {
	dir := t.TempDir()
	node := startNode(t, anyPorts(dir)...)
	t.Setenv("WARREN_SERVERS", node.native)

	warren(t, "", "declare", "exchange", "orders", "--type", "topic", "--durable")
	warren(t, "", "declare", "queue", "invoices", "--durable", "--argument", "x-max-length=1000")
	warren(t, "", "bind", "orders", "invoices", "--key", "order.*.paid")
	if out := warren(t, "", "publish", "orders", "order.42.paid", "--body", `{"id":42}`, "--property", "content-type=application/json",
		"--property", "priority=3", "--header", "attempt=1"); out != "confirmed 1\n" {
		t.Errorf("publish: %q", out)
	}
	if out := warren(t, "a\nb\nc\n", "publish", "orders", "order.1.paid"); out != "confirmed 3\n" {
		t.Errorf("publish of lines: %q", out)
	}
	if out := warren(t, "", "publish", "orders", "elsewhere", "--body", "x"); out != "confirmed 1 (1 of them reached no queue)\n" {
		t.Errorf("publish to nobody: %q", out)
	}

	var first shown
	if err := json.Unmarshal([]byte(warren(t, "", "consume", "invoices", "--count", "1", "--json")), &first); err != nil {
		t.Fatal(err)
	}
	if *first.Body != `{"id":42}` || first.Exchange != "orders" || first.RoutingKey != "order.42.paid" || first.Redelivered || !first.Persistent ||
		first.Properties["content_type"] != "application/json" || first.Properties["priority"] != 3.0 || first.Headers["attempt"] != 1.0 {
		t.Errorf("%+v", first)
	}
	if out := warren(t, "", "get", "invoices", "--requeue"); out != "a\n" {
		t.Errorf("get: %q", out)
	}
	if out := warren(t, "", "consume", "invoices", "--count", "2", "--requeue"); out != "a\nb\n" {
		t.Errorf("consume and give back: %q", out)
	}
	if out := warren(t, "", "get", "invoices"); out != "a\n" {
		t.Errorf("get: %q", out)
	}
	if out := warren(t, "", "list", "queues"); !strings.Contains(out, "invoices  2") || !strings.Contains(out, `{"x-max-length":1000}`) {
		t.Errorf("list queues: %q", out)
	}
	if out := warren(t, "", "list", "exchanges"); strings.Contains(out, " \n") {
		t.Errorf("blanks at the end of a line: %q", out)
	}
	if out := warren(t, "", "list", "bindings", "order"); !strings.Contains(out, "order.*.paid") {
		t.Errorf("list bindings: %q", out)
	}
	if out := warren(t, "", "list", "vhosts", "--json"); !strings.Contains(out, `"name": "/"`) {
		t.Errorf("list vhosts: %q", out)
	}

	if out := warren(t, "", "health", "--http", node.http); out != "ready\n" {
		t.Errorf("health: %q", out)
	}

	if status := node.stop(); status != 0 {
		t.Fatalf("a graceful stop ends with status %d: %s", status, node.stderr)
	}
	node = startNode(t, anyPorts(dir)...) // under other ports
	t.Setenv("WARREN_SERVERS", node.native)
	if out := warren(t, "", "consume", "invoices", "--count", "2", "--no-ack"); out != "b\nc\n" {
		t.Errorf("after the restart: %q", out)
	}
	warren(t, "", "unbind", "orders", "invoices", "--key", "order.*.paid")
	if out := warren(t, "", "purge", "invoices"); out != "0 messages are purged from queue invoices\n" {
		t.Errorf("purge: %q", out)
	}
	warren(t, "", "delete", "queue", "invoices", "--if-empty")
	warren(t, "", "delete", "exchange", "orders")
	if out := warren(t, "", "list", "queues", "--json"); out != "[]\n" {
		t.Errorf("list queues: %q", out)
	}
}

func TestVhostsThroughTheTools(t *testing.T) {
	node := startNode(t, anyPorts(t.TempDir())...)
	t.Setenv("WARREN_SERVERS", node.native)
	warren(t, "", "declare", "vhost", "tests")
	warren(t, "", "declare", "queue", "q", "--vhost", "tests")
	if out := warren(t, "", "list", "queues", "--json"); out != "[]\n" {
		t.Errorf("the queue is in the other vhost too: %s", out)
	}
	if out := warren(t, "", "list", "queues", "--vhost", "tests"); !strings.Contains(out, "q") {
		t.Errorf("list queues: %s", out)
	}
	warren(t, "", "delete", "vhost", "tests")
	if _, failure, status := try("", "list", "queues", "--vhost", "tests", "--timeout", "5s"); status != 1 || strings.Count(failure, "\n") != 1 {
		t.Errorf("a vhost that is gone: status %d, %q", status, failure)
	}
}

// TestFailuresAreOneSentence: on an error a tool prints one sentence on standard error and exits non-zero.
func TestFailuresAreOneSentence(t *testing.T) {
	node := startNode(t, anyPorts(t.TempDir())...)
	for name, args := range map[string][]string{
		"no such command":      {"frobnicate"},
		"no such flag":         {"publish", "x", "--colour", "red"},
		"no such property":     {"publish", "x", "y", "--body", "b", "--property", "colour=red"},
		"bad priority":         {"publish", "x", "y", "--body", "b", "--property", "priority=high"},
		"no such queue":        {"get", "missing"},
		"no such queue to":     {"consume", "missing", "--count", "1"},
		"no such exchange":     {"publish", "missing", "key", "--body", "b"},
		"no route":             {"publish", "", "missing", "--body", "b", "--mandatory"},
		"binding to nowhere":   {"bind", "amq.topic", "missing"},
		"nobody listens":       {"list", "queues", "--servers", "127.0.0.1:1", "--timeout", "300ms"},
		"nothing comes":        {"consume", "waiting", "--count", "1", "--wait", "50ms"},
		"unhealthy":            {"health", "--http", "127.0.0.1:1"},
		"bench without bodies": {"bench", "--size", "1"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Setenv("WARREN_SERVERS", node.native)
			if name == "nothing comes" {
				warren(t, "", "declare", "queue", "waiting")
			}
			out, failure, status := try("", args...)
			if status == 0 || out != "" {
				t.Errorf("status %d, output %q", status, out)
			}
			if !strings.HasPrefix(failure, "warren: ") || strings.Count(failure, "\n") != 1 || !strings.HasSuffix(failure, "\n") {
				t.Errorf("standard error: %q", failure)
			}
		})
	}
}

// A command line that cannot be meant is refused at once, with the flag and a way out.
func TestWrongCommandLinesAreRefusedAtOnce(t *testing.T) {
	for line, want := range map[string]string{
		"consume q --count -1":                "--count -1: it must be at least 1, or 0 for no end",
		"publish x k --body b --count -1":     "--count -1: it must be at least 1",
		"publish x k --property a=b":          "--property a=b: there is no such property",
		"list queues --servers foo":           "--servers foo: it must be HOST:PORT, for example foo:5670",
		"list queues --servers ::1":           "--servers ::1: it must be HOST:PORT, for example [::1]:5670",
		"list queues --servers a:5670,b:http": "--servers b:http: the port must be a number from 1 to 65535",
		"get q --servers a:99999":             "--servers a:99999: the port must be a number from 1 to 65535",
		"get q --servers ,":                   "--servers names no node",
		"get q --timeout -1s":                 "--timeout -1s: it must be above zero",
		"bench --servers foo":                 "--servers foo: it must be HOST:PORT, for example foo:5670",
		"bench --url amqp://a":                "--url amqp://a: it needs --protocol amqp",
		"bench --protocol amqp --url http://": "--url: ",
		"bench --protocol amqp --servers foo": "--servers foo: it must be HOST:PORT, for example foo:5672",
		"health --http foo":                   "--http foo: it must be HOST:PORT, for example foo:15672",
	} {
		start := time.Now()
		out, failure, status := try("", strings.Fields(line)...)
		if status != 2 || out != "" || !strings.HasPrefix(failure, "warren: "+want) || strings.Count(failure, "\n") != 1 || time.Since(start) > time.Minute {
			t.Errorf("warren %s: status %d, %q, want %q", line, status, failure, want)
		}
	}
}

func TestServeRefusesWrongSettingsAllAtOnce(t *testing.T) {
	out, failure, status := try("", "serve", "--timing", "slow", "--segment-size", "x", "--raft-addr", "0.0.0.0:1")
	if status != 78 || out != "" || strings.Count(failure, "\n  --") != 3 {
		t.Errorf("status %d: %s", status, failure)
	}
	if out, failure, status := try("", "serve", "--colour", "red"); status != 78 || out != "" {
		t.Errorf("an unknown setting: status %d: %s", status, failure)
	}
}

// TestBenchThroughTheFrontDoor: both protocols measure the same things.
func TestBenchThroughTheFrontDoor(t *testing.T) {
	node := startNode(t, anyPorts(t.TempDir())...)
	for name, target := range map[string][]string{
		"native": {"--servers", node.native},
		"amqp":   {"--protocol", "amqp", "--servers", node.amqp},
		"url":    {"--protocol", "amqp", "--url", "amqp://guest:guest@127.0.0.1:1/", "--url", "amqp://guest:guest@" + node.amqp + "/"},
	} {
		t.Run(name, func(t *testing.T) {
			out := warren(t, "", append([]string{"bench"}, append(target, "--duration", "500ms", "--consumers", "1", "--rate", "2000", "--json")...)...)
			var r map[string]any
			if err := json.Unmarshal([]byte(out), &r); err != nil {
				t.Fatal(err)
			}
			for _, key := range []string{"confirmed_per_second", "consumed_per_second", "confirm_ms", "end_to_end_ms", "errors"} {
				if r[key] == nil {
					t.Errorf("no %s in %s", key, out)
				}
			}
			if r["confirmed"] == 0.0 || r["lost"] != 0.0 || r["errors"] != 0.0 || r["duplicated"] != 0.0 {
				t.Error(out)
			}
			if out := warren(t, "", "list", "queues", "--servers", node.native, "--json"); out != "[]\n" {
				t.Errorf("bench left its queue behind: %s", out)
			}
		})
	}
}

// TestKilledLeaderLosesNothing runs the demo: three real processes, the leader killed with -9 under traffic.
func TestKilledLeaderLosesNothing(t *testing.T) {
	t.Setenv(asProgram, "1")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out, log strings.Builder
	err = demo.Run(t.Context(), demo.Options{Executable: exe, Duration: 4 * time.Second, Kills: 1, Rate: 2000, Out: &out, Log: &log})
	t.Logf("%s%s", &log, &out)
	if err != nil {
		t.Fatal(err)
	}
	var confirmed, delivered, lost, duplicated, gap int
	if n, err := fmt.Sscanf(out.String(), "confirmed %d, delivered %d, lost %d, duplicated %d, gap %d ms\n", &confirmed, &delivered, &lost, &duplicated, &gap); n != 5 {
		t.Fatalf("%q: %v", &out, err)
	}
	if confirmed == 0 || lost != 0 {
		t.Error(out.String())
	}
}
