// Package vfs is the few file calls that Warren's durable state is built on: the Raft log's segments and the
// message files. Everything that writes to disk takes an FS, so that a test can crash, tear, fill up, slow down or
// fail any single call. It holds no state and imports nothing of Warren's.
package vfs

import (
	"errors"
	"io"
	"os"
)

// FS is one machine's file system. Paths are slash-separated and absolute or relative to the process.
// All methods are safe for concurrent use.
type FS interface {
	// OpenFile opens a file as os.OpenFile does. A file that was created is durable only once it and its
	// directory have been synced.
	OpenFile(name string, flag int, perm os.FileMode) (File, error)
	// ReadDir returns the names in a directory, sorted.
	ReadDir(name string) ([]string, error)
	Stat(name string) (os.FileInfo, error)
	MkdirAll(name string, perm os.FileMode) error
	// Rename replaces newName atomically; it is durable once the directories of both names have been synced.
	Rename(oldName, newName string) error
	// Link makes a second name for a file.
	Link(oldName, newName string) error
	Remove(name string) error
	RemoveAll(name string) error
	// SyncDir makes the names in a directory durable.
	SyncDir(name string) error
}

// ErrLocked says that a lock is held already.
var ErrLocked = errors.New("it is locked")

// Locker is a file system on which processes can keep each other out.
type Locker interface {
	// Lock makes a file and locks it until the closer is closed or the process ends, in whatever way. It does not
	// wait: it returns ErrLocked when somebody, this process included, holds the lock.
	Lock(name string) (io.Closer, error)
}

// File is an open file. WriteAt, ReadAt and Sync may be called concurrently.
type File interface {
	io.Reader
	io.Writer
	io.ReaderAt
	io.WriterAt
	io.Closer
	Name() string
	Stat() (os.FileInfo, error)
	Truncate(size int64) error
	// Allocate reserves size bytes of disk from offset 0 without changing what reads return inside the file's
	// former length. A file system that cannot do that extends the file.
	Allocate(size int64) error
	// Sync returns once everything written before the call is on stable storage (fdatasync or better). After an
	// error nothing may be assumed about any earlier unsynced write, and a later Sync that succeeds proves nothing.
	Sync() error
	// Map returns the first size bytes, which are there, as memory that is read from the disk when it is looked at and may be
	// let go by the system meanwhile. It is valid until unmap, also when the file is closed and has no name any more; a disk
	// that fails is a fault of whoever looks. Where that cannot be done it is an error.
	Map(size int) (b []byte, unmap func() error, err error)
}
