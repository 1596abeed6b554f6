package fsm

import (
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/raft"

	"github.com/warrenmq/warren/fsm/store"
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

// Reset empties the machine, so that it takes the first entry of the log, at a start at which no snapshot could be
// restored or none as a whole.
func (f raftFSM) Reset() error {
	f.m.applying.Lock()
	defer f.m.applying.Unlock()
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	old := f.m.files
	f.m.state, f.m.files, f.m.hashes, f.m.failed = genesis(), nil, hashRing{}, nil
	f.m.exchanges.Add(1)
	if f.m.root != nil {
		f.m.files, f.m.failed = f.m.root.make()
	}
	if old != nil {
		old.dir.Retire()
	}
	return f.m.failed
}

// Unreadable reports whether an error of Restore says that the snapshot's own bytes are damaged: the same snapshot
// fails every time. Any other error (no room, too many open files, a newer format) is not the snapshot's fault.
func Unreadable(err error) bool {
	var damage *store.Damage
	return errors.Is(err, store.ErrManifest) || errors.As(err, &damage)
}

// raftSnapshot is a snapshot as raft uses it.
type raftSnapshot struct{ s *snapshot }

// Persist writes into the snapshot store's sink, which raft closes or cancels.
func (s raftSnapshot) Persist(sink raft.SnapshotSink) error { return s.s.persist(sink) }

func (s raftSnapshot) Release() { s.s.release() }
