package settings

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxMemory returns the bytes that were set, or 60 % of what the machine or its cgroup allows.
func maxMemory(set int64) uint64 {
	if set > 0 {
		return uint64(set)
	}
	return allowedMemory("/sys/fs/cgroup") / 10 * 6
}

// allowedMemory is the smaller of the machine's memory and the limit of the control group (version 2, then 1) that
// is mounted there, as in a container. 0 is unknown.
func allowedMemory(cgroup string) uint64 {
	var info unix.Sysinfo_t
	allowed := uint64(0)
	if unix.Sysinfo(&info) == nil {
		allowed = uint64(info.Totalram) * uint64(info.Unit)
	}
	for _, name := range []string{"/memory.max", "/memory/memory.limit_in_bytes"} {
		text, err := os.ReadFile(cgroup + name)
		if err != nil {
			continue
		}
		if limit, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil && limit > 0 && (allowed == 0 || limit < allowed) {
			allowed = limit
		}
		break
	}
	return allowed
}
