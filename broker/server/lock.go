package server

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/warrenmq/warren/fsm/store/vfs"
)

// lockFile is in the data directory. It is never removed: who holds its lock has the directory, not who made it.
const lockFile = "lock"

// A process that was killed holds its lock until the system has taken its memory apart: its successor waits for that.
const (
	lockWait  = 2 * time.Second
	lockRetry = 20 * time.Millisecond
)

// lockDirectory keeps other processes out of the data directory until unlock or the end of this one. A second process
// would count a start, remove the snapshot that the first is writing and make message files under the names that the
// first uses next.
func (s *Server) lockDirectory() error {
	files, ok := s.config.Cluster.Files.(vfs.Locker)
	if !ok {
		return nil
	}
	dir := s.config.Cluster.DataDir
	if err := s.config.Cluster.Files.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	lock, err := files.Lock(filepath.Join(dir, lockFile))
	for until := time.Now().Add(lockWait); errors.Is(err, vfs.ErrLocked) && time.Now().Before(until); {
		time.Sleep(lockRetry)
		lock, err = files.Lock(filepath.Join(dir, lockFile))
	}
	if errors.Is(err, vfs.ErrLocked) {
		return fmt.Errorf("another process uses the data directory %s: stop that one, or give this node its own --data-dir", dir)
	}
	if err != nil {
		return fmt.Errorf("lock the data directory: %w", err)
	}
	s.lock = lock
	return nil
}

func (s *Server) unlock() error {
	if s.lock == nil {
		return nil
	}
	return s.lock.Close()
}
