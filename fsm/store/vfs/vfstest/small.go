package vfstest

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/warrenmq/warren/fsm/store/vfs"
)

// Small is a small disk: the operating system's file system below a directory, as if it had only so many bytes. Beside
// what is written it counts what others take (Take). Safe for concurrent use.
type Small struct {
	vfs.OS
	dir  string
	size int64

	mu     sync.Mutex
	taken  int64     // guarded by mu
	free   int64     // an estimate that is too low; guarded by mu
	looked time.Time // guarded by mu
}

var _ vfs.Spacer = (*Small)(nil)

// NewSmall returns a disk of a size in bytes for what is below a directory.
func NewSmall(dir string, size int64) *Small { return &Small{dir: dir, size: size} }

// Dir returns the directory.
func (s *Small) Dir() string { return s.dir }

// Take has others take so many bytes, all in all.
func (s *Small) Take(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken = bytes
	s.look()
}

// Free implements vfs.Spacer.
func (s *Small) Free(string) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.look()
	return uint64(max(s.free, 0)), nil
}

// look counts what files take; one with several names counts once. The caller holds mu.
func (s *Small) look() {
	used := int64(0)
	seen := map[uint64]bool{}
	_ = filepath.WalkDir(s.dir, func(name string, d fs.DirEntry, err error) error {
		var stat syscall.Stat_t
		if err == nil && d.Type().IsRegular() && syscall.Lstat(name, &stat) == nil && !seen[stat.Ino] {
			seen[stat.Ino] = true
			used += max(stat.Blocks*512, stat.Size) // what was written may not have its blocks yet
		}
		return nil // files come and go meanwhile
	})
	s.free, s.looked = s.size-s.taken-used, time.Now()
}

// need takes bytes, as many as there are.
func (s *Small) need(bytes int64) (granted int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free < bytes || time.Since(s.looked) > 50*time.Millisecond {
		s.look()
	}
	granted = max(min(bytes, s.free), 0)
	s.free -= granted
	return granted
}

// OpenFile opens a file whose writes find the disk full.
func (s *Small) OpenFile(name string, flag int, perm os.FileMode) (vfs.File, error) {
	f, err := s.OS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &smallFile{f, s}, nil
}

type smallFile struct {
	vfs.File
	disk *Small
}

// room says how many of the bytes at an offset may be written.
func (f *smallFile) room(off int64, size int) int {
	have := int64(0)
	if info, err := f.File.Stat(); err == nil {
		have = info.Size()
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			have = max(have, stat.Blocks*512)
		}
	}
	more := off + int64(size) - max(have, off)
	if more <= 0 {
		return size
	}
	return size - int(more-f.disk.need(more))
}

func (f *smallFile) full() error {
	return &os.PathError{Op: "write", Path: f.Name(), Err: syscall.ENOSPC}
}

func (f *smallFile) WriteAt(p []byte, off int64) (int, error) {
	room := f.room(off, len(p))
	n, err := f.File.WriteAt(p[:room], off)
	if err == nil && room < len(p) {
		err = f.full()
	}
	return n, err
}

func (f *smallFile) Write(p []byte) (int, error) {
	room := int(f.disk.need(int64(len(p))))
	n, err := f.File.Write(p[:room])
	if err == nil && room < len(p) {
		err = f.full()
	}
	return n, err
}

func (f *smallFile) Allocate(size int64) error {
	if f.room(0, int(size)) < int(size) {
		return &os.PathError{Op: "fallocate", Path: f.Name(), Err: syscall.ENOSPC}
	}
	return f.File.Allocate(size)
}
