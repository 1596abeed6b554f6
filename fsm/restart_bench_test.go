package fsm

import (
	"fmt"
	"path"
	"runtime"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/warrenmq/warren/cluster/snapshotstore"
	"github.com/warrenmq/warren/fsm/store/vfs"
)

// BenchmarkRestart reports how long the state takes to come back from a snapshot of this node's own: 5,000,000 messages
// of 256 bytes in one queue and 10 in each of 10,000; 100,000 empty queues; and how long the search for transient messages
// takes after a cold start. Run it with -benchtime 1x.
func BenchmarkRestart(b *testing.B) {
	for _, of := range []struct{ messages, queues, each int }{{4_900_000, 10_000, 10}, {0, 100_000, 0}} {
		b.Run(fmt.Sprintf("%d-messages-and-%d-queues-of-%d", of.messages, of.queues, of.each), func(b *testing.B) {
			dir := b.TempDir()
			options := Options{Files: vfs.OS{}, Dir: path.Join(dir, "messages")}
			snapshots, err := snapshotstore.New(vfs.OS{}, path.Join(dir, "snapshots"), 2, nil)
			if err != nil {
				b.Fatal(err)
			}
			id := backlogSnapshot(b, New(options), snapshots, of.messages, of.queues, of.each)
			runtime.GC()
			for b.Loop() {
				b.StopTimer()
				m := New(options)
				_, r, err := snapshots.Open(id)
				if err != nil {
					b.Fatal(err)
				}
				runtime.GC()
				b.StartTimer()
				if err := m.FSM().Restore(r); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				began := time.Now()
				at, _ := m.Applied()
				for at++; mustApply(b, m, at, DropTransient{Limit: 1000})[0].Messages > 0; at++ {
				}
				b.ReportMetric(time.Since(began).Seconds(), "cold-s")
				_ = m.Close()
				b.StartTimer()
			}
		})
	}
}

// backlogSnapshot fills a machine, takes a snapshot of it and returns its id.
func backlogSnapshot(b *testing.B, m *Machine, snapshots *snapshotstore.Store, messages, queues, each int) string {
	index := uint64(0)
	publish := func(queue string, count int) {
		p := &Publish{Vhost: 1, RoutingKey: queue, Properties: properties(nil, 2), Body: make([]byte, 256)}
		for ; count > 0; count -= benchBatch {
			index++
			if _, err := m.Apply(index, 1, benchEntry(index, p, min(benchBatch, count))); err != nil {
				b.Fatal(err)
			}
		}
	}
	for i := range queues {
		index++
		name := fmt.Sprintf("q-%d", i)
		mustApply(b, m, index, PutQueue{Vhost: 1, Name: name, Durable: true})
		publish(name, each)
	}
	publish("q-0", messages)
	began := time.Now()
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
	return sink.ID()
}
