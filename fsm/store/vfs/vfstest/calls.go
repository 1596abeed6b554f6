// Package vfstest lets every file call of a scripted run fail once, in turn, in every way that a disk fails: a Disk
// records the calls of a run without faults, and then runs again with one of them picked out.
package vfstest

import (
	"fmt"
	"os"

	"github.com/warrenmq/warren/fsm/store/vfs"
)

// Call names one call of a run: the nth one, from 1, of an operation on a file. A name stays the same from run to run
// where an index over all calls would not, because goroutines take turns as they like.
type Call struct {
	Op   vfs.Op
	Name string
	Nth  int
}

func (c Call) String() string { return fmt.Sprintf("%s %s #%d", c.Op, c.Name, c.Nth) }

// Kind is what happens at the call that is picked out.
type Kind int

const (
	Fails       Kind = iota // it does nothing and returns EIO; what a failed sync should have kept is lost at the next crash
	Short                   // a write lets half of its bytes through and returns ENOSPC
	CrashBefore             // the power goes before it; nothing unsynced survives
	CrashAfter              // the power goes after it; nothing unsynced survives
	CrashTorn               // the power goes in the middle; any part of what is not synced survives
	Hangs                   // it does not return until the process is killed
)

var kinds = [...]string{"fails", "is cut short", "meets a crash before it", "meets a crash after it", "is torn by a crash", "hangs"}

func (k Kind) String() string { return kinds[k] }

// Crash reports whether the power goes.
func (k Kind) Crash() bool { return k == CrashBefore || k == CrashAfter || k == CrashTorn }

// Kinds returns what can happen at a call.
func (c Call) Kinds() []Kind {
	switch c.Op {
	case vfs.OpRead, vfs.OpStat, vfs.OpReadDir, vfs.OpClose:
		return []Kind{Fails, Hangs} // it changes nothing: a crash here is a crash at the next call that does
	case vfs.OpWrite:
		return []Kind{Fails, Short, CrashBefore, CrashAfter, CrashTorn, Hangs}
	}
	return []Kind{Fails, CrashBefore, CrashAfter, CrashTorn, Hangs}
}

// hooked is a file system whose calls go through a function. It is told how many bytes a write has, and passes on how
// many of them the call may write.
type hooked struct {
	vfs.FS
	around func(op vfs.Op, name string, size int, call func(allow int) error) error
}

func (h *hooked) do(op vfs.Op, name string, call func() error) error {
	return h.around(op, name, 0, func(int) error { return call() })
}

func (h *hooked) OpenFile(name string, flag int, perm os.FileMode) (file vfs.File, err error) {
	err = h.do(vfs.OpOpen, name, func() error {
		f, err := h.FS.OpenFile(name, flag, perm)
		if err == nil {
			file = &hookedFile{f, h}
		}
		return err
	})
	if err != nil {
		if file != nil {
			_ = file.(*hookedFile).File.Close()
		}
		return nil, err
	}
	return file, nil
}

func (h *hooked) ReadDir(name string) (names []string, err error) {
	err = h.do(vfs.OpReadDir, name, func() (err error) { names, err = h.FS.ReadDir(name); return err })
	return names, err
}

func (h *hooked) Stat(name string) (info os.FileInfo, err error) {
	err = h.do(vfs.OpStat, name, func() (err error) { info, err = h.FS.Stat(name); return err })
	return info, err
}

func (h *hooked) MkdirAll(name string, perm os.FileMode) error {
	return h.do(vfs.OpMkdir, name, func() error { return h.FS.MkdirAll(name, perm) })
}

func (h *hooked) Rename(oldName, newName string) error {
	return h.do(vfs.OpRename, newName, func() error { return h.FS.Rename(oldName, newName) })
}

func (h *hooked) Link(oldName, newName string) error {
	return h.do(vfs.OpLink, newName, func() error { return h.FS.Link(oldName, newName) })
}

func (h *hooked) Remove(name string) error {
	return h.do(vfs.OpRemove, name, func() error { return h.FS.Remove(name) })
}

func (h *hooked) RemoveAll(name string) error {
	return h.do(vfs.OpRemoveAll, name, func() error { return h.FS.RemoveAll(name) })
}

func (h *hooked) SyncDir(name string) error {
	return h.do(vfs.OpSyncDir, name, func() error { return h.FS.SyncDir(name) })
}

type hookedFile struct {
	vfs.File
	h *hooked
}

func (f *hookedFile) read(call func() (int, error)) (n int, err error) {
	err = f.h.do(vfs.OpRead, f.Name(), func() (err error) { n, err = call(); return err })
	return n, err
}

func (f *hookedFile) Read(p []byte) (int, error) {
	return f.read(func() (int, error) { return f.File.Read(p) })
}

func (f *hookedFile) ReadAt(p []byte, off int64) (int, error) {
	return f.read(func() (int, error) { return f.File.ReadAt(p, off) })
}

func (f *hookedFile) Write(p []byte) (n int, err error) {
	err = f.h.around(vfs.OpWrite, f.Name(), len(p), func(allow int) (err error) { n, err = f.File.Write(p[:allow]); return err })
	return n, err
}

func (f *hookedFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.h.around(vfs.OpWrite, f.Name(), len(p), func(allow int) (err error) { n, err = f.File.WriteAt(p[:allow], off); return err })
	return n, err
}

func (f *hookedFile) Stat() (info os.FileInfo, err error) {
	err = f.h.do(vfs.OpStat, f.Name(), func() (err error) { info, err = f.File.Stat(); return err })
	return info, err
}

func (f *hookedFile) Truncate(size int64) error {
	return f.h.do(vfs.OpTruncate, f.Name(), func() error { return f.File.Truncate(size) })
}

func (f *hookedFile) Allocate(size int64) error {
	return f.h.do(vfs.OpAllocate, f.Name(), func() error { return f.File.Allocate(size) })
}

// Sync that fails without having been made lets the file forget what it should have kept, as the page cache does: reads
// go on seeing it, a later sync that succeeds does not keep it.
func (f *hookedFile) Sync() error {
	made := false
	err := f.h.do(vfs.OpSync, f.Name(), func() error { made = true; return f.File.Sync() })
	if err != nil && !made {
		if l, ok := f.File.(interface{ LoseUnsynced() }); ok {
			l.LoseUnsynced()
		}
	}
	return err
}

// Close closes the file below in any case, so that a fault leaks nothing.
func (f *hookedFile) Close() error {
	closed := false
	err := f.h.do(vfs.OpClose, f.Name(), func() error { closed = true; return f.File.Close() })
	if !closed {
		_ = f.File.Close()
	}
	return err
}
