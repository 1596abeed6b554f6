package fsm

import (
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/raft"
)

// ErrNoSnapshots says that the whole state cannot be written or read yet: the log is kept from its beginning.
var ErrNoSnapshots = errors.New("snapshots of the state machine are not built yet")

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

func (f raftFSM) Snapshot() (raft.FSMSnapshot, error) { return nil, ErrNoSnapshots }

func (f raftFSM) Restore(r io.ReadCloser) error { return errors.Join(ErrNoSnapshots, r.Close()) }
