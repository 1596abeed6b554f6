package fsm

import (
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/raft"
)

// FSM returns the machine as hashicorp/raft drives it. Results reach the broker through the Observer; futures carry
// the []Result, or the error after which the process must end.
func (m *Machine) FSM() raft.FSM { return raftFSM{m} }

type raftFSM struct{ m *Machine }

func (f raftFSM) Apply(entry *raft.Log) any {
	results, err := f.m.Apply(entry.Index, entry.Term, entry.Data)
	if err == nil {
		return results
	}
	err = fmt.Errorf("apply log entry: %w", err)
	if f.m.options.OnFatal == nil {
		panic(err)
	}
	f.m.options.OnFatal(err)
	return err
}

// StoreConfiguration is there so that a snapshot is not refused after a change of membership (rule 16).
func (f raftFSM) StoreConfiguration(uint64, raft.Configuration) {}

// Snapshot takes references to the state; see takeSnapshot for what it costs.
func (f raftFSM) Snapshot() (raft.FSMSnapshot, error) {
	s, err := f.m.takeSnapshot()
	if err != nil {
		return nil, err
	}
	return raftSnapshot{s}, nil
}

// Restore replaces the state. After an error the machine applies nothing and takes no snapshot until another Restore
// succeeds: at start raft tries an older snapshot; an error inside an install raft only logs, and the next entry then
// ends the process instead of going on with the old state.
func (f raftFSM) Restore(r io.ReadCloser) error {
	err := errors.Join(f.m.restore(r, false), r.Close())
	if err != nil {
		f.m.mu.Lock()
		f.m.failed = fmt.Errorf("the last restore failed: %w", err)
		f.m.mu.Unlock()
	}
	return err
}

// raftSnapshot is a snapshot as raft uses it.
type raftSnapshot struct{ s *snapshot }

// Persist writes into the snapshot store's sink, which raft closes or cancels.
func (s raftSnapshot) Persist(sink raft.SnapshotSink) error { return s.s.persist(sink) }

func (s raftSnapshot) Release() { s.s.release() }
