package vfs

import (
	"io"
	"os"
	"path"
	"sync"
	"syscall"
)

// Op names a call of an FS or of a File.
type Op string

const (
	OpOpen      Op = "open"
	OpReadDir   Op = "readdir"
	OpStat      Op = "stat"
	OpMkdir     Op = "mkdir"
	OpRename    Op = "rename"
	OpLink      Op = "link"
	OpRemove    Op = "remove"
	OpRemoveAll Op = "removeall"
	OpSyncDir   Op = "syncdir"
	OpRead      Op = "read"
	OpWrite     Op = "write"
	OpTruncate  Op = "truncate"
	OpAllocate  Op = "allocate"
	OpSync      Op = "sync"
	OpClose     Op = "close"
	OpMap       Op = "map"
)

// Rule makes some calls fail. The zero value of a field means what its comment says.
type Rule struct {
	Op    Op              // which call; "" means every call
	Path  string          // pattern (path.Match) of the file's full path or of its last part; "" means every path
	Nth   int             // the first matching call that is hit, counted from 1; 0 means 1
	Count int             // how many are hit from there on; 0 means 1, less means all
	Err   error           // what a hit returns; nil means EIO, or success after Hang
	Short int             // a hit write lets this many bytes through before it fails
	Hang  <-chan struct{} // a hit waits until this is closed
	Full  int64           // if above 0, matching writes succeed until this many bytes, then return ENOSPC for good

	seen    int
	written int64
}

// Fault is a file system that obeys rules in front of another.
type Fault struct {
	fs FS

	mu    sync.Mutex // guards calls and the rules
	calls int
	rules []*Rule
}

var _ FS = (*Fault)(nil)

// Faulty wraps a file system with rules; the first rule that hits a call decides.
func Faulty(fs FS, rules ...Rule) *Fault {
	f := &Fault{fs: fs}
	f.Add(rules...)
	return f
}

// Add appends rules; they count calls from now on.
func (f *Fault) Add(rules ...Rule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range rules {
		f.rules = append(f.rules, &r)
	}
}

// Clear drops all rules.
func (f *Fault) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
}

// Calls returns how many calls were made so far.
func (f *Fault) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// check counts a call and returns how many of its n bytes may pass, and the error to give after that.
func (f *Fault) check(op Op, name string, n int) (int, error) {
	f.mu.Lock()
	f.calls++
	var hit *Rule
	allow := n
	for _, r := range f.rules {
		if !r.matches(op, name) {
			continue
		}
		if r.Full > 0 {
			if op != OpWrite {
				continue
			}
			allow = int(min(int64(n), r.Full-r.written))
			r.written += int64(allow)
			if allow < n {
				f.mu.Unlock()
				return allow, pathError(string(op), name, syscall.ENOSPC)
			}
			continue
		}
		r.seen++
		first, count := max(r.Nth, 1), r.Count
		if count == 0 {
			count = 1
		}
		if r.seen >= first && (count < 0 || r.seen < first+count) {
			hit = r
			break
		}
	}
	f.mu.Unlock()
	if hit == nil {
		return n, nil
	}
	if hit.Hang != nil {
		<-hit.Hang
		if hit.Err == nil {
			return n, nil
		}
	}
	err := hit.Err
	if err == nil {
		err = syscall.EIO
	}
	return min(hit.Short, n), pathError(string(op), name, err)
}

func (r *Rule) matches(op Op, name string) bool {
	if r.Op != "" && r.Op != op {
		return false
	}
	if r.Path == "" {
		return true
	}
	full, _ := path.Match(r.Path, name)
	base, _ := path.Match(r.Path, path.Base(name))
	return full || base
}

func (f *Fault) OpenFile(name string, flag int, perm os.FileMode) (File, error) {
	if _, err := f.check(OpOpen, name, 0); err != nil {
		return nil, err
	}
	file, err := f.fs.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return &faultFile{File: file, f: f}, nil
}

func (f *Fault) ReadDir(name string) ([]string, error) {
	if _, err := f.check(OpReadDir, name, 0); err != nil {
		return nil, err
	}
	return f.fs.ReadDir(name)
}

func (f *Fault) Stat(name string) (os.FileInfo, error) {
	if _, err := f.check(OpStat, name, 0); err != nil {
		return nil, err
	}
	return f.fs.Stat(name)
}

func (f *Fault) do(op Op, name string, call func() error) error {
	if _, err := f.check(op, name, 0); err != nil {
		return err
	}
	return call()
}

func (f *Fault) MkdirAll(name string, perm os.FileMode) error {
	return f.do(OpMkdir, name, func() error { return f.fs.MkdirAll(name, perm) })
}

func (f *Fault) Rename(oldName, newName string) error {
	return f.do(OpRename, newName, func() error { return f.fs.Rename(oldName, newName) })
}

func (f *Fault) Link(oldName, newName string) error {
	return f.do(OpLink, newName, func() error { return f.fs.Link(oldName, newName) })
}

func (f *Fault) Remove(name string) error {
	return f.do(OpRemove, name, func() error { return f.fs.Remove(name) })
}

func (f *Fault) RemoveAll(name string) error {
	return f.do(OpRemoveAll, name, func() error { return f.fs.RemoveAll(name) })
}

func (f *Fault) SyncDir(name string) error {
	return f.do(OpSyncDir, name, func() error { return f.fs.SyncDir(name) })
}

type faultFile struct {
	File
	f *Fault
}

func (f *faultFile) Read(p []byte) (int, error) {
	if _, err := f.f.check(OpRead, f.Name(), 0); err != nil {
		return 0, err
	}
	return f.File.Read(p)
}

func (f *faultFile) ReadAt(p []byte, off int64) (int, error) {
	if _, err := f.f.check(OpRead, f.Name(), 0); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, off)
}

func (f *faultFile) Write(p []byte) (int, error) {
	return f.write(p, f.File.Write)
}

func (f *faultFile) WriteAt(p []byte, off int64) (int, error) {
	return f.write(p, func(p []byte) (int, error) { return f.File.WriteAt(p, off) })
}

func (f *faultFile) write(p []byte, write func([]byte) (int, error)) (int, error) {
	allow, fault := f.f.check(OpWrite, f.Name(), len(p))
	if fault != nil && allow == 0 {
		return 0, fault
	}
	n, err := write(p[:allow])
	if err == nil {
		err = fault
	}
	return n, err
}

func (f *faultFile) Stat() (os.FileInfo, error) {
	if _, err := f.f.check(OpStat, f.Name(), 0); err != nil {
		return nil, err
	}
	return f.File.Stat()
}

func (f *faultFile) Truncate(size int64) error {
	return f.f.do(OpTruncate, f.Name(), func() error { return f.File.Truncate(size) })
}

func (f *faultFile) Allocate(size int64) error {
	return f.f.do(OpAllocate, f.Name(), func() error { return f.File.Allocate(size) })
}

func (f *faultFile) Map(size int) ([]byte, func() error, error) {
	if _, err := f.f.check(OpMap, f.Name(), 0); err != nil {
		return nil, nil, err
	}
	return f.File.Map(size)
}

func (f *faultFile) Sync() error {
	return f.f.do(OpSync, f.Name(), f.File.Sync)
}

// Close closes the file below in any case, so that a fault leaks nothing.
func (f *faultFile) Close() error {
	_, fault := f.f.check(OpClose, f.Name(), 0)
	if err := f.File.Close(); err != nil {
		return err
	}
	return fault
}

// FlipBit inverts one bit of a file and syncs it, as a failing disk would: bit 0 is the lowest of the first byte.
func FlipBit(fs FS, name string, bit int64) error {
	f, err := fs.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], bit/8); err != nil && err != io.EOF {
		return err
	}
	b[0] ^= 1 << (bit % 8)
	if _, err := f.WriteAt(b[:], bit/8); err != nil {
		return err
	}
	return f.Sync()
}
