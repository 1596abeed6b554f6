package fsm

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/warrenmq/warren/fsm/store"
	"github.com/warrenmq/warren/fsm/store/vfs"
)

// backlog is the part of a machine that snapshots are about: queues with messages, and their files.
type backlog struct {
	mu      sync.Mutex
	queues  map[uint64]*messages
	root    *messageRoot
	files   *messageFiles
	damaged []*store.Damage
	keep    bool
	numbers [3]uint64
}

func newBacklog(t testing.TB, o Options) *backlog {
	b := &backlog{queues: make(map[uint64]*messages), root: newMessageRoot(o), keep: true}
	if b.root != nil {
		files, err := b.root.make()
		if err != nil {
			t.Fatal(err)
		}
		b.files = files
	}
	return b
}

func (b *backlog) snapshot() *snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &snapshot{files: b.files, keep: b.keep, state: func() []byte { return []byte("state") }, hold: b.hold,
		damaged: func(d *store.Damage) { b.damaged = append(b.damaged, d) }}
	for _, number := range slices.Sorted(maps.Keys(b.queues)) {
		s.views = append(s.views, queueView{number, b.queues[number].view()})
	}
	return s
}

func (b *backlog) hold(queue uint64, f func(*messages)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m := b.queues[queue]; m != nil {
		f(m)
	}
}

// restored is the backlog that a snapshot's stream gives.
func (b *backlog) restored(r io.Reader, o Options) (*backlog, error) {
	next := &backlog{root: b.root, keep: b.keep, numbers: b.numbers}
	if next.root == nil {
		next.root = newMessageRoot(o)
	}
	var open func() (*messageFiles, error)
	if o.Files != nil {
		open = next.root.make
	}
	state, err := readSnapshot(r, open, new(progress))
	if err != nil {
		return nil, err
	}
	if string(state.state) != "state" {
		return nil, fmt.Errorf("state is %q", state.state)
	}
	next.queues, next.files, next.damaged = state.queues, state.files, state.damaged
	return next, nil
}

// contents lists everything in the queues, read the way that a machine reads it.
func (b *backlog) contents() (map[uint64][]Message, error) {
	all := make(map[uint64][]Message)
	for number, m := range b.queues {
		var out []Message
		for from := uint64(1); ; {
			got, next, loads := m.list(from, 100, 1<<20, nil)
			if len(got) == 0 {
				break
			}
			if len(loads) > 0 {
				if err := fill(b.files.dir, number, got, loads); err != nil {
					return nil, err
				}
			}
			out, from = append(out, got...), next
		}
		all[number] = out
	}
	return all, nil
}

// equal reports the first difference between two backlogs.
func (b *backlog) equal(other *backlog) error {
	mine, err := b.contents()
	if err != nil {
		return err
	}
	theirs, err := other.contents()
	if err != nil {
		return err
	}
	if len(mine) != len(theirs) {
		return fmt.Errorf("%d queues and %d", len(mine), len(theirs))
	}
	for number, want := range mine {
		got := theirs[number]
		if len(got) != len(want) {
			return fmt.Errorf("queue %d has %d messages and %d", number, len(want), len(got))
		}
		for i := range want {
			w, g := want[i], got[i]
			if !bytes.Equal(w.Body, g.Body) || !bytes.Equal(w.Properties, g.Properties) || w.ID != g.ID || w.Sequence != g.Sequence ||
				w.Exchange != g.Exchange || w.RoutingKey != g.RoutingKey || w.DeliveryCount != g.DeliveryCount {
				return fmt.Errorf("queue %d: message %d is %v and %v", number, i, want[i], got[i])
			}
		}
		a, o := b.queues[number], other.queues[number]
		if a.sum != o.sum || a.last != o.last || a.bytes != o.bytes || a.count != o.count {
			return fmt.Errorf("queue %d: sums differ", number)
		}
	}
	return nil
}

// testSink collects a snapshot's stream and links files into a directory, as the snapshot store does.
type testSink struct {
	bytes.Buffer
	fs  vfs.FS
	dir string
}

func (s *testSink) Refer(file string, _ [][2]int64) error {
	return s.fs.Link(file, path.Join(s.dir, path.Base(file)))
}

// testSource reads it back.
type testSource struct {
	io.Reader
	sink *testSink
}

func (s *testSource) Referred(name string) (string, bool) { return path.Join(s.sink.dir, name), true }

var sinks int

func newTestSink(t testing.TB, files vfs.FS, dir string) *testSink {
	sinks++
	s := &testSink{fs: files, dir: path.Join(dir, fmt.Sprint("snapshot-", sinks))}
	if err := files.MkdirAll(s.dir, 0o750); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *testSink) open() *testSource { return &testSource{bytes.NewReader(s.Bytes()), s} }

// change draws one change and makes it to both backlogs.
func change(t *rapid.T, serial *uint64, both ...*backlog) {
	at := rapid.IntRange(0, 2).Draw(t, "queue")
	number := both[0].numbers[at]*3 + uint64(at) // a number is never used twice
	for _, b := range both {
		if b.queues[number] == nil {
			b.queues[number] = new(messages)
		}
	}
	m := both[0].queues[number]
	from := rapid.Uint64Range(1, m.last+1).Draw(t, "from")
	run := []Run{{from, from + rapid.Uint64Range(0, 40).Draw(t, "width")}}
	switch rapid.IntRange(0, 9).Draw(t, "what") {
	case 0, 1, 2, 3, 4:
		for range rapid.IntRange(1, 30).Draw(t, "n") {
			*serial++
			c := &content{exchange: "orders", routingKey: fmt.Sprint("k", *serial), properties: []byte{0, 0}, hash: *serial * 0x9e3779b9,
				body: bytes.Repeat([]byte{byte(*serial)}, int(*serial%700)), id: [2]uint64{*serial, 1}, transient: *serial%5 == 0}
			for _, b := range both {
				b.queues[number].append(c, 0)
			}
		}
	case 5, 6, 7:
		for _, b := range both {
			b.queues[number].removeRuns(run)
		}
	case 8:
		for _, b := range both {
			b.queues[number].raise(from)
		}
	case 9:
		if from%4 == 0 {
			for _, b := range both {
				delete(b.queues, number)
				b.numbers[at]++
			}
		}
	}
}

// TestRule16SnapshotEqualsReplay snapshots a random history at random places, with collections, evictions and
// restores from files and from streams in between: what comes back is always what a plain replay has, and every
// snapshot kept stays readable.
func TestRule16SnapshotEqualsReplay(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const dir = "/data"
		files := vfs.NewMem()
		options := Options{Files: files, Dir: path.Join(dir, "messages"), CollectRecords: 20, CollectBytes: 8 << 10}
		plain, b := newBacklog(t, Options{}), newBacklog(t, options)
		defer func() { b.files.dir.Retire() }()
		var serial uint64
		type kept struct {
			sink *testSink
			want []byte
		}
		var snapshots []kept
		for range rapid.IntRange(1, 12).Draw(rt, "rounds") {
			for range rapid.IntRange(1, 20).Draw(rt, "changes") {
				change(rt, &serial, plain, b)
			}
			b.keep = rapid.Bool().Draw(rt, "keep")
			var want bytes.Buffer
			if err := plain.snapshot().persist(&want); err != nil {
				rt.Fatal(err)
			}
			s, sink := b.snapshot(), newTestSink(t, files, dir)
			if err := s.persist(sink); err != nil {
				rt.Fatal(err)
			}
			snapshots = append(snapshots, kept{sink, want.Bytes()})
			if err := plain.equal(b); err != nil {
				rt.Fatalf("after a snapshot: %v", err)
			}
			old := b
			switch rapid.IntRange(0, 3).Draw(rt, "restore") {
			case 0:
				next, err := b.restored(sink.open(), options)
				if err != nil {
					rt.Fatalf("restore from files: %v", err)
				}
				b = next
			case 1:
				var stream bytes.Buffer
				if err := b.snapshot().persist(&stream); err != nil {
					rt.Fatal(err)
				}
				next, err := b.restored(&stream, options)
				if err != nil {
					rt.Fatalf("restore from a stream: %v", err)
				}
				b = next
			case 2:
				for _, m := range b.queues {
					m.evict(0, len(m.chunks), 1000)
				}
			}
			if old != b {
				old.files.dir.Retire()
			}
			if err := plain.equal(b); err != nil {
				rt.Fatalf("after a restore: %v", err)
			}
		}
		for i, k := range snapshots {
			next, err := b.restored(k.sink.open(), options)
			if err != nil {
				rt.Fatalf("snapshot %d is no longer readable: %v", i, err)
			}
			want, err := plain.restored(bytes.NewReader(k.want), Options{})
			if err != nil {
				rt.Fatal(err)
			}
			if err := want.equal(next); err != nil {
				rt.Fatalf("snapshot %d: %v", i, err)
			}
			next.files.dir.Retire()
		}
	})
}
