package fsm

import (
	"math/rand/v2"
	"path"
	"runtime"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/warrenmq/warren/cluster/snapshotstore"
	"github.com/warrenmq/warren/fsm/store/vfs"
)

// BenchmarkIndex reports what a message costs in memory when its body is on disk only, also after many others have been
// acknowledged, and what finding and acknowledging it costs. Run it with -benchtime 1x.
func BenchmarkIndex(b *testing.B) {
	table := properties(nil, 2)
	for _, of := range []struct {
		name        string
		count, size int
		properties  []byte
		memory      int // messages of which the index stays on the heap
	}{
		{"1000000-of-64", 1_000_000, 64, table, 1 << 30},
		{"1000000-of-any-size", 1_000_000, 0, append(table[:len(table):len(table)], make([]byte, 100)...), 1 << 30},
		{"3000000-of-64", 3_000_000, 64, table, 1 << 30},
		{"3000000-of-64-paged", 3_000_000, 64, table, 1},
		{"10000000-of-64-paged", 10_000_000, 64, table, 1},
	} {
		b.Run(of.name, func(b *testing.B) {
			for b.Loop() {
				benchmarkIndex(b, of.count, of.size, of.memory, of.properties)
			}
		})
	}
}

func benchmarkIndex(b *testing.B, count, size, memory int, properties []byte) {
	dir := b.TempDir()
	snapshots, err := snapshotstore.New(vfs.OS{}, path.Join(dir, "snapshots"), 2, nil)
	if err != nil {
		b.Fatal(err)
	}
	heap := func() float64 {
		runtime.GC()
		runtime.GC() // what finalizers let go
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return float64(stats.HeapAlloc)
	}
	before := heap()
	m := New(Options{Files: vfs.OS{}, Dir: path.Join(dir, "messages"), BodyMemory: 1, IndexMemoryMessages: memory})
	index := uint64(1)
	q := mustApply(b, m, index, PutQueue{Vhost: 1, Name: "orders.paid.europe", Durable: true})[0].Queue
	random := rand.New(rand.NewPCG(1, 2))
	snapshot := func() {
		s, err := m.takeSnapshot()
		if err != nil {
			b.Fatal(err)
		}
		defer s.release()
		sink, err := snapshots.Create(1, index, 1, raft.Configuration{}, 0, nil)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.persist(sink); err != nil {
			b.Fatal(err)
		}
		if err := sink.Close(); err != nil {
			b.Fatal(err)
		}
	}
	for n := 0; n < count; n += benchBatch {
		index++
		of := size
		if of == 0 {
			of = random.IntN(200)
		}
		p := &Publish{Vhost: 1, RoutingKey: "orders.paid.europe", Properties: properties, Body: make([]byte, of)}
		if _, err := m.Apply(index, 1, benchEntry(index, p, benchBatch)); err != nil {
			b.Fatal(err)
		}
		if n%100_000 == 0 {
			snapshot()
		}
	}
	snapshot()
	b.ReportMetric((heap()-before)/float64(count), "heap-B/message")
	b.ReportMetric(float64(m.Totals().IndexPagedBytes)/float64(count), "paged-B/message")
	per := func(name string, messages int, began time.Time) {
		b.ReportMetric(float64(time.Since(began).Nanoseconds())/float64(messages), name)
	}
	messages := &m.state.queues[q].messages
	began := time.Now()
	for at := uint64(1); at < uint64(count); {
		_, at, _ = messages.list(at, 1000, 1<<30, nil)
	}
	per("list-ns/message", count, began)
	began = time.Now()
	for n := uint64(1); n < 100_000; n += 100 { // as two consumers acknowledge
		var runs []Run
		for at := n; at < n+100; at += 2 {
			runs = append(runs, Run{at, at})
		}
		messages.removeRuns(runs)
		for i := range runs {
			runs[i] = Run{runs[i].From + 1, runs[i].To + 1}
		}
		messages.removeRuns(runs)
	}
	per("in-order-ack-ns/message", 100_000, began)
	began = time.Now()
	for range 100_000 {
		messages.remove(random.Uint64N(uint64(count)))
	}
	per("random-ack-ns/message", 100_000, began)
	b.ReportMetric(float64(messages.index)/float64(messages.count), "then-B/message")
	index++
	mustApply(b, m, index, Mark{Queue: q, Upto: 1})
	began = time.Now()
	snapshot()
	b.ReportMetric(float64(time.Since(began).Microseconds())/1000, "next-snapshot-ms")
	b.ReportMetric(float64(messages.index)/float64(messages.count), "packed-again-B/message")
	_ = m.Close()
}
