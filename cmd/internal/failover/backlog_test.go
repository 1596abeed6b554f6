package failover

import (
	"testing"
	"time"

	"github.com/warrenmq/warren/client"
)

// TestBacklog: a large queue that nobody consumes makes neither snapshots nor restarts slow.
func TestBacklog(t *testing.T) {
	messages, stall, restart := 20_000, 5*time.Second, 20*time.Second // a busy machine is no failure of the short form
	if *long {
		messages, stall, restart = 1_000_000, 50*time.Millisecond, 5*time.Second
	}
	c := startCluster(t, 3, "--snapshot-log-bytes", "8MiB")
	c.Declare("backlog", "other")
	c.fill("backlog", messages, 1024)
	leader := c.Leader()
	c.snapshots(leader, 2) // now the backlog is in message files
	c.Agree()
	before := leader.bytesUnder("messages")
	slowest, others := c.snapshots(leader, 2)
	wrote := leader.bytesUnder("messages") - before
	t.Logf("%d messages: message files of %d MiB; a snapshot took %v, slowest publish beside it %v, %d KiB of files written for %d KiB published",
		messages, before>>20, time.Duration(leader.Metric("warren_snapshot_duration_seconds")*1e9).Round(10*time.Microsecond),
		slowest.Round(10*time.Microsecond), wrote>>10, others>>10)
	if wrote > others+others/4 { // some lay in memory before; the old bodies would be as much again
		t.Errorf("the snapshot wrote %d bytes for %d bytes of new messages: old bodies were written again", wrote, others)
	}
	if slowest > stall {
		t.Errorf("a publish took %v while a snapshot was taken", slowest)
	}

	follower := c.Followers()[0]
	follower.Kill()
	began := time.Now()
	follower.Start()
	follower.Ready()
	took := time.Since(began)
	t.Logf("a follower was ready %v after its start, resident %d MiB", took.Round(time.Millisecond), follower.RSS()>>20)
	if took > restart {
		t.Errorf("a restart took %v, more than %v", took, restart)
	}
	c.Agree()
	if depth := c.Depth("backlog"); depth != uint64(messages) {
		t.Errorf("%d messages are in the queue, not %d", depth, messages)
	}
}

// snapshots publishes a little to another queue until a node has taken more snapshots. It returns the longest that a
// publish waited for its confirm, and the bytes published.
func (c *cluster) snapshots(n *node, more int) (slowest time.Duration, bytes int64) {
	c.t.Helper()
	ch := c.Channel()
	at, body := n.Metric("warren_snapshot_index"), make([]byte, 64<<10)
	for more > 0 {
		for range 16 {
			began := time.Now()
			_, err := ch.Publish(c.t.Context(), "", "other", client.Message{Body: body})
			c.check(err)
			slowest = max(slowest, time.Since(began))
			bytes += int64(len(body)) + 1024
		}
		if now := n.Metric("warren_snapshot_index"); now != at {
			more, at = more-1, now
		}
		if bytes > 128<<20 {
			c.t.Fatal("no snapshot was taken")
		}
	}
	return slowest, bytes
}

// fill publishes persistent messages as fast as they are confirmed.
func (c *cluster) fill(queue string, messages, size int) {
	c.t.Helper()
	ch := c.Channel()
	confirms := make(chan *client.Confirm, messages)
	body := make([]byte, size)
	for range messages {
		confirm, err := ch.PublishAsync(c.t.Context(), "", queue, client.Message{Body: body})
		c.check(err)
		confirms <- confirm
	}
	close(confirms)
	for confirm := range confirms {
		_, err := confirm.Wait(c.t.Context())
		c.check(err)
	}
}
