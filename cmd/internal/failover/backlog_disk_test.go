package failover

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/warrenmq/warren/client"
)

// TestBacklogDisk: while one message stays unacknowledged, what passes through its queue does not stay on the disk, and
// what a backlog took is given back soon after it has been drained.
func TestBacklogDisk(t *testing.T) {
	// The constant is the log, which reaches back to the older of two snapshots and has segments ready and to use again,
	// and what snapshots found on its way through the queue: sixteen times the bytes of log between two snapshots. The
	// reserve, a quarter of --min-disk-free, comes on top.
	const size, times, reserve = 32 << 10, 16, 50 << 20
	every, megabytes, args := int64(8<<20), 400, []string{"--snapshot-log-bytes", "8MiB", "--segment-size", "8MiB"}
	if *long {
		every, megabytes, args = 64<<20, 20_000, nil
	}
	constant := times*every + reserve
	messages := messagesOr(megabytes << 20 / size)
	c := startCluster(t, 1, args...)
	n := c.nodes[0]
	ctx, stop := n.lifetime()
	defer stop()
	c.Declare("passing")

	ch := c.Channel()
	_, err := ch.Publish(ctx, "", "passing", client.Message{Body: make([]byte, size)})
	c.check(err)
	c.check(ch.Qos(ctx, 1, false))
	holder, err := ch.Consume(ctx, "passing", client.ConsumeOptions{})
	c.check(err)
	holding, let := context.WithCancel(ctx)
	defer let()
	for d, err := range holder.All(holding) { // and never acknowledge it
		c.check(err)
		if len(d.Body) != size {
			t.Fatalf("a body of %d bytes", len(d.Body))
		}
		break
	}
	beyond := n.sampleBeyond()
	consumers := c.startDrain(ctx, "passing", messages, 2)
	began := time.Now()
	c.publishBacklog(ctx, "passing", messages, size, 1)
	consumers.Wait()
	took := time.Since(began)
	most := beyond.Most()
	t.Logf("%d MiB passed in %v while one message of %d KiB was held: at most %d MiB on the disk beyond twice what was in queues, %d MiB allowed, %d MiB at the end",
		messages*size>>20, took.Round(time.Second), size>>10, most>>20, constant>>20, n.diskBytes()>>20)
	if most > constant {
		t.Errorf("%d MiB are on the disk beyond twice the live data", most>>20)
	}

	backlog := max(messages/4, int(24*every/size)) // consumed without any new message
	c.publishBacklog(ctx, "passing", backlog, size, 1)
	full := n.diskBytes()
	c.startDrain(ctx, "passing", backlog, 2).Wait()
	began = time.Now()
	await(t, time.Minute, "the space of a drained backlog given back", func() error {
		if now := n.diskBytes(); now > constant {
			return fmt.Errorf("%d MiB are still on the disk", now>>20)
		}
		return nil
	})
	t.Logf("a backlog of %d MiB had %d MiB on the disk; %v after it was drained it had %d MiB", backlog*size>>20, full>>20,
		time.Since(began).Round(time.Second), n.diskBytes()>>20)
}

// sampleBeyond looks at what a node's data directory takes on the disk beyond twice what its queues hold, or held in the
// last two seconds: publishers run ahead of consumers by their window, and files are given back a moment later.
func (n *node) sampleBeyond() *sampler {
	var held [20]int64
	at := 0
	return sample(n.t, 100*time.Millisecond, func() (int64, error) {
		live, err := n.metric("warren_queue_message_bytes")
		if err != nil {
			return 0, err
		}
		held[at%len(held)] = int64(live)
		at++
		return n.diskBytes() - 2*slices.Max(held[:]), nil
	})
}

// diskBytes is what the data directory takes on the disk; a file with several names counts once.
func (n *node) diskBytes() (total int64) {
	seen := map[uint64]bool{}
	_ = filepath.WalkDir(n.dir, func(name string, d fs.DirEntry, err error) error {
		var s syscall.Stat_t
		if err == nil && d.Type().IsRegular() && syscall.Lstat(name, &s) == nil && !seen[s.Ino] {
			seen[s.Ino] = true
			total += s.Blocks * 512
		}
		return nil // files come and go meanwhile
	})
	return total
}

// sampler looks at something again and again.
type sampler struct {
	stop    chan struct{}
	working sync.WaitGroup

	mu   sync.Mutex
	most int64 // guarded by mu
}

func sample(t *testing.T, every time.Duration, look func() (int64, error)) *sampler {
	s := &sampler{stop: make(chan struct{})}
	s.working.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-s.stop:
				return
			case <-tick.C:
			}
			if v, err := look(); err == nil {
				s.mu.Lock()
				s.most = max(s.most, v)
				s.mu.Unlock()
			}
		}
	})
	t.Cleanup(func() { close(s.stop); s.working.Wait() })
	return s
}

// Most is the most that was seen since the last call.
func (s *sampler) Most() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	most := s.most
	s.most = 0
	return most
}
