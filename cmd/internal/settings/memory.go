package settings

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// memoryPercent of what the machine or its control groups allow is the budget unless one is set.
const memoryPercent = 60

// budget returns the bytes that the node may take as a whole, 0 when nothing is set and nothing is known.
func (s *Serve) budget() uint64 {
	if s.Memory.Bytes > 0 {
		return uint64(s.Memory.Bytes)
	}
	allowed, _ := allowedMemory("/")
	return max(allowed/100*memoryPercent, min(minMemory, allowed))
}

// LimitMemory has the runtime collect garbage in time for the process to stay within the budget. GOMEMLIMIT holds when
// it asks for less.
func (s *Serve) LimitMemory() {
	if budget := s.budget(); budget > 0 && budget < uint64(debug.SetMemoryLimit(-1)) {
		debug.SetMemoryLimit(int64(budget))
	}
}

// checkMemory refuses a budget that the machine or a control group would not grant: the process would be killed for it.
func (s *Serve) checkMemory(c *check) {
	if s.Memory.problem == "" && s.Memory.Bytes == 0 {
		return
	}
	c.size("memory", s.Memory, minMemory, 1<<50)
	if allowed, where := allowedMemory("/"); allowed > 0 && uint64(s.Memory.Bytes) > allowed {
		c.add("memory", "%d MiB is more than the %d MiB that %s allows: the system would end the process", s.Memory.Bytes>>20, allowed>>20, where)
	}
}

// allowedMemory is the least of the machine's memory and the limits of the control groups (version 1 or 2) that this
// process is in, and who sets it. 0 is unknown. root is / but in tests.
func allowedMemory(root string) (allowed uint64, where string) {
	allowed, where = math.MaxUint64, ""
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		allowed, where = uint64(info.Totalram)*uint64(info.Unit), "the machine"
	}
	for _, file := range limitFiles(root) {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if limit, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil && limit > 0 && limit < allowed {
			allowed, where = limit, fmt.Sprintf("the control group (%s)", file)
		}
	}
	if where == "" {
		return 0, ""
	}
	return allowed, where
}

// limitFiles are the files that may limit this process: those of its control group and of all above it. Inside a
// container the group has a name that is not to be seen; the one at the top is the container's then.
func limitFiles(root string) (files []string) {
	dirs := []struct {
		mount string
		names []string
	}{{"sys/fs/cgroup", []string{"memory.max", "memory.high"}}, {"sys/fs/cgroup/memory", []string{"memory.limit_in_bytes"}}}
	groups, _ := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	for _, d := range dirs {
		group := "/"
		for _, line := range strings.Split(string(groups), "\n") { // number:controllers:path; version 2 names none
			if parts := strings.SplitN(line, ":", 3); len(parts) == 3 && (d.mount == "sys/fs/cgroup" && parts[1] == "" || hasController(parts[1])) {
				group = filepath.Clean("/" + parts[2])
			}
		}
		for ; ; group = filepath.Dir(group) {
			for _, name := range d.names {
				files = append(files, filepath.Join(root, d.mount, group, name))
			}
			if group == "/" {
				break
			}
		}
	}
	return files
}

func hasController(list string) bool {
	for _, c := range strings.Split(list, ",") {
		if c == "memory" {
			return true
		}
	}
	return false
}
