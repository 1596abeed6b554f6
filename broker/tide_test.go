package broker

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestAsFastAsTheDisk: who publishes without end gets as much through as the disk takes in its steps, and the watermark
// is not reached; when the disk gets slower the publisher does.
func TestAsFastAsTheDisk(t *testing.T) {
	const bound, step = 57 << 20, 14 << 20
	synctest.Test(t, func(t *testing.T) {
		var taken, unwritten uint64
		w := Watermarks{Unwritten: func() uint64 { return unwritten }, MaxUnwritten: bound, Taken: func() uint64 { return taken }}
		var tides tides
		demand := 200e6 // bytes a second
		snapshot := time.Now()
		run := func(disk float64, d time.Duration) (rate float64) {
			began, before := time.Now(), taken
			for time.Since(began) < d {
				l := w.measure(&tides, false)
				if l.reason != "" {
					t.Fatalf("%v after the start: %s", time.Since(began), l.reason)
				}
				may := demand
				if l.near {
					may = min(demand, float64(l.left)/paceTime.Seconds())
				}
				in := uint64(may * watermarkInterval.Seconds())
				taken, unwritten = taken+in, unwritten+in
				if time.Since(snapshot).Seconds() >= step/disk { // it has taken that long
					snapshot = time.Now()
					unwritten -= min(unwritten, step)
				}
				time.Sleep(watermarkInterval)
			}
			return float64(taken-before) / d.Seconds()
		}
		run(50e6, 5*time.Second)
		fast := run(50e6, time.Minute)
		run(10e6, 20*time.Second)
		slow := run(10e6, time.Minute)
		if fast < 0.9*50e6 || slow < 0.9*10e6 {
			t.Errorf("%.0f bytes a second came in when the disk took 50e6, %.0f when it took 10e6", fast, slow)
		}
		demand = 0
		run(50e6, 10*time.Second)
		if l := w.measure(&tides, false); l.near {
			t.Errorf("with everything written it is still near: %+v", l)
		}
	})
}

// TestWhatLeavesMemoryIsNotPaidFor: near the watermark of memory a publisher whose messages leave it again may go on; one
// whose messages stay may use up what is left.
func TestWhatLeavesMemoryIsNotPaidFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, stays := range []float64{0.01, 1} {
			taken, used := uint64(0), float64(280<<20)
			w := Watermarks{MemoryUsed: func() uint64 { return uint64(used) }, MaxMemory: 345 << 20, Taken: func() uint64 { return taken }}
			var tides tides
			var rates []float64
			for range 100 {
				l := w.measure(&tides, false)
				if !l.near || l.reason != "" {
					t.Fatalf("%+v", l)
				}
				rate := min(60e6, float64(l.left)/paceTime.Seconds())
				rates = append(rates, rate)
				in := rate * watermarkInterval.Seconds()
				taken += uint64(in)
				used += stays * in
				time.Sleep(watermarkInterval)
			}
			if last := rates[len(rates)-1]; (last > 50e6) != (stays < 1) {
				t.Errorf("when %v of it stays %.0f bytes a second may come", stays, last)
			}
		}
	})
}
