package vfs

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
)

// reserveSteps is in how many steps a Reserve is given back.
const reserveSteps = 16

// reserveShare: a file gets at most that part of it.
const reserveShare = 2

// Spacer is a file system that knows how much room it has.
type Spacer interface {
	// Free returns the bytes that are left for this process below a directory.
	Free(dir string) (uint64, error)
}

// Free implements Spacer.
func (OS) Free(dir string) (uint64, error) { return Free(dir) }

// Reserve is a file system that keeps a file's worth of the disk for itself. When a call finds the disk full, a step of
// the file is given back and the call goes on; so whatever else fills the disk, what has to be written can be for a
// while. No file gets more than half of the reserve, so that a large one does not use it up. A sync that failed is
// never made again, and a File's Allocate is no need. A disk that cannot preallocate has no reserve.
// Safe for concurrent use.
type Reserve struct {
	FS
	name string
	size int64

	mu    sync.Mutex
	left  int64            // bytes; guarded by mu
	drawn map[string]int64 // since the reserve was last whole, by file; bounded by the steps; guarded by mu
}

// NewReserve returns a file system whose reserve is the file with a name, as an earlier process left it: Fill makes it
// whole. A size of 0 removes the file.
func NewReserve(fs FS, name string, size int64) (*Reserve, error) {
	r := &Reserve{FS: fs, name: name, size: size, drawn: map[string]int64{}}
	info, err := fs.Stat(name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return r, nil
	case err != nil:
		return nil, fmt.Errorf("look at the disk reserve: %w", err)
	case size <= 0:
		return r, fs.Remove(name)
	}
	if r.left = info.Size(); r.left > size {
		return r, r.cut(size)
	}
	return r, nil
}

// cut gives back what of the file lies behind an offset.
func (r *Reserve) cut(size int64) error {
	f, err := r.FS.OpenFile(r.name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err = errors.Join(f.Truncate(size), f.Close()); err == nil {
		r.left = size
	}
	return err
}

// Missing returns how many bytes Fill would take.
func (r *Reserve) Missing() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(0, r.size-r.left)
}

// Left returns how many bytes there are.
func (r *Reserve) Left() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left
}

// Fill makes the reserve whole again. It is called while the disk has room for what is missing.
func (r *Reserve) Fill() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left == r.size {
		return nil
	}
	f, err := r.FS.OpenFile(r.name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err = f.Allocate(r.size); err == nil {
		err = f.Truncate(r.size)
	}
	if err != nil {
		_ = f.Truncate(r.left) // what was allocated before it failed
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		r.left = r.size
		clear(r.drawn)
	}
	return err
}

// draw gives a step back for a file; false when there is none for it.
func (r *Reserve) draw(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	step := min(max(r.size/reserveSteps, 1), r.left)
	if step <= 0 || r.drawn[name]+step > max(r.size/reserveShare, step) {
		return false
	}
	if r.cut(r.left-step) != nil {
		return false
	}
	r.drawn[name] += step
	return true
}

// again makes a call until it does not find the disk full, or nothing is left for it.
func (r *Reserve) again(name string, call func() error) error {
	for {
		err := call()
		if !errors.Is(err, syscall.ENOSPC) || !r.draw(name) {
			return err
		}
	}
}

// OpenFile is the FS's, with the reserve behind it; so are the other methods.
func (r *Reserve) OpenFile(name string, flag int, perm os.FileMode) (file File, err error) {
	err = r.again(name, func() (err error) { file, err = r.FS.OpenFile(name, flag, perm); return err })
	if err != nil {
		return nil, err
	}
	return &reserveFile{file, r}, nil
}

// MkdirAll draws on the reserve.
func (r *Reserve) MkdirAll(name string, perm os.FileMode) error {
	return r.again(name, func() error { return r.FS.MkdirAll(name, perm) })
}

// Rename draws on the reserve.
func (r *Reserve) Rename(oldName, newName string) error {
	return r.again(newName, func() error { return r.FS.Rename(oldName, newName) })
}

// Link draws on the reserve.
func (r *Reserve) Link(oldName, newName string) error {
	return r.again(newName, func() error { return r.FS.Link(oldName, newName) })
}

type reserveFile struct {
	File
	r *Reserve
}

func (f *reserveFile) Write(p []byte) (n int, err error) {
	return f.write(len(p), func(done int) (int, error) { return f.File.Write(p[done:]) })
}

func (f *reserveFile) WriteAt(p []byte, off int64) (n int, err error) {
	return f.write(len(p), func(done int) (int, error) { return f.File.WriteAt(p[done:], off+int64(done)) })
}

// write goes on where a write that found the disk full ended.
func (f *reserveFile) write(size int, write func(done int) (int, error)) (done int, err error) {
	err = f.r.again(f.Name(), func() error {
		n, err := write(done)
		done += n
		return err
	})
	return min(done, size), err
}
