package failover

import (
	"testing"
	"time"

	"github.com/warrenmq/warren/client"
)

// TestFollowerWhoseLogPositionIsGone: it comes back by the stream of a snapshot and holds the same state.
func TestFollowerWhoseLogPositionIsGone(t *testing.T) {
	c := startCluster(t, 3, "--snapshot-log-bytes", "2MiB", "--segment-size", "1MiB")
	c.Declare("kept", "churned")
	away := c.Followers()[0]
	away.Ready()
	left := away.Metric("warren_raft_applied_index")
	away.Kill()
	leader := c.Leader()
	ch := c.Channel()
	body := make([]byte, 8<<10)
	for round := 0; ; round++ {
		var confirms []*client.Confirm
		for i := range 512 {
			queue := "kept"
			if i%2 == 0 {
				queue = "churned"
			}
			confirm, err := ch.PublishAsync(t.Context(), "", queue, client.Message{Body: body})
			c.check(err)
			confirms = append(confirms, confirm)
		}
		for _, confirm := range confirms {
			_, err := confirm.Wait(t.Context())
			c.check(err)
		}
		_, err := ch.Purge(t.Context(), "churned")
		c.check(err)
		// The log is kept back to the older of two snapshots: that one must be newer than the position too.
		if leader.Metric("warren_snapshot_index") > left && round >= 5 {
			break
		}
		if round == 50 {
			t.Fatal("no snapshot was taken")
		}
	}
	began := time.Now()
	away.Start()
	away.Ready()
	s := c.Agree()
	t.Logf("caught up %v after the start: %d members at index %d with the state hash %s", time.Since(began).Round(time.Millisecond),
		len(s.Members), s.Members[0].StateHashIndex, s.Members[0].StateHash)
	if !leader.Logged("log not found") {
		t.Errorf("%s still had the log that %s needs: no snapshot was sent", leader.id, away.id)
	}
	// What came by stream is as good as what came by log: a restart, and leading, work from it.
	away.Kill()
	away.Start()
	away.Ready()
	c.Agree()
}
