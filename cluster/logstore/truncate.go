package logstore

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// DeleteRange deletes the entries from min to max, which must lie at either end of the log. It is durable when it
// returns.
func (s *Store) DeleteRange(min, max uint64) error {
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	if err := s.sticky(); err != nil {
		return err
	}
	first, last := s.first, s.last
	var err error
	switch {
	case first == 0 || max < first || min > last || min > max:
		return nil
	case min <= first && max >= last:
		err = s.empty(first)
	case min <= first:
		err = s.deletePrefix(max + 1)
	case max >= last:
		err = s.deleteSuffix(min)
	default:
		return fmt.Errorf("raft log: entries %d to %d lie in the middle of %d to %d and cannot be deleted", min, max, first, last)
	}
	if err != nil {
		return s.fail(err)
	}
	return nil
}

// Reset empties the log, durably, because a snapshot covers everything before next. Any first index is then taken.
func (s *Store) Reset(next uint64) error {
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	if err := s.sticky(); err != nil {
		return err
	}
	var complete uint64
	if next > 0 {
		complete = next - 1
	}
	if err := s.begin(nil, 0, 0, complete); err != nil {
		return s.fail(err)
	}
	return nil
}

// empty deletes all entries, the first of which is first. What lay before it had been deleted because a snapshot
// covers it, and what the newest snapshot covers now was acknowledged too: that much must be there at the next start.
// Entries behind the snapshot do not count: raft empties the log when they conflict with the leader's.
func (s *Store) empty(first uint64) error {
	complete := max(first-1, s.opt.SnapshotIndex)
	if s.opt.NewestSnapshot != nil {
		newest, err := s.opt.NewestSnapshot()
		if err != nil {
			return err
		}
		complete = max(complete, newest)
	}
	return s.begin(nil, 0, 0, complete)
}

func (s *Store) deletePrefix(first uint64) error {
	drop := 0
	for drop < len(s.segments)-1 && (len(s.segments[drop].entries) == 0 || s.segments[drop].lastIndex() < first) {
		drop++
	}
	s.markMu.Lock()
	m := s.mark
	m.first, m.head = first, s.segments[drop].generation
	err := s.writeMark(m)
	s.markMu.Unlock()
	if err != nil {
		return err
	}
	s.mu.Lock()
	gone := s.segments[:drop:drop]
	s.segments = append([]*segment(nil), s.segments[drop:]...)
	s.first = first
	s.trimCache(first, s.last)
	s.mu.Unlock()
	return s.recycle(gone)
}

// deleteSuffix cuts everything from index on by beginning a segment that follows the entry before it.
func (s *Store) deleteSuffix(index uint64) error {
	for _, seg := range s.segments {
		if seg.holds(index - 1) {
			return s.begin(seg, int(index-seg.base), 0, min(s.complete, index-1))
		}
	}
	return fmt.Errorf("raft log: entry %d is not there", index-1)
}

// begin starts a new last segment that follows the first n entries of prev; without prev, the log is empty
// afterwards. One write of the mark makes the change, so the lowered complete is durable before anything is lost.
// The caller holds writeMu.
func (s *Store) begin(prev *segment, n int, room int64, complete uint64) error {
	h := segmentHeader{generation: s.nextGen, salt: newSalt()}
	if prev != nil {
		end, err := prev.recordEnd(n - 1)
		if err != nil {
			return err
		}
		h.prev, h.prevEnd = prev.generation, uint64(end)
		h.prevSum, h.first = prev.sumBefore(n), prev.base+uint64(n)
	}
	seg, err := s.create(h, max(s.opt.SegmentSize, segmentHeaderSize+room))
	if err != nil {
		return err
	}
	s.markMu.Lock()
	m := mark{seq: s.mark.seq, complete: complete, head: h.generation, tail: h.generation, tailEnd: segmentHeaderSize}
	if prev != nil {
		m.head, m.first = s.mark.head, s.mark.first
	}
	if err := s.writeMark(m); err != nil {
		s.markMu.Unlock()
		seg.file.Close()
		return err
	}
	gone := s.switchTo(seg, prev, n, complete)
	s.markMu.Unlock()
	if prev != nil { // nothing reads behind its end any more; give back that space and what was allocated
		if err := prev.file.Truncate(prev.end); err != nil {
			return err
		}
	}
	return s.recycle(gone)
}

// switchTo makes seg the last segment and returns the segments that are no longer part of the log.
func (s *Store) switchTo(seg, prev *segment, n int, complete uint64) (gone []*segment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nextGen++
	s.complete = complete
	kept := []*segment(nil)
	for i, old := range s.segments {
		if prev == nil {
			gone = s.segments
			break
		}
		kept = append(kept, old)
		if old == prev {
			gone = s.segments[i+1:]
			break
		}
	}
	s.segments = append(kept, seg)
	if prev == nil {
		s.first, s.last = 0, 0
	} else {
		prev.entries, prev.end = prev.entries[:n:n], int64(seg.prevEnd)
		s.last = prev.lastIndex()
	}
	s.trimCache(s.first, s.last)
	return gone
}

// trimCache keeps only entries from first to last. The caller holds mu.
func (s *Store) trimCache(first, last uint64) {
	for n := len(s.cache); n > 0 && s.cache[n-1].Index > last; n = len(s.cache) {
		s.cached -= int64(recordSize(s.cache[n-1]))
		s.cache = s.cache[: n-1 : n-1]
	}
	for len(s.cache) > 0 && s.cache[0].Index < first {
		s.cached -= int64(recordSize(s.cache[0]))
		s.cache = s.cache[1:]
	}
}

// create makes a segment file, reusing an emptied one, and makes its header and name durable.
func (s *Store) create(h segmentHeader, size int64) (*segment, error) {
	name := s.path(segmentName(h.generation))
	if n := len(s.free); n > 0 {
		old := s.free[n-1]
		s.free = s.free[:n-1]
		if err := s.opt.FS.Rename(old, name); err != nil {
			return nil, err
		}
	}
	f, err := s.opt.FS.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err = f.Allocate(size); errors.Is(err, syscall.ENOSPC) {
		err = f.Truncate(0) // gives back what was allocated before: space is then taken as it is written
	}
	if err == nil {
		_, err = f.WriteAt(h.encode(), 0)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = s.opt.FS.SyncDir(s.opt.Dir)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &segment{segmentHeader: h, seeded: h.seed(), file: f, end: segmentHeaderSize}, nil
}

// recycle keeps a few segments that the durable mark no longer names and removes the others.
func (s *Store) recycle(gone []*segment) error {
	for _, seg := range gone {
		if err := seg.file.Close(); err != nil {
			return err
		}
		if err := s.retire(seg.generation); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) retire(generation uint64) error {
	return s.keepFree(s.path(segmentName(generation)), s.path(fmt.Sprintf("free-%016x", generation)))
}

// keepFree keeps a file for reuse under the name free, or removes it if there are enough or one huge group made it
// larger than a segment should be.
func (s *Store) keepFree(name, free string) error {
	info, err := s.opt.FS.Stat(name)
	if err != nil {
		return err
	}
	if len(s.free) >= maxFree || info.Size() > s.opt.SegmentSize {
		return s.opt.FS.Remove(name)
	}
	if name != free {
		if err := s.opt.FS.Rename(name, free); err != nil {
			return err
		}
	}
	s.free = append(s.free, free)
	return nil
}
