package broker

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestOutstandingIsASortedMap compares with a map, whatever is added, taken and put back.
func TestOutstandingIsASortedMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := &view{}
		var o outstanding
		model := map[uint64]uint64{}
		var last uint64
		var back []entry
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				for range rapid.IntRange(1, 300).Draw(t, "deliveries") {
					last += uint64(rapid.SampledFrom([]int{1, 1, 1, 50}).Draw(t, "gap"))
					o.add(last, unacked{view: v, sequence: last * 10})
					model[last] = last * 10
				}
			case 1, 2:
				from := rapid.Uint64Range(0, last+2).Draw(t, "from")
				to := from + rapid.SampledFrom([]uint64{0, 1, 10, 1 << 40}).Draw(t, "length")
				var want []uint64
				for _, tag := range slices.Sorted(maps.Keys(model)) {
					if from <= tag && tag <= to {
						want = append(want, tag)
						delete(model, tag)
					}
				}
				var got []uint64
				n := o.take(from, to, func(e entry) {
					if e.sequence != e.tag*10 {
						t.Fatalf("tag %d has sequence %d", e.tag, e.sequence)
					}
					got = append(got, e.tag)
					back = append(back, e)
				})
				if n != len(want) || !slices.Equal(got, want) {
					t.Fatalf("%d to %d took %v, want %v", from, to, got, want)
				}
			case 3:
				o.putBack(back)
				for _, e := range back {
					model[e.tag] = e.sequence
				}
				back = nil
			}
			var tags []uint64
			for e := range o.all {
				tags = append(tags, e.tag)
			}
			if o.n != len(model) || !slices.Equal(tags, slices.Sorted(maps.Keys(model))) {
				t.Fatalf("has %d: %v, want %v", o.n, tags, slices.Sorted(maps.Keys(model)))
			}
			if len(o.list) > 2*o.n+outstandingSlack {
				t.Fatalf("%d entries for %d deliveries", len(o.list), o.n)
			}
		}
	})
}

// BenchmarkAckSparseRanges acknowledges every tenth of 65,536 x 10 deliveries with ranges that reach far: a scan of
// what is unacknowledged for each range would be quadratic.
func BenchmarkAckSparseRanges(b *testing.B) {
	v := &view{}
	const ranges = 65_536
	for b.Loop() {
		b.StopTimer()
		ch := &Channel{}
		for i := range uint64(ranges * 10) {
			if i%10 == 5 || i%2 == 0 {
				ch.unacked.add(i+1, unacked{view: v, sequence: i})
			}
		}
		ch.lastTag = ranges * 10
		frame := make([]Range, ranges)
		for i := range frame { // from the middle of what the one before has taken, to one more
			frame[i] = Range{From: uint64(i) + 1, To: uint64(i+1) * 10}
		}
		b.StartTimer()
		if err := ch.takeRanges(frame, &takings{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/ranges, "ns/range")
}

// BenchmarkAckInOrder delivers and acknowledges one by one behind a message that is never acknowledged.
func BenchmarkAckInOrder(b *testing.B) {
	var o outstanding
	v := &view{}
	o.add(1, unacked{view: v})
	b.ReportAllocs()
	for tag := uint64(2); b.Loop(); tag++ {
		o.add(tag, unacked{view: v})
		o.take(tag, tag, func(entry) {})
	}
}
