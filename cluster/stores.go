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
	s.watchdog = watchdog.New(watchdog.Options{Limit: c.DiskTimeout, OnFailure: n.fail, Observe: n.observeSync})
	if s.snapshots, err = snapshotstore.New(c.Files, path.Join(c.DataDir, "snapshots"), keptSnapshots, raftLogger(n.log)); err != nil {
		return s, fmt.Errorf("open the snapshots: %w", err)
	}
	newest, err := s.newestSnapshot()
	if err != nil {
		return s, fmt.Errorf("list the snapshots: %w", err)
	}
	if err = n.openStable(s); err != nil {
		return s, err
	}
	var log raft.LogStore
	if c.LogStore == "bolt" {
		bolt, err := stablestore.OpenBoltLog(path.Join(c.DataDir, "log.db"))
		if err != nil {
			return s, err
		}
		s.closers = append(s.closers, bolt)
		log = bolt
	} else {
		if err = n.openSegments(s, newest); err != nil {
			return s, err
		}
		log = s.segments
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

func (n *Node) openSegments(s *stores, newest uint64) error {
	opt := logstore.Options{FS: n.config.Files, Dir: path.Join(n.config.DataDir, "log"), SegmentSize: n.config.SegmentBytes,
		SnapshotIndex: newest, NewestSnapshot: s.newestSnapshot}
	store, err := logstore.Open(opt)
	var damage *logstore.DamageError
	if errors.As(err, &damage) {
		if err := n.moveAside("log", s, damage); err != nil {
			return err
		}
		store, err = logstore.Open(opt)
	}
	if err != nil {
		return fmt.Errorf("open the raft log: %w", err)
	}
	s.segments = store
	s.closers = append(s.closers, store)
	last, err := store.LastIndex()
	if err != nil {
		return err
	}
	if newest > last && last > 0 { // rule 17: raft would go on behind a gap
		return store.Reset(newest + 1)
	}
	return nil
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
// while a follower installs a snapshot is still there afterwards. raft itself counts entries, which vary in size a
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
			hi = min(hi, s.Index)
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
