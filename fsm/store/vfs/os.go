package vfs

import (
	"os"
)

// OS is the machine's own file system. It holds no state; its zero value is ready.
type OS struct{}

var _ FS = OS{}

// OpenFile opens a file as os.OpenFile does.
func (OS) OpenFile(name string, flag int, perm os.FileMode) (File, error) {
	f, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// ReadDir returns the names in a directory, sorted.
func (OS) ReadDir(name string) ([]string, error) {
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

func (OS) Stat(name string) (os.FileInfo, error)        { return os.Stat(name) }
func (OS) MkdirAll(name string, perm os.FileMode) error { return os.MkdirAll(name, perm) }
func (OS) Rename(oldName, newName string) error         { return os.Rename(oldName, newName) }
func (OS) Link(oldName, newName string) error           { return os.Link(oldName, newName) }
func (OS) Remove(name string) error                     { return os.Remove(name) }
func (OS) RemoveAll(name string) error                  { return os.RemoveAll(name) }

// SyncDir makes the names in a directory durable.
func (OS) SyncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}

type osFile struct{ *os.File }

// Sync flushes the data and as much of the metadata as reading it back needs, the file's size included
// (fdatasync). Times are not flushed.
func (f osFile) Sync() error { return syncData(f.File) }

// Allocate reserves disk space; the file's size stays. On systems without fallocate it does nothing.
func (f osFile) Allocate(size int64) error { return allocate(f.File, size) }
