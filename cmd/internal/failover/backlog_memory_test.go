package failover

import (
	"strconv"
	"testing"
	"time"
)

// TestBacklogMemory: a node whose memory is limited takes a backlog many times as large, at the end as fast as at the
// beginning, and gives two consumers every message once and in order; its resident memory stays under the limit.
func TestBacklogMemory(t *testing.T) {
	messages, limit, args := 150_000, int64(160<<20), []string{"--snapshot-log-bytes", "8MiB"}
	if *long {
		messages, limit, args = 3_000_000, 768<<20, nil
	}
	messages = messagesOr(messages)
	size := 1024
	if *backlogSize > 0 {
		size = *backlogSize
	}
	members := memoryGroup(t, limit)
	c := layCluster(t, 1, append(args, "--memory", strconv.FormatInt(limit*6/10>>20, 10)+"MiB")...)
	n := c.nodes[0]
	n.Start()
	if members != "" {
		n.confine(members)
	}
	n.Ready()
	resident := n.sample()
	ctx, stop := n.lifetime()
	defer stop()
	c.Declare("backlog")
	within := func(what string) {
		t.Helper()
		most := resident.Most()
		t.Logf("%s: at most %d MiB resident of %d allowed (control group: %v), %d MiB of message files, %d MiB of log", what, most>>20, limit>>20,
			members != "", n.bytesUnder("messages")>>20, n.bytesUnder("log")>>20)
		if most > limit {
			t.Errorf("%s: %d MiB were resident, more than %d", what, most>>20, limit>>20)
		}
	}

	rates, _ := c.publishBacklog(ctx, "backlog", messages, size, 10)
	within("published")
	t.Logf("%d messages of %d bytes published, per second in each tenth: %.0f", messages, size, rates)
	if first, last := (rates[0]+rates[1])/2, (rates[8]+rates[9])/2; *long && last < 0.8*first {
		t.Errorf("%.0f messages a second at the end, %.0f at the beginning", last, first)
	}

	began := time.Now()
	c.startDrain(ctx, "backlog", messages, 2).Wait()
	within("drained")
	t.Logf("two consumers drained it at %.0f messages a second", float64(messages)/time.Since(began).Seconds())
}
