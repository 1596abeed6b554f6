// Package snapshotstore keeps Raft snapshots. A state machine may hand it files beside bytes: a snapshot then costs
// a small stream and a hard link for each file, and whoever opens it reads one stream that is made of both.
//
// On disk a snapshot is a directory with a stream (the bytes written), a layout (in which order bytes and ranges of
// files follow each other), a meta file and the linked files. It is made under a name ending in ".tmp" and renamed
// when all of it is durable.
package snapshotstore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/warrenmq/warren/fsm/store/vfs"
)

const (
	temporary  = ".tmp"
	setAside   = ".damaged"
	streamFile = "stream"
	layoutFile = "layout"
	metaFile   = "meta"
	filesDir   = "files"
	idFormat   = "%d-%d-%d-%d" // term, index, time, how many this process made
)

// Store is a raft.SnapshotStore. All methods are safe for concurrent use.
type Store struct {
	fs     vfs.FS
	dir    string
	retain int
	logger hclog.Logger

	mu     sync.Mutex // all below
	leases map[string]int
	made   uint64 // snapshots begun by this process
}

// New opens the snapshots in a directory and removes what an interrupted snapshot or removal left. The newest retain
// snapshots, at least one, are kept.
func New(files vfs.FS, dir string, retain int, logger hclog.Logger) (*Store, error) {
	if retain < 1 {
		return nil, fmt.Errorf("snapshot store: retain is %d, at least 1 snapshot must be kept", retain)
	}
	if logger == nil {
		logger = hclog.NewNullLogger()
	}
	if err := files.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("snapshot store: %w", err)
	}
	if err := files.SyncDir(path.Dir(dir)); err != nil {
		return nil, fmt.Errorf("snapshot store: %w", err)
	}
	s := &Store{fs: files, dir: dir, retain: retain, logger: logger, leases: make(map[string]int)}
	names, err := files.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("snapshot store: %w", err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, temporary) {
			if err := files.RemoveAll(path.Join(dir, name)); err != nil {
				return nil, fmt.Errorf("snapshot store: remove left-over %s: %w", name, err)
			}
		}
	}
	if err := s.reap(); err != nil {
		return nil, fmt.Errorf("snapshot store: %w", err)
	}
	return s, nil
}

// Create begins a snapshot.
func (s *Store) Create(version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration,
	configurationIndex uint64, _ raft.Transport) (raft.SnapshotSink, error) {
	if version != 1 {
		return nil, fmt.Errorf("snapshot store: snapshot version %d is not supported", version)
	}
	s.mu.Lock()
	s.made++
	id := fmt.Sprintf(idFormat, term, index, time.Now().UnixMilli(), s.made)
	s.mu.Unlock()
	return s.begin(&raft.SnapshotMeta{Version: version, ID: id, Index: index, Term: term,
		Configuration: configuration, ConfigurationIndex: configurationIndex})
}

// List returns the whole snapshots, newest first. One whose meta file is damaged is left out and left alone. It fails
// when a meta file cannot be read though it may be sound: a snapshot must not seem to be gone for a moment.
func (s *Store) List() ([]*raft.SnapshotMeta, error) {
	metas, broken, err := s.Look()
	for _, b := range broken {
		var damage *ErrDamaged
		if err == nil && !errors.As(b.Err, &damage) && !errors.Is(b.Err, fs.ErrNotExist) {
			return nil, b.Err
		}
	}
	return metas, err
}

// Broken is a snapshot whose meta file cannot be read.
type Broken struct {
	ID  string
	Err error
}

// Look returns the whole snapshots, newest first, and those whose meta files cannot be read.
func (s *Store) Look() (metas []*raft.SnapshotMeta, broken []Broken, err error) {
	names, err := s.fs.ReadDir(s.dir)
	if err != nil {
		return nil, nil, fmt.Errorf("snapshot store: %w", err)
	}
	for _, name := range names {
		if IndexOf(name) == 0 {
			continue
		}
		meta, err := s.readMeta(name)
		if err != nil {
			s.logger.Warn("snapshot is passed over", "error", err)
			broken = append(broken, Broken{name, err})
			continue
		}
		metas = append(metas, meta)
	}
	slices.SortFunc(metas, func(a, b *raft.SnapshotMeta) int { return -compare(a, b) })
	return metas, broken, nil
}

// IndexOf returns the log index in a snapshot's id; 0 for a name that is none.
func IndexOf(id string) uint64 {
	var term, index, at, made uint64
	if strings.Contains(id, ".") { // unfinished or set aside
		return 0
	}
	if n, err := fmt.Sscanf(id, idFormat, &term, &index, &at, &made); err != nil || n < 4 {
		return 0
	}
	return index
}

// SetAside renames a snapshot that cannot be read, so that it is neither listed nor removed, and returns its new path.
func (s *Store) SetAside(id string) (string, error) {
	name := path.Join(s.dir, id+setAside)
	if err := s.fs.Rename(path.Join(s.dir, id), name); err != nil {
		return "", fmt.Errorf("set snapshot %s aside: %w", id, err)
	}
	return name, s.fs.SyncDir(s.dir)
}

// compare orders by age, oldest first.
func compare(a, b *raft.SnapshotMeta) int {
	for _, pair := range [][2]uint64{{a.Index, b.Index}, {a.Term, b.Term}} {
		if pair[0] != pair[1] {
			if pair[0] < pair[1] {
				return -1
			}
			return 1
		}
	}
	if len(a.ID) != len(b.ID) { // the time in it has more digits
		return len(a.ID) - len(b.ID)
	}
	return strings.Compare(a.ID, b.ID)
}

// Open returns a snapshot's stream. The snapshot stays whole until the reader is closed, whatever is reaped.
func (s *Store) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	s.lease(id)
	meta, err := s.readMeta(id)
	if err == nil {
		var r *reader
		if r, err = s.newReader(meta); err == nil {
			return meta, r, nil
		}
	}
	s.release(id)
	return nil, nil, err
}

// Lease keeps a snapshot from being reaped until release is called, once.
func (s *Store) Lease(id string) (release func()) {
	s.lease(id)
	return func() { s.release(id) }
}

// lease keeps a snapshot from being reaped.
func (s *Store) lease(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases[id]++
}

// release ends a lease and removes what could not be removed before.
func (s *Store) release(id string) {
	s.mu.Lock()
	if s.leases[id]--; s.leases[id] == 0 {
		delete(s.leases, id)
	}
	s.mu.Unlock()
	if err := s.reap(); err != nil {
		s.logger.Warn("old snapshots were not removed", "error", err)
	}
}

// reap removes all but the newest snapshots, except those being read.
func (s *Store) reap() error {
	metas, _, err := s.Look()
	if err != nil {
		return err
	}
	var errs []error
	for _, meta := range metas[min(s.retain, len(metas)):] {
		s.mu.Lock()
		leased := s.leases[meta.ID] > 0
		if !leased {
			// Renamed first: a half removed snapshot must not look whole.
			errs = append(errs, s.fs.Rename(path.Join(s.dir, meta.ID), path.Join(s.dir, meta.ID+temporary)))
		}
		s.mu.Unlock()
		if !leased {
			errs = append(errs, s.fs.RemoveAll(path.Join(s.dir, meta.ID+temporary)))
		}
	}
	return errors.Join(errs...)
}
