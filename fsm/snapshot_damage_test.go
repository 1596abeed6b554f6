package fsm

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warrenmq/warren/fsm/store"
	"github.com/warrenmq/warren/fsm/store/vfs"
)

// smallBacklog has two queues with a few messages each, written in two snapshots.
func smallBacklog(t testing.TB, dir string) (*backlog, Options, *testSink) {
	options := Options{Files: vfs.NewMem(), Dir: path.Join(dir, "messages")}
	b := newBacklog(t, options)
	b.keep = false
	var sink *testSink
	for round := range 2 {
		for number := uint64(1); number <= 2; number++ {
			if b.queues[number] == nil {
				b.queues[number] = new(messages)
			}
			for i := range 3 {
				b.queues[number].append(&content{exchange: "e", routingKey: "k", properties: []byte{0, 0},
					body: []byte(strings.Repeat("body", i+round)), hash: number*100 + uint64(i+round)}, 0)
			}
		}
		b.queues[1].remove(2)
		b.queues[2].raise(1)
		sink = newTestSink(t, options.Files, dir)
		if err := b.snapshot().persist(sink); err != nil {
			t.Fatal(err)
		}
	}
	return b, options, sink
}

func readFile(files vfs.FS, name string) []byte {
	f, err := files.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		panic(err)
	}
	return b
}

func writeFile(files vfs.FS, name string, b []byte) {
	f, err := files.OpenFile(name, os.O_RDWR|os.O_TRUNC, 0)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if _, err := f.Write(b); err != nil {
		panic(err)
	}
}

// TestDamageOfAnyByteIsNamed flips each byte of a message file in turn. Whatever comes of it, no message is silently
// lost or changed, the other queue is whole, and the damage names the file.
func TestDamageOfAnyByteIsNamed(t *testing.T) {
	dir := "/data"
	b, options, sink := smallBacklog(t, dir)
	name := path.Join(sink.dir, store.FileName(1, 1))
	good := readFile(options.Files, name)
	outcome := map[string]int{}
	for at := range good {
		bad := bytes.Clone(good)
		bad[at] ^= 0x40
		writeFile(options.Files, name, bad)
		next, err := b.restored(sink.open(), options)
		if err != nil {
			t.Fatalf("byte %d: one damaged file stops the restore: %v", at, err)
		}
		for _, d := range next.damaged {
			outcome["named at restore"]++
			if filepath.Base(d.File) != filepath.Base(name) || d.Queue != 1 || d.Offset > int64(at) {
				t.Errorf("byte %d: damage %v of queue %d", at, d, d.Queue)
			}
		}
		if len(next.damaged) == 0 {
			var d *store.Damage
			if err := next.equalDisk(b, 1, good, name); errors.As(err, &d) {
				outcome["named when read"]++
				if filepath.Base(d.File) != filepath.Base(name) || d.Queue != 1 || d.Offset > int64(at) {
					t.Errorf("byte %d: damage %v", at, d)
				}
			} else if err != nil {
				t.Errorf("byte %d: %v", at, err)
			} else {
				outcome["harmless"]++
			}
		}
		if err := next.equalDisk(b, 2, good, name); err != nil {
			t.Errorf("byte %d: the other queue: %v", at, err)
		}
		next.files.dir.Retire()
	}
	t.Log(outcome)
	if outcome["named at restore"] == 0 || outcome["named when read"] == 0 || outcome["harmless"] == 0 {
		t.Errorf("outcomes are %v, expected some of each", outcome)
	}
}

// equalDisk compares one queue; b's own files are repaired meanwhile (they are the same file as the snapshot's).
func (b *backlog) equalDisk(want *backlog, queue uint64, good []byte, name string) error {
	a := &backlog{queues: map[uint64]*messages{queue: b.queues[queue]}, files: b.files}
	got, err := a.contents()
	if err != nil {
		return err
	}
	files := b.root.fs
	defer writeFile(files, name, readFile(files, name))
	writeFile(files, name, good)
	w := &backlog{queues: map[uint64]*messages{queue: want.queues[queue]}, files: want.files}
	expected, err := w.contents()
	if err != nil {
		return err
	}
	if len(got[queue]) != len(expected[queue]) {
		return errors.New("messages are missing")
	}
	for i := range expected[queue] {
		if !bytes.Equal(got[queue][i].Body, expected[queue][i].Body) || got[queue][i].DeliveryCount != expected[queue][i].DeliveryCount {
			return errors.New("messages differ")
		}
	}
	return nil
}

// TestDamagedManifestIsRefused flips each byte of the manifest, and cuts it short everywhere.
func TestDamagedManifestIsRefused(t *testing.T) {
	b, options, sink := smallBacklog(t, "/data")
	good := bytes.Clone(sink.Bytes())
	check := func(bad []byte, at int) {
		next, err := b.restored(&testSource{bytes.NewReader(bad), sink}, options)
		if !errors.Is(err, store.ErrManifest) {
			t.Fatalf("byte %d: error %v, backlog %v", at, err, next)
		}
	}
	for at := range good {
		bad := bytes.Clone(good)
		bad[at] ^= 1
		check(bad, at)
		check(good[:at], at)
	}
}

// TestMissingAndShortFilesAreNamed takes a file away and cuts one short.
func TestMissingAndShortFilesAreNamed(t *testing.T) {
	b, options, sink := smallBacklog(t, "/data")
	missing, short := path.Join(sink.dir, store.FileName(1, 1)), path.Join(sink.dir, store.FileName(2, 1))
	if err := options.Files.Remove(missing); err != nil {
		t.Fatal(err)
	}
	writeFile(options.Files, short, readFile(options.Files, short)[:100])
	next, err := b.restored(sink.open(), options)
	if err != nil {
		t.Fatal(err)
	}
	if len(next.damaged) != 2 || next.damaged[0].Queue != 1 || next.damaged[1].Queue != 2 || next.damaged[1].Offset != 100 {
		t.Errorf("damage is %v", next.damaged)
	}
}

// TestDamageOfAnyByteOfAStreamIsNamed flips each byte of an install's stream and cuts it short everywhere. A damaged
// manifest or a cut is refused and leaves no directory behind; a damaged record costs its queue what is in the file,
// and is named: a leader whose message file is damaged sends it on unread, and must not stop the follower.
func TestDamageOfAnyByteOfAStreamIsNamed(t *testing.T) {
	dir := "/data"
	b, options, _ := smallBacklog(t, dir)
	var stream bytes.Buffer
	if err := b.snapshot().persist(&stream); err != nil {
		t.Fatal(err)
	}
	good := stream.Bytes()
	rest := bytes.NewReader(good)
	if _, err := store.ReadManifest(rest); err != nil {
		t.Fatal(err)
	}
	records := len(good) - rest.Len()
	manifest, _ := store.ReadManifest(bytes.NewReader(good))
	second := records // where the second queue's records begin
	for _, f := range manifest.Queues[0].Files {
		second += int(f.LiveBytes())
	}
	before, _ := options.Files.ReadDir(options.Dir)
	for _, o := range []Options{options, {}} {
		for at := range good {
			bad := bytes.Clone(good)
			bad[at] ^= 0x11
			if _, err := b.restored(bytes.NewReader(good[:at]), o); err == nil {
				t.Fatalf("a stream that ends at byte %d is accepted", at)
			}
			next, err := b.restored(bytes.NewReader(bad), o)
			if at < records {
				if !Unreadable(err) {
					t.Fatalf("byte %d of the manifest: %v", at, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("byte %d: one damaged record stops the restore: %v", at, err)
			}
			hurt, other := uint64(1), uint64(2)
			if at >= second {
				hurt, other = 2, 1
			}
			if len(next.damaged) == 0 || len(next.damaged) > 2 || next.damaged[0].Queue != hurt {
				t.Fatalf("byte %d: damage is %v, the queue is %d", at, next.damaged, hurt)
			}
			if got, want := next.queues[other].count, b.queues[other].count; got != want {
				t.Fatalf("byte %d: queue %d has %d messages of %d", at, other, got, want)
			}
			if o.Files != nil {
				next.files.dir.Retire()
			}
		}
	}
	if after, _ := options.Files.ReadDir(options.Dir); len(after) != len(before) {
		t.Errorf("failed restores left %v", after)
	}
}

// TestBytesBeyondTheRecordedLengthAreIgnored appends rubbish to a snapshot's file, as an interrupted later snapshot
// would, and goes on from a restore: the rubbish is never read and the file never written again.
func TestBytesBeyondTheRecordedLengthAreIgnored(t *testing.T) {
	dir := "/data"
	b, options, sink := smallBacklog(t, dir)
	name := path.Join(sink.dir, store.FileName(1, 1))
	want := append(readFile(options.Files, name), "rubbish"...)
	writeFile(options.Files, name, want)
	next, err := b.restored(sink.open(), options)
	if err != nil {
		t.Fatal(err)
	}
	if err := next.equal(b); err != nil {
		t.Fatal(err)
	}
	for _, q := range []*backlog{next, b} { // b is what a straight run has
		q.queues[1].append(&content{body: []byte("new"), hash: 9}, 0)
	}
	if err := next.snapshot().persist(newTestSink(t, options.Files, dir)); err != nil {
		t.Fatal(err)
	}
	if err := next.equal(b); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(readFile(options.Files, name), want) {
		t.Error("a snapshot's file was written after a restore")
	}
}
