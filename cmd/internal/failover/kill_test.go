package failover

import (
	"syscall"
	"testing"
	"time"

	"github.com/warrenmq/warren/client"
)

// fanout declares an exchange with two queues: one for a consumer, one that keeps everything for a count at the end.
func (c *cluster) fanout() {
	c.t.Helper()
	c.Declare("live", "kept")
	ch := c.Channel()
	c.check(ch.DeclareExchange(c.t.Context(), client.Exchange{Name: "all", Kind: "fanout", Durable: true}))
	c.check(ch.Bind(c.t.Context(), "all", "live", "", nil))
	c.check(ch.Bind(c.t.Context(), "all", "kept", "", nil))
}

// TestLeaderIsKilledFiveTimes: every confirmed message is delivered and in its queue exactly once.
func TestLeaderIsKilledFiveTimes(t *testing.T) {
	c := startCluster(t, 3)
	c.fanout()
	counter := c.startCounter("live")
	load := c.startLoad("all", "", 2, 1000, 2)
	load.AwaitConfirms(500, 10*time.Second)
	for range 5 {
		leader := c.Leader()
		killed := time.Now()
		leader.Kill()
		load.AwaitConfirms(1000, 20*time.Second)
		gap := load.Gap(killed)
		leader.Start()
		leader.Ready()
		t.Logf("leader %s killed at %s: no confirm for %v", leader.id, killed.Format("05.000"), gap.Round(time.Millisecond))
	}
	published := load.Stop()
	counter.Expect(published, 20*time.Second)
	counter.Stop()
	c.ExpectKept("kept", published)
	c.Agree()
}

// TestAllKilledAndAllPortsChanged: everything confirmed is there after a crash of the whole cluster.
func TestAllKilledAndAllPortsChanged(t *testing.T) {
	c := startCluster(t, 3)
	c.Declare("kept")
	load := c.startLoad("", "kept", 2, 1000, 1)
	load.AwaitConfirms(2000, 10*time.Second)
	for _, n := range c.nodes {
		n.signal(syscall.SIGKILL)
	}
	for _, n := range c.nodes {
		n.Kill()
	}
	published := load.Abandon()
	c.Readdress()
	began := time.Now()
	c.Start(c.nodes[2], c.nodes[0], c.nodes[1])
	c.Leader()
	t.Logf("a leader %v after the start", time.Since(began).Round(time.Millisecond))
	c.Ready()
	c.ExpectKept("kept", published)
	c.Agree()
}

// TestMinorityConfirmsNothing: one node of three confirms nothing; with the others back it does.
func TestMinorityConfirmsNothing(t *testing.T) {
	c := startCluster(t, 3)
	c.Declare("kept")
	load := c.startLoad("", "kept", 1, 500, 1)
	load.AwaitConfirms(200, 10*time.Second)
	followers := c.Followers()
	for _, n := range followers {
		n.Kill()
	}
	pass(t, 50*time.Millisecond) // what was on its way may arrive
	before := load.Confirmed()
	pass(t, 2*time.Second)
	if n := load.Confirmed() - before; n > 0 {
		t.Fatalf("one node of three confirmed %d messages", n)
	}
	c.Start(followers...)
	load.AwaitConfirms(500, 20*time.Second)
	c.Ready()
	c.ExpectKept("kept", load.Stop())
	c.Agree()
}
