package broker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/warrenmq/warren/fsm"
)

// pacer feeds a pacing with publishes as if they were applied.
type pacer struct {
	*pacing
	backlog map[uint64]uint64 // by queue
}

// publish lets a session add a message to a queue, after waiting as Session.Publish does, and takes one away if it is consumed.
func (p *pacer) publish(s *share, queue uint64, size int, consumed bool) {
	_ = p.wait(context.Background(), s, nil)
	if p.backlog[queue] += uint64(size); consumed {
		defer func() { p.backlog[queue] -= uint64(size) }()
	}
	f := &flight{waiters: []waiter{{lane: &lane{share: s}, size: size, publish: true}}}
	f.applied.Results = []fsm.Result{{Routed: 1, Longest: fsm.Backlog{Queue: queue, Bytes: p.backlog[queue]}}}
	p.landed(f)
}

// TestWhoMakesAQueueGrowIsSlowedFirst: of two publishers the one whose queue is consumed notices nothing, and the other
// is the slower the less is left, but never stands still.
func TestWhoMakesAQueueGrowIsSlowedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pacer{newPacing(), map[uint64]uint64{}}
		const size = 10_000
		run := func(s *share, queue uint64, consumed bool, d time.Duration) (rate int) {
			for end := time.Now().Add(d); time.Now().Before(end); {
				p.publish(s, queue, size, consumed)
				time.Sleep(time.Millisecond)
				rate += size
			}
			return rate / int(d.Seconds())
		}
		grower, steady := &share{}, &share{}
		full := run(grower, 1, false, 3*time.Second)
		for _, left := range []uint64{4 << 20, 1 << 20, 100_000} {
			p.set(true, left)
			run(grower, 1, false, 3*time.Second)
			want := float64(left) / paceTime.Seconds()
			if got := float64(run(grower, 1, false, 20*time.Second)); got < want/2 || got > want*1.1 {
				t.Errorf("with %d bytes left the grower publishes %.0f bytes a second, want %.0f", left, got, want)
			}
			if !p.slows(grower) {
				t.Errorf("with %d bytes left the grower may publish at once", left)
			}
			run(steady, 2, true, 3*time.Second)
			if got := run(steady, 2, true, 3*time.Second); got < full*9/10 || p.slows(steady) {
				t.Errorf("with %d bytes left the other publishes %d bytes a second, before %d", left, got, full)
			}
		}
		p.set(true, 0)
		began := time.Now()
		p.publish(grower, 1, 1<<20, false)
		p.publish(grower, 1, 1<<20, false)
		if took := time.Since(began); took < maxPause || took > 2*maxPause+time.Millisecond {
			t.Errorf("with nothing left two publishes took %v", took)
		}
		p.set(false, 0)
		if p.slows(grower) {
			t.Error("far from the watermark the grower is slowed")
		}
	})
}

// TestGrowersShareWhatIsLeft: two are each half as fast.
func TestGrowersShareWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pacer{newPacing(), map[uint64]uint64{}}
		const left, size = 1 << 20, 1000
		p.set(true, left)
		shares := []*share{{}, {}}
		sent := 0
		done := time.Now().Add(40 * time.Second)
		for time.Now().Before(done) {
			for _, s := range shares {
				p.publish(s, 1, size, false)
				if time.Until(done) < 20*time.Second {
					sent += size
				}
			}
			time.Sleep(100 * time.Microsecond)
		}
		if got, want := float64(sent)/20, left/paceTime.Seconds(); got < want/3 || got > want*1.2 {
			t.Errorf("two growers publish %.0f bytes a second, want %.0f", got, want)
		}
	})
}
