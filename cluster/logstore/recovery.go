package logstore

import (
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/warrenmq/warren/fsm/store/vfs"
)

// Open opens or makes a log. It cuts the tail of an unfinished write. A *DamageError means that something
// acknowledged is missing or changed; nothing was altered then.
func Open(opt Options) (*Store, error) {
	if opt.FS == nil {
		opt.FS = vfs.OS{}
	}
	if opt.SegmentSize == 0 {
		opt.SegmentSize = DefaultSegmentSize
	}
	if opt.CacheSize == 0 {
		opt.CacheSize = DefaultCacheSize
	}
	if opt.MarkDelay == 0 {
		opt.MarkDelay = DefaultMarkDelay
	}
	if opt.SegmentSize < 4096 || opt.SegmentSize > maxSegment {
		return nil, fmt.Errorf("raft log: a segment size of %d bytes is not between 4096 and %d", opt.SegmentSize, int64(maxSegment))
	}
	s := &Store{opt: opt, dirty: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{})}
	if err := s.recover(); err != nil {
		s.closeFiles()
		return nil, err
	}
	if opt.MarkDelay > 0 {
		go s.keepMark()
	} else {
		close(s.stopped)
	}
	return s, nil
}

func (s *Store) recover() error {
	if err := s.opt.FS.MkdirAll(s.opt.Dir, 0o700); err != nil {
		return err
	}
	if err := s.opt.FS.SyncDir(path.Dir(s.opt.Dir)); err != nil {
		return err
	}
	generations, err := s.list()
	if err != nil {
		return err
	}
	s.markFile, s.mark, err = openMark(s.opt.FS, s.opt.Dir, len(generations) > 0)
	if err != nil {
		return err
	}
	if len(generations) > 0 {
		s.nextGen = generations[len(generations)-1]
	}
	s.nextGen = max(s.nextGen, s.mark.tail) + 1
	if s.mark.tail == 0 {
		if err := s.checkNewer(generations); err != nil {
			return err
		}
		if err := s.make(); err != nil {
			return err
		}
		return s.retireOthers(generations)
	}
	if err := s.load(); err != nil {
		return err
	}
	if err := s.checkNewer(generations); err != nil {
		return err
	}
	if err := s.checkComplete(); err != nil {
		return err
	}
	s.complete = max(s.mark.complete, s.last)
	if err := s.settle(); err != nil {
		return err
	}
	return s.retireOthers(generations)
}

// settle makes durable what was read: it counts from here on. It may have been written by a process that died before
// its sync, or whose sync failed. After that the page cache shows bytes that the disk does not have, and syncs again
// without writing them: so all that the mark did not vouch for, and the mark itself, is written anew.
func (s *Store) settle() error {
	tail := s.segments[len(s.segments)-1]
	if from := int64(s.mark.tailEnd); from < tail.end {
		b := make([]byte, tail.end-from)
		if _, err := tail.file.ReadAt(b, from); err != nil {
			return err
		}
		if _, err := tail.file.WriteAt(b, from); err != nil {
			return err
		}
	}
	if err := tail.file.Sync(); err != nil {
		return err
	}
	m := s.mark
	m.complete, m.tailEnd = s.complete, uint64(tail.end)
	return s.writeMark(m)
}

// make begins a new log: a mark that names no segment is durable before a segment is there.
func (s *Store) make() error {
	if err := s.writeMark(s.mark); err != nil {
		return err
	}
	if err := s.opt.FS.SyncDir(s.opt.Dir); err != nil {
		return err
	}
	return s.begin(nil, 0, 0, 0)
}

// list returns the generations of all segments in order and remembers the free ones.
func (s *Store) list() ([]uint64, error) {
	names, err := s.opt.FS.ReadDir(s.opt.Dir)
	if err != nil {
		return nil, err
	}
	var generations []uint64
	for _, name := range names {
		var g uint64
		if _, err := fmt.Sscanf(name, "seg-%016x", &g); err == nil && name == segmentName(g) {
			generations = append(generations, g)
		} else if strings.HasPrefix(name, "free-") {
			s.free = append(s.free, s.path(name))
		}
	}
	slices.Sort(generations)
	return generations, nil
}

// load follows the segments from the last one back to the first by their headers, then reads them in order, one at a
// time.
func (s *Store) load() error {
	limits := []int64{math.MaxInt64}
	for g := s.mark.tail; ; {
		seg, err := s.openSegment(g)
		if err != nil {
			return err
		}
		s.segments = append(s.segments, seg)
		if g == s.mark.head {
			break
		}
		if seg.prev == 0 || seg.prev >= g {
			return &DamageError{File: seg.file.Name(), Reason: "the segment does not name the one before it"}
		}
		limits = append(limits, int64(seg.prevEnd))
		g = seg.prev
	}
	slices.Reverse(s.segments)
	slices.Reverse(limits)
	var data []byte
	var err error
	for i, seg := range s.segments {
		if data, err = seg.readAll(data); err != nil {
			return err
		}
		if err := s.loadSegment(i, seg, data, limits[i]); err != nil {
			return err
		}
	}
	s.first = max(s.first, s.mark.first)
	if s.last < s.first || s.last == 0 {
		s.first, s.last = 0, 0
	}
	return nil
}

func (s *Store) loadSegment(i int, seg *segment, data []byte, limit int64) error {
	if i > 0 {
		before := s.segments[i-1]
		if seg.prevSum != before.lastSum() || seg.first != s.last+1 {
			return &DamageError{File: seg.file.Name(), Index: seg.first, Reason: "the segment does not continue the one before it"}
		}
	}
	stop, more := seg.scan(data, limit)
	need := limit
	if limit == math.MaxInt64 {
		need = int64(s.mark.tailEnd)
	}
	if stop < need || more {
		bad := seg.first
		if len(seg.entries) > 0 {
			bad = seg.lastIndex() + 1
		}
		return &DamageError{File: seg.file.Name(), Offset: stop, Index: bad, Reason: "a record that had been synced cannot be read"}
	}
	if len(seg.entries) > 0 {
		if s.first == 0 {
			s.first = seg.base
		}
		s.last = seg.lastIndex()
	}
	return nil
}

// openSegment opens a segment that must be there and reads its header.
func (s *Store) openSegment(generation uint64) (*segment, error) {
	name := s.path(segmentName(generation))
	f, err := s.opt.FS.OpenFile(name, os.O_RDWR, 0)
	if os.IsNotExist(err) {
		return nil, &DamageError{File: name, Reason: "the segment is missing"}
	}
	if err != nil {
		return nil, err
	}
	var header [segmentHeaderSize]byte
	n, err := f.ReadAt(header[:], 0)
	if err != nil && err != io.EOF {
		f.Close()
		return nil, err
	}
	h, ok := decodeSegmentHeader(header[:n])
	if !ok || h.generation != generation {
		f.Close()
		return nil, &DamageError{File: name, Reason: "the segment's header cannot be read"}
	}
	return &segment{segmentHeader: h, seeded: h.seed(), file: f, end: segmentHeaderSize}, nil
}

// checkNewer refuses a mark that is older than the entries: segments get entries only after the mark names them.
func (s *Store) checkNewer(generations []uint64) error {
	for _, g := range generations {
		if g <= s.mark.tail {
			continue
		}
		seg, err := s.openSegment(g)
		if _, damaged := err.(*DamageError); damaged {
			continue // its making was cut short
		}
		if err != nil {
			return err
		}
		data, err := seg.readAll(nil)
		seg.file.Close()
		if err != nil {
			return err
		}
		seg.scan(data, math.MaxInt64)
		if len(seg.entries) > 0 {
			return &DamageError{File: s.path(markName), Index: seg.base, Reason: "the mark is older than " + segmentName(g)}
		}
	}
	return nil
}

// checkComplete refuses a log and a snapshot that do not hold everything between them: an end that is missing, or a
// gap that raft would only find when it applies.
func (s *Store) checkComplete() error {
	if have := max(s.last, s.opt.SnapshotIndex); s.mark.complete > have {
		return &DamageError{File: s.path(markName), Index: have + 1, Reason: fmt.Sprintf(
			"complete up to %d, but log and snapshot end at %d", s.mark.complete, have)}
	}
	if s.first > s.opt.SnapshotIndex+1 {
		return &DamageError{File: s.path(markName), Index: s.opt.SnapshotIndex + 1, Reason: fmt.Sprintf(
			"the log begins at %d, but the newest snapshot ends at %d", s.first, s.opt.SnapshotIndex)}
	}
	return nil
}

// retireOthers frees the segments that are not part of the log.
func (s *Store) retireOthers(generations []uint64) error {
	free := s.free
	s.free = nil
	for _, name := range free {
		if err := s.keepFree(name, name); err != nil {
			return err
		}
	}
	for _, g := range generations {
		if !slices.ContainsFunc(s.segments, func(seg *segment) bool { return seg.generation == g }) {
			if err := s.retire(g); err != nil {
				return err
			}
		}
	}
	return nil
}
