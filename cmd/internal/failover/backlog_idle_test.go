package failover

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/warrenmq/warren/client"
)

// TestBacklogIdle: what a node with many queues or many messages costs while nobody uses them: memory, processor time,
// snapshots, a start after kill -9.
func TestBacklogIdle(t *testing.T) {
	type shape struct{ queues, each, deep int } // deep: messages in one more queue
	shapes := []shape{{100, 10, 20_000}}
	if *long {
		shapes = []shape{{1000, 10, 0}, {10_000, 10, 0}, {10_000, 0, 0}, {100_000, 0, 0}, {10_000, 10, messagesOr(4_900_000)}}
	}
	const size = 256
	for _, s := range shapes {
		t.Run(fmt.Sprintf("%d-queues-of-%d-and-%d", s.queues, s.each, s.deep), func(t *testing.T) {
			c := layCluster(t, 1)
			n := c.nodes[0]
			usual := n.args
			n.args = append(usual, "--snapshot-age", "2s")
			n.Start()
			n.Ready()
			ctx, stop := n.lifetime()
			defer stop()
			c.Declare("deep", "other")
			c.declareMany(s.queues, s.each, size)
			if s.deep > 0 {
				c.publishBacklog(ctx, "deep", s.deep, size, 1)
			}
			n.snapshotNow(c)
			n.snapshotNow(c)
			again := n.snapshotNow(c) // everything was in files and described before
			_, err := c.Channel().Publish(ctx, "", "other", client.Message{Body: []byte("behind the snapshot")})
			c.check(err)
			state := [2]float64{n.Metric("warren_queues"), n.Metric("warren_queue_messages")}

			n.Kill()
			n.args = usual
			began := time.Now()
			n.Start()
			peak := n.sample()
			n.Ready()
			ready := time.Since(began)
			if now := [2]float64{n.Metric("warren_queues"), n.Metric("warren_queue_messages")}; now != state {
				t.Errorf("%v queues and messages before the restart, %v after it", state, now)
			}
			if !n.Logged("restored the state", "phase=snapshot", "percent=100") || !n.Logged("replayed the log", "phase=log", "percent=100") {
				t.Error("the node has not told how far its start was")
			}
			resident, used := n.RSS(), n.processorTime()
			idle := time.Second
			if *long {
				idle = 10 * time.Second
			}
			pass(t, idle)
			used = n.processorTime() - used
			t.Logf("%d queues of %d messages and one of %d: a snapshot with one new message %v; after kill -9 ready in %v, %d MiB resident (%d at most); idle %.2f %% of a processor",
				s.queues, s.each, s.deep, again.Round(time.Millisecond), ready.Round(10*time.Millisecond), resident>>20, peak.Most()>>20,
				100*used.Seconds()/idle.Seconds())
			if *long && ready > 10*time.Second {
				t.Errorf("a restart took %v", ready)
			}
		})
	}
}

// declareMany declares numbered durable queues, many at a time, and publishes to each.
func (c *cluster) declareMany(queues, each, size int) {
	c.t.Helper()
	numbers := make(chan int)
	var working sync.WaitGroup
	for range 8 {
		conn := c.Dial()
		defer conn.Close(c.t.Context())
		ch, err := conn.Channel(c.t.Context())
		c.check(err)
		for range 32 {
			working.Go(func() {
				for i := range numbers {
					name := fmt.Sprintf("queue-%06d", i)
					_, err := ch.DeclareQueue(c.t.Context(), client.Queue{Name: name, Durable: true})
					for range each {
						if err == nil {
							_, err = ch.Publish(c.t.Context(), "", name, client.Message{Body: make([]byte, size)})
						}
					}
					if err != nil {
						c.t.Error(err)
					}
				}
			})
		}
	}
	for i := range queues {
		numbers <- i
	}
	close(numbers)
	working.Wait()
}

// snapshotNow publishes one message, waits for the snapshot that comes for its age, and returns how long that took.
func (n *node) snapshotNow(c *cluster) time.Duration {
	n.t.Helper()
	before := n.Metric("warren_snapshots_total")
	conn := c.Dial()
	defer conn.Close(n.t.Context())
	ch, err := conn.Channel(n.t.Context())
	c.check(err)
	_, err = ch.Publish(n.t.Context(), "", "other", client.Message{Body: []byte("new")})
	c.check(err)
	n.wait(time.Minute, "a snapshot", func() error {
		if n.Metric("warren_snapshots_total") == before {
			return errors.New("none was taken")
		}
		return nil
	})
	return time.Duration(n.Metric("warren_snapshot_duration_seconds") * 1e9)
}

// processorTime is what the process has used so far.
func (n *node) processorTime() time.Duration {
	n.t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n.cmd.Process.Pid))
	if err != nil {
		n.t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	fields, ticks := bytes.Fields(rest), 0
	for _, f := range fields[11:13] { // utime, stime, in hundredths of a second
		v, _ := strconv.Atoi(string(f))
		ticks += v
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
