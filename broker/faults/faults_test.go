package faults

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/warrenmq/warren/fsm/store/vfs/vfstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Without -all, a test passes over this many faults for one that it tries.
const (
	stride     = 29
	hangStride = 47
)

// Hangs are tried on the real clock: who waits for a lock that a hung call holds would stop a virtual one.
const (
	hangLimit    = 200 * time.Millisecond // the node's disk timeout
	hangsAtATime = 32
)

// history's file calls, of a run without a fault.
func callsOfTheHistory(t *testing.T) (calls []vfstest.Call) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPlay()
		if err := p.run(false); err != nil || len(p.ends) > 0 {
			t.Fatal("without a fault: ", err, p.ends)
		}
		calls = p.machine.disk.Calls()
	})
	if len(calls) < 300 {
		t.Fatalf("the history makes %d calls only", len(calls))
	}
	return calls
}

// each returns the faults that are to be tried.
func each(calls []vfstest.Call, stride int, is func(vfstest.Kind) bool) (some []vfstest.Fault) {
	n := 0
	for _, f := range vfstest.Faults(calls) {
		if !is(f.Kind) || *only >= 0 && f.Kind != vfstest.Kind(*only) {
			continue
		}
		if n++; *all || n%stride == 1 {
			some = append(some, f)
		}
	}
	return some
}

// ends counts what the runs came to. Safe for concurrent use.
type ends struct {
	mu     sync.Mutex // guards everything below
	began  time.Time
	runs   int
	missed int // did not meet their fault
	counts map[string]int
	failed []error
}

func newEnds() *ends { return &ends{began: time.Now(), counts: map[string]int{}} }

// add takes down a run with a fault.
func (e *ends) add(f vfstest.Fault, p *play, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.runs++
	if !p.machine.disk.Hit() {
		e.missed++
	}
	if err != nil {
		e.failed = append(e.failed, fmt.Errorf("%v: %w (%v)", f, err, p.ends))
	}
	end := "it goes on"
	if len(p.ends) > 0 {
		end = p.ends[0].Error()
	}
	e.counts[fmt.Sprintf("%s %s %v: %s", f.Call.Op, f.Call.Name, f.Kind, end)]++
}

func (e *ends) report(t *testing.T) {
	for _, err := range e.failed {
		t.Error(err)
	}
	t.Logf("%d faults in %v, %d not met", e.runs, time.Since(e.began).Round(time.Millisecond), e.missed)
	if e.missed*20 > e.runs {
		t.Errorf("%d of %d faults were not met", e.missed, e.runs)
	}
	if !testing.Verbose() {
		return
	}
	var lines []string
	for end, n := range e.counts {
		lines = append(lines, fmt.Sprintf("%4d %.300s", n, end))
	}
	slices.SortFunc(lines, func(a, b string) int { return len(a) - len(b) })
	for _, l := range lines {
		t.Log(l)
	}
}

// TestEveryFileCallOfANodeFailsOnce runs the history on a node alone with each of its file calls failing once in each
// way. Whenever it is up again it has all that was confirmed, each message with its body and in its place, and nothing
// else but perhaps the step that was under way; it gets through the history, and a restart at the end changes nothing.
func TestEveryFileCallOfANodeFailsOnce(t *testing.T) {
	calls := callsOfTheHistory(t)
	t.Logf("%d calls", len(calls))
	e := newEnds()
	for _, f := range each(calls, stride, func(k vfstest.Kind) bool { return k != vfstest.Hangs }) {
		synctest.Test(t, func(t *testing.T) {
			p := newPlay()
			p.machine.disk.Pick(f.Call, f.Kind)
			e.add(f, p, p.run(f.Kind == vfstest.Fails)) // reported outside: the first one would end the test
		})
	}
	e.report(t)
}

// TestEveryFileCallOfANodeHangsOnce is the same with calls that do not return: the process ends of itself and says
// which call it was, and the next one goes on.
func TestEveryFileCallOfANodeHangsOnce(t *testing.T) {
	faults := make(chan vfstest.Fault)
	e := newEnds()
	var runs sync.WaitGroup
	for range hangsAtATime {
		runs.Go(func() {
			for f := range faults {
				p := newPlay()
				p.machine.diskTimeout = hangLimit
				p.machine.disk.Pick(f.Call, f.Kind)
				err := p.run(false)
				if err == nil {
					err = p.steppedDown()
				}
				e.add(f, p, err)
			}
		})
	}
	for _, f := range each(callsOfTheHistory(t), hangStride, func(k vfstest.Kind) bool { return k == vfstest.Hangs }) {
		faults <- f
	}
	close(faults)
	runs.Wait()
	e.report(t)
}
