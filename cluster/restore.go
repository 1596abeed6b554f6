package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/hashicorp/raft"

	"github.com/warrenmq/warren/cluster/logstore"
	"github.com/warrenmq/warren/cluster/snapshotstore"
)

// restored is what restoreNewest found. Raft would do the same, but ends at the first start at which no snapshot can
// be read, and takes an older one without asking whether the log goes on from there.
type restored struct {
	index  uint64   // of the snapshot that the state machine has, 0 for none
	newest uint64   // of the newest snapshot, readable or not: this node has acknowledged everything up to it
	broken []string // ids of those that cannot be read
	why    error    // of the first of them; nil when there is none
	lost   error    // what the state machine does not have of the restored snapshot
}

// missing is a log that lacks entries which this node had acknowledged.
type missing struct{ what string }

func (m *missing) Error() string { return m.what }

// isDamage reports whether an error says that what is on disk is not what was written.
func isDamage(err error) bool {
	var log *logstore.DamageError
	var gone *missing
	return errors.As(err, &log) || errors.As(err, &gone)
}

// unreadable reports whether a snapshot failed because of its own bytes.
func (n *Node) unreadable(err error) bool {
	var damage *snapshotstore.ErrDamaged
	return errors.As(err, &damage) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EIO) || n.config.Unreadable == nil || n.config.Unreadable(err)
}

// restoreNewest gives the state machine the newest snapshot that can be read. Those that cannot stay where they are
// until it is known what their loss means.
func (n *Node) restoreNewest(snapshots *snapshotstore.Store) (found restored, err error) {
	list, broken, err := snapshots.Look()
	if err != nil {
		return found, fmt.Errorf("list the snapshots: %w", err)
	}
	for _, b := range broken {
		found.broken = append(found.broken, b.ID)
		found.newest = max(found.newest, snapshotstore.IndexOf(b.ID))
		found.why = fmt.Errorf("snapshot %s has a meta file that cannot be read: %w", b.ID, b.Err)
		n.log.Error("a snapshot cannot be read", "error", found.why)
	}
	failed := false
	for _, meta := range list {
		found.newest = max(found.newest, meta.Index)
		if found.index > 0 {
			continue
		}
		err := n.restoreOne(snapshots, meta)
		lost := n.incomplete()
		if err == nil && (lost == nil || n.refuseAlone(lost) == nil) {
			found.index, found.lost = meta.Index, lost
			continue
		}
		if err != nil && !n.unreadable(err) {
			return found, fmt.Errorf("restore snapshot %s: %w", meta.ID, err)
		}
		if err == nil {
			err = lost
		}
		err = fmt.Errorf("restore snapshot %s: %w", meta.ID, err)
		n.log.Error("a snapshot cannot be read", "error", err)
		failed = true
		found.broken = append(found.broken, meta.ID)
		if found.why == nil {
			found.why = err
		}
	}
	if f, ok := n.config.FSM.(interface{ Reset() error }); ok && failed && found.index == 0 {
		return found, f.Reset()
	}
	return found, nil
}

func (n *Node) incomplete() error {
	if n.config.Incomplete == nil {
		return nil
	}
	return n.config.Incomplete()
}

func (n *Node) restoreOne(snapshots *snapshotstore.Store, meta *raft.SnapshotMeta) error {
	_, r, err := snapshots.Open(meta.ID)
	if err != nil {
		return err
	}
	return errors.Join(n.machine.restore(r, meta.Index), r.Close())
}

// checkLog returns an error when the log does not begin right behind the restored snapshot or before, or when both
// end before the newest snapshot.
func (r *restored) checkLog(log raft.LogStore) error {
	first, err := log.FirstIndex()
	if err != nil {
		return err
	}
	last, err := log.LastIndex()
	if err != nil {
		return err
	}
	if first > r.index+1 {
		return &missing{fmt.Sprintf("the log begins at %d, but the newest snapshot that can be read ends at %d", first, r.index)}
	}
	if max(last, r.index) < r.newest {
		return &missing{fmt.Sprintf("a snapshot held everything up to %d, but what can be read ends at %d", r.newest, max(last, r.index))}
	}
	if s, ok := log.(*logstore.Store); ok && r.index > last && last > 0 { // rule 17: raft would go on behind a gap
		return s.Reset(r.index + 1)
	}
	return nil
}

// setAside takes the snapshots that cannot be read out of the way. Whatever their loss means is durable by now.
func (n *Node) setAside(s *stores, found restored) error {
	for _, id := range found.broken {
		to, err := s.snapshots.SetAside(id)
		if err != nil {
			return err
		}
		n.log.Error("a damaged snapshot was moved aside", "snapshot", id, "moved_to", to, "restored_index", found.index)
	}
	// raft takes the newest for what the state machine has, without restoring it again.
	newest, err := s.newestSnapshot()
	if err == nil && newest != found.index {
		err = fmt.Errorf("the newest snapshot ends at %d, the one restored at %d; start again", newest, found.index)
	}
	return err
}
