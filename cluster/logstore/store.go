package logstore

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	"github.com/warrenmq/warren/fsm/store/vfs"
)

// Defaults and bounds.
const (
	DefaultSegmentSize = 64 << 20    // bytes
	DefaultMarkDelay   = time.Second // see Options.MarkDelay
	DefaultCacheSize   = 4 << 20     // bytes of recent entries kept in memory
	maxFree            = 2           // emptied segments kept for reuse
	maxSegment         = math.MaxUint32
)

// ErrClosed is returned by every call after Close.
var ErrClosed = errors.New("raft log is closed")

// Options says where the log lives. Zero values mean the defaults.
type Options struct {
	FS          vfs.FS // nil means vfs.OS
	Dir         string // made if it does not exist; used by this store alone
	SegmentSize int64  // bytes; a single larger group makes a larger segment
	CacheSize   int64  // bytes of recent entries kept in memory
	// SnapshotIndex is the index of the newest readable snapshot: what lies up to it may be missing from the log.
	SnapshotIndex uint64
	// NewestSnapshot returns that index as it is later; nil means that it stays as it was at Open. DeleteRange asks it
	// when it empties the log, so that the loss of the snapshot shows at the next start.
	NewestSnapshot func() (uint64, error)
	// MarkDelay is how old the mark may become while entries are appended. Negative: it follows only when a segment
	// begins, a range is deleted and on Close.
	MarkDelay time.Duration
}

// Store is a raft.LogStore and raft.MonotonicLogStore. All methods are safe for concurrent use; reads do not wait
// for a sync. After a write or sync that failed, every later call returns that first error: what is on disk is then
// unknown until the log is opened again.
type Store struct {
	opt Options

	writeMu sync.Mutex // held by StoreLogs, DeleteRange, Reset and Close; guards buf and the fields below
	buf     []byte
	nextGen uint64
	free    []string // names of emptied segments

	markMu   sync.Mutex // guards mark and markFile; taken after writeMu and before mu
	mark     mark
	markFile vfs.File

	mu       sync.RWMutex // guards everything below and the segments' index
	err      error
	segments []*segment
	first    uint64 // 0 when empty
	last     uint64
	complete uint64
	cache    []*raft.Log // the newest entries, contiguous up to last
	cached   int64       // their bytes

	dirty     chan struct{} // capacity 1: the mark is behind
	stop      chan struct{} // closed by Close
	stopped   chan struct{} // closed when the marker goroutine has ended
	closeOnce sync.Once
	closeErr  error
}

var _ raft.MonotonicLogStore = (*Store)(nil)
var _ raft.LogStore = (*Store)(nil)

// IsMonotonic tells raft that there are no gaps, so it empties the log after installing a snapshot.
func (s *Store) IsMonotonic() bool { return true }

// FirstIndex returns the index of the first entry, 0 if there is none.
func (s *Store) FirstIndex() (uint64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.first, s.err
}

// LastIndex returns the index of the last entry, 0 if there is none.
func (s *Store) LastIndex() (uint64, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.last, s.err
}

// Complete returns the index up to which everything has been synced at some time; it may lie before the first
// entry that is kept.
func (s *Store) Complete() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.complete
}

// Size returns the bytes of all segments in use.
func (s *Store) Size() int64 { return s.BytesSince(0) }

// BytesSince returns the bytes of the entries behind index.
func (s *Store) BytesSince(index uint64) int64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var n int64
	for _, seg := range s.segments {
		switch {
		case len(seg.entries) == 0 || seg.lastIndex() <= index:
		case seg.base > index:
			n += seg.end
		default:
			n += seg.end - int64(seg.entries[index-seg.base+1].off)
		}
	}
	return n
}

// GetLog fills l with an entry, or returns raft.ErrLogNotFound. Its slices are never written again.
func (s *Store) GetLog(index uint64, l *raft.Log) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.err != nil {
		return s.err
	}
	if index < s.first || index > s.last || index == 0 {
		return raft.ErrLogNotFound
	}
	if back := s.last - index; back < uint64(len(s.cache)) {
		*l = *s.cache[uint64(len(s.cache))-1-back]
		return nil
	}
	for i := len(s.segments) - 1; i >= 0; i-- {
		if s.segments[i].holds(index) {
			return s.segments[i].read(index, l)
		}
	}
	return raft.ErrLogNotFound
}

// StoreLog stores one entry.
func (s *Store) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs appends entries and returns once they are on stable storage. They must follow the last entry without a
// gap; an empty log takes any first index. The entries' slices must not change afterwards.
func (s *Store) StoreLogs(logs []*raft.Log) error {
	if len(logs) == 0 {
		return nil
	}
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	if err := s.check(logs); err != nil {
		return err
	}
	size := int64(groupHeaderSize)
	for _, l := range logs {
		size += int64(recordSize(l))
	}
	if size+segmentHeaderSize > maxSegment {
		return fmt.Errorf("raft log: %d bytes in one append; the most is %d", size, int64(maxSegment))
	}
	tail := s.segments[len(s.segments)-1]
	if tail.end+size > s.opt.SegmentSize && len(tail.entries) > 0 {
		if err := s.begin(tail, len(tail.entries), size, s.complete); err != nil {
			return s.fail(err)
		}
		tail = s.segments[len(s.segments)-1]
	}
	entries := s.encode(logs, tail)
	if _, err := tail.file.WriteAt(s.buf, tail.end); err != nil {
		return s.fail(err)
	}
	if err := tail.file.Sync(); err != nil {
		return s.fail(err)
	}
	s.publish(logs, tail, entries)
	select {
	case s.dirty <- struct{}{}:
	default:
	}
	return nil
}

func (s *Store) check(logs []*raft.Log) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.err != nil {
		return s.err
	}
	want := s.last + 1
	if s.last == 0 {
		want = logs[0].Index
	}
	for i, l := range logs {
		if l.Index != want+uint64(i) || l.Index == 0 {
			return fmt.Errorf("raft log: entry %d does not follow %d", l.Index, want+uint64(i)-1)
		}
	}
	return nil
}

// encode fills buf with the group and returns the entries' positions.
func (s *Store) encode(logs []*raft.Log, tail *segment) []position {
	b := append(s.buf[:0], make([]byte, groupHeaderSize)...)
	sum := tail.lastSum()
	entries := make([]position, len(logs))
	for i, l := range logs {
		off := tail.end + int64(len(b))
		b, sum = appendRecord(b, l, tail.seeded, sum)
		entries[i] = position{uint32(off), sum}
	}
	groupHeader{s.complete, logs[0].Index, uint32(len(b) - groupHeaderSize), uint32(len(logs))}.put(b, tail.end, tail.seeded)
	s.buf = b
	return entries
}

// publish makes synced entries visible to readers.
func (s *Store) publish(logs []*raft.Log, tail *segment, entries []position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(tail.entries) == 0 {
		tail.base = logs[0].Index
	}
	tail.entries = append(tail.entries, entries...)
	tail.end += int64(len(s.buf))
	if s.first == 0 {
		s.first = logs[0].Index
	}
	s.last = logs[len(logs)-1].Index
	s.complete = s.last
	for _, l := range logs {
		kept := *l
		s.cache = append(s.cache, &kept)
		s.cached += int64(recordSize(l))
	}
	for s.cached > s.opt.CacheSize && len(s.cache) > 0 {
		s.cached -= int64(recordSize(s.cache[0]))
		s.cache[0] = nil
		s.cache = s.cache[1:]
	}
	if cap(s.buf) > 4<<20 { // one huge message is not remembered for ever
		s.buf = nil
	}
}

// fail makes the first error stick.
func (s *Store) fail(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = fmt.Errorf("raft log stopped after a failure; restart the node once the disk is sound: %w", err)
	}
	return s.err
}

func (s *Store) sticky() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.err
}

// keepMark brings the mark up to date, at most once in MarkDelay. It ends when stop is closed.
func (s *Store) keepMark() {
	defer close(s.stopped)
	timer := time.NewTimer(math.MaxInt64)
	defer timer.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-s.dirty:
		}
		timer.Reset(s.opt.MarkDelay)
		select {
		case <-s.stop:
			return
		case <-timer.C:
		}
		if !s.markMu.TryLock() { // one is being written, perhaps an older one; a disk that hangs keeps nobody here
			select {
			case s.dirty <- struct{}{}:
			default:
			}
			continue
		}
		err := s.syncMarkLocked()
		s.markMu.Unlock()
		if err != nil {
			return
		}
	}
}

// syncMark writes a mark of what is synced now.
func (s *Store) syncMark() error {
	s.markMu.Lock()
	defer s.markMu.Unlock()
	return s.syncMarkLocked()
}

// syncMarkLocked is syncMark for a caller that holds markMu.
func (s *Store) syncMarkLocked() error {
	s.mu.RLock()
	err := s.err
	m := s.mark
	m.complete = s.complete
	if n := len(s.segments); n > 0 {
		m.tailEnd = uint64(s.segments[n-1].end)
	}
	s.mu.RUnlock()
	if err != nil || m == s.mark {
		return err
	}
	if err := s.writeMark(m); err != nil {
		return s.fail(err)
	}
	return nil
}

// Close brings the mark up to date and closes the files. It is idempotent.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		close(s.stop)
		<-s.stopped
		s.writeMu.Lock()
		defer s.writeMu.Unlock()
		if s.sticky() == nil {
			s.closeErr = s.syncMark()
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.err == nil {
			s.err = ErrClosed
		}
		s.closeFiles()
	})
	return s.closeErr
}

func (s *Store) closeFiles() {
	for _, seg := range s.segments {
		seg.file.Close()
	}
	s.segments = nil
	if s.markFile != nil {
		s.markFile.Close()
	}
}
