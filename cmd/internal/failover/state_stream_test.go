package failover

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestTheLeaderServesWhileItSendsTheState: a follower needs the whole state, is killed in the middle of it and gets it anew.
// Meanwhile confirms go on and nobody stands for election; the rate that is set is kept.
func TestTheLeaderServesWhileItSendsTheState(t *testing.T) {
	const size = 8 << 10
	messages, rate, stall := 1500, int64(4<<20), 5*time.Second // a busy machine is no failure of the short form
	if *long {
		messages, rate, stall = 50_000, 32<<20, 500*time.Millisecond
	}
	messages = messagesOr(messages)
	c := startCluster(t, 3, "--snapshot-log-bytes", "2MiB", "--segment-size", "1MiB", "--snapshot-rate", fmt.Sprint(rate))
	c.Declare("backlog", "load")
	away := c.Followers()[0]
	away.Kill()
	c.fill("backlog", messages, size)
	leader := c.Leader()
	c.snapshots(leader, 3) // the log begins behind what the other has
	term := leader.Metric("warren_raft_term")

	l := c.startLoad("", "load", 1, 500, 1)
	l.AwaitConfirms(100, 10*time.Second)
	began := time.Now()
	away.Start()
	broken := away.receives(rate/4, "")
	away.Kill()
	away.Start()
	again := time.Now()
	away.receives(rate/4, broken)
	if _, err := os.Stat(broken); err == nil {
		t.Errorf("what has come of the broken stream is still there: %s", broken)
	}
	away.wait(time.Minute, "the whole state", func() error {
		if now := away.receiving(); now != "" {
			return errors.New("it is still being received")
		}
		return nil
	})
	took, least := time.Since(again), time.Duration(float64(messages*size)/float64(rate)*0.9*float64(time.Second))
	gap := l.Gap(began)
	published := l.Stop()
	if gap > stall {
		t.Errorf("no confirm came for %v", gap)
	}
	if took < least {
		t.Errorf("%d MiB came in %v, faster than %d MiB a second", messages*size>>20, took, rate>>20)
	}
	if now := leader.Metric("warren_raft_term"); now != term {
		t.Errorf("there was an election: the term was %v and is %v", term, now)
	}
	away.Ready()
	c.Agree()
	t.Logf("%d MiB came in %v at %d MiB a second; the longest time without a confirm was %v, %d messages were confirmed meanwhile",
		messages*size>>20, took.Round(10*time.Millisecond), rate>>20, gap.Round(time.Millisecond), len(published))
	c.ExpectKept("load", published)
}

// receiving returns the snapshot that a node is being sent, "" for none.
func (n *node) receiving() string {
	found, _ := filepath.Glob(filepath.Join(n.dir, "snapshots", "*.tmp", "stream"))
	for _, f := range found {
		if info, err := os.Stat(f); err == nil && info.Size() > 0 {
			return f
		}
	}
	return ""
}

// receives waits until a node has so much of a snapshot that it is being sent, one other than that before.
func (n *node) receives(bytes int64, before string) (name string) {
	n.t.Helper()
	n.wait(time.Minute, "a stream of the state", func() error {
		name = n.receiving()
		if info, err := os.Stat(name); err != nil || info.Size() < bytes || name == before {
			return fmt.Errorf("not %d bytes of one have come", bytes)
		}
		return nil
	})
	return name
}
