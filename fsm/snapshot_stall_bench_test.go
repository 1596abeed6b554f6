package fsm

import (
	"fmt"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/warrenmq/warren/fsm/store/vfs"
)

// BenchmarkSnapshotStall reports how long an entry of one small message takes to apply beside snapshots, a thousand
// entries a second, with 5,000,000 messages in one queue and with 100,000 empty queues; and what the snapshots take: the
// first, which writes everything, and the ones after it. What the machine itself holds an entry up shows without one. Run
// it with -benchtime 1x.
func BenchmarkSnapshotStall(b *testing.B) {
	for _, of := range []struct{ messages, queues int }{{5_000_000, 1}, {0, 100_000}} {
		b.Run(fmt.Sprintf("%d-messages-%d-queues", of.messages, of.queues), func(b *testing.B) {
			for b.Loop() {
				dir := b.TempDir()
				m := New(Options{Files: vfs.OS{}, Dir: path.Join(dir, "messages")})
				index := uint64(0)
				for i := range of.queues {
					index++
					mustApply(b, m, index, PutQueue{Vhost: 1, Name: fmt.Sprintf("q-%d", i), Durable: true})
				}
				p := &Publish{Vhost: 1, RoutingKey: "q-0", Properties: properties(nil, 2), Body: make([]byte, 64)}
				for left := of.messages; left > 0; left -= benchBatch {
					index++
					if _, err := m.Apply(index, 1, benchEntry(index, p, min(benchBatch, left))); err != nil {
						b.Fatal(err)
					}
				}
				for _, name := range []string{"without", "first", "second", "third"} {
					stalls, took := applyBeside(b, m, &index, p, func() error {
						if name == "without" {
							<-time.After(2 * time.Second)
							return nil
						}
						s, err := m.takeSnapshot()
						if err != nil {
							return err
						}
						defer s.release()
						return s.persist(newTestSink(b, vfs.OS{}, dir))
					})
					b.ReportMetric(float64(took.Microseconds())/1000, name+"-ms")
					b.ReportMetric(float64(stalls[len(stalls)-1].Microseconds())/1000, name+"-longest-apply-ms")
					b.ReportMetric(float64(stalls[len(stalls)*99/100].Microseconds())/1000, name+"-p99-apply-ms")
				}
				if err := m.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// applyBeside applies an entry each millisecond while a snapshot is made, and returns what each took, the shortest
// first, counted from when it was due.
func applyBeside(b *testing.B, m *Machine, index *uint64, p *Publish, snapshot func() error) (stalls []time.Duration, took time.Duration) {
	done := make(chan error, 1)
	began := time.Now()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	go func() { done <- snapshot() }()
	for {
		select {
		case err := <-done:
			if err != nil {
				b.Fatal(err)
			}
			took = time.Since(began)
			slices.Sort(stalls)
			return stalls, took
		case due := <-tick.C:
			*index++
			if _, err := m.Apply(*index, 1, benchEntry(*index, p, 1)); err != nil {
				b.Fatal(err)
			}
			stalls = append(stalls, time.Since(due))
		}
	}
}
