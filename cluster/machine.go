package cluster

import (
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// machine stands between raft and the state machine. It counts what is applied and lets others wait for an index:
// raft's own applied index runs ahead, it is that of entries handed over.
type machine struct {
	fsm     raft.FSM
	observe func(time.Duration) // may be nil
	report  func() Report
	fatal   func(error)
	newest  func() uint64 // index of the newest snapshot

	progress func() Progress // of a restore; may be nil
	log      *slog.Logger

	restored func() // a snapshot of the leader's was restored

	bytes   atomic.Int64  // of entries applied since the last snapshot began
	applied atomic.Uint64 // last command applied
	waiting atomic.Int32

	replaced atomic.Bool // a snapshot of the leader's has taken the place of what was restored at the start

	mu      sync.Mutex // guards changed
	changed chan struct{}
}

var (
	_ raft.FSM                = (*machine)(nil)
	_ raft.ConfigurationStore = (*machine)(nil)
)

func (m *machine) Apply(l *raft.Log) any {
	began := time.Now()
	result := m.fsm.Apply(l)
	if m.observe != nil {
		m.observe(time.Since(began))
	}
	if err, failed := result.(error); failed {
		m.fatal(err)
	}
	m.bytes.Add(int64(len(l.Data)))
	m.advance(l.Index)
	return result
}

func (m *machine) advance(index uint64) {
	m.applied.Store(index)
	if m.waiting.Load() == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.changed != nil {
		close(m.changed)
		m.changed = nil
	}
}

// StoreConfiguration makes a snapshot possible after a change of membership without traffic (rule 16).
func (m *machine) StoreConfiguration(index uint64, c raft.Configuration) {
	if s, ok := m.fsm.(raft.ConfigurationStore); ok {
		s.StoreConfiguration(index, c)
	}
}

func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	m.bytes.Store(0)
	return m.fsm.Snapshot()
}

// Restore is raft's, of a snapshot that the leader sent.
func (m *machine) Restore(r io.ReadCloser) error {
	m.replaced.Store(true)
	err := m.restore(r, m.newest())
	if err == nil {
		m.restored()
	}
	return err
}

// restore restores a snapshot that was taken at an index.
func (m *machine) restore(r io.ReadCloser, index uint64) error {
	done := m.tellRestore()
	err := m.fsm.Restore(r)
	done(err)
	if err != nil {
		return err
	}
	m.bytes.Store(0)
	if m.report != nil {
		index = m.report().AppliedIndex
	}
	m.advance(index)
	return nil
}

// wait returns true once the index is applied, false when done closes first.
func (m *machine) wait(index uint64, done <-chan struct{}) bool {
	m.waiting.Add(1)
	defer m.waiting.Add(-1)
	for {
		m.mu.Lock()
		if m.changed == nil {
			m.changed = make(chan struct{})
		}
		changed := m.changed
		m.mu.Unlock()
		if m.applied.Load() >= index {
			return true
		}
		select {
		case <-changed:
		case <-done:
			return m.applied.Load() >= index
		}
	}
}
