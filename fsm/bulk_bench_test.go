package fsm

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkMillionMessages reports how long one command holds up all queues when its queue has 1,000,000 messages: the
// best and the worst of the rounds, in ms. Run it with -benchtime 3x.
func BenchmarkMillionMessages(b *testing.B) {
	const count = 1_000_000
	all := []Run{{1, count}}
	var half []Run
	for s := uint64(2); s <= count; s += 2 {
		half = append(half, Run{s, s})
	}
	for _, c := range []struct {
		name    string
		command func(queue uint64) Command
		removed uint64
	}{
		{"purge", func(q uint64) Command { return Purge{Queue: q} }, count},
		{"purge-few-held", func(q uint64) Command { return Purge{Queue: q, Held: []Run{{1, 1}, {500, 2500}}} }, count - 2002},
		{"purge-all-but-one-held", func(q uint64) Command { return Purge{Queue: q, Held: []Run{{1, count - 1}}} }, 1},
		{"purge-every-other-held", func(q uint64) Command { return Purge{Queue: q, Held: half} }, count / 2},
		{"delete", func(uint64) Command { return DeleteQueue{Vhost: 1, Name: "q"} }, count},
		{"delete-if-empty-every-other-held", func(uint64) Command { return DeleteQueue{Vhost: 1, Name: "q", Held: half} }, count / 2},
		{"acknowledge", func(q uint64) Command { return &Settle{Queue: q, Runs: all} }, count},
		{"acknowledge-every-other", func(q uint64) Command { return &Settle{Queue: q, Runs: half} }, count / 2},
		{"return", func(q uint64) Command { return &Settle{Queue: q, Kind: Return, Runs: all} }, count},
	} {
		b.Run(c.name, func(b *testing.B) {
			best, worst := time.Hour, time.Duration(0)
			for range b.N {
				m := New(Options{})
				q := mustApply(b, m, 1, PutQueue{Vhost: 1, Name: "q", Durable: true})[0].Queue
				p := &Publish{Vhost: 1, RoutingKey: "q", Properties: properties(nil, 2), Body: make([]byte, 16)}
				index := uint64(1)
				for range 1000 {
					index++
					if _, err := m.Apply(index, 1, benchEntry(index, p, count/1000)); err != nil {
						b.Fatal(err)
					}
				}
				var e Batch
				e.Begin(1, index+1, 0, 4<<20)
				e.Append(c.command(q))
				entry := e.Finish()
				start := time.Now()
				r, err := m.Apply(index+1, 1, entry)
				took := time.Since(start)
				if err != nil || r[0].Messages != c.removed {
					b.Fatal(fmt.Sprint(r, err))
				}
				best, worst = min(best, took), max(worst, took)
			}
			b.ReportMetric(float64(best.Microseconds())/1000, "best-ms")
			b.ReportMetric(float64(worst.Microseconds())/1000, "worst-ms")
		})
	}
}
