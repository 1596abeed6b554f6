package simulation

import (
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/warrenmq/warren/cluster/stablestore"
	"github.com/warrenmq/warren/fsm/store/vfs"
)

// gate is what stands between a process and its machine's disk: once it is shut, the process, whose goroutines
// may still be running, changes nothing any more. Safe for concurrent use.
type gate struct {
	mu      sync.RWMutex // held for reading during each call
	shut    bool         // guarded by mu
	trip    atomic.Int64 // calls until the gate shuts by itself, 0 for never
	tripped chan struct{}
	failing atomic.Bool // the next sync of the log fails
}

func newGate() *gate { return &gate{tripped: make(chan struct{}, 1)} }

// close returns when no call is under way and none will come.
func (g *gate) close() {
	g.mu.Lock()
	g.shut = true
	g.mu.Unlock()
}

// tripAfter shuts the gate in the middle of whatever the process writes then, before the given number of calls; tripped
// receives at that moment.
func (g *gate) tripAfter(calls int64) { g.trip.Store(calls) }

func (g *gate) pass(call func() error) error {
	if g.trip.Load() > 0 && g.trip.Add(-1) == 0 {
		g.close()
		select {
		case g.tripped <- struct{}{}:
		default:
		}
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.shut {
		return syscall.EIO
	}
	return call()
}

func pass[T any](g *gate, call func() (T, error)) (v T, err error) {
	err = g.pass(func() error { v, err = call(); return err })
	return v, err
}

// files is the file system of one process.
type files struct {
	vfs.FS
	gate *gate
	lies bool // syncs do nothing: a planted fault
}

func (f *files) OpenFile(name string, flag int, perm os.FileMode) (vfs.File, error) {
	opened, err := pass(f.gate, func() (vfs.File, error) { return f.FS.OpenFile(name, flag, perm) })
	if err != nil {
		return nil, err
	}
	return &file{opened, f}, nil
}

func (f *files) ReadDir(name string) ([]string, error) {
	return pass(f.gate, func() ([]string, error) { return f.FS.ReadDir(name) })
}

func (f *files) Stat(name string) (os.FileInfo, error) {
	return pass(f.gate, func() (os.FileInfo, error) { return f.FS.Stat(name) })
}

func (f *files) MkdirAll(name string, perm os.FileMode) error {
	return f.gate.pass(func() error { return f.FS.MkdirAll(name, perm) })
}

func (f *files) Rename(oldName, newName string) error {
	return f.gate.pass(func() error { return f.FS.Rename(oldName, newName) })
}

func (f *files) Link(oldName, newName string) error {
	return f.gate.pass(func() error { return f.FS.Link(oldName, newName) })
}

func (f *files) Remove(name string) error {
	return f.gate.pass(func() error { return f.FS.Remove(name) })
}

func (f *files) RemoveAll(name string) error {
	return f.gate.pass(func() error { return f.FS.RemoveAll(name) })
}

func (f *files) SyncDir(name string) error {
	return f.gate.pass(func() error {
		if f.lies {
			return nil
		}
		return f.FS.SyncDir(name)
	})
}

// file is an open file of one process. Reads need no gate: they change nothing, and fail after a crash.
type file struct {
	vfs.File
	files *files
}

func (f *file) Write(p []byte) (int, error) {
	return pass(f.files.gate, func() (int, error) { return f.File.Write(p) })
}

func (f *file) WriteAt(p []byte, off int64) (int, error) {
	return pass(f.files.gate, func() (int, error) { return f.File.WriteAt(p, off) })
}

func (f *file) Truncate(size int64) error {
	return f.files.gate.pass(func() error { return f.File.Truncate(size) })
}

func (f *file) Allocate(size int64) error {
	return f.files.gate.pass(func() error { return f.File.Allocate(size) })
}

func (f *file) Sync() error {
	return f.files.gate.pass(func() error {
		if strings.HasPrefix(f.Name(), dataDir+"/log/") && f.files.gate.failing.CompareAndSwap(true, false) {
			return syscall.EIO
		}
		if f.files.lies {
			return nil
		}
		return f.File.Sync()
	})
}

// stable is the stable store of one process. Behind a shut gate it only seems to write: raft would panic at an error,
// and nobody hears of the process any more.
type stable struct {
	*stablestore.Store
	gate *gate
}

func (s *stable) Set(key, value []byte) error {
	_ = s.gate.pass(func() error { return s.Store.Set(key, value) })
	return nil
}

func (s *stable) SetUint64(key []byte, value uint64) error {
	_ = s.gate.pass(func() error { return s.Store.SetUint64(key, value) })
	return nil
}

func (s *stable) Close() error { return nil }
