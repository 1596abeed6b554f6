package snapshotstore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/warrenmq/warren/fsm/store/vfs"
)

var configuration = raft.Configuration{Servers: []raft.Server{{Suffrage: raft.Voter, ID: "a", Address: "a"}}}

func newStore(t *testing.T, files vfs.FS, retain int) *Store {
	t.Helper()
	s, err := New(files, "/data/snapshots", retain, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newFS(t *testing.T) *vfs.Mem {
	t.Helper()
	mem := vfs.NewMem()
	if err := errors.Join(mem.MkdirAll("/data", 0o750), mem.SyncDir("/")); err != nil {
		t.Fatal(err)
	}
	return mem
}

func writeFile(t *testing.T, files vfs.FS, name string, b []byte) {
	t.Helper()
	f, err := files.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(b)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// take makes a snapshot of text and of ranges of a file.
func take(s *Store, index uint64, text, file string, ranges [][2]int64) (string, error) {
	raw, err := s.Create(1, index, 2, configuration, 1, nil)
	if err != nil {
		return "", err
	}
	if _, err := io.WriteString(raw, text); err != nil {
		raw.Cancel()
		return "", err
	}
	if file != "" {
		if err := raw.(*sink).Refer(file, ranges); err != nil {
			raw.Cancel()
			return "", err
		}
	}
	if _, err := io.WriteString(raw, "|end"); err != nil {
		raw.Cancel()
		return "", err
	}
	return raw.ID(), raw.Close()
}

func read(s *Store, id string) (string, error) {
	meta, r, err := s.Open(id)
	if err != nil {
		return "", err
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err == nil && int64(len(b)) != meta.Size {
		err = fmt.Errorf("the stream has %d bytes, meta.Size is %d", len(b), meta.Size)
	}
	return string(b), err
}

// TestStreamOfBytesAndFiles: what was written and referred to comes back as one stream of exactly meta.Size bytes,
// and stays readable when the file's first name is gone.
func TestStreamOfBytesAndFiles(t *testing.T) {
	mem := newFS(t)
	s := newStore(t, mem, 2)
	writeFile(t, mem, "/data/queue.messages", []byte("0123456789"))
	id, err := take(s, 5, "head|", "/data/queue.messages", [][2]int64{{0, 2}, {4, 5}, {8, 10}})
	if err != nil {
		t.Fatal(err)
	}
	if err := mem.Remove("/data/queue.messages"); err != nil {
		t.Fatal(err)
	}
	if got, err := read(s, id); err != nil || got != "head|01489|end" {
		t.Errorf("stream %q, error %v", got, err)
	}
	metas, err := s.List()
	if err != nil || len(metas) != 1 || metas[0].ID != id || metas[0].Index != 5 || metas[0].Term != 2 ||
		metas[0].Configuration.Servers[0].ID != "a" || metas[0].ConfigurationIndex != 1 {
		t.Errorf("list %+v, error %v", metas, err)
	}
	_, r, err := s.Open(id)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if name, ok := r.(*reader).Referred("queue.messages"); !ok || name != path.Join("/data/snapshots", id, "files/queue.messages") {
		t.Errorf("referred to at %q, %v", name, ok)
	}
	if _, ok := r.(*reader).Referred("other"); ok {
		t.Error("a file is referred to that never was")
	}
}

// TestRangesFarApart reads ranges near and far, larger and smaller than the buffers.
func TestRangesFarApart(t *testing.T) {
	mem := newFS(t)
	s := newStore(t, mem, 2)
	content := make([]byte, 3<<20)
	for i := range content {
		content[i] = byte(i * 7 >> 3)
	}
	writeFile(t, mem, "/data/big.messages", content)
	ranges := [][2]int64{{1, 2}, {100, 300_000}, {300_001, 300_001 + 500}, {1 << 20, 1<<20 + 700_000}, {2 << 20, 3 << 20}}
	var want bytes.Buffer
	want.WriteString("head")
	for _, r := range ranges {
		want.Write(content[r[0]:r[1]])
	}
	want.WriteString("|end")
	id, err := take(s, 5, "head", "/data/big.messages", ranges)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := read(s, id); err != nil || got != want.String() {
		t.Errorf("stream of %d bytes differs from the %d expected, error %v", len(got), want.Len(), err)
	}
}

// TestCloseAndCancelAgain: Close twice is fine, Cancel after it takes nothing away, Close after Cancel makes nothing.
func TestCloseAndCancelAgain(t *testing.T) {
	mem := newFS(t)
	s := newStore(t, mem, 2)
	k, _ := s.Create(1, 1, 1, configuration, 1, nil)
	if err := errors.Join(k.Close(), k.Close(), k.Cancel()); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Write([]byte("late")); err == nil {
		t.Error("a closed snapshot takes bytes")
	}
	k, _ = s.Create(1, 2, 1, configuration, 1, nil)
	if err := errors.Join(k.Cancel(), k.Close(), k.Cancel()); err != nil {
		t.Fatal(err)
	}
	if metas, _ := s.List(); len(metas) != 1 || metas[0].Index != 1 {
		t.Errorf("%d snapshots are left", len(metas))
	}
}

// TestReapingSparesWhatIsRead: only the newest are kept, newest first; one being read goes when its reader closes.
func TestReapingSparesWhatIsRead(t *testing.T) {
	mem := newFS(t)
	s := newStore(t, mem, 2)
	first, err := take(s, 1, "one", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, r, err := s.Open(first)
	if err != nil {
		t.Fatal(err)
	}
	for i := uint64(2); i <= 12; i++ {
		if _, err := take(s, i, "more", "", nil); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := io.ReadAll(r); err != nil || string(b) != "one|end" {
		t.Errorf("the snapshot being read is %q, %v", b, err)
	}
	if names, _ := mem.ReadDir("/data/snapshots"); len(names) != 3 {
		t.Errorf("kept %v", names)
	}
	if err := errors.Join(r.Close(), r.Close()); err != nil {
		t.Fatal(err)
	}
	if names, _ := mem.ReadDir("/data/snapshots"); len(names) != 2 {
		t.Errorf("kept %v", names)
	}
	metas, err := s.List()
	if err != nil || len(metas) != 2 || metas[0].Index != 12 || metas[1].Index != 11 {
		t.Errorf("list %v, error %v", metas, err)
	}
}

// TestAnyFailingCallLeavesTheOldSnapshot lets each file system call of a snapshot fail: it then either reports an
// error and is not listed, or is whole; the snapshot before it is there in any case, also after a loss of power.
func TestAnyFailingCallLeavesTheOldSnapshot(t *testing.T) {
	for nth := 1; ; nth++ {
		mem := newFS(t)
		if _, err := take(newStore(t, mem, 2), 1, "old", "", nil); err != nil {
			t.Fatal(err)
		}
		writeFile(t, mem, "/data/queue.messages", []byte("0123456789"))
		faulty := vfs.Faulty(mem)
		s := newStore(t, faulty, 2)
		before := faulty.Calls()
		faulty.Add(vfs.Rule{Nth: nth})
		_, err := take(s, 2, "new", "/data/queue.messages", [][2]int64{{1, 3}})
		made := faulty.Calls() - before
		mem.Crash(nil)
		s = newStore(t, mem, 2)
		metas, listErr := s.List()
		if listErr != nil || len(metas) == 0 {
			t.Fatalf("call %d: list %v, %v", nth, metas, listErr)
		}
		if err == nil && metas[0].Index != 2 {
			t.Fatalf("call %d: the snapshot was complete and is gone", nth)
		}
		for i, want := range []string{"new12|end", "old|end"}[2-len(metas):] {
			if got, err := read(s, metas[i].ID); err != nil || got != want {
				t.Fatalf("call %d: snapshot %d is %q, %v", nth, i, got, err)
			}
		}
		if names, _ := mem.ReadDir("/data/snapshots"); strings.Contains(fmt.Sprint(names), temporary) {
			t.Fatalf("call %d: left %v", nth, names)
		}
		if made < nth {
			return
		}
	}
}

// TestDamagedSnapshotIsNamed flips each bit group of the meta and layout files and cuts the stream short.
func TestDamagedSnapshotIsNamed(t *testing.T) {
	for _, name := range []string{metaFile, layoutFile} {
		for at := int64(0); ; at++ {
			mem := newFS(t)
			s := newStore(t, mem, 2)
			id, err := take(s, 1, "text", "", nil)
			if err != nil {
				t.Fatal(err)
			}
			file := path.Join("/data/snapshots", id, name)
			if info, _ := mem.Stat(file); at == info.Size() {
				break
			}
			if err := vfs.FlipBit(mem, file, at*8); err != nil {
				t.Fatal(err)
			}
			_, _, err = s.Open(id)
			var damage *ErrDamaged
			if !errors.As(err, &damage) || damage.File != file {
				t.Fatalf("byte %d of %s: error %v", at, name, err)
			}
		}
	}
	mem := newFS(t)
	s := newStore(t, mem, 2)
	id, _ := take(s, 1, "text", "", nil)
	writeFile(t, mem, path.Join("/data/snapshots", id, streamFile), []byte("te"))
	var damage *ErrDamaged
	if _, _, err := s.Open(id); !errors.As(err, &damage) || damage.Offset != 2 {
		t.Errorf("short stream: error %v", err)
	}
}

// TestADamagedStreamIsNeverReadToItsEnd flips each byte of the stream file: whoever copies the stream notices before
// it has as many bytes as the snapshot.
func TestADamagedStreamIsNeverReadToItsEnd(t *testing.T) {
	for at := int64(0); at < int64(len("head||end")); at++ {
		mem := newFS(t)
		s := newStore(t, mem, 2)
		writeFile(t, mem, "/data/queue.messages", []byte("0123456789"))
		id, err := take(s, 1, "head|", "/data/queue.messages", [][2]int64{{1, 3}})
		if err != nil {
			t.Fatal(err)
		}
		if err := vfs.FlipBit(mem, path.Join("/data/snapshots", id, streamFile), at*8); err != nil {
			t.Fatal(err)
		}
		meta, r, err := s.Open(id)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		var damage *ErrDamaged
		if !errors.As(err, &damage) || int64(len(b)) >= meta.Size {
			t.Errorf("byte %d: %d bytes of %d, %v", at, len(b), meta.Size, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestSetAside takes a snapshot out of the list and leaves it on disk, whatever is reaped.
func TestSetAside(t *testing.T) {
	mem := newFS(t)
	s := newStore(t, mem, 1)
	id, err := take(s, 30, "text", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if i := IndexOf(id); i != 30 {
		t.Error("the index is", i)
	}
	to, err := s.SetAside(id)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(3) {
		if _, err := take(newStore(t, mem, 1), 31+i, "more", "", nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := mem.Stat(path.Join(to, streamFile)); err != nil {
		t.Error(err)
	}
	metas, broken, err := s.Look()
	if err != nil || len(metas) != 1 || metas[0].Index != 33 || len(broken) > 0 {
		t.Errorf("list %v, broken %v, %v", metas, broken, err)
	}
}

// A snapshot whose meta file cannot be read just now is not left out: raft would take an older one for the newest.
func TestASnapshotDoesNotSeemToBeGone(t *testing.T) {
	mem := vfs.NewMem()
	faulty := vfs.Faulty(mem)
	s := newStore(t, faulty, 2)
	for _, index := range []uint64{30, 40} {
		if _, err := take(s, index, "text", "", nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, op := range []vfs.Op{vfs.OpOpen, vfs.OpStat, vfs.OpRead} {
		faulty.Add(vfs.Rule{Op: op, Path: metaFile, Nth: 2})
		if metas, err := s.List(); !errors.Is(err, syscall.EIO) {
			t.Errorf("a failed %s: %v, %v", op, metas, err)
		}
		faulty.Clear()
	}
	if metas, err := s.List(); err != nil || len(metas) != 2 {
		t.Error(metas, err)
	}
}

func FuzzLayout(f *testing.F) {
	f.Add((&layout{sum: 7, parts: []part{{bytes: 7}, {file: "a", ranges: [][2]int64{{1, 2}, {5, 9}}}}}).encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		l, ok := decodeLayout(b)
		if !ok {
			return
		}
		if again, ok := decodeLayout(l.encode()); !ok || fmt.Sprint(again) != fmt.Sprint(l) {
			t.Fatalf("%v becomes %v", l, again)
		}
	})
}
