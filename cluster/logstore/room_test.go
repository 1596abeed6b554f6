package logstore

import (
	"syscall"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/warrenmq/warren/fsm/store/vfs"
)

// TestSegmentsWithoutRoomToAllocate: a disk with no room for a whole segment ahead has room for entries.
func TestSegmentsWithoutRoomToAllocate(t *testing.T) {
	mem := vfs.NewMem()
	s, err := Open(Options{FS: vfs.Faulty(mem, vfs.Rule{Op: vfs.OpAllocate, Count: -1, Err: syscall.ENOSPC}), Dir: "log", SegmentSize: 4 << 10, SnapshotIndex: 150})
	if err != nil {
		t.Fatal(err)
	}
	const entries = 200
	for i := range uint64(entries) {
		if err := s.StoreLog(&raft.Log{Index: i + 1, Term: 1, Data: make([]byte, 100)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.DeleteRange(1, 150); err != nil { // the next segments take the place of old ones
		t.Fatal(err)
	}
	if err := s.StoreLogs([]*raft.Log{{Index: entries + 1, Term: 1, Data: make([]byte, 8000)}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(Options{FS: mem, Dir: "log", SegmentSize: 4 << 10, SnapshotIndex: 150})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if last, err := again.LastIndex(); last != entries+1 || err != nil {
		t.Errorf("the log ends with %d, %v", last, err)
	}
}
