package fsm

import (
	"bytes"
	"errors"
	"syscall"
	"testing"

	"github.com/warrenmq/warren/fsm/store/vfs"
)

// fill puts 16 messages of 200 KiB into a queue, and with a snapshot into its files, if there are any.
func (b *backlog) fill(t *testing.T, mem *vfs.Mem) *messages {
	t.Helper()
	m := new(messages)
	b.queues[1] = m
	for i := range 16 {
		m.append(&content{body: bytes.Repeat([]byte{byte(i)}, 200<<10)}, 0)
	}
	if b.files != nil {
		b.snap(t, mem)
	}
	return m
}

func (b *backlog) snap(t *testing.T, mem *vfs.Mem) {
	t.Helper()
	if err := b.snapshot().persist(newTestSink(t, mem, "/snapshots")); err != nil {
		t.Fatal(err)
	}
}

// bytes of the message files.
func (b *backlog) bytes(t *testing.T, mem *vfs.Mem) (sum int64) {
	t.Helper()
	dir := b.files.dir.Name() + "/01"
	names, err := mem.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		info, err := mem.Stat(dir + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		sum += info.Size()
	}
	return sum
}

// TestFailedSnapshotGivesItsSpaceBack: a full disk must not become fuller with each snapshot that is tried.
func TestFailedSnapshotGivesItsSpaceBack(t *testing.T) {
	mem := vfs.NewMem()
	faulty := vfs.Faulty(mem)
	b := newBacklog(t, Options{Files: faulty, Dir: "/messages", Room: func() (int64, bool) { return 0, false }})
	m := b.fill(t, mem)
	before, again := b.bytes(t, mem), int64(0)
	for range 24 {
		m.append(&content{body: make([]byte, 200<<10)}, 0)
	}
	for range 2 { // into the open file and others, then into files of their own
		faulty.Add(vfs.Rule{Op: vfs.OpWrite, Nth: 14, Count: -1, Short: 100 << 10, Err: syscall.ENOSPC})
		if err := b.snapshot().persist(newTestSink(t, mem, "/snapshots")); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("a snapshot on a full disk: %v", err)
		}
		faulty.Clear()
		now := b.bytes(t, mem)
		if now > before+leastRoll {
			t.Errorf("the files had %d bytes and have %d after a failed snapshot", before, now)
		}
		if again > 0 && now != again {
			t.Errorf("they had %d bytes after a failed snapshot, and %d after another", again, now)
		}
		again = now
	}
	b.snap(t, mem)
	want := newBacklog(t, Options{})
	other := want.fill(t, nil)
	for range 24 {
		other.append(&content{body: make([]byte, 200<<10)}, 0)
	}
	if err := b.equal(want); err != nil {
		t.Error(err)
	}
}

// TestCollectionKeepsToTheRoom: copies that win space are made as far as there is room for them, of small files too when
// space is short, and a disk that is full all the same does not keep the snapshot from being taken.
func TestCollectionKeepsToTheRoom(t *testing.T) {
	mem := vfs.NewMem()
	faulty := vfs.Faulty(mem)
	room, short := int64(1)<<40, false
	b := newBacklog(t, Options{Files: faulty, Dir: "/messages", Room: func() (int64, bool) { return room, short }})
	m := b.fill(t, mem)
	full := b.bytes(t, mem)
	for s := uint64(1); s <= 14; s++ {
		m.remove(s)
	}
	expect := func(what string, collected bool) {
		t.Helper()
		m.append(&content{hash: 1}, 0) // a change
		b.snap(t, mem)
		if now := b.bytes(t, mem); now < full/2 != collected {
			t.Errorf("%s: of %d bytes there are %d", what, full, now)
		}
	}
	expect("a small file on a roomy disk", false)
	short, room = true, 100<<10
	expect("without room for two messages", false)
	room = 10 << 20
	faulty.Add(vfs.Rule{Op: vfs.OpWrite, Path: "*-00000003.messages", Count: -1, Err: syscall.ENOSPC})
	expect("with less room than it seemed", false)
	faulty.Clear()
	expect("with room", true)
	if m.count != 2+4 {
		t.Fatalf("%d messages are left", m.count)
	}
	if _, err := b.contents(); err != nil {
		t.Error(err)
	}
}

// TestFilesBecomeSmallerOnAFullDisk: so that there is room to copy one, and many can be dropped whole.
func TestFilesBecomeSmallerOnAFullDisk(t *testing.T) {
	for room, want := range map[int64]int64{0: leastRoll, 64 << 20: 8 << 20, 1 << 40: rollBytes} {
		b := newBacklog(t, Options{Files: vfs.NewMem(), Dir: "/messages", Room: func() (int64, bool) { return room, false }})
		if got := b.files.roll(); got != want {
			t.Errorf("with room for %d bytes a file ends at %d, not %d", room, got, want)
		}
	}
}
