package fsm

import (
	"errors"
	"path"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/warrenmq/warren/cluster/snapshotstore"
	"github.com/warrenmq/warren/fsm/store/vfs"
)

// BenchmarkReadAfterRestore reads a backlog of 200,000 × 1 KiB, whose bodies are in files only, in order.
func BenchmarkReadAfterRestore(b *testing.B) {
	const count, size = 200_000, 1024
	dir := b.TempDir()
	options := Options{Files: vfs.OS{}, Dir: path.Join(dir, "messages")}
	snapshots, err := snapshotstore.New(vfs.OS{}, path.Join(dir, "snapshots"), 1, nil)
	if err != nil {
		b.Fatal(err)
	}
	m := New(options)
	q := mustApply(b, m, 1, PutQueue{Vhost: 1, Name: "q", Durable: true})[0].Queue
	p := &Publish{Vhost: 1, RoutingKey: "q", Properties: properties(nil, 2), Body: make([]byte, size)}
	index := uint64(1)
	for range count / 250 {
		index++
		if _, err := m.Apply(index, 1, benchEntry(index, p, 250)); err != nil {
			b.Fatal(err)
		}
	}
	taken, err := m.FSM().Snapshot()
	if err != nil {
		b.Fatal(err)
	}
	sink, err := snapshots.Create(1, index, 1, raft.Configuration{}, 1, nil)
	if err != nil {
		b.Fatal(err)
	}
	if err := errors.Join(taken.Persist(sink), sink.Close()); err != nil {
		b.Fatal(err)
	}
	taken.Release()
	_ = m.Close()
	m = New(options)
	_, r, err := snapshots.Open(sink.ID())
	if err != nil {
		b.Fatal(err)
	}
	if err := m.FSM().Restore(r); err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	b.SetBytes(count * size)
	var out []Message
	for b.Loop() {
		read := 0
		for from := uint64(1); ; {
			var next uint64
			if out, next, err = m.Read(q, from, 1000, 1<<20, out[:0]); err != nil {
				b.Fatal(err)
			}
			if len(out) == 0 {
				break
			}
			read, from = read+len(out), next
		}
		if read != count {
			b.Fatalf("%d messages were read", read)
		}
	}
}
