package vfs

import (
	"io"
	"os"
	"slices"
)

// memFile is one opening of a file. Its fields are guarded by Mem.mu.
type memFile struct {
	m      *Mem
	n      *node
	name   string
	epoch  int
	flag   int
	off    int64
	closed bool
}

// enter locks the file system and refuses dead handles. The caller unlocks, also after an error.
func (f *memFile) enter(op string) error {
	f.m.mu.Lock()
	if f.closed || f.epoch != f.m.epoch {
		return pathError(op, f.name, os.ErrClosed)
	}
	return nil
}

func (f *memFile) Name() string { return f.name }

func (f *memFile) Read(p []byte) (int, error) {
	err := f.enter("read")
	defer f.m.mu.Unlock()
	if err != nil {
		return 0, err
	}
	n, err := f.readAt(p, f.off)
	f.off += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	err := f.enter("read")
	defer f.m.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return f.readAt(p, off)
}

func (f *memFile) readAt(p []byte, off int64) (int, error) {
	if off < 0 || f.n.isDir() {
		return 0, pathError("read", f.name, os.ErrInvalid)
	}
	if len(p) == 0 {
		return 0, nil
	}
	if off >= int64(len(f.n.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.n.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) Write(p []byte) (int, error) {
	err := f.enter("write")
	defer f.m.mu.Unlock()
	if err != nil {
		return 0, err
	}
	if f.flag&os.O_APPEND != 0 {
		f.off = int64(len(f.n.data))
	}
	n, err := f.writeAt(p, f.off)
	f.off += int64(n)
	return n, err
}

func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	err := f.enter("write")
	defer f.m.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return f.writeAt(p, off)
}

func (f *memFile) writeAt(p []byte, off int64) (int, error) {
	if off < 0 || f.n.isDir() || f.flag&(os.O_WRONLY|os.O_RDWR) == 0 {
		return 0, pathError("write", f.name, os.ErrInvalid)
	}
	if len(p) > 0 {
		f.n.write(dataOp{off, slices.Clone(p)})
	}
	return len(p), nil
}

func (f *memFile) Close() error {
	err := f.enter("close")
	defer f.m.mu.Unlock()
	f.closed = true
	return err
}

func (f *memFile) Stat() (os.FileInfo, error) {
	err := f.enter("stat")
	defer f.m.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return f.n.info(f.name), nil
}

func (f *memFile) Truncate(size int64) error {
	err := f.enter("truncate")
	defer f.m.mu.Unlock()
	if err != nil {
		return err
	}
	f.n.write(dataOp{off: size})
	return nil
}

// Allocate does nothing: space is not counted.
func (f *memFile) Allocate(int64) error {
	err := f.enter("allocate")
	defer f.m.mu.Unlock()
	return err
}

// Map returns a copy: what is mapped is not written any more.
func (f *memFile) Map(size int) ([]byte, func() error, error) {
	b := make([]byte, size)
	_, err := f.ReadAt(b, 0)
	return b, func() error { return nil }, err
}

func (f *memFile) Sync() error {
	err := f.enter("sync")
	defer f.m.mu.Unlock()
	if err != nil {
		return err
	}
	for _, op := range f.n.pending {
		f.n.synced = op.apply(f.n.synced)
	}
	f.n.pending = nil
	return nil
}

// LoseUnsynced is what a failed sync leaves: what was written since the last one is still read and will not survive a
// crash, whatever is synced later.
func (f *memFile) LoseUnsynced() {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	f.n.pending = nil
}
