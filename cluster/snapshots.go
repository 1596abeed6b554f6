package cluster

import (
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

const (
	snapshotTick = 250 * time.Millisecond
	// releaseAfter is how long after a snapshot of a state that had become smaller the next one replaces the older one
	// of the two, which keeps on disk what is gone.
	releaseAfter = 10 * time.Second
)

// snapshotting is when the last snapshot was taken and what it cost.
type snapshotting struct {
	mu    sync.Mutex // guards what follows
	index uint64
	at    time.Time
	took  time.Duration
	taken uint64
	// Bytes of the state at the last snapshot and at the one before it, the two that are kept.
	bytes, before uint64
}

// keepSnapshots takes a snapshot after so many bytes of log or so much time, if anything happened. raft itself would
// count entries.
func (n *Node) keepSnapshots() {
	tick := time.NewTicker(snapshotTick)
	defer tick.Stop()
	var again time.Time
	for {
		select {
		case <-tick.C:
		case <-n.ctx.Done():
			return
		}
		n.endFollowUps()
		bytes := n.machine.bytes.Load()
		if !n.snapshotDue(bytes) || time.Now().Before(again) {
			continue
		}
		if err := n.Snapshot(); err != nil {
			n.log.Warn("taking a snapshot failed", "error", err)
			again = time.Now().Add(10 * time.Second)
			n.machine.bytes.Add(bytes)
		}
	}
}

// endFollowUps lets go of the log that is kept for followers that no longer need it.
func (n *Node) endFollowUps() {
	n.snap.mu.Lock()
	newest := n.snap.index
	n.snap.mu.Unlock()
	n.transport.followUps.end(n.Leadership().Term, newest)
}

// snapshotDue reports whether it is time for a snapshot, so many bytes of log after the last one. Acknowledging a
// backlog takes next to no log: what snapshots still keep of it on disk counts too.
func (n *Node) snapshotDue(bytes int64) bool {
	least := uint64(n.config.SnapshotBytes)
	state := n.stateReport()
	held := state.Bytes
	n.snap.mu.Lock()
	defer n.snap.mu.Unlock()
	since := time.Since(n.snap.at)
	switch {
	case state.SnapshotDue && bytes > 0:
		return true
	case bytes >= n.config.SnapshotBytes, bytes > 0 && since >= n.config.SnapshotAge:
		return true
	case held+max(least, n.snap.bytes/4) <= n.snap.bytes:
		return true
	default:
		return n.snap.bytes+least <= n.snap.before && since >= releaseAfter
	}
}

func (n *Node) stateReport() Report {
	if n.config.Report == nil {
		return Report{}
	}
	return n.config.Report()
}

// Snapshot takes a snapshot now.
func (n *Node) Snapshot() error {
	began, held := time.Now(), n.stateReport().Bytes
	err := n.wait(n.ctx, func() raft.Future { return n.raft.Snapshot() })
	if errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return nil
	}
	if err != nil {
		return err
	}
	index, err := n.stores.newestSnapshot()
	n.snap.mu.Lock()
	defer n.snap.mu.Unlock()
	n.snap.index, n.snap.at, n.snap.took = index, time.Now(), time.Since(began)
	n.snap.taken++
	n.snap.bytes, n.snap.before = held, n.snap.bytes
	return err
}
