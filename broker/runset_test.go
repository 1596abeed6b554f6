package broker

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/warrenmq/warren/fsm"
)

func TestRunSetIsASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s runSet
		model := map[uint64]bool{}
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			q := rapid.Uint64Range(1, 5000).Draw(t, "sequence")
			if rapid.Bool().Draw(t, "add") {
				s.add(q)
				model[q] = true
			} else {
				s.remove(q)
				delete(model, q)
			}
		}
		if s.n != len(model) {
			t.Fatalf("%d numbers, want %d", s.n, len(model))
		}
		want := toRuns(sortedKeys(model))
		if got := s.runs(); !slices.Equal(got, want) {
			t.Fatalf("runs %v, want %v", got, want)
		}
		if len(model) == 0 && len(s.pages) != 0 {
			t.Fatal("an empty set keeps pages")
		}
	})
}

func TestToRunsJoinsNeighbours(t *testing.T) {
	got := toRuns([]uint64{9, 3, 1, 2, 7, 8, 3})
	want := []fsm.Run{{From: 1, To: 3}, {From: 7, To: 9}}
	if !slices.Equal(got, want) {
		t.Fatalf("runs %v, want %v", got, want)
	}
}
