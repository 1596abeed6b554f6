package failover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// memoryGroup makes a control group with a memory limit, of version 2 or 1, and returns the file that takes members.
// "" means that none can be made here.
func memoryGroup(t *testing.T, limit int64) (members string) {
	root, file := "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		root, file = "/sys/fs/cgroup", "memory.max"
	}
	dir := filepath.Join(root, fmt.Sprintf("warren-test-%d", os.Getpid()))
	if os.Mkdir(dir, 0o755) != nil {
		return ""
	}
	t.Cleanup(func() { _ = os.Remove(dir) }) // after the node has ended
	if os.WriteFile(filepath.Join(dir, file), []byte(strconv.FormatInt(limit, 10)), 0o644) != nil {
		return ""
	}
	return filepath.Join(dir, "cgroup.procs")
}

// confine puts a running node into a control group.
func (n *node) confine(members string) {
	n.t.Helper()
	if err := os.WriteFile(members, []byte(strconv.Itoa(n.cmd.Process.Pid)), 0o644); err != nil {
		n.t.Fatalf("put %s into its control group: %v", n.id, err)
	}
}

// lifetime is a context that ends with the process, for what would wait for it to come back.
func (n *node) lifetime() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(n.t.Context())
	done := n.done
	go func() {
		select {
		case <-done:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// sample looks at the node's resident memory many times a second.
func (n *node) sample() *sampler {
	pid := n.cmd.Process.Pid
	return sample(n.t, 20*time.Millisecond, func() (int64, error) { return residentOf(pid) })
}

// residentOf is a process's resident memory in bytes.
func residentOf(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, found := bytes.Cut(status, []byte("VmRSS:"))
	if !found {
		return 0, errors.New("no VmRSS line")
	}
	kib, err := strconv.ParseInt(string(bytes.Fields(rest)[0]), 10, 64)
	return kib << 10, err
}
