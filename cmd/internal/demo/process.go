package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/warrenmq/warren/cluster/loopback"
)

// stopWithin bounds how long a node may take to stop gracefully before it is killed.
const stopWithin = 15 * time.Second

// node is one node of the demo, a child process.
type node struct {
	id, dir string
	args    []string
	native  string
	http    string

	process *exec.Cmd     // nil while it does not run
	ended   chan struct{} // closed when the process has ended
}

// Nodes are child processes that form a cluster on loopback addresses. Used by one goroutine.
type Nodes struct {
	executable string
	all        []*node
}

// New plans a cluster of some size in a folder, on free ports.
func New(executable, dir string, size int) (*Nodes, error) {
	addresses, err := loopback.Addresses(5 * size)
	if err != nil {
		return nil, err
	}
	address := func(i, kind int) string { return addresses[5*i+kind] }
	var join []string
	for i := range size {
		join = append(join, address(i, 4))
	}
	n := &Nodes{executable: executable}
	for i := range size {
		id := fmt.Sprintf("n%d", i+1)
		nodeDir := filepath.Join(dir, id)
		if err := os.MkdirAll(nodeDir, 0o755); err != nil {
			return nil, err
		}
		n.all = append(n.all, &node{id: id, dir: nodeDir, native: address(i, 0), http: address(i, 2), args: []string{"serve", "--node-id", id,
			"--data-dir", filepath.Join(nodeDir, "data"), "--bootstrap-expect", fmt.Sprint(size), "--join", strings.Join(join, ","),
			"--native-addr", address(i, 0), "--amqp-addr", address(i, 1), "--http-addr", address(i, 2), "--raft-addr", address(i, 3),
			"--gossip-addr", address(i, 4)}})
	}
	return n, nil
}

// Servers returns the native addresses.
func (n *Nodes) Servers() []string {
	var servers []string
	for _, m := range n.all {
		servers = append(servers, m.native)
	}
	return servers
}

// Command returns the command line that starts a node.
func (n *Nodes) Command(id string) string {
	return n.executable + " " + strings.Join(n.named(id).args, " ")
}

func (n *Nodes) named(id string) *node {
	for _, m := range n.all {
		if m.id == id {
			return m
		}
	}
	return nil
}

// StartAll starts every node.
func (n *Nodes) StartAll() error {
	for _, m := range n.all {
		if err := n.Start(m.id); err != nil {
			return err
		}
	}
	return nil
}

// Start starts a node that does not run. Its output goes to the end of a file in its folder.
func (n *Nodes) Start(id string) error {
	m := n.named(id)
	if m == nil || m.process != nil {
		return fmt.Errorf("node %s cannot be started", id)
	}
	log, err := os.OpenFile(filepath.Join(m.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own
	c := exec.Command(n.executable, m.args...)
	c.Stdout, c.Stderr, c.SysProcAttr = log, log, childAttributes()
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "WARREN_") {
			c.Env = append(c.Env, variable)
		}
	}
	started, ended := make(chan error, 1), make(chan struct{})
	go startAndWait(c, started, ended)
	if err := <-started; err != nil {
		return fmt.Errorf("start node %s: %w", id, err)
	}
	m.process, m.ended = c, ended
	return nil
}

// Kill ends a node at once, as with kill -9, and waits for its end.
func (n *Nodes) Kill(id string) error {
	m := n.named(id)
	if m == nil || m.process == nil {
		return fmt.Errorf("node %s does not run", id)
	}
	err := m.process.Process.Kill()
	<-m.ended
	m.process = nil
	if errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("node %s had ended by itself; see %s", id, filepath.Join(m.dir, "log"))
	}
	return err
}

// StopAll stops all nodes gracefully, and kills those that do not stop.
func (n *Nodes) StopAll() {
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
	defer cancel()
	for _, m := range n.all {
		if m.process != nil {
			_ = m.process.Process.Signal(syscall.SIGTERM)
		}
	}
	for _, m := range n.all {
		if m.process == nil {
			continue
		}
		select {
		case <-m.ended:
		case <-ctx.Done():
			_ = m.process.Process.Kill()
			<-m.ended
		}
		m.process = nil
	}
}
