package fsm

import (
	"bytes"
	"fmt"
	"io"
	"path"
	"runtime"
	"testing"
	"time"

	"github.com/warrenmq/warren/cluster/snapshotstore"
	"github.com/warrenmq/warren/fsm/store/vfs"
)

// BenchmarkSnapshot reports what snapshots and a restart cost with a backlog of 1,000,000 messages of 1 KiB in one
// queue. Run it with -benchtime 1x.
func BenchmarkSnapshot(b *testing.B) {
	const count = 1_000_000
	for b.Loop() {
		dir := b.TempDir()
		options := Options{Files: vfs.OS{}, Dir: path.Join(dir, "messages")}
		q := newBacklog(b, options)
		q.keep = false
		m := new(messages)
		q.queues[1] = m
		for i := range count / 256 { // an entry of 256 KiB
			entry := bytes.Repeat([]byte{byte(i)}, 256<<10)
			for j := range 256 {
				m.append(&content{exchange: "orders", routingKey: "order.paid", properties: entry[:2], body: entry[j<<10 : (j+1)<<10],
					hash: uint64(i*256 + j), id: [2]uint64{uint64(i), uint64(j)}}, 0)
			}
		}
		timed := func(name string, f func()) {
			start := time.Now()
			f()
			b.ReportMetric(float64(time.Since(start).Microseconds())/1000, name)
		}
		var s *snapshot
		var sink *testSink
		persist := func() {
			sink = newTestSink(b, vfs.OS{}, dir)
			if err := s.persist(sink); err != nil {
				b.Fatal(err)
			}
		}
		timed("first-stall-ms", func() { s = q.snapshot() })
		timed("first-ms", persist)
		timed("unchanged-stall-ms", func() { s = q.snapshot() })
		timed("unchanged-ms", persist)
		m.append(&content{exchange: "orders", routingKey: "order.paid", body: make([]byte, 1024)}, 0)
		m.remove(1)
		timed("next-stall-ms", func() { s = q.snapshot() })
		timed("next-ms", persist)
		var before, after runtime.MemStats
		m, q.queues, s = nil, nil, nil
		runtime.GC()
		runtime.ReadMemStats(&before)
		var next *backlog
		timed("restore-ms", func() {
			var err error
			if next, err = q.restored(sink.open(), options); err != nil {
				b.Fatal(err)
			}
		})
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/count, "heap-B/message")
		timed("read-1000-ms", func() {
			out, _, loads := next.queues[1].list(500_000, 1000, 4<<20, nil)
			if err := fill(next.files.dir, 1, out, loads); err != nil {
				b.Fatal(err)
			}
		})
		timed("stream-ms", func() {
			if err := next.snapshot().persist(io.Discard); err != nil {
				b.Fatal(err)
			}
		})
		fmt.Fprintln(io.Discard, next)
	}
}

// BenchmarkSnapshotManyQueues reports what snapshots and a restart cost with 10,000 queues of 10 messages. Run it
// with -benchtime 1x.
func BenchmarkSnapshotManyQueues(b *testing.B) {
	for b.Loop() {
		dir := b.TempDir()
		options := Options{Files: vfs.OS{}, Dir: path.Join(dir, "messages")}
		snapshots, err := snapshotstore.New(vfs.OS{}, path.Join(dir, "snapshots"), 2, nil)
		if err != nil {
			b.Fatal(err)
		}
		q := newBacklog(b, options)
		q.keep = false
		for number := range uint64(10_000) {
			m := new(messages)
			q.queues[number+1] = m
			for i := range 10 {
				m.append(&content{exchange: "orders", routingKey: "order.paid", body: make([]byte, 256), hash: uint64(i)}, 0)
			}
		}
		timed := func(name string, f func()) {
			start := time.Now()
			f()
			b.ReportMetric(float64(time.Since(start).Microseconds())/1000, name)
		}
		index := uint64(0)
		persist := func() {
			index++
			if err := q.store(snapshots, index); err != nil {
				b.Fatal(err)
			}
		}
		timed("stall-ms", func() { q.snapshot() })
		timed("first-ms", persist)
		timed("unchanged-ms", persist)
		for number := range uint64(100) {
			q.queues[number*100+1].append(&content{body: make([]byte, 256)}, 0)
		}
		timed("hundred-changed-ms", persist)
		metas, err := snapshots.List()
		if err != nil {
			b.Fatal(err)
		}
		_, r, err := snapshots.Open(metas[0].ID)
		if err != nil {
			b.Fatal(err)
		}
		timed("restore-ms", func() {
			if _, err := q.restored(r, options); err != nil {
				b.Fatal(err)
			}
		})
		r.Close()
	}
}
