package failover

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestBacklogThroughput: snapshots one after the other under full load cost little of the throughput. Runs with and
// without snapshots take turns, each on a node of its own; the medians are compared.
func TestBacklogThroughput(t *testing.T) {
	messages, rounds := 50_000, 1
	if *long {
		messages, rounds = 300_000, 5
	}
	messages = messagesOr(messages)
	for _, load := range []struct {
		name     string
		consumed bool
	}{{"nobody consumes", false}, {"two consumers", true}} {
		t.Run(strings.ReplaceAll(load.name, " ", "-"), func(t *testing.T) {
			rates := map[string][]float64{}
			for range rounds {
				for _, every := range []string{"1TiB", "64MiB", "16MiB"} {
					// Without a bound of free disk, for a third of that is the most that --snapshot-log-bytes can be.
					rate, slowest, taken := throughput(t, messages, load.consumed, "--snapshot-log-bytes", every, "--min-disk-free", "0B")
					t.Logf("%s, a snapshot every %s of log: %.0f messages a second, longest wait for a confirm %v, %.0f snapshots",
						load.name, every, rate, slowest.Round(time.Millisecond), taken)
					if *long && (taken > 0) == (every == "1TiB") {
						t.Errorf("%.0f snapshots were taken with one every %s", taken, every)
					}
					rates[every] = append(rates[every], rate)
				}
			}
			without := median(rates["1TiB"])
			for _, every := range []string{"64MiB", "16MiB"} {
				with := median(rates[every])
				t.Logf("%s, a snapshot every %s: %.0f messages a second, %.0f without: %+.1f %%", load.name, every, with, without, 100*(with/without-1))
				if *long && with < 0.85*without {
					t.Errorf("snapshots every %s cost more than 15 %% of the throughput", every)
				}
			}
		})
	}
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

// throughput publishes to one node and returns how many messages a second it confirmed, the longest that nothing was
// confirmed, and how many snapshots it took.
func throughput(t *testing.T, messages int, consumed bool, args ...string) (rate float64, slowest time.Duration, snapshots float64) {
	t.Helper()
	c := startCluster(t, 1, args...)
	defer c.nodes[0].Kill()
	c.Declare("load")
	ctx, stop := c.nodes[0].lifetime()
	defer stop()
	began := time.Now()
	var consumers *draining
	if consumed {
		consumers = c.startDrain(ctx, "load", messages, 2)
	}
	_, slowest = c.publishBacklog(ctx, "load", messages, 1024, 1)
	if consumed {
		consumers.Wait()
	}
	rate = float64(messages) / time.Since(began).Seconds()
	return rate, slowest, c.nodes[0].Metric("warren_snapshots_total")
}
