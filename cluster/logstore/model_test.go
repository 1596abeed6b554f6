package logstore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/warrenmq/warren/fsm/store/vfs"
)

// Random histories of appends, truncations at both ends, emptying, restarts and losses of power in the middle of a
// call read as a model says: what returned is there, and what was interrupted happened whole or not at all.
func TestRule17RandomHistories(t *testing.T) {
	for seed := range uint64(80) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { history(t, rand.New(rand.NewPCG(seed, 17))) })
	}
}

// span is a log's first and last index, 0 and 0 when it is empty.
type span struct{ first, last uint64 }

func history(t *testing.T, r *rand.Rand) {
	mem := vfs.NewMem()
	snapshot := uint64(0)
	begin := func(fs vfs.FS) (*Store, error) {
		return Open(Options{FS: fs, Dir: "log", SegmentSize: 4096, CacheSize: r.Int64N(3000), MarkDelay: -1, SnapshotIndex: snapshot,
			NewestSnapshot: func() (uint64, error) { return snapshot, nil }})
	}
	faulty := vfs.Faulty(mem)
	s, err := begin(faulty)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if s != nil {
			s.Close()
		}
	}()
	var log span
	sizes := map[uint64]int{}
	for range 60 {
		if r.IntN(4) == 0 {
			faulty.Add(vfs.Rule{Nth: 1 + r.IntN(8), Count: -1, Short: r.IntN(2000)})
		}
		next, err := step(r, s, log, &snapshot, sizes)
		faulty.Clear()
		switch {
		case err == nil:
			log = next
			if r.IntN(6) > 0 {
				break
			}
			s.Close()
			if r.IntN(2) == 0 {
				mem.Crash(r)
			}
			if s, err = begin(faulty); err != nil {
				t.Fatal(err)
			}
		default:
			s.Close()
			mem.Crash(r)
			if s, err = begin(faulty); err != nil {
				t.Fatalf("after an interrupted step from %v to %v: %v", log, next, err)
			}
			got := held(t, s, sizes)
			if got != log && got != next {
				t.Fatalf("an interrupted step from %v to %v left %v", log, next, got)
			}
			log = got
		}
		if got := held(t, s, sizes); got != log {
			t.Fatalf("the log is %v, want %v", got, log)
		}
	}
}

// step does one thing and returns what the log is afterwards if that succeeds. Sizes are the entries' bytes; an index
// that is used again gets another size, so that an old entry does not pass for the new one.
func step(r *rand.Rand, s *Store, log span, snapshot *uint64, sizes map[uint64]int) (span, error) {
	inside := func() uint64 { return log.first + r.Uint64N(log.last-log.first+1) }
	switch what := r.IntN(10); {
	case log.last > 0 && what == 0: // compaction up to a snapshot
		at := inside()
		*snapshot = max(*snapshot, at)
		if at == log.last {
			return span{}, s.DeleteRange(log.first, at)
		}
		return span{at + 1, log.last}, s.DeleteRange(log.first, at)
	case log.last > 0 && what < 3 && log.last > *snapshot: // conflict with the leader
		at := max(inside(), *snapshot+1)
		next := span{log.first, at - 1}
		if at <= log.first {
			at, next = log.first, span{}
		}
		return next, s.DeleteRange(at, log.last)
	case what == 3: // an installed snapshot
		*snapshot = max(*snapshot, log.last) + r.Uint64N(20)
		return span{}, s.Reset(*snapshot + 1)
	}
	from := max(log.last, *snapshot*b2u(log.last == 0)) + 1
	next := span{log.first, from + r.Uint64N(8)}
	if log.first == 0 {
		next.first = from
	}
	size := r.IntN(600)
	for i := from; i <= next.last; i++ {
		sizes[i] = size
	}
	return next, s.StoreLogs(entries(from, next.last, size))
}

func b2u(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// held reads everything back.
func held(t *testing.T, s *Store, sizes map[uint64]int) (log span) {
	t.Helper()
	if _, err := fmt.Sscanf(contents(t, s), "%d-%d", &log.first, &log.last); err != nil {
		t.Fatal(err)
	}
	for i := log.first; i <= log.last && i > 0; i++ {
		var l raft.Log
		if err := s.GetLog(i, &l); err != nil || len(l.Data) != sizes[i] {
			t.Fatalf("entry %d: %v, %d bytes, want %d", i, err, len(l.Data), sizes[i])
		}
	}
	for _, outside := range []uint64{log.first - 1, log.last + 1} {
		if err := s.GetLog(outside, new(raft.Log)); !errors.Is(err, raft.ErrLogNotFound) {
			t.Fatalf("entry %d outside of %v: %v", outside, log, err)
		}
	}
	return log
}
