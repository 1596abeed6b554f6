package cluster

import (
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

const snapshotTick = 250 * time.Millisecond

// snapshotting is when the last snapshot was taken and what it cost.
type snapshotting struct {
	mu    sync.Mutex // guards what follows
	index uint64
	at    time.Time
	took  time.Duration
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
		n.snap.mu.Lock()
		at := n.snap.at
		n.snap.mu.Unlock()
		bytes := n.machine.bytes.Load()
		if bytes < n.config.SnapshotBytes && (bytes == 0 || time.Since(at) < n.config.SnapshotAge) || time.Now().Before(again) {
			continue
		}
		if err := n.Snapshot(); err != nil {
			n.log.Warn("taking a snapshot failed", "error", err)
			again = time.Now().Add(10 * time.Second)
			n.machine.bytes.Add(bytes)
		}
	}
}

// Snapshot takes a snapshot now.
func (n *Node) Snapshot() error {
	began := time.Now()
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
	return err
}
