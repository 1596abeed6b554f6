package fsm

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestRowsEqualModel drives rows and a set; views do not change once taken.
func TestRowsEqualModel(t *testing.T) {
	type thing struct{ number, row int }
	content := func(v rowsView[thing]) (all []int) {
		for x := range v.all {
			all = append(all, x.number)
		}
		slices.Sort(all)
		return all
	}
	rapid.Check(t, func(t *rapid.T) {
		var r rows[thing]
		var live []*thing
		var views []rowsView[thing]
		var wants [][]int
		next := 0
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			for range rapid.IntRange(0, 400).Draw(t, "add") {
				next++
				x := &thing{number: next}
				x.row = r.add(x)
				live = append(live, x)
			}
			for range rapid.IntRange(0, min(len(live), 400)).Draw(t, "remove") {
				i := (next * 7919) % len(live)
				x := live[i]
				live = slices.Delete(live, i, i+1)
				if moved := r.remove(x.row); moved != nil {
					moved.row = x.row
				}
				next++
			}
			var want []int
			for _, x := range live {
				want = append(want, x.number)
			}
			slices.Sort(want)
			views, wants = append(views, r.view()), append(wants, want)
		}
		for i := range views {
			if got := content(views[i]); !slices.Equal(got, wants[i]) {
				t.Fatalf("view %d has %v, want %v", i, got, wants[i])
			}
		}
	})
}
