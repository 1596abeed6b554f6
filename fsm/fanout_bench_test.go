package fsm

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/warrenmq/warren/cluster/snapshotstore"
	"github.com/warrenmq/warren/fsm/store/vfs"
)

// BenchmarkFanOut reports what a snapshot writes of 20,000 messages of 1 KiB that each went to several queues: when nobody
// has consumed them, when all queues but one have been, and when all have. Run it with -benchtime 1x.
func BenchmarkFanOut(b *testing.B) {
	const count, size = 20_000, 1024
	for _, queues := range []int{1, 4, 16} {
		for _, consumed := range slices.Compact([]int{0, queues - 1, queues}) {
			b.Run(fmt.Sprintf("to-%d-consumed-%d", queues, consumed), func(b *testing.B) {
				for b.Loop() {
					benchmarkFanOut(b, count, size, queues, consumed)
				}
			})
		}
	}
}

func benchmarkFanOut(b *testing.B, count, size, queues, consumed int) {
	dir := b.TempDir()
	snapshots, err := snapshotstore.New(vfs.OS{}, path.Join(dir, "snapshots"), 2, nil)
	if err != nil {
		b.Fatal(err)
	}
	m := New(Options{Files: vfs.OS{}, Dir: path.Join(dir, "messages"), BodyMemory: 1})
	defer m.Close()
	index := uint64(1)
	mustApply(b, m, index, PutExchange{Vhost: 1, Name: "news", Type: "fanout", Durable: true})
	var numbers []uint64
	for i := range queues {
		name := fmt.Sprintf("q-%d", i)
		numbers = append(numbers, mustApply(b, m, index+1, PutQueue{Vhost: 1, Name: name, Durable: true})[0].Queue)
		mustApply(b, m, index+2, PutBinding{Vhost: 1, Source: "news", Kind: ToQueue, Destination: name})
		index += 2
	}
	p := &Publish{Vhost: 1, Exchange: "news", Properties: properties(nil, 2), Body: make([]byte, size)}
	began := time.Now()
	for n := 0; n < count; n += benchBatch {
		index++
		if _, err := m.Apply(index, 1, benchEntry(index, p, min(benchBatch, count-n))); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(time.Since(began).Nanoseconds())/float64(count), "apply-ns/message")
	for _, q := range numbers[:consumed] {
		index++
		mustApply(b, m, index, Settle{Queue: q, Kind: Acknowledge, Runs: []Run{{1, uint64(count)}}})
	}
	memory, _ := m.Bodies()
	began = time.Now()
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
	b.ReportMetric(time.Since(began).Seconds(), "snapshot-s")
	var written int64
	_ = filepath.WalkDir(path.Join(dir, "messages"), func(_ string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			written += info.Size()
		}
		return err
	})
	b.ReportMetric(float64(written)/(1<<20), "written-MiB")
	b.ReportMetric(float64(memory)/(1<<20), "counted-MiB")
}
