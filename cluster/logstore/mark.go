package logstore

import (
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path"

	"github.com/warrenmq/warren/fsm/store/vfs"
)

const (
	markName  = "mark"
	markMagic = "WARRMRK1"
	markSize  = 80
	// markStride puts the two copies into different blocks, so that a torn write spoils only one.
	markStride = 4096
)

// mark is what must be there, kept outside the segments.
type mark struct {
	seq      uint64 // raised by each write; the higher of two good copies counts
	complete uint64 // everything up to this index was synced
	first    uint64 // entries before it are deleted; 0 when the log may begin anywhere
	head     uint64 // generation of the first segment
	tail     uint64 // generation of the last segment
	tailEnd  uint64 // bytes of the last segment that were synced
}

func (m mark) encode() []byte {
	b := append(make([]byte, 0, markSize), markMagic...)
	for _, v := range []uint64{m.seq, m.complete, m.first, m.head, m.tail, m.tailEnd} {
		b = le.AppendUint64(b, v)
	}
	b = append(b, make([]byte, markSize-4-len(b))...)
	return le.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func decodeMark(b []byte) (mark, bool) {
	if len(b) < markSize || string(b[:8]) != markMagic ||
		le.Uint32(b[markSize-4:]) != crc32.Checksum(b[:markSize-4], castagnoli) {
		return mark{}, false
	}
	u := func(i int) uint64 { return le.Uint64(b[8+8*i:]) }
	return mark{u(0), u(1), u(2), u(3), u(4), u(5)}, true
}

// openMark opens the mark file. The mark is zero if the file is new, which it only is in a directory without
// segments.
func openMark(fs vfs.FS, dir string, haveSegments bool) (vfs.File, mark, error) {
	name := path.Join(dir, markName)
	_, err := fs.Stat(name)
	if errors.Is(err, os.ErrNotExist) && haveSegments {
		return nil, mark{}, &DamageError{File: name, Reason: "the mark is missing beside its segments"}
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, mark{}, err
	}
	f, err := fs.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, mark{}, err
	}
	data := make([]byte, markStride+markSize)
	n, err := f.ReadAt(data, 0)
	if err != nil && err != io.EOF {
		f.Close()
		return nil, mark{}, err
	}
	data = data[:n]
	best, ok := decodeMark(data)
	if n > markStride {
		if other, good := decodeMark(data[markStride:]); good && (!ok || other.seq > best.seq) {
			best, ok = other, true
		}
	}
	if !ok && haveSegments {
		f.Close()
		return nil, mark{}, &DamageError{File: name, Reason: "neither copy of the mark can be read"}
	}
	return f, best, nil
}

// writeMark makes a mark durable. The caller holds markMu.
func (s *Store) writeMark(m mark) error {
	m.seq = s.mark.seq + 1
	off := int64(m.seq%2) * markStride
	if _, err := s.markFile.WriteAt(m.encode(), off); err != nil {
		return err
	}
	if err := s.markFile.Sync(); err != nil {
		return err
	}
	s.mark = m
	return nil
}
