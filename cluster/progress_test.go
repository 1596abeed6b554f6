package cluster

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/raft"
)

// slow is a state machine whose restore and first entries wait until the log tells of them.
type slow struct {
	lines
	told func(words ...string) // waits
	said sync.Once
}

func (s *slow) Restore(r io.ReadCloser) error {
	s.told("restoring the state", "phase=snapshot", "percent=40", "messages=4", "of=10", "bytes=400")
	return s.lines.Restore(r)
}

func (s *slow) Apply(l *raft.Log) any {
	if strings.HasPrefix(string(l.Data), "second") {
		s.said.Do(func() { s.told("replaying the log", "phase=log", "percent=50", "entries=1", "of=2") })
	}
	return s.lines.Apply(l)
}

// written is what a log has so far.
type written struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *written) has(words ...string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
lines:
	for line := range strings.Lines(w.b.String()) {
		for _, word := range words {
			if !strings.Contains(line, word) {
				continue lines
			}
		}
		return true
	}
	return false
}

// A start that takes long tells once a second how far it is: first with the snapshot, then with the log behind it.
func TestAStartTellsHowFarItIs(t *testing.T) {
	c := soloConfig(t)
	c.SnapshotBytes = 1 << 20
	n := start(t, c)
	eventually(t, "leadership", func() bool { return n.Leadership().Local })
	proposeMany(t, n, 0, 3)
	if err := n.Snapshot(); err != nil {
		t.Fatal(err)
	}
	for _, entry := range []string{"first", "second"} {
		if err := n.propose(t, entry); err != nil {
			t.Fatal(err)
		}
	}
	n.stop(t)

	log := new(written)
	told := func(words ...string) {
		t.Helper()
		eventually(t, strings.Join(words, " "), func() bool { return log.has(words...) })
	}
	c = n.config
	machine := &slow{told: told}
	c.FSM, c.Report, c.Logger = machine, machine.report, slog.New(slog.NewTextHandler(log, nil))
	c.Restoring = func() Progress { return Progress{Messages: 4, Of: 10, Bytes: 400, OfBytes: 1000} }
	again, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := again.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	told("restored the state", "percent=100", "took=")
	told("replayed the log", "percent=100", "entries=2", "took=")
}
