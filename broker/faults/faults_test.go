package faults

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/warrenmq/warren/fsm/store/vfs/vfstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stride is how many faults the test passes over for one that it tries, without -all.
const stride = 29

// TestEveryFileCallOfANodeFailsOnce runs the history on a node alone with each of its file calls failing once in each
// way. Whenever it is up again it has all that was confirmed, each message with its body and in its place, and nothing
// else but perhaps the step that was under way; it gets through the history, and a restart at the end changes nothing.
func TestEveryFileCallOfANodeFailsOnce(t *testing.T) {
	var calls []vfstest.Call
	synctest.Test(t, func(t *testing.T) {
		p := newPlay()
		if err := p.run(false); err != nil || len(p.ends) > 0 {
			t.Fatal("without a fault: ", err, p.ends)
		}
		calls = p.machine.disk.Calls()
	})
	faults := vfstest.Faults(calls)
	if !*all {
		var some []vfstest.Fault
		for i := range faults {
			if i%stride == 0 {
				some = append(some, faults[i])
			}
		}
		faults = some
	}
	began, missed := time.Now(), 0
	ends := map[string]int{}
	for _, f := range faults {
		if *only >= 0 && f.Kind != vfstest.Kind(*only) {
			continue
		}
		var failed error
		synctest.Test(t, func(t *testing.T) {
			p := newPlay()
			p.machine.disk.Pick(f.Call, f.Kind)
			failed = p.run(f.Kind == vfstest.Fails)
			if failed == nil && f.Kind == vfstest.Hangs {
				failed = p.steppedDown()
			}
			if failed != nil {
				failed = fmt.Errorf("%v: %w (%v)", f, failed, p.ends)
			}
			if !p.machine.disk.Hit() {
				missed++
			}
			end := "it goes on"
			if len(p.ends) > 0 {
				end = p.ends[0].Error()
			}
			ends[fmt.Sprintf("%s %s %v: %s", f.Call.Op, f.Call.Name, f.Kind, end)]++
		})
		if failed != nil {
			t.Error(failed) // not inside: the first one would end the test
		}
	}
	t.Logf("%d calls, %d faults in %v, %d not met", len(calls), len(faults), time.Since(began).Round(time.Millisecond), missed)
	if testing.Verbose() {
		var lines []string
		for end, n := range ends {
			lines = append(lines, fmt.Sprintf("%4d %.300s", n, end))
		}
		slices.SortFunc(lines, func(a, b string) int { return len(a) - len(b) })
		for _, l := range lines {
			t.Log(l)
		}
	}
	if len(calls) < 300 || missed*20 > len(faults) {
		t.Errorf("%d calls; %d of %d faults were not met", len(calls), missed, len(faults))
	}
}
