package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"

	"github.com/warrenmq/warren/fsm/store/vfs"
)

// openFiles is how many files a Dir keeps open for reading when nobody reads them.
const openFiles = 128

// Dir is a directory of message files. File numbers are the caller's; names are never used twice.
//
// A file that is no longer needed is removed once no lease is open: whoever walks over many files (a snapshot, an
// export) holds a lease meanwhile. A reader that comes too late gets ErrGone and looks up the place again. Snapshots
// hold names of their own (hard links), so that removing a name here takes nothing from them, and no name here needs
// to be durable: files are synced, names are not.
type Dir struct {
	fs   vfs.FS
	path string

	mu      sync.Mutex // all below
	handles map[string]*handle
	clock   uint64
	leases  int
	doomed  []string
	retired bool
	closed  bool
}

// handle is a file open for reading.
type handle struct {
	file  vfs.File
	users int
	used  uint64
}

// ErrGone says that a message file is no longer there: what was in it is somewhere else now.
var ErrGone = errors.New("message file is gone")

// NewDir makes a directory for message files. It must not exist.
func NewDir(files vfs.FS, name string) (*Dir, error) {
	if _, err := files.Stat(name); err == nil {
		return nil, fmt.Errorf("message directory %s is there already", name)
	}
	if err := files.MkdirAll(name, 0o750); err != nil {
		return nil, fmt.Errorf("make message directory: %w", err)
	}
	return &Dir{fs: files, path: name, handles: make(map[string]*handle)}, nil
}

// FileName returns the name of a queue's message file, the same in every directory it is linked into.
func FileName(queue uint64, number uint32) string {
	return fmt.Sprintf("%016x-%08x.messages", queue, number)
}

// shard is the sub-directory of a queue's files: 256 of them, so that 100,000 queues do not share one directory.
func (d *Dir) shard(queue uint64) string { return path.Join(d.path, fmt.Sprintf("%02x", queue&0xff)) }

// Path returns where a queue's message file is.
func (d *Dir) Path(queue uint64, number uint32) string {
	return path.Join(d.shard(queue), FileName(queue, number))
}

// Adopt links a message file from elsewhere into the directory.
func (d *Dir) Adopt(queue uint64, number uint32, from string) error {
	if err := d.fs.MkdirAll(d.shard(queue), 0o750); err != nil {
		return err
	}
	return d.fs.Link(from, d.Path(queue, number))
}

// acquire opens a file for reading or shares it. release must follow.
func (d *Dir) acquire(name string) (*handle, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || d.retired && d.leases == 0 {
		return nil, ErrGone
	}
	d.clock++
	h := d.handles[name]
	if h == nil {
		f, err := d.fs.OpenFile(name, readOnly, 0)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: %s", ErrGone, name)
		} else if err != nil {
			return nil, fmt.Errorf("open message file: %w", err)
		}
		h = &handle{file: f}
		d.handles[name] = h
	}
	h.users++
	h.used = d.clock
	return h, nil
}

func (d *Dir) release(h *handle) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h.users--
	d.trim()
}

// trim closes what nobody has read for longest. The caller holds mu.
func (d *Dir) trim() {
	for len(d.handles) > openFiles || d.retired || d.closed {
		var oldest string
		for name, h := range d.handles {
			if h.users == 0 && (oldest == "" || h.used < d.handles[oldest].used) {
				oldest = name
			}
		}
		if oldest == "" {
			return
		}
		d.handles[oldest].file.Close() // read only: nothing can be lost
		delete(d.handles, oldest)
	}
}

// Lease keeps every file where it is until Release.
func (d *Dir) Lease() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.leases++
}

// Release ends a Lease.
func (d *Dir) Release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.leases--
	d.sweep()
}

// Remove takes a file's name away as soon as no lease is open.
func (d *Dir) Remove(queue uint64, number uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.doomed = append(d.doomed, d.Path(queue, number))
	d.sweep()
}

// Retire ends the directory: as soon as no lease is open it is removed and every read fails with ErrGone.
func (d *Dir) Retire() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.retired = true
	d.sweep()
}

// Close closes the open files and leaves everything where it is. Reads fail with ErrGone from then on.
func (d *Dir) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	d.trim()
}

// sweep removes what is doomed. A name that cannot be removed costs space until the next start and nothing else.
func (d *Dir) sweep() {
	if d.leases > 0 || d.closed {
		return
	}
	for _, name := range d.doomed {
		if h := d.handles[name]; h != nil && h.users == 0 {
			h.file.Close()
			delete(d.handles, name)
		}
		_ = d.fs.Remove(name)
	}
	d.doomed = nil
	if d.retired {
		d.trim()
		_ = d.fs.RemoveAll(d.path)
	}
}

// Name returns the directory's path.
func (d *Dir) Name() string { return d.path }
