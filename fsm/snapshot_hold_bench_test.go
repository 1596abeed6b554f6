package fsm

import (
	"path"
	"testing"
	"time"

	"github.com/warrenmq/warren/fsm/store/vfs"
)

// BenchmarkSnapshotHold reports the longest that snapshots keep the machine's lock, in which nothing is applied, with
// 5,000,000 messages in one queue: taking references, and noting where messages were written. Run it with -benchtime 1x.
func BenchmarkSnapshotHold(b *testing.B) {
	const count = 5_000_000
	for b.Loop() {
		dir := b.TempDir()
		q := newBacklog(b, Options{Files: vfs.OS{}, Dir: path.Join(dir, "messages")})
		q.keep = false
		m := new(messages)
		q.queues[1] = m
		body := make([]byte, 64)
		add := func(count int) {
			for i := range count {
				m.append(&content{routingKey: "backlog", body: body, hash: uint64(i)}, 0)
			}
		}
		snapshot := func(name string) {
			var longest time.Duration
			began := time.Now()
			s := q.snapshot()
			longest = time.Since(began)
			s.hold = func(queue uint64, f func(*messages)) {
				began := time.Now()
				q.hold(queue, f)
				longest = max(longest, time.Since(began))
			}
			began = time.Now()
			if err := s.persist(newTestSink(b, vfs.OS{}, dir)); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(time.Since(began).Microseconds())/1000, name+"-ms")
			b.ReportMetric(float64(longest.Microseconds())/1000, name+"-hold-ms")
		}
		add(count)
		snapshot("first")
		add(1)
		snapshot("second") // describes what the first one wrote
		add(1)
		m.remove(count / 2)
		snapshot("next")
		snapshot("unchanged")
	}
}
