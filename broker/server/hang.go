package server

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/warrenmq/warren/fsm/store/vfs"
)

// The watchdog of the node's own stores (rule 19) ends a process whose log or vote cannot be written. Snapshots and
// message files have a longer limit: much is written in one call there, and nobody's confirm waits for it.
const (
	defaultDiskTimeout = 2 * time.Second
	filesTimeout       = 15 // times the disk timeout
)

// Bounds of the time that a process takes to end beyond CloseWithin: whatever hangs in it must not keep it.
const (
	endWithin  = 5 * time.Second
	nodeWithin = 4 * time.Second // of that, for the node itself, whatever its clients took
	failWithin = 2 * time.Second // after a failure
)

// openWatched opens the node. When the disk does not answer it returns and leaves the opening behind: the process is to
// end.
func (s *Server) openWatched() error {
	limit := s.config.Cluster.DiskTimeout
	if limit == 0 {
		limit = defaultDiskTimeout
	}
	s.watch = vfs.NewWatch(s.config.Cluster.Files, filesTimeout*limit)
	opened := make(chan error, 1)
	go func() { opened <- s.open() }()
	select {
	case err := <-opened:
		if err != nil {
			s.watch.Stop()
		}
		return s.fullDisk(err)
	case <-s.watch.Hung():
	}
	go func() {
		if <-opened == nil {
			_ = s.shut(s.watch.Err(), func() {}, new(sync.WaitGroup))
		}
		s.watch.Stop()
	}()
	return &failure{ExitDisk, s.watch.Err()}
}

// end runs what stops the node, for a while: a call of the disk that hangs may hold what it waits for. The lock of the
// data directory is then held until the process has ended.
func (s *Server) end(why error, shut func(error) error) error {
	bound := s.config.CloseWithin + endWithin
	if why != nil {
		bound = failWithin
	}
	done := make(chan error, 1)
	go func() {
		err := shut(why)
		s.watch.Stop()
		done <- err
	}()
	late := time.NewTimer(bound)
	defer late.Stop()
	select {
	case err := <-done:
		return errors.Join(why, err)
	case <-late.C:
	}
	if err := s.watch.Err(); why == nil && err != nil {
		why = &failure{ExitDisk, err}
	}
	return errors.Join(why, fmt.Errorf("the node has not stopped within %v; what still runs ends with the process", bound))
}

// endNow ends the process: what it would go on with cannot be read, and whoever needs it holds the state's lock.
func (s *Server) endNow(err error) {
	s.log.Error("this node cannot go on; the process ends", "error", err)
	os.Exit(ExitDisk)
}
