package cluster

import (
	"errors"
	"io"

	"github.com/hashicorp/raft"

	"github.com/warrenmq/warren/cluster/snapshotstore"
)

// servedSnapshots is the snapshot store as raft uses it. raft would send the newest snapshot again and again though it
// cannot be read, and no follower that needs one would ever catch up (hashicorp/raft's issue 522).
type servedSnapshots struct {
	*snapshotstore.Store
	spoiled func(id string, err error)
}

func (s *servedSnapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	meta, r, err := s.Store.Open(id)
	if err != nil {
		s.spoiled(id, err)
		return nil, nil, err
	}
	return meta, &servedSnapshot{r, s, id}, nil
}

type servedSnapshot struct {
	io.ReadCloser
	store *servedSnapshots
	id    string
}

// WrappedReadCloser lets the state machine find the store's own reader.
func (s *servedSnapshot) WrappedReadCloser() io.ReadCloser { return s.ReadCloser }

func (s *servedSnapshot) Read(b []byte) (int, error) {
	n, err := s.ReadCloser.Read(b)
	if err != nil && err != io.EOF {
		s.store.spoiled(s.id, err)
	}
	return n, err
}

// snapshotSpoiled sets a snapshot aside that turned out to be damaged while it was read, and has a new one taken; until
// then followers get the one before it.
func (n *Node) snapshotSpoiled(id string, err error) {
	var damage *snapshotstore.ErrDamaged
	if !errors.As(err, &damage) {
		return
	}
	to, aside := n.stores.snapshots.SetAside(id)
	n.log.Error("a snapshot is damaged, taking a new one", "error", err, "moved_to", to, "aside", aside)
	n.machine.bytes.Add(n.config.SnapshotBytes)
}
