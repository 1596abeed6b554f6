package cluster

import (
	"errors"
	"fmt"
	"io"
	"path"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/warrenmq/warren/cluster/logstore"
	"github.com/warrenmq/warren/cluster/snapshotstore"
	"github.com/warrenmq/warren/cluster/stablestore"
	"github.com/warrenmq/warren/cluster/watchdog"
)

const (
	// keptSnapshots: if the newest cannot be read, raft takes the older.
	keptSnapshots = 2
	// logCacheEntries is small because an entry is a batch.
	logCacheEntries = 64
)

// stores are where this node's durable state lies, opened and watched.
type stores struct {
	log       raft.LogStore // under watch, trimmed by bytes, cached
	stable    raft.StableStore
	snapshots *snapshotstore.Store
	watchdog  *watchdog.Watchdog
	segments  *logstore.Store // nil with bolt
	closers   []io.Closer     // in the order of opening
	damage    []string        // what was found damaged, moved aside and begun anew
	lost      error           // what is missing from the restored state
}

// openStores opens the data directory. Damaged logs and votes are moved aside: the node must then be quarantined.
func (n *Node) openStores() (s *stores, err error) {
	c := n.config
	s = &stores{}
	defer func() {
		if err != nil {
			_ = s.close()
		}
	}()
	s.watchdog = watchdog.New(watchdog.Options{Limit: c.DiskTimeout, OnFailure: n.fail, Stopped: n.stopping, Observe: n.observeSync})
	if s.snapshots, err = snapshotstore.New(c.Files, path.Join(c.DataDir, "snapshots"), keptSnapshots, raftLogger(n.log)); err != nil {
		return s, fmt.Errorf("open the snapshots: %w", err)
	}
	found, err := n.restoreNewest(s.snapshots)
	if err != nil {
		return s, err
	}
	s.lost = found.lost
	if err = n.openStable(s); err != nil {
		return s, err
	}
	log, err := n.openLog(s, found)
	if err != nil {
		return s, err
	}
	if err = n.setAside(s, found); err != nil {
		return s, err
	}
	kept := &keptLog{LogStore: s.watchdog.Log(log), snapshots: s.snapshots, segments: s.segments, trailing: c.SnapshotBytes}
	if s.log, err = raft.NewLogCache(logCacheEntries, kept); err != nil {
		return s, err
	}
	return s, nil
}

func (n *Node) openStable(s *stores) error {
	if n.config.Stable != nil {
		s.stable = s.watchdog.Stable(n.config.Stable)
		return nil
	}
	dir := path.Join(n.config.DataDir, "stable")
	stable, err := stablestore.Open(n.config.Files, dir)
	var damage *stablestore.DamageError
	if errors.As(err, &damage) {
		if err := n.moveAside("stable", s, damage); err != nil {
			return err
		}
		stable, err = stablestore.Open(n.config.Files, dir)
	}
	if err != nil {
		return err
	}
	s.closers = append(s.closers, stable)
	s.stable = s.watchdog.Stable(stable)
	return nil
}

// openLog opens the log. One that is damaged, or that does not go on where the restored snapshot ends, or that ends
// before what this node once had, is moved aside.
func (n *Node) openLog(s *stores, found restored) (raft.LogStore, error) {
	name, open := "log", func() (raft.LogStore, error) { return n.openSegments(s, found.index) }
	if n.config.LogStore == "bolt" {
		name, open = "log.db", func() (raft.LogStore, error) { return n.openBolt(s) }
	}
	log, err := open()
	if err == nil {
		err = found.checkLog(log)
	}
	if !isDamage(err) {
		return log, err
	}
	if log != nil {
		if err := s.closeLast(); err != nil {
			return nil, err
		}
	}
	if found.why != nil {
		err = fmt.Errorf("%w; and so: %w", found.why, err)
	}
	if err := n.moveAside(name, s, err); err != nil {
		return nil, err
	}
	return open()
}

func (n *Node) openBolt(s *stores) (raft.LogStore, error) {
	bolt, err := stablestore.OpenBoltLog(path.Join(n.config.DataDir, "log.db"))
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, bolt)
	return bolt, nil
}

func (n *Node) openSegments(s *stores, restored uint64) (raft.LogStore, error) {
	store, err := logstore.Open(logstore.Options{FS: n.config.Files, Dir: path.Join(n.config.DataDir, "log"),
		SegmentSize: n.config.SegmentBytes, SnapshotIndex: restored, NewestSnapshot: s.newestSnapshot})
	if err != nil {
		return nil, fmt.Errorf("open the raft log: %w", err)
	}
	s.segments = store
	s.closers = append(s.closers, store)
	return store, nil
}

// moveAside renames what is damaged; nothing is deleted.
func (n *Node) moveAside(name string, s *stores, damage error) error {
	if err := n.refuseAlone(damage); err != nil {
		return err
	}
	// The mark comes first: after a crash in between, the node must not find an empty log and think it new.
	if err := n.identity.change(func(v *identityRecord) { v.Quarantined = damage.Error() }); err != nil {
		return err
	}
	aside := fmt.Sprintf("%s.damaged-%d", name, n.identity.get().Boots)
	if err := n.config.Files.Rename(path.Join(n.config.DataDir, name), path.Join(n.config.DataDir, aside)); err != nil {
		return fmt.Errorf("move the damaged %s aside: %w", name, err)
	}
	if err := n.config.Files.SyncDir(n.config.DataDir); err != nil {
		return err
	}
	s.damage = append(s.damage, damage.Error())
	n.log.Error("durable state is damaged; this node takes no part in elections until it has fetched the state from the others",
		"damage", damage, "moved_to", aside)
	return nil
}

func (s *stores) newestSnapshot() (uint64, error) {
	list, err := s.snapshots.List()
	if err != nil || len(list) == 0 {
		return 0, err
	}
	return list[0].Index, nil
}

func (s *stores) logBytes() int64 {
	if s.segments == nil {
		return 0
	}
	return s.segments.Size()
}

// closeLast closes what was opened last.
func (s *stores) closeLast() error {
	last := len(s.closers) - 1
	c := s.closers[last]
	s.closers = s.closers[:last]
	return c.Close()
}

// close closes what was opened, last first.
func (s *stores) close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i].Close())
	}
	if s.watchdog != nil {
		s.watchdog.Close()
	}
	return errors.Join(errs...)
}

// keptLog keeps more of the log than raft would: back to the oldest kept snapshot, for if the newest is unreadable
// raft starts from the older one and needs what follows it (rule 16), and a number of bytes, so that what is written
// while a follower installs a snapshot is still there afterwards. The entry at a snapshot's index stays too: raft wants its
// term when it sends what follows to a follower that has installed an older snapshot than the newest. raft itself counts entries, which vary in size a
// millionfold.
type keptLog struct {
	raft.LogStore
	snapshots *snapshotstore.Store
	segments  *logstore.Store
	trailing  int64         // bytes
	floor     atomic.Uint64 // the last cut, for tests
}

func (k *keptLog) IsMonotonic() bool {
	m, ok := k.LogStore.(raft.MonotonicLogStore)
	return ok && m.IsMonotonic()
}

// DeleteRange passes the truncation of a suffix and the emptying of the log after an install on as they are.
func (k *keptLog) DeleteRange(lo, hi uint64) error {
	last, err := k.LastIndex()
	if err != nil {
		return err
	}
	if hi < last {
		list, err := k.snapshots.List()
		if err != nil {
			return err
		}
		for _, s := range list {
			hi = min(hi, s.Index-1)
		}
		if hi = k.trail(lo, hi); hi < lo {
			return nil
		}
		k.floor.Store(hi)
	}
	return k.LogStore.DeleteRange(lo, hi)
}

// trail lowers hi until the bytes behind it are enough; lo-1 says that nothing is to be cut.
func (k *keptLog) trail(lo, hi uint64) uint64 {
	if k.segments == nil {
		return hi
	}
	for lo <= hi {
		mid := lo + (hi-lo)/2
		if k.segments.BytesSince(mid) >= k.trailing {
			lo = mid + 1
		} else {
			hi = mid - 1
		}
	}
	return hi
}
