package logstore

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/warrenmq/warren/fsm/store/vfs"
)

// Readers see each entry as it was stored or not at all while the log is cut at both ends, rolled and reused.
func TestReadersDuringTruncation(t *testing.T) {
	s := open(t, small(vfs.NewMem()))
	var top atomic.Uint64
	top.Store(1)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for n := range 3 {
		readers.Go(func() {
			r := rand.New(rand.NewPCG(uint64(n), 1))
			for {
				select {
				case <-stop:
					return
				default:
				}
				i := 1 + r.Uint64N(top.Load())
				var l raft.Log
				switch err := s.GetLog(i, &l); {
				case errors.Is(err, raft.ErrLogNotFound):
				case err != nil || l.Index != i || len(l.Data) == 0 || l.Data[0] != byte(i) || l.Data[len(l.Data)-1] != byte(i):
					t.Errorf("entry %d: %v, %d bytes of entry %d", i, err, len(l.Data), l.Index)
					return
				}
				s.BytesSince(i)
				s.Complete()
			}
		})
	}
	first, last := uint64(1), uint64(0)
	for round := range 400 {
		store(t, s, entries(last+1, last+5, 300))
		last += 5
		top.Store(last)
		var err error
		switch round % 5 {
		case 1, 3:
			err = s.DeleteRange(last-6, last)
			last -= 7
		case 4:
			err = s.DeleteRange(first, last-4)
			first = last - 3
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	readers.Wait()
}

func onDisk(t *testing.T, name string) int64 {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		t.Skip("this system does not tell a file's blocks")
	}
	return st.Blocks * 512
}

// A segment that the log leaves, because its end was cut or because the next group did not fit, keeps no space behind
// its last entry.
func TestLeftSegmentsGiveTheirSpaceBack(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Options{Dir: dir, SegmentSize: 1 << 20, MarkDelay: -1})
	store(t, s, entries(1, 10, 1000))
	name := filepath.Join(dir, segmentName(s.segments[0].generation))
	store(t, s, entries(11, 300, 1000))
	if err := s.DeleteRange(11, 300); err != nil {
		t.Fatal(err)
	}
	if n := onDisk(t, name); n > 64<<10 {
		t.Errorf("a segment cut to 10 entries of 1 KB has %d bytes on disk", n)
	}
	left := s.segments[1]
	store(t, s, entries(11, 20, 1000))
	store(t, s, []*raft.Log{entry(21, 1<<20)}) // does not fit: a segment of its own
	if n := onDisk(t, filepath.Join(dir, segmentName(left.generation))); n > 64<<10 {
		t.Errorf("a segment left early has %d bytes on disk", n)
	}
	s.Close()
	if got := contents(t, open(t, Options{Dir: dir})); got != "1-21" {
		t.Error(got)
	}
}

// A segment that one huge group made large is removed when it is emptied, not reused; so is a free one found at Open.
func TestOversizedSegmentsAreNotKept(t *testing.T) {
	mem := vfs.NewMem()
	s := open(t, small(mem))
	store(t, s, entries(1, 1, 20000))
	if err := s.DeleteRange(1, 1); err != nil {
		t.Fatal(err)
	}
	names, _ := mem.ReadDir("log")
	for _, name := range names {
		if info, _ := mem.Stat("log/" + name); info.Size() > 8192 {
			t.Errorf("%s has %d bytes", name, info.Size())
		}
	}
	s.Close()
	const free = "log/free-00000000000000ff"
	f, err := mem.OpenFile(free, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteAt(make([]byte, 20000), 0)
	f.Close()
	open(t, small(mem))
	if _, err := mem.Stat(free); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the large free segment is still there: %v", err)
	}
}

// raft empties the log after it installed a snapshot; if that snapshot is lost afterwards, the next start sees it,
// whether or not entries followed it.
func TestRule17LostSnapshotAfterInstallIsSeen(t *testing.T) {
	for _, followed := range []bool{false, true} {
		mem := vfs.NewMem()
		snapshot := uint64(0)
		opt := small(mem)
		opt.SnapshotIndex = 0
		opt.NewestSnapshot = func() (uint64, error) { return snapshot, nil }
		s := open(t, opt)
		store(t, s, entries(1, 20, 10))
		snapshot = 12 // the leader's; 13 to 20 were never committed
		if err := s.DeleteRange(1, 20); err != nil {
			t.Fatal(err)
		}
		if got := s.Complete(); got != 12 {
			t.Errorf("complete up to %d after the snapshot at 12 replaced the log", got)
		}
		want := "0-0"
		if followed {
			store(t, s, entries(13, 15, 10))
			want = "13-15"
		}
		s.Close()
		opt.SnapshotIndex = 11
		if d := damaged(t, opt); d.Index != 12 {
			t.Errorf("entry 12 is missing; reported: %v", d)
		}
		opt.SnapshotIndex = 12
		if got := contents(t, open(t, opt)); got != want {
			t.Error(got)
		}
	}
}

func TestRule17EmptyingFailsWithoutTheSnapshotsIndex(t *testing.T) {
	opt := small(vfs.NewMem())
	opt.NewestSnapshot = func() (uint64, error) { return 0, os.ErrPermission }
	s := open(t, opt)
	store(t, s, entries(1, 3, 10))
	if err := s.DeleteRange(1, 3); !errors.Is(err, os.ErrPermission) {
		t.Error(err)
	}
}
