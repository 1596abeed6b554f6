package settings

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAContainersLimitCounts(t *testing.T) {
	dir := t.TempDir()
	machine := allowedMemory(dir)
	if machine == 0 {
		t.Fatal("the machine's memory is unknown")
	}
	limit := filepath.Join(dir, "memory.max")
	for text, want := range map[string]uint64{"max\n": machine, "67108864\n": 64 << 20} {
		if err := os.WriteFile(limit, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := allowedMemory(dir); got != want {
			t.Errorf("with a limit of %q %d bytes are allowed, want %d", text, got, want)
		}
	}
	if got := maxMemory(123 << 20); got != 123<<20 {
		t.Errorf("a setting of 123 MiB counts as %d bytes", got)
	}
}
