package failover

import (
	"testing"
	"time"
)

// TestLeaderIsPaused: a leader that hangs is replaced, and causes no harm when it goes on.
func TestLeaderIsPaused(t *testing.T) {
	c := startCluster(t, 3)
	c.fanout()
	counter := c.startCounter("live")
	load := c.startLoad("all", "", 2, 1000, 2)
	load.AwaitConfirms(500, 10*time.Second)
	leader := c.Leader()
	paused := time.Now()
	leader.Pause()
	load.AwaitConfirms(2000, 20*time.Second)
	gap := load.Gap(paused)
	leader.Resume()
	leader.Ready()
	load.AwaitConfirms(500, 10*time.Second)
	t.Logf("leader paused: no confirm for %v", gap.Round(time.Millisecond))
	if *long && gap > 2500*time.Millisecond { // a busy machine is no failure of the short form
		t.Errorf("no confirm for %v after the leader was paused, more than 2.5 s", gap)
	}
	published := load.Stop()
	counter.Expect(published, 20*time.Second)
	counter.Stop()
	c.ExpectKept("kept", published)
	c.Agree()
}

// TestRollingRestart: SIGTERM and start, one node after the other, loses nothing and is hardly felt.
func TestRollingRestart(t *testing.T) {
	c := startCluster(t, 3)
	c.fanout()
	counter := c.startCounter("live")
	load := c.startLoad("all", "", 2, 1000, 2)
	load.AwaitConfirms(500, 10*time.Second)
	for _, n := range c.nodes {
		leads := n == c.Leader()
		began := time.Now()
		n.Stop()
		stopped := time.Since(began)
		n.Start()
		n.Ready()
		load.AwaitConfirms(500, 10*time.Second)
		t.Logf("%s (leads: %v) stopped at %s within %v and restarted: no confirm for %v", n.id, leads, began.Format("05.000"),
			stopped.Round(time.Millisecond), load.Gap(began).Round(time.Millisecond))
	}
	published := load.Stop()
	counter.Expect(published, 20*time.Second)
	counter.Stop()
	c.ExpectKept("kept", published)
	c.Agree()
}
