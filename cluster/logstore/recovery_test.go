package logstore

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/warrenmq/warren/fsm/store/vfs"
)

// open opens a log that must be sound.
func open(t *testing.T, opt Options) *Store {
	t.Helper()
	s, err := Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func store(t *testing.T, s *Store, logs []*raft.Log) {
	t.Helper()
	if err := s.StoreLogs(logs); err != nil {
		t.Fatal(err)
	}
}

func damaged(t *testing.T, opt Options) *DamageError {
	t.Helper()
	s, err := Open(opt)
	if err == nil {
		s.Close()
	}
	var d *DamageError
	if !errors.As(err, &d) {
		t.Fatalf("the log opens with %v, not with damage", err)
	}
	return d
}

// overwrite puts bytes into a segment behind the log's back.
func overwrite(t *testing.T, fs vfs.FS, generation uint64, off int64, b []byte) {
	t.Helper()
	f, err := fs.OpenFile("log/"+segmentName(generation), os.O_RDWR, 0)
	if err == nil {
		_, err = f.WriteAt(b, off)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}

// group is what StoreLogs would write next.
func group(s *Store, logs []*raft.Log) []byte {
	s.encode(logs, s.segments[len(s.segments)-1])
	return append([]byte(nil), s.buf...)
}

// The group after the last synced one, cut at any byte, is dropped, and the log goes on in its place.
func TestRule17TornTailIsCut(t *testing.T) {
	whole := group(open(t, small(vfs.NewMem())), entries(1, 2, 30))
	for cut := 0; cut <= len(whole); cut++ {
		mem := vfs.NewMem()
		s := open(t, small(mem))
		store(t, s, entries(1, 3, 50))
		generation, end := s.segments[0].generation, s.segments[0].end
		next := group(s, entries(4, 5, 30))
		s.Close()
		overwrite(t, mem, generation, end, next[:cut])
		s = open(t, small(mem))
		want := "1-3"
		if cut == len(next) {
			want = "1-5" // written whole and not acknowledged: it may stay
		}
		if got := contents(t, s); got != want {
			t.Fatalf("cut at byte %d of %d: %s, want %s", cut, len(next), got, want)
		}
		last, _ := s.LastIndex()
		store(t, s, entries(last+1, 9, 10))
		s.Close()
		if got := contents(t, open(t, small(mem))); got != "1-9" {
			t.Fatalf("cut at byte %d: %s after going on", cut, got)
		}
	}
}

// A torn tail may be cut, but not if a readable group follows it: that one says it had been synced.
func TestRule17ABadGroupBeforeAGoodOneIsDamage(t *testing.T) {
	mem := vfs.NewMem()
	s := open(t, small(mem))
	store(t, s, entries(1, 3, 50)) // the mark does not follow: MarkDelay is negative
	at := s.segments[0].end
	store(t, s, entries(4, 4, 50))
	store(t, s, entries(5, 5, 50))
	overwrite(t, mem, s.segments[0].generation, at+groupHeaderSize+recordHeaderSize, []byte{99})
	mem.Crash(nil)
	if d := damaged(t, small(mem)); d.Index != 4 || d.Offset != at {
		t.Errorf("entry 4 at byte %d is bad; reported: %v", at, d)
	}
}

// A reused segment still holds its former entries, which would be the right ones to follow; they do not count.
func TestRule17OldBytesInARecycledSegmentAreNotEntries(t *testing.T) {
	mem := vfs.NewMem()
	s := open(t, small(mem))
	for i := uint64(1); i <= 5; i++ {
		store(t, s, entries(i, i, 100))
	}
	old := s.segments[0].end
	if err := s.DeleteRange(1, 5); err != nil { // the first segment becomes free
		t.Fatal(err)
	}
	if err := s.Reset(1); err != nil { // and is taken again
		t.Fatal(err)
	}
	store(t, s, entries(1, 1, 100))
	now := s.segments[0]
	if info, _ := now.file.Stat(); info.Size() != old || now.end >= old {
		t.Fatalf("the segment was not reused: %d bytes, %d in use", info.Size(), now.end)
	}
	mem.Crash(nil)
	if got := contents(t, open(t, small(mem))); got != "1-1" {
		t.Errorf("%s after reuse", got)
	}
}

func TestRule17EverySegmentHasItsOwnSeed(t *testing.T) {
	a := segmentHeader{generation: 1, salt: newSalt()}
	b := segmentHeader{generation: 2, salt: a.salt}
	c := segmentHeader{generation: 1, salt: a.salt + 1}
	if a.seed() == b.seed() || a.seed() == c.seed() {
		t.Errorf("seeds %08x, %08x, %08x", a.seed(), b.seed(), c.seed())
	}
}

// Headers of groups behind the tail count only if they belong to this use of the segment and to their place.
func TestRule17StaleGroupHeadersAreNotDamage(t *testing.T) {
	for name, c := range map[string]struct {
		seed, shift int64
		damage      bool
	}{
		"of another segment": {seed: 1},
		"of another place":   {shift: 8},
		"of this place":      {damage: true},
	} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			s := open(t, small(mem))
			store(t, s, entries(1, 3, 50))
			seg := s.segments[0]
			off := seg.end + 64
			header := make([]byte, groupHeaderSize)
			groupHeader{synced: 9, first: 10, length: 40, count: 1}.put(header, off+c.shift, seg.seeded+uint32(c.seed))
			s.Close()
			overwrite(t, mem, seg.generation, off, header)
			if c.damage {
				damaged(t, small(mem))
			} else if got := contents(t, open(t, small(mem))); got != "1-3" {
				t.Error(got)
			}
		})
	}
}

// After MarkDelay without appends the mark covers everything: from then on a cut tail is seen.
func TestRule17IdleMarker(t *testing.T) {
	for _, idle := range []bool{false, true} {
		t.Run(fmt.Sprint("idle ", idle), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem := vfs.NewMem()
				opt := small(mem)
				opt.MarkDelay, opt.SnapshotIndex = time.Second, 0
				s := open(t, opt)
				store(t, s, entries(1, 2, 50))
				seg := s.segments[0]
				last := int64(seg.entries[1].off)
				if idle {
					<-time.After(opt.MarkDelay)
				} else {
					<-time.After(opt.MarkDelay - 1)
				}
				synctest.Wait()
				overwrite(t, mem, seg.generation, last, make([]byte, recordHeaderSize))
				mem.Crash(nil)
				if idle {
					if d := damaged(t, opt); d.Offset != segmentHeaderSize {
						t.Error(d)
					}
				} else if got := contents(t, open(t, opt)); got != "0-0" {
					t.Error(got) // the limitation that the package's documentation names
				}
				s.Close()
			})
		})
	}
}

// Open holds one segment in memory at a time and uses its memory again for the next.
func TestOpenReadsOneSegmentAtATime(t *testing.T) {
	mem := vfs.NewMem()
	opt := small(mem)
	s := open(t, opt)
	for i := uint64(1); i <= 64; i += 4 {
		store(t, s, entries(i, i+3, 900))
	}
	if len(s.segments) < 10 {
		t.Fatalf("only %d segments", len(s.segments))
	}
	s.Close()
	fault := vfs.Faulty(mem)
	opt.FS = fault
	// Reading a segment's body fails at the third one: the headers of all have been read by then, no body has.
	fault.Add(vfs.Rule{Op: vfs.OpRead, Path: "seg-*", Nth: len(s.segments) + 3})
	if _, err := Open(opt); err == nil {
		t.Error("the failing read was not made")
	}
	fault.Clear()
	if got := contents(t, open(t, opt)); got != "1-64" {
		t.Error(got)
	}
}
