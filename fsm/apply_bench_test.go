package fsm

import (
	"bytes"
	"fmt"
	"testing"
	"time"
)

const benchBatch = 800

func benchEntry(index uint64, p *Publish, n int) []byte {
	var e Batch
	e.Begin(1, index, int64(index), 300*n+1000)
	for range n {
		e.AppendPublish(p)
	}
	return e.Finish()
}

func mustApply(b testing.TB, m *Machine, index uint64, commands ...Command) []Result {
	b.Helper()
	var e Batch
	e.Begin(1, index, int64(index), 1<<10)
	for _, c := range commands {
		e.Append(c)
	}
	r, err := m.Apply(index, 1, e.Finish())
	if err != nil {
		b.Fatal(err)
	}
	return r
}

func BenchmarkEncodePublish(b *testing.B) {
	p := &Publish{Vhost: 1, RoutingKey: "q", Properties: properties(nil, 2), Body: make([]byte, 256)}
	b.SetBytes(256)
	for i := 0; i < b.N; i += benchBatch {
		benchEntry(1, p, min(benchBatch, b.N-i))
	}
}

// benchPublish measures apply alone: the queue is emptied outside the timing.
func benchPublish(b *testing.B, p *Publish, sequences bool) {
	m := New(Options{})
	q := mustApply(b, m, 1, PutQueue{Vhost: 1, Name: "q", Durable: true}, PutBinding{Vhost: 1, Source: "amq.topic", Destination: "q", Key: "a.#"})[0].Queue
	index := uint64(1)
	b.SetBytes(256)
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i += benchBatch {
		b.StopTimer()
		index++
		var e Batch
		e.Begin(1, index, int64(index), 300*benchBatch)
		for range benchBatch {
			if sequences {
				p.Sequence++
			}
			e.AppendPublish(p)
		}
		entry := e.Finish()
		b.StartTimer()
		if _, err := m.Apply(index, 1, entry); err != nil {
			b.Fatal(err)
		}
		if i/benchBatch%50 == 49 {
			b.StopTimer()
			index++
			mustApply(b, m, index, Purge{Queue: q})
			b.StartTimer()
		}
	}
}

func BenchmarkApplyPublishDefault(b *testing.B) {
	benchPublish(b, &Publish{Vhost: 1, RoutingKey: "q", Properties: properties(nil, 2), Body: make([]byte, 256)}, false)
}

func BenchmarkApplyPublishTopic(b *testing.B) {
	benchPublish(b, &Publish{Vhost: 1, Exchange: "amq.topic", RoutingKey: "a.b.c", Properties: properties(nil, 2), Body: make([]byte, 256)}, false)
}

func BenchmarkApplyPublishProducer(b *testing.B) {
	benchPublish(b, &Publish{Vhost: 1, RoutingKey: "q", Properties: properties(nil, 2), Body: make([]byte, 256), Producer: []byte("producer-0001")}, true)
}

// BenchmarkApplySettle acknowledges messages one by one and in runs; the time is per message.
func BenchmarkApplySettle(b *testing.B) {
	for _, gap := range []uint64{1, 2} {
		b.Run(fmt.Sprintf("every-%d", gap), func(b *testing.B) {
			m := New(Options{})
			q := mustApply(b, m, 1, PutQueue{Vhost: 1, Name: "q", Durable: true})[0].Queue
			p := &Publish{Vhost: 1, RoutingKey: "q", Properties: properties(nil, 2), Body: make([]byte, 16)}
			index, last := uint64(1), uint64(0)
			const n = 10_000
			b.ResetTimer()
			for i := 0; i < b.N; i += n {
				b.StopTimer()
				index++
				if _, err := m.Apply(index, 1, benchEntry(index, p, n*int(gap))); err != nil {
					b.Fatal(err)
				}
				var runs []Run
				for s := last + 1; s <= last+n*gap; s += gap {
					runs = append(runs, Run{s, s})
				}
				last += n * gap
				index++
				var e Batch
				e.Begin(1, index, 0, 64<<10)
				e.Append(&Settle{Queue: q, Runs: runs})
				entry := e.Finish()
				b.StartTimer()
				if _, err := m.Apply(index, 1, entry); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				index++
				mustApply(b, m, index, Purge{Queue: q})
				b.StartTimer()
			}
		})
	}
}

// BenchmarkManyBindings reports what 100,000 topic bindings on 10,000 queues, one of which has 10,000, and 100,000
// producers cost: a bind, a publish, a snapshot, the deletion of the large queue. Run it with -benchtime 1x.
func BenchmarkManyBindings(b *testing.B) {
	for b.Loop() {
		m := New(Options{})
		index := uint64(0)
		entry := func(commands ...Command) time.Duration {
			var e Batch
			index++
			e.Begin(1, index, 1, 1<<20)
			for _, c := range commands {
				e.Append(c)
			}
			bytes := e.Finish()
			start := time.Now()
			if _, err := m.Apply(index, 1, bytes); err != nil {
				b.Fatal(err)
			}
			return time.Since(start)
		}
		report := func(name string, d time.Duration) { b.ReportMetric(float64(d.Microseconds())/1000, name) }
		var queues, bindings, publishes []Command
		for i := range 10_000 {
			queues = append(queues, PutQueue{Vhost: 1, Name: fmt.Sprint("q", i), Durable: true})
		}
		for i := range 100_000 {
			q := i % 10_000
			if i >= 90_000 {
				q = 0
			}
			bindings = append(bindings, PutBinding{Vhost: 1, Source: "amq.topic", Destination: fmt.Sprint("q", q), Key: fmt.Sprintf("order.%d.*.%d", i%1000, i)})
		}
		for i := range 100_000 {
			publishes = append(publishes, &Publish{Vhost: 1, Exchange: "amq.topic", RoutingKey: fmt.Sprintf("order.%d.x.%d", i%1000, i), Properties: properties(nil, 2),
				Producer: fmt.Append(nil, "producer", i), Sequence: 1})
		}
		report("queues-ms", entry(queues...))
		report("bind-100000-ms", entry(bindings...))
		report("publish-100000-ms", entry(publishes...))
		best := time.Hour
		for i := range 20 {
			start := time.Now()
			s, err := m.takeSnapshot()
			if err != nil {
				b.Fatal(err)
			}
			if best = min(best, time.Since(start)); i == 0 {
				report("first-stall-ms", best)
			}
			s.release()
		}
		report("next-stall-ms", best)
		report("after-snapshot-ms", entry(publishes[:1000]...))
		report("bind-ms", entry(PutBinding{Vhost: 1, Source: "amq.topic", Destination: "q1", Key: "a.b"}))
		report("delete-queue-ms", entry(DeleteQueue{Vhost: 1, Name: "q0"}))
		report("leader-started-ms", entry(LeaderStarted{Leader: "n"}))
		var out bytes.Buffer
		start := time.Now()
		if _, err := m.Export(&out); err != nil {
			b.Fatal(err)
		}
		report("export-ms", time.Since(start))
	}
}
