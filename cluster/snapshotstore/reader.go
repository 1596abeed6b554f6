package snapshotstore

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/hashicorp/raft"

	"github.com/warrenmq/warren/fsm/store/vfs"
)

const (
	readBuffer = 256 << 10
	// readOver is the largest gap between two ranges that is read rather than skipped.
	readOver = 64 << 10
)

// reader yields a snapshot's stream. It is used by one goroutine; Referred may be called by any.
type reader struct {
	store  *Store
	id     string
	dir    string
	parts  []part          // still to be read, the first one in part
	files  map[string]bool // base names referred to
	stream vfs.File
	size   int64  // of stream
	left   int64  // bytes of stream still to be read
	sum    uint32 // of those that were
	want   uint32
	file   vfs.File // of the part being read
	buffer int      // bytes that buf gets
	buf    *bufio.Reader
	at     int64 // position of buf in file
	closed bool
}

func (s *Store) newReader(meta *raft.SnapshotMeta) (*reader, error) {
	dir := path.Join(s.dir, meta.ID)
	name := path.Join(dir, layoutFile)
	body, err := s.readSealed(name, layoutMagic)
	if err != nil {
		return nil, err
	}
	l, ok := decodeLayout(body)
	if !ok {
		return nil, &ErrDamaged{name, sealedHead, "its parts do not fit its length"}
	}
	r := &reader{store: s, id: meta.ID, dir: dir, parts: l.parts, want: l.sum, files: make(map[string]bool), buffer: int(min(meta.Size, readBuffer))}
	var size, streamed int64
	for _, p := range l.parts {
		size += p.size()
		streamed += p.bytes
		if p.file != "" {
			r.files[p.file] = true
		}
	}
	r.size, r.left = streamed, streamed
	if size != meta.Size {
		return nil, &ErrDamaged{name, sealedHead, fmt.Sprintf("its parts have %d bytes, the snapshot %d", size, meta.Size)}
	}
	if r.stream, err = s.fs.OpenFile(path.Join(dir, streamFile), os.O_RDONLY, 0); err != nil {
		return nil, fmt.Errorf("open snapshot: %w", err)
	}
	if info, err := r.stream.Stat(); err != nil || info.Size() != streamed {
		r.stream.Close()
		if err == nil {
			err = &ErrDamaged{path.Join(dir, streamFile), info.Size(), fmt.Sprintf("it must have %d bytes", streamed)}
		}
		return nil, err
	}
	return r, nil
}

// Name returns the snapshot's directory.
func (r *reader) Name() string { return r.dir }

// Referred returns where a file that the snapshot refers to is.
func (r *reader) Referred(name string) (string, bool) {
	return path.Join(r.dir, filesDir, name), r.files[name]
}

// Read reads on in the stream.
func (r *reader) Read(b []byte) (int, error) {
	for len(r.parts) > 0 && len(b) > 0 {
		p := &r.parts[0]
		if p.size() == 0 {
			if err := r.next(); err != nil {
				return 0, err
			}
			continue
		}
		if p.file == "" {
			return r.readStream(p, b)
		}
		return r.readRange(p, b)
	}
	if len(b) == 0 {
		return 0, nil
	}
	return 0, io.EOF
}

// readStream keeps the last bytes back when they do not fit the checksum: whoever is sent the stream must not take it
// for whole.
func (r *reader) readStream(p *part, b []byte) (int, error) {
	name := path.Join(r.dir, streamFile)
	n, err := r.stream.Read(b[:min(int64(len(b)), p.bytes)])
	p.bytes -= int64(n)
	r.left -= int64(n)
	r.sum = crc32.Update(r.sum, castagnoli, b[:n])
	if r.left == 0 && r.sum != r.want {
		return 0, &ErrDamaged{name, 0, "its checksum does not match"}
	}
	return n, cut(n, err, name, r.size-r.left)
}

// next leaves a part that has been read.
func (r *reader) next() error {
	r.parts = r.parts[1:]
	if r.file == nil {
		return nil
	}
	err := r.file.Close()
	r.file = nil
	return err
}

func (r *reader) readRange(p *part, b []byte) (int, error) {
	name := path.Join(r.dir, filesDir, p.file)
	if r.file == nil {
		f, err := r.store.fs.OpenFile(name, os.O_RDONLY, 0)
		if errors.Is(err, fs.ErrNotExist) {
			return 0, &ErrDamaged{name, 0, "it is missing"}
		} else if err != nil {
			return 0, fmt.Errorf("read snapshot: %w", err)
		}
		r.file, r.at = f, 0
		r.seek(0)
	}
	from, to := p.ranges[0][0], p.ranges[0][1]
	if gap := from - r.at; gap < 0 || gap > readOver {
		r.seek(from)
	} else if n, err := r.buf.Discard(int(gap)); err != nil {
		return 0, cut(0, err, name, r.at)
	} else {
		r.at += int64(n)
	}
	n, err := r.buf.Read(b[:min(int64(len(b)), to-from)])
	r.at += int64(n)
	if p.ranges[0][0] += int64(n); p.ranges[0][0] == to {
		p.ranges = p.ranges[1:]
	}
	return n, cut(n, err, name, r.at)
}

// seek starts reading at an offset of the file.
func (r *reader) seek(offset int64) {
	section := io.NewSectionReader(r.file, offset, 1<<62)
	if r.buf == nil {
		r.buf = bufio.NewReaderSize(section, r.buffer)
	} else {
		r.buf.Reset(section)
	}
	r.at = offset
}

// cut makes the end of a file before the end of its part, and a read that fails, a damage.
func cut(n int, err error, name string, at int64) error {
	if err == nil || err == io.EOF && n > 0 {
		return nil
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return &ErrDamaged{name, at, err.Error()}
}

// Close ends the reading; the snapshot may be reaped from then on.
func (r *reader) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	err := r.stream.Close()
	if r.file != nil {
		if closed := r.file.Close(); err == nil {
			err = closed
		}
	}
	r.store.release(r.id)
	return err
}
