package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warrenmq/warren/broker/server"
)

func TestControlGroupsLimitMemory(t *testing.T) {
	machine, where := allowedMemory(t.TempDir())
	if machine == 0 || where != "the machine" {
		t.Fatalf("the machine's memory is %d, by %q", machine, where)
	}
	const MiB = 1 << 20
	for name, c := range map[string]struct {
		files map[string]string
		want  uint64
	}{
		"version 2, no limit":        {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, machine},
		"version 2, in a container":  {map[string]string{"proc/self/cgroup": "0::/../../x\n", "sys/fs/cgroup/memory.max": "67108864\n"}, 64 * MiB},
		"version 2, own group":       {map[string]string{"proc/self/cgroup": "0::/a.slice/b\n", "sys/fs/cgroup/a.slice/b/memory.max": "67108864\n", "sys/fs/cgroup/memory.max": "max\n"}, 64 * MiB},
		"version 2, a group above":   {map[string]string{"proc/self/cgroup": "0::/a.slice/b\n", "sys/fs/cgroup/a.slice/b/memory.max": "max\n", "sys/fs/cgroup/a.slice/memory.max": "33554432\n"}, 32 * MiB},
		"version 2, throttled above": {map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "67108864\n", "sys/fs/cgroup/a/memory.high": "50331648\n"}, 48 * MiB},
		"version 1":                  {map[string]string{"proc/self/cgroup": "9:cpu,memory:/a\n3:pids:/b\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "67108864\n"}, 64 * MiB},
		"version 1, in a container":  {map[string]string{"proc/self/cgroup": "9:memory:/docker/1\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "67108864\n"}, 64 * MiB},
		"version 1, no limit":        {map[string]string{"proc/self/cgroup": "9:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, machine},
		"more than the machine has":  {map[string]string{"sys/fs/cgroup/memory.max": "1125899906842624\n"}, machine},
	} {
		root := t.TempDir()
		for file, text := range c.files {
			path := filepath.Join(root, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, where := allowedMemory(root); got != c.want {
			t.Errorf("%s: %d bytes are allowed by %s, want %d", name, got, where, c.want)
		}
	}
}

func TestMemoryIsTheBudgetOfTheWholeNode(t *testing.T) {
	s := parse(t, "--memory", "128MiB")
	if p := s.Problems(); len(p) > 0 {
		t.Fatal(p)
	}
	if m := s.Config(nil, "").Memory; m != server.Divide(128<<20) || m.Live == 0 || m.Live >= 128<<20 {
		t.Errorf("128 MiB are divided into %+v", m)
	}
	allowed, _ := allowedMemory("/")
	if m := parse(t).Config(nil, "").Memory; m.Live > allowed*memoryPercent/100 || m.Live < allowed/4 {
		t.Errorf("of %d bytes that are allowed, live data may take %d", allowed, m.Live)
	}
	if p := parse(t, "--memory", "900TiB").Problems(); len(p) != 1 || !strings.Contains(p[0], "allows") {
		t.Errorf("more than there is: %q", p)
	}
}
