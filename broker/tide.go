package broker

import (
	"math"
	"time"
)

// tideTime is over how long the rise of something is smoothed. Collections and snapshots relieve a node in steps.
const tideTime = 2 * time.Second

// tide is how fast a number of bytes rises.
type tide struct {
	last uint64
	rise float64 // bytes a second, smoothed; negative when it falls
}

func (t *tide) note(now uint64, passed time.Duration) {
	if passed > 0 {
		weight := 1 - math.Exp(-passed.Seconds()/tideTime.Seconds())
		t.rise += weight * ((float64(now)-float64(t.last))/passed.Seconds() - t.rise)
	}
	t.last = now
}

// tides are those by which a node knows how much of what comes in stays. They belong to one goroutine.
type tides struct {
	at                       time.Time
	taken, memory, unwritten tide
}

// note takes in where the node is, and returns how many bytes a second leave its memory again and how many are written to
// message files: what comes in less what memory, and what waits to be written, rise.
func (t *tides) note(w *Watermarks, now time.Time) (memory, unwritten float64) {
	var passed time.Duration
	if !t.at.IsZero() {
		passed = now.Sub(t.at)
	}
	t.at = now
	read := func(t *tide, f func() uint64) {
		if f != nil {
			t.note(f(), passed)
		}
	}
	read(&t.taken, w.Taken)
	read(&t.memory, w.MemoryUsed)
	read(&t.unwritten, w.Unwritten)
	return max(0, t.taken.rise-t.memory.rise), max(0, t.taken.rise-t.unwritten.rise)
}
