package broker

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestRule14TheClockSlewsByATenthAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wall := time.Now().UnixMilli()
		var c clock
		c.applied()
		c.start(wall - 60_000) // a minute behind the wall clock
		time.Sleep(10 * time.Second)
		if got := c.now() - (wall - 60_000); got < 10_990 || got > 11_010 {
			t.Fatalf("after 10 s a clock that is behind went on by %d ms, want 11,000", got)
		}
		c.start(wall + 60_000) // ahead
		time.Sleep(10 * time.Second)
		before := c.now()
		time.Sleep(10 * time.Second)
		if got := c.now() - before; got < 8_990 || got > 9_010 {
			t.Fatalf("after 10 s a clock that is ahead went on by %d ms, want 9,000", got)
		}
	})
}

func TestRule14ANewLeaderGoesOnFromWhenItApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c clock
		c.applied()
		value := time.Now().UnixMilli()
		time.Sleep(3 * time.Second) // nobody led
		c.start(value)
		if got := c.now() - value; got < 2_999 || got > 3_001 {
			t.Fatalf("three seconds without a leader counted as %d ms", got)
		}
	})
}

func TestRule14OnlyAColdStartTakesTheWallClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c clock
		wall := time.Now().UnixMilli()
		c.startCold(wall - 3_600_000)
		if got := c.now(); got != wall {
			t.Fatalf("a cold start reads %d, the wall clock %d", got, wall)
		}
		if ahead := c.startCold(wall + 120_000); ahead != 2*time.Minute {
			t.Fatalf("a stored value two minutes ahead is reported as %v", ahead)
		}
		if got := c.now(); got < wall+120_000 {
			t.Fatalf("the clock ran backwards to %d", got)
		}
	})
}
