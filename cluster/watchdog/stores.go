package watchdog

import (
	"errors"

	"github.com/hashicorp/raft"
)

type logStore struct {
	w *Watchdog
	s raft.LogStore
}

var _ raft.MonotonicLogStore = (*logStore)(nil)

func (l *logStore) IsMonotonic() bool {
	m, ok := l.s.(raft.MonotonicLogStore)
	return ok && m.IsMonotonic()
}

func (l *logStore) FirstIndex() (i uint64, err error) {
	err = l.w.do("FirstIndex", false, never, func() (err error) { i, err = l.s.FirstIndex(); return })
	return
}

func (l *logStore) LastIndex() (i uint64, err error) {
	err = l.w.do("LastIndex", false, never, func() (err error) { i, err = l.s.LastIndex(); return })
	return
}

// GetLog does not return when an entry could not be read, until the node is stopped: raft would panic, and the process
// end before it has said why. The entry without effect only lets raft come to its own end.
func (l *logStore) GetLog(index uint64, log *raft.Log) error {
	absent := func(err error) bool { return errors.Is(err, raft.ErrLogNotFound) }
	err := l.w.do("GetLog", false, absent, func() error { return l.s.GetLog(index, log) })
	if err != nil && !absent(err) && l.w.hold() {
		*log = raft.Log{Index: index, Type: raft.LogNoop}
		return nil
	}
	return err
}

func (l *logStore) StoreLog(log *raft.Log) error { return l.StoreLogs([]*raft.Log{log}) }

func (l *logStore) StoreLogs(logs []*raft.Log) error {
	return l.w.do("StoreLogs", true, never, func() error { return l.s.StoreLogs(logs) })
}

func (l *logStore) DeleteRange(min, max uint64) error {
	return l.w.do("DeleteRange", true, never, func() error { return l.s.DeleteRange(min, max) })
}

type stableStore struct {
	w *Watchdog
	s raft.StableStore
}

// notFound is how raft recognizes a missing key: by the text.
func notFound(err error) bool { return err.Error() == "not found" }

func (s *stableStore) Set(key, value []byte) error {
	return s.w.do("Set", true, never, func() error { return s.s.Set(key, value) })
}

func (s *stableStore) Get(key []byte) (v []byte, err error) {
	err = s.w.do("Get", false, notFound, func() (err error) { v, err = s.s.Get(key); return })
	return
}

// SetUint64 does not return when raft's term could not be kept, until the node is stopped: raft would panic, and the
// process end before it has said why. The nil then only lets raft come to its own end: it cannot vote or append, for
// every later write is refused, and it talks to nobody any more.
func (s *stableStore) SetUint64(key []byte, value uint64) error {
	err := s.w.do("SetUint64", true, never, func() error { return s.s.SetUint64(key, value) })
	if err != nil && string(key) == currentTerm && s.w.hold() {
		return nil
	}
	return err
}

// currentTerm is the key under which raft keeps its term.
const currentTerm = "CurrentTerm"

func (s *stableStore) GetUint64(key []byte) (v uint64, err error) {
	err = s.w.do("GetUint64", false, notFound, func() (err error) { v, err = s.s.GetUint64(key); return })
	return
}
