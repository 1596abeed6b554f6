package fsm

import "testing"

// TestRetryWaits: how long a message waits when it has been returned for the first, second, … time.
func TestRetryWaits(t *testing.T) {
	for _, c := range []struct {
		arguments []byte
		waits     []int64
	}{
		{nil, []int64{0, 0}},
		{table("x-delayed-retry-type", "all", "x-delayed-retry-min", int32(100), "x-delayed-retry-max", int32(250)), []int64{100, 200, 250, 250}},
		{table("x-delayed-retry-type", "failed", "x-delayed-retry-min", int32(100)), []int64{100, 200, 300}},
		{table("x-delayed-retry-min", int32(100), "x-delayed-retry-multiplier", int32(2), "x-delayed-retry-max", int32(500)), []int64{100, 200, 400, 500, 500}},
		{table("x-delayed-retry-min", int32(100), "x-delayed-retry-multiplier", int32(1)), []int64{100, 100, 100}},
		{table("x-delayed-retry-type", "disabled", "x-delayed-retry-min", int32(100)), []int64{0, 0}},
		{table("x-delayed-retry-max", int32(100)), []int64{0, 0}},
		{table("x-delayed-retry-min", int64(1)<<60, "x-delayed-retry-multiplier", int32(1000)), []int64{maxPeriod, maxPeriod}},
	} {
		fields, _ := parseTable(c.arguments, nil)
		r := (&settings{arguments: fields}).retry()
		for i, want := range c.waits {
			if got := r.wait(int64(i) + 1); got != want {
				t.Errorf("%q waits for %d ms at return %d, expected %d", c.arguments, got, i+1, want)
			}
		}
		if got := r.wait(maxDeliveryCount); got < 0 || got > maxPeriod {
			t.Errorf("%q waits for %d ms", c.arguments, got)
		}
	}
}
