package fsm

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestScheduleEqualsSortedSlice: the first of a schedule are those of the sorted list, whatever came and went.
func TestScheduleEqualsSortedSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h schedule
		var list []appointment
		sequence := uint64(0)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				if len(h) > 0 {
					h.drop()
					list = list[1:]
				}
			case 1:
				slices.Reverse(h)
				h.heapify()
			default:
				sequence++
				a := appointment{rapid.Int64Range(1, 20).Draw(t, "at"), sequence}
				h.add(a)
				at, _ := slices.BinarySearchFunc(list, a, func(x, y appointment) int {
					if x.before(y) {
						return -1
					}
					return 1
				})
				list = slices.Insert(list, at, a)
			}
			now, limit := rapid.Int64Range(0, 21).Draw(t, "now"), rapid.IntRange(0, 30).Draw(t, "limit")
			var want []appointment
			for _, a := range list {
				if a.at <= now && len(want) < limit {
					want = append(want, a)
				}
			}
			if got := h.first(now, limit); !slices.Equal(got, want) || len(h) != len(list) {
				t.Fatalf("first %d until %d are %v, want %v", limit, now, got, want)
			}
		}
	})
}
