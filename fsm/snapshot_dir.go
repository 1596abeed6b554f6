package fsm

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/warrenmq/warren/fsm/store"
	"github.com/warrenmq/warren/fsm/store/vfs"
)

// Names in the machine's directory. Each restore builds a new directory of message files beside the one in use; a
// number is never used twice.
const (
	livePrefix  = "live-"
	asidePrefix = "aside-"
)

// messageRoot makes the directories of message files.
type messageRoot struct {
	fs      vfs.FS
	dir     string
	options Options
	pager   *pager

	mu      sync.Mutex
	settled bool   // what earlier processes left has been dealt with
	last    uint64 // the highest number used
}

// newMessageRoot returns nil when everything is kept in memory.
func newMessageRoot(o Options) *messageRoot {
	if o.Files == nil || o.Dir == "" {
		return nil
	}
	return &messageRoot{fs: o.Files, dir: o.Dir, options: o, pager: newPager(o)}
}

// make returns an empty directory of message files.
func (r *messageRoot) make() (*messageFiles, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == 0 {
		left, err := r.leftOvers()
		if err != nil {
			return nil, err
		}
		for _, l := range left {
			r.last = max(r.last, l.number)
		}
	}
	r.last++
	if err := r.fs.MkdirAll(r.dir, 0o750); err != nil {
		return nil, fmt.Errorf("make message directory: %w", err)
	}
	dir, err := store.NewDir(r.fs, path.Join(r.dir, fmt.Sprintf("%s%08d", livePrefix, r.last)))
	if err != nil {
		return nil, err
	}
	files := newMessageFiles(dir, r.options)
	files.pager = r.pager
	return files, nil
}

// settle deals, once, with the directories that earlier processes left. After a restore from a snapshot of this
// node's own they hold nothing that the snapshot, with names of its own, and the log do not have, and are removed.
// Without one they look orphaned: they are moved aside for the operator and never deleted.
func (r *messageRoot) settle(current *messageFiles, restored bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.settled {
		return nil
	}
	left, err := r.leftOvers()
	if err != nil {
		return err
	}
	for _, l := range left {
		name := path.Join(r.dir, l.name)
		if l.aside || name == current.dir.Name() {
			continue
		}
		if restored {
			err = r.fs.RemoveAll(name)
		} else {
			err = r.fs.Rename(name, path.Join(r.dir, asidePrefix+strings.TrimPrefix(l.name, livePrefix)))
		}
		if err != nil {
			return fmt.Errorf("clear old message directory: %w", err)
		}
	}
	r.settled = true
	return nil
}

type leftOver struct {
	name   string
	number uint64
	aside  bool
}

func (r *messageRoot) leftOvers() ([]leftOver, error) {
	names, err := r.fs.ReadDir(r.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("list message directories: %w", err)
	}
	var left []leftOver
	for _, name := range names {
		live, isLive := strings.CutPrefix(name, livePrefix)
		aside, isAside := strings.CutPrefix(name, asidePrefix)
		digits := live
		if isAside {
			digits = aside
		}
		if number, err := strconv.ParseUint(digits, 10, 64); err == nil && (isLive || isAside) {
			left = append(left, leftOver{name: name, number: number, aside: isAside})
		}
	}
	return left, nil
}
