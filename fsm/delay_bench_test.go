package fsm

import (
	"math/rand/v2"
	"strconv"
	"testing"
)

// BenchmarkDelayed measures what a delayed message costs when a million of them wait with random delays within ten minutes:
// "delay" its publish, "release" finding it, reading it and routing it when it is due, in batches of what is due in 100 ms.
func BenchmarkDelayed(b *testing.B) {
	const pending, span = 1_000_000, 600_000
	m := New(Options{})
	index := uint64(1)
	mustApply(b, m, index, PutQueue{Vhost: 1, Name: "q"})
	random := rand.New(rand.NewPCG(1, 2))
	publish := func(n int) []byte {
		var e Batch
		index++
		e.Begin(1, index, 1, 300*n+1000)
		for range n {
			e.AppendPublish(&Publish{Vhost: 1, RoutingKey: "q", Properties: properties(table("x-delay", strconv.Itoa(1+random.IntN(span))), 2), Body: make([]byte, 100)})
		}
		return e.Finish()
	}
	add := func(n int) {
		for ; n > 0; n -= benchBatch {
			if _, err := m.Apply(index, 1, publish(min(n, benchBatch))); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("delay", func(b *testing.B) {
		add(b.N)
	})
	add(max(0, pending-int(m.Totals().Waiting)))
	clock := int64(0)
	b.Run("release", func(b *testing.B) {
		for n := 0; n < b.N; {
			numbers := m.Delaying(clock)
			if len(numbers) == 0 {
				if clock += 100; m.Totals().Waiting == 0 {
					b.Fatalf("only %d waited", n)
				}
				continue
			}
			due, err := m.ReadDelayed(numbers[0], clock, 1024, 1<<20)
			if err != nil {
				b.Fatal(err)
			}
			var e Batch
			index++
			e.Begin(1, index, clock, 300*len(due)+1000)
			for i := range due {
				e.Append(&Release{Queue: numbers[0], Sequence: due[i].Sequence, Message: Publish{RoutingKey: due[i].RoutingKey, Properties: due[i].Properties, Body: due[i].Body}})
			}
			if _, err := m.Apply(index, 1, e.Finish()); err != nil {
				b.Fatal(err)
			}
			n += len(due)
		}
	})
}
