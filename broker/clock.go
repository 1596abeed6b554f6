package broker

import (
	"sync"
	"time"
)

// clock is the batch clock of rule 14: within a term it advances by this process's monotonic time from the value last
// applied, slewing towards the wall clock by at most a tenth. Only a cold start takes the wall clock.
type clock struct {
	mu        sync.Mutex
	value     float64   // ms; guarded by mu
	at        time.Time // when value held; guarded by mu
	lastApply time.Time // when an entry was last applied here; guarded by mu
}

func (c *clock) applied() {
	c.mu.Lock()
	c.lastApply = time.Now()
	c.mu.Unlock()
}

// start begins a term from the clock value that was last applied here.
func (c *clock) start(value int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.value, c.at = float64(value), c.lastApply
	if c.at.IsZero() {
		c.at = time.Now()
	}
}

// startCold takes the wall clock, never less than the stored value, and returns by how much the two differed.
func (c *clock) startCold(value int64) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = time.Now()
	wall := c.at.UnixMilli()
	c.value = float64(max(wall, value))
	return time.Duration(value-wall) * time.Millisecond
}

// now returns the batch clock in Unix ms.
func (c *clock) now() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	elapsed := float64(now.Sub(c.at)) / float64(time.Millisecond)
	drift := float64(now.UnixMicro())/1000 - (c.value + elapsed)
	c.value += elapsed + min(max(drift, -elapsed/10), elapsed/10)
	c.at = now
	return int64(c.value)
}
