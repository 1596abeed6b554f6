package server

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/warrenmq/warren/cluster"
	"github.com/warrenmq/warren/fsm/store/vfs"
)

// Parts of Config.MinDiskFree.
const (
	// reserveParts: that part of it, on top of it, is kept in a file for when the disk is full all the same.
	reserveParts = 4
	// inFlightParts: what is on its way when publishes are held up still has to be written, twice.
	inFlightParts = 4
	leastInFlight = 1 << 20 // bytes
	// logParts: what came since the last snapshot is in no message file, and has to be, before the log can be cut.
	logParts    = 3
	leastLogged = 1 << 20 // bytes
)

// roomParts: copies that win space back may take that part of what is free.
const roomParts = 2

// reserveFile is in the data directory.
const reserveFile = "reserve"

// disk is what the node knows of the room on its disk.
type disk struct {
	least   uint64 // Config.MinDiskFree
	dir     string
	space   vfs.Spacer   // nil: not known
	reserve *vfs.Reserve // nil without a bound

	mu        sync.Mutex // guards reclaimed, settled
	reclaimed uint64     // index of the last snapshot that reclaim took
	settled   bool       // and the one after it, which lets go of what the one before it had still kept
}

// openDisk puts the reserve in front of the files.
func (s *Server) openDisk(files vfs.FS) (vfs.FS, error) {
	c := s.config
	s.disk = &disk{least: c.MinDiskFree, dir: c.Cluster.DataDir}
	s.disk.space, _ = c.Cluster.Files.(vfs.Spacer)
	if s.disk.space == nil || c.MinDiskFree == 0 {
		return files, nil
	}
	var err error
	s.disk.reserve, err = vfs.NewReserve(files, filepath.Join(c.Cluster.DataDir, reserveFile), int64(c.MinDiskFree/reserveParts))
	return s.disk.reserve, err
}

// free returns the bytes that the data directory's file system has left for this process. It makes the reserve whole when
// publishes are held up anyway, for the reserve comes first, or need not be for it.
func (d *disk) free() (uint64, error) {
	if d.space == nil {
		return 0, errors.ErrUnsupported
	}
	free, err := d.space.Free(d.dir)
	if err != nil || d.reserve == nil {
		return free, err
	}
	missing := uint64(d.reserve.Missing())
	if missing == 0 || free < 2*missing || free >= d.least && free < 2*d.least+missing || d.reserve.Fill() != nil {
		return free, nil
	}
	return free - missing, nil
}

// room says what copies of message files may take, and whether space is short.
func (d *disk) room() (bytes int64, short bool) {
	if d.space == nil || d.least == 0 {
		return math.MaxInt64, false
	}
	free, err := d.space.Free(d.dir)
	if err != nil {
		return math.MaxInt64, false
	}
	if d.reserve != nil {
		free += uint64(d.reserve.Left())
	}
	return int64(min(free/roomParts, math.MaxInt64)), free < 2*d.least
}

// logged bounds the bytes of log between two snapshots.
func (d *disk) logged(bytes int64) int64 {
	if d.least == 0 {
		return bytes
	}
	return min(bytes, max(int64(min(d.least/logParts, math.MaxInt64)), leastLogged))
}

// inFlight bounds what is on its way, so that it can be written when publishes have been held up.
func (d *disk) inFlight(bytes int64) int64 {
	most := max(int64(min(d.least/inFlightParts, math.MaxInt64)), leastInFlight)
	if d.least == 0 || bytes > 0 && bytes < most {
		return bytes
	}
	return most
}

// reclaim takes a snapshot if anything has happened since the last one, for what was consumed is on the disk until then,
// and one more, for the one before it keeps that too; and as long as there was no room for every copy.
func (s *Server) reclaim() error {
	index, _ := s.machine.Hash()
	d := s.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if index == d.reclaimed && d.settled && !s.machine.Uncollected() {
		return nil
	}
	if err := s.node.Snapshot(); err != nil {
		return err
	}
	d.settled = index == d.reclaimed
	d.reclaimed = index
	return nil
}

// resources are this node's, for its status.
func (s *Server) resources() cluster.Resources {
	r := cluster.Resources{MinDiskFree: s.disk.least}
	r.Alarm, r.Short = s.broker.Alarm()
	if s.disk.space != nil {
		r.DiskFree, _ = s.disk.space.Free(s.disk.dir)
	}
	return r
}

// fullDisk says what an operator has to know when the node ended because the disk is full.
func (s *Server) fullDisk(err error) error {
	if !errors.Is(err, syscall.ENOSPC) {
		return err
	}
	return fmt.Errorf("the disk under %s is full and the node's reserve is used up; free some space and start the node again, nothing that was confirmed is lost: %w",
		s.config.Cluster.DataDir, err)
}
