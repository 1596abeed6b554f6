package failover

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/warrenmq/warren/cluster/loopback"
	"github.com/warrenmq/warren/protocol/native"
)

// stopWithin is longer than the program's own bound of a graceful stop.
const stopWithin = 15 * time.Second

// node is one warren process and what stays of it between two starts: its name, data directory and log. It belongs
// to the goroutine of its test.
type node struct {
	t    *testing.T
	id   string
	dir  string
	args []string // beside those that every node has
	addr addresses
	join []string // gossip addresses

	cmd  *exec.Cmd
	done chan struct{} // closed once the process has ended
	err  error         // of Wait, after done
	logs string        // file
}

// addresses are those a node listens at.
type addresses struct{ native, amqp, http, raft, gossip string }

func freshAddresses(t *testing.T) addresses {
	t.Helper()
	a, err := loopback.Addresses(5)
	if err != nil {
		t.Fatal(err)
	}
	return addresses{a[0], a[1], a[2], a[3], a[4]}
}

// Start starts the process. It is not waited for: see Ready.
func (n *node) Start() {
	n.t.Helper()
	if n.cmd != nil {
		n.t.Fatalf("%s runs already", n.id)
	}
	log, err := os.OpenFile(n.logs, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		n.t.Fatal(err)
	}
	defer log.Close()
	fmt.Fprintf(log, "--- %s starts at %s\n", n.id, time.Now().Format("15:04:05.000"))
	a := n.addr
	args := append([]string{"serve", "--node-id", n.id, "--data-dir", n.dir, "--native-addr", a.native, "--amqp-addr", a.amqp,
		"--http-addr", a.http, "--raft-addr", a.raft, "--gossip-addr", a.gossip}, n.args...)
	if len(n.join) > 0 {
		args = append(args, "--join", strings.Join(n.join, ","))
	}
	n.cmd = exec.Command(warren, args...)
	n.cmd.Stdout, n.cmd.Stderr = log, log
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := n.cmd.Start(); err != nil {
		n.t.Fatalf("start %s: %v", n.id, err)
	}
	cmd, done := n.cmd, make(chan struct{})
	n.done = done
	go func() { n.err = cmd.Wait(); close(done) }()
}

// Running says whether the process was started and neither killed nor stopped by the test.
func (n *node) Running() bool { return n.cmd != nil }

// Kill ends the process with SIGKILL.
func (n *node) Kill() {
	if n.cmd == nil {
		return
	}
	_ = n.cmd.Process.Kill()
	<-n.done
	n.cmd = nil
}

// Stop ends the process with SIGTERM and expects it to succeed.
func (n *node) Stop() {
	n.t.Helper()
	n.signal(syscall.SIGTERM)
	select {
	case <-n.done:
		if n.err != nil {
			n.t.Errorf("%s stopped with %v", n.id, n.err)
		}
	case <-time.After(stopWithin):
		n.t.Errorf("%s has not stopped within %v", n.id, stopWithin)
		n.signal(syscall.SIGQUIT) // its stacks go to its log
		<-n.done
	}
	n.cmd = nil
}

// Pause and Resume stop and continue the process where it is.
func (n *node) Pause()  { n.signal(syscall.SIGSTOP) }
func (n *node) Resume() { n.signal(syscall.SIGCONT) }

func (n *node) signal(s os.Signal) {
	n.t.Helper()
	if n.cmd == nil {
		n.t.Fatalf("%s does not run", n.id)
	}
	if err := n.cmd.Process.Signal(s); err != nil {
		n.t.Fatalf("send %v to %s: %v", s, n.id, err)
	}
}

// Ready waits until the node says that it knows a leader and has caught up.
func (n *node) Ready() {
	n.t.Helper()
	n.wait(20*time.Second, "ready", func() error {
		_, err := n.get("/healthz/ready")
		return err
	})
}

// Status is what the node answers to /v1/cluster.
func (n *node) Status() (s native.ClusterStatus, err error) {
	body, err := n.get("/v1/cluster")
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(body, &s)
}

// Metric reads one figure without labels from /metrics.
func (n *node) Metric(name string) float64 {
	n.t.Helper()
	v, err := n.metric(name)
	if err != nil {
		n.t.Fatal(err)
	}
	return v
}

func (n *node) metric(name string) (float64, error) {
	body, err := n.get("/metrics")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(body)) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			return strconv.ParseFloat(strings.TrimSpace(rest), 64)
		}
	}
	return 0, fmt.Errorf("%s has no metric %s", n.id, name)
}

// RSS is the process's resident memory in bytes.
func (n *node) RSS() int64 {
	n.t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", n.cmd.Process.Pid))
	if err != nil {
		n.t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), "VmRSS:"); ok {
			kib, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kib << 10
		}
	}
	n.t.Fatal("no VmRSS line")
	return 0
}

// Empty moves the data directory aside, so that the next start finds none.
func (n *node) Empty() {
	n.t.Helper()
	if err := os.Rename(n.dir, n.dir+".before"); err != nil {
		n.t.Fatal(err)
	}
}

// bytesUnder sums the sizes of all files under a folder of the data directory.
func (n *node) bytesUnder(folder string) (total int64) {
	_ = filepath.Walk(filepath.Join(n.dir, folder), func(_ string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			total += info.Size()
		}
		return nil // files come and go meanwhile
	})
	return total
}

var web = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

func (n *node) get(path string) ([]byte, error) {
	r, err := web.Get("http://" + n.addr.http + path)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s: %.200s", n.id, r.Status, body)
	}
	return body, err
}

// wait is await for something about this node; it also ends when the process does.
func (n *node) wait(within time.Duration, what string, ok func() error) {
	n.t.Helper()
	done := n.done
	await(n.t, within, n.id+": "+what, func() error {
		select {
		case <-done:
			n.t.Fatalf("%s ended by itself (%v) while the test waited for: %s", n.id, n.err, what)
		default:
		}
		return ok()
	})
}

// await waits until ok returns nil and fails the test with its last error when that takes too long.
func await(t *testing.T, within time.Duration, what string, ok func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ok()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("not within %v: %s: %v", within, what, err)
		case <-tick.C:
		}
	}
}

// pass lets time go by, for what is defined by time alone.
func pass(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
		t.FailNow()
	}
}

// Logged says whether a line of the node's log has all the words.
func (n *node) Logged(words ...string) bool {
	n.t.Helper()
	log, err := os.ReadFile(n.logs)
	if err != nil {
		n.t.Fatal(err)
	}
lines:
	for line := range strings.Lines(string(log)) {
		for _, word := range words {
			if !strings.Contains(strings.ToLower(line), word) {
				continue lines
			}
		}
		return true
	}
	return false
}
