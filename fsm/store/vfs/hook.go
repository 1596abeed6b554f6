package vfs

import "os"

// Around is called instead of each call of a hooked file system, with its name (of Rename and Link the new one) and, for
// a write, its bytes. It may make the call, once, with as many of the bytes as the write is allowed, and returns what
// the caller gets.
type Around func(op Op, name string, size int, call func(allow int) error) error

// Hook returns a file system whose calls, and those of its files, go through a function.
func Hook(fs FS, around Around) FS { return &hooked{fs, around} }

type hooked struct {
	FS
	around Around
}

func (h *hooked) do(op Op, name string, call func() error) error {
	return h.around(op, name, 0, func(int) error { return call() })
}

func (h *hooked) OpenFile(name string, flag int, perm os.FileMode) (file File, err error) {
	err = h.do(OpOpen, name, func() error {
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
	err = h.do(OpReadDir, name, func() (err error) { names, err = h.FS.ReadDir(name); return err })
	return names, err
}

func (h *hooked) Stat(name string) (info os.FileInfo, err error) {
	err = h.do(OpStat, name, func() (err error) { info, err = h.FS.Stat(name); return err })
	return info, err
}

func (h *hooked) MkdirAll(name string, perm os.FileMode) error {
	return h.do(OpMkdir, name, func() error { return h.FS.MkdirAll(name, perm) })
}

func (h *hooked) Rename(oldName, newName string) error {
	return h.do(OpRename, newName, func() error { return h.FS.Rename(oldName, newName) })
}

func (h *hooked) Link(oldName, newName string) error {
	return h.do(OpLink, newName, func() error { return h.FS.Link(oldName, newName) })
}

func (h *hooked) Remove(name string) error {
	return h.do(OpRemove, name, func() error { return h.FS.Remove(name) })
}

func (h *hooked) RemoveAll(name string) error {
	return h.do(OpRemoveAll, name, func() error { return h.FS.RemoveAll(name) })
}

func (h *hooked) SyncDir(name string) error {
	return h.do(OpSyncDir, name, func() error { return h.FS.SyncDir(name) })
}

type hookedFile struct {
	File
	h *hooked
}

func (f *hookedFile) read(call func() (int, error)) (n int, err error) {
	err = f.h.do(OpRead, f.Name(), func() (err error) { n, err = call(); return err })
	return n, err
}

func (f *hookedFile) Read(p []byte) (int, error) {
	return f.read(func() (int, error) { return f.File.Read(p) })
}

func (f *hookedFile) ReadAt(p []byte, off int64) (int, error) {
	return f.read(func() (int, error) { return f.File.ReadAt(p, off) })
}

func (f *hookedFile) Write(p []byte) (n int, err error) {
	err = f.h.around(OpWrite, f.Name(), len(p), func(allow int) (err error) { n, err = f.File.Write(p[:allow]); return err })
	return n, err
}

func (f *hookedFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.h.around(OpWrite, f.Name(), len(p), func(allow int) (err error) { n, err = f.File.WriteAt(p[:allow], off); return err })
	return n, err
}

func (f *hookedFile) Stat() (info os.FileInfo, err error) {
	err = f.h.do(OpStat, f.Name(), func() (err error) { info, err = f.File.Stat(); return err })
	return info, err
}

func (f *hookedFile) Truncate(size int64) error {
	return f.h.do(OpTruncate, f.Name(), func() error { return f.File.Truncate(size) })
}

func (f *hookedFile) Allocate(size int64) error {
	return f.h.do(OpAllocate, f.Name(), func() error { return f.File.Allocate(size) })
}

func (f *hookedFile) Map(size int) (b []byte, unmap func() error, err error) {
	err = f.h.do(OpMap, f.Name(), func() (err error) { b, unmap, err = f.File.Map(size); return err })
	return b, unmap, err
}

// Sync that fails without having been made lets the file forget what it should have kept, as the page cache does: reads
// go on seeing it, a later sync that succeeds does not keep it.
func (f *hookedFile) Sync() error {
	made := false
	err := f.h.do(OpSync, f.Name(), func() error { made = true; return f.File.Sync() })
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
	err := f.h.do(OpClose, f.Name(), func() error { closed = true; return f.File.Close() })
	if !closed {
		_ = f.File.Close()
	}
	return err
}
