package vfs

import (
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// tornBlock is the unit, in bytes, in which a crash keeps or loses an unsynced write.
const tornBlock = 512

// Mem is a file system in memory that remembers what was synced, for tests. It makes no system call, so it may be
// used inside a synctest bubble. Relative and absolute paths name the same tree.
type Mem struct {
	mu    sync.Mutex // guards everything below, and all nodes
	root  *node
	meta  []metaOp // changes of names not yet durable, in order
	epoch int      // raised by Crash: handles of an earlier epoch are dead
}

var _ FS = (*Mem)(nil)

// node is a file or a directory. Each has what programs see and what would survive a loss of power.
type node struct {
	mode os.FileMode

	names   map[string]*node // directories only
	durable map[string]*node

	data    []byte // files only
	synced  []byte
	pending []dataOp // applied to data, not yet to synced
}

// dataOp is a write at an offset, or, with no bytes, a truncation to it.
type dataOp struct {
	off   int64
	bytes []byte
}

// metaOp is one atomic change of names; a nil node removes the name.
type metaOp []struct {
	dir  *node
	name string
	node *node
}

// NewMem returns an empty file system.
func NewMem() *Mem { return &Mem{root: newDir()} }

func newDir() *node {
	return &node{mode: os.ModeDir | 0o755, names: map[string]*node{}, durable: map[string]*node{}}
}

func (n *node) isDir() bool { return n.names != nil }

// Clone returns a copy of what would survive a crash, with files that have two names as such.
func (m *Mem) Clone() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &Mem{root: m.root.clone(map[*node]*node{})}
}

func (n *node) clone(made map[*node]*node) *node {
	if c := made[n]; c != nil {
		return c
	}
	c := &node{mode: n.mode}
	made[n] = c
	if !n.isDir() {
		c.data, c.synced = slices.Clone(n.synced), slices.Clone(n.synced)
		return c
	}
	c.names, c.durable = map[string]*node{}, map[string]*node{}
	for name, child := range n.durable {
		c.names[name] = child.clone(made)
		c.durable[name] = c.names[name]
	}
	return c
}

// Crash takes the power away: names whose directory was not synced and bytes that were not synced are lost, and
// every open file is dead. With a rand, a part of them survives: a prefix of the changes of names, and of the
// writes any 512-byte blocks.
func (m *Mem) Crash(r *rand.Rand) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.epoch++
	if r != nil {
		for _, op := range m.meta[:r.IntN(len(m.meta)+1)] {
			op.apply(true)
		}
	}
	m.meta = nil
	m.root.crash(r, map[*node]bool{})
}

func (n *node) crash(r *rand.Rand, seen map[*node]bool) {
	if seen[n] {
		return // a file with two names
	}
	seen[n] = true
	if n.isDir() {
		n.names = maps.Clone(n.durable)
		for _, name := range slices.Sorted(maps.Keys(n.names)) {
			n.names[name].crash(r, seen)
		}
		return
	}
	if r != nil {
		for _, op := range n.pending {
			n.synced = op.applyTorn(n.synced, r)
		}
	}
	n.pending = nil
	n.data = slices.Clone(n.synced)
}

func (op metaOp) apply(durable bool) {
	for _, c := range op {
		names := c.dir.names
		if durable {
			names = c.dir.durable
		}
		if c.node == nil {
			delete(names, c.name)
		} else {
			names[c.name] = c.node
		}
	}
}

func (op dataOp) apply(data []byte) []byte {
	end := op.off + int64(len(op.bytes))
	if op.bytes == nil && int64(len(data)) > end {
		return data[:end]
	}
	if grow := end - int64(len(data)); grow > 0 {
		data = append(data, make([]byte, grow)...)
	}
	copy(data[op.off:], op.bytes)
	return data
}

func (op dataOp) applyTorn(data []byte, r *rand.Rand) []byte {
	if op.bytes == nil {
		if r.IntN(2) == 0 {
			return op.apply(data)
		}
		return data
	}
	for at := 0; at < len(op.bytes); {
		off := op.off + int64(at)
		n := min(len(op.bytes)-at, tornBlock-int(off%tornBlock))
		if r.IntN(2) == 0 {
			data = dataOp{off, op.bytes[at : at+n]}.apply(data)
		}
		at += n
	}
	return data
}

// change applies one change of names and remembers it until its directories are synced.
func (m *Mem) change(op metaOp) {
	op.apply(false)
	m.meta = append(m.meta, op)
}

func split(name string) []string {
	name = strings.Trim(path.Clean("/"+name), "/")
	if name == "" {
		return nil
	}
	return strings.Split(name, "/")
}

func (m *Mem) find(name string) *node {
	n := m.root
	for _, part := range split(name) {
		if n = n.names[part]; n == nil {
			return nil
		}
	}
	return n
}

// parent returns the directory a name is or would be in.
func (m *Mem) parent(name string) (*node, string) {
	parts := split(name)
	if len(parts) == 0 {
		return nil, ""
	}
	dir := m.find(strings.Join(parts[:len(parts)-1], "/"))
	if dir == nil || !dir.isDir() {
		return nil, ""
	}
	return dir, parts[len(parts)-1]
}

func pathError(op, name string, err error) error {
	return &os.PathError{Op: op, Path: name, Err: err}
}

// OpenFile opens a file as os.OpenFile does.
func (m *Mem) OpenFile(name string, flag int, perm os.FileMode) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(name)
	switch {
	case n == nil && flag&os.O_CREATE == 0:
		return nil, pathError("open", name, os.ErrNotExist)
	case n == nil:
		dir, base := m.parent(name)
		if dir == nil {
			return nil, pathError("open", name, os.ErrNotExist)
		}
		n = &node{mode: perm}
		m.change(metaOp{{dir, base, n}})
	case flag&os.O_CREATE != 0 && flag&os.O_EXCL != 0:
		return nil, pathError("open", name, os.ErrExist)
	}
	if flag&os.O_TRUNC != 0 && !n.isDir() {
		n.write(dataOp{})
	}
	return &memFile{m: m, n: n, name: name, epoch: m.epoch, flag: flag}, nil
}

func (n *node) write(op dataOp) {
	n.data = op.apply(n.data)
	n.pending = append(n.pending, op)
}

// ReadDir returns the names in a directory, sorted.
func (m *Mem) ReadDir(name string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(name)
	if n == nil || !n.isDir() {
		return nil, pathError("readdir", name, os.ErrNotExist)
	}
	return slices.Sorted(maps.Keys(n.names)), nil
}

func (m *Mem) Stat(name string) (os.FileInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(name)
	if n == nil {
		return nil, pathError("stat", name, os.ErrNotExist)
	}
	return n.info(name), nil
}

func (m *Mem) MkdirAll(name string, perm os.FileMode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.root
	for _, part := range split(name) {
		next := n.names[part]
		if next == nil {
			next = newDir()
			m.change(metaOp{{n, part, next}})
		}
		if !next.isDir() {
			return pathError("mkdir", name, os.ErrExist)
		}
		n = next
	}
	return nil
}

func (m *Mem) Rename(oldName, newName string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	from, oldBase := m.parent(oldName)
	to, newBase := m.parent(newName)
	if from == nil || to == nil || from.names[oldBase] == nil {
		return &os.LinkError{Op: "rename", Old: oldName, New: newName, Err: os.ErrNotExist}
	}
	if from == to && oldBase == newBase {
		return nil
	}
	m.change(metaOp{{to, newBase, from.names[oldBase]}, {from, oldBase, nil}})
	return nil
}

func (m *Mem) Link(oldName, newName string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(oldName)
	to, base := m.parent(newName)
	if n == nil || n.isDir() || to == nil {
		return &os.LinkError{Op: "link", Old: oldName, New: newName, Err: os.ErrNotExist}
	}
	if to.names[base] != nil {
		return &os.LinkError{Op: "link", Old: oldName, New: newName, Err: os.ErrExist}
	}
	m.change(metaOp{{to, base, n}})
	return nil
}

// Remove removes a file or an empty directory.
func (m *Mem) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir, base := m.parent(name)
	if dir == nil || dir.names[base] == nil {
		return pathError("remove", name, os.ErrNotExist)
	}
	if len(dir.names[base].names) > 0 {
		return pathError("remove", name, os.ErrExist)
	}
	m.change(metaOp{{dir, base, nil}})
	return nil
}

func (m *Mem) RemoveAll(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if dir, base := m.parent(name); dir != nil && dir.names[base] != nil {
		m.change(metaOp{{dir, base, nil}})
	}
	return nil
}

// SyncDir makes the names in a directory durable.
func (m *Mem) SyncDir(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.find(name)
	if n == nil || !n.isDir() {
		return pathError("syncdir", name, os.ErrNotExist)
	}
	n.durable = maps.Clone(n.names)
	kept := m.meta[:0]
	for _, op := range m.meta {
		op = slices.DeleteFunc(op, func(c struct {
			dir  *node
			name string
			node *node
		}) bool {
			return c.dir == n
		})
		if len(op) > 0 {
			kept = append(kept, op)
		}
	}
	m.meta = kept
	return nil
}

func (n *node) info(name string) os.FileInfo {
	return memInfo{name: path.Base(name), size: int64(len(n.data)), mode: n.mode}
}

type memInfo struct {
	name string
	size int64
	mode os.FileMode
}

func (i memInfo) Name() string       { return i.name }
func (i memInfo) Size() int64        { return i.size }
func (i memInfo) Mode() os.FileMode  { return i.mode }
func (i memInfo) ModTime() time.Time { return time.Time{} }
func (i memInfo) IsDir() bool        { return i.mode.IsDir() }
func (i memInfo) Sys() any           { return nil }
