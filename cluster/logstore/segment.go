package logstore

import (
	"crypto/rand"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"path"
	"slices"

	"github.com/hashicorp/raft"
	"github.com/warrenmq/warren/fsm/store/vfs"
)

const (
	segmentMagic      = "WARRLOG1" // ends in the number of the format
	segmentHeaderSize = 64
)

// segmentHeader is written and synced before the mark names the segment, and never changes.
type segmentHeader struct {
	generation uint64
	prev       uint64 // generation of the segment before; 0 when the log begins here
	prevEnd    uint64 // where the log leaves that segment, in bytes
	first      uint64 // index of the first record; 0 when any may come
	salt       uint64
	prevSum    uint32 // checksum of the last record before
}

func newSalt() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return le.Uint64(b[:])
}

func (h segmentHeader) encode() []byte {
	b := append(make([]byte, 0, segmentHeaderSize), segmentMagic...)
	for _, v := range []uint64{h.generation, h.prev, h.prevEnd, h.first, h.salt} {
		b = le.AppendUint64(b, v)
	}
	b = le.AppendUint32(b, h.prevSum)
	b = append(b, make([]byte, segmentHeaderSize-4-len(b))...)
	return le.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func decodeSegmentHeader(b []byte) (segmentHeader, bool) {
	if len(b) < segmentHeaderSize || string(b[:8]) != segmentMagic ||
		le.Uint32(b[segmentHeaderSize-4:]) != crc32.Checksum(b[:segmentHeaderSize-4], castagnoli) {
		return segmentHeader{}, false
	}
	u := func(i int) uint64 { return le.Uint64(b[8+8*i:]) }
	return segmentHeader{u(0), u(1), u(2), u(3), u(4), le.Uint32(b[48:])}, true
}

// seed is what all checksums in the segment start from: the header's own checksum. (A checksum over the header and
// its checksum would be the same for all headers.)
func (h segmentHeader) seed() uint32 { return le.Uint32(h.encode()[segmentHeaderSize-4:]) }

// position is where an entry lies in its segment, and its checksum.
type position struct {
	off uint32
	sum uint32
}

// segment is an open segment file and the index of its records. Store.mu guards entries and end.
type segment struct {
	segmentHeader
	seeded  uint32
	file    vfs.File
	base    uint64     // index of entries[0]; meaningless without entries
	entries []position // 8 bytes of memory an entry
	end     int64      // bytes in use, header included
}

func segmentName(generation uint64) string { return fmt.Sprintf("seg-%016x", generation) }

func (s *segment) lastIndex() uint64 { return s.base + uint64(len(s.entries)) - 1 }

func (s *segment) holds(index uint64) bool {
	return len(s.entries) > 0 && index >= s.base && index <= s.lastIndex()
}

// lastSum is what the next record's checksum is seeded with.
func (s *segment) lastSum() uint32 { return s.sumBefore(len(s.entries)) }

func (s *segment) sumBefore(i int) uint32 {
	if i == 0 {
		return s.prevSum
	}
	return s.entries[i-1].sum
}

// recordEnd is the offset behind entries[i].
func (s *segment) recordEnd(i int) (int64, error) {
	off := int64(s.entries[i].off)
	var b [4]byte
	if _, err := s.file.ReadAt(b[:], off); err != nil {
		return 0, err
	}
	return off + recordHeaderSize + int64(padded(int(le.Uint32(b[:])))), nil
}

// read fills l with the entry at index, in fresh memory, after checking its checksum.
func (s *segment) read(index uint64, l *raft.Log) error {
	i := int(index - s.base)
	off := int64(s.entries[i].off)
	next := s.end
	if i+1 < len(s.entries) {
		next = int64(s.entries[i+1].off) // a group header may lie between
	}
	b := make([]byte, next-off)
	if _, err := s.file.ReadAt(b, off); err != nil && err != io.EOF {
		return err
	}
	_, sum, err := decodeRecord(b, l, s.seeded, s.sumBefore(i))
	if err == nil && (sum != s.entries[i].sum || l.Index != index) {
		err = errBad
	}
	if err != nil {
		return &DamageError{File: s.file.Name(), Offset: off, Index: index, Reason: err.Error()}
	}
	return nil
}

// readAll returns the whole file, in data's memory if it is large enough.
func (s *segment) readAll(data []byte) ([]byte, error) {
	info, err := s.file.Stat()
	if err != nil {
		return nil, err
	}
	data = slices.Grow(data[:0], int(info.Size()))[:info.Size()]
	n, err := s.file.ReadAt(data, 0)
	if err != nil && err != io.EOF {
		return nil, err
	}
	return data[:n], nil
}

// DamageError says that the log lost or changed something it had acknowledged. The node must not vote or lead from
// it; it fetches the state from the others.
type DamageError struct {
	File   string
	Offset int64  // in bytes, where reading stopped
	Index  uint64 // the entry that was expected there; 0 if unknown
	Reason string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("raft log damaged: %s at byte %d, entry %d: %s; quarantine this node and let it take the state from its peers",
		e.File, e.Offset, e.Index, e.Reason)
}

// scan reads the groups of a segment up to limit (or, with math.MaxInt64, as far as they are good) and fills its
// index. It returns where it stopped and whether a readable group lies behind that.
func (s *segment) scan(data []byte, limit int64) (stop int64, more bool) {
	pos, sum := int64(segmentHeaderSize), s.prevSum
	next := s.first
	for pos < limit {
		n, entries, first, ok := scanGroup(data, pos, limit, s.seeded, sum, next)
		if !ok {
			break
		}
		if len(s.entries) == 0 {
			s.base = first
		}
		s.entries = append(s.entries, entries...)
		pos, sum, next = n, s.lastSum(), s.lastIndex()+1
	}
	s.end = pos
	if limit == math.MaxInt64 {
		for off := pos + 8; off+groupHeaderSize <= int64(len(data)); off += 8 {
			if _, ok := decodeGroupHeader(data[off:], off, s.seeded); ok {
				return pos, true
			}
		}
	}
	return pos, false
}

// scanGroup checks one group. A limit inside the group (a truncated suffix) ends it there.
func scanGroup(data []byte, pos, limit int64, seed, sum uint32, next uint64) (int64, []position, uint64, bool) {
	if pos > int64(len(data)) {
		return 0, nil, 0, false
	}
	g, ok := decodeGroupHeader(data[pos:], pos, seed)
	if !ok || g.count == 0 || (next != 0 && g.first != next) {
		return 0, nil, 0, false
	}
	pos += groupHeaderSize
	end := pos + int64(g.length)
	if end > int64(len(data)) && limit == math.MaxInt64 {
		return 0, nil, 0, false
	}
	end = min(end, int64(len(data)))
	var entries []position
	for i := range g.count {
		if pos == limit && i > 0 {
			return pos, entries, g.first, true
		}
		var l raft.Log
		n, recSum, err := decodeRecord(data[pos:end], &l, seed, sum)
		if err != nil || l.Index != g.first+uint64(i) {
			return 0, nil, 0, false
		}
		entries = append(entries, position{uint32(pos), recSum})
		pos, sum = pos+int64(n), recSum
	}
	return pos, entries, g.first, pos == end
}

func (s *Store) path(name string) string { return path.Join(s.opt.Dir, name) }
