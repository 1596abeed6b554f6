package snapshotstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path"

	"github.com/hashicorp/raft"

	"github.com/warrenmq/warren/fsm/store/vfs"
)

// writeBuffer is how many bytes of the stream are gathered for one write.
const writeBuffer = 256 << 10

// sink is a snapshot being made. It takes bytes (an install from the leader) and files (the state machine's own
// snapshot), in any turn. It is used by one goroutine at a time.
type sink struct {
	store  *Store
	meta   *raft.SnapshotMeta
	dir    string // the temporary one
	stream vfs.File
	sum    uint32 // of what was handed to stream
	buf    []byte
	parts  []part
	linked bool
	err    error
	done   bool
}

var errDone = errors.New("snapshot is closed already")

func (s *Store) begin(meta *raft.SnapshotMeta) (*sink, error) {
	k := &sink{store: s, meta: meta, dir: path.Join(s.dir, meta.ID+temporary)}
	if err := s.fs.MkdirAll(path.Join(k.dir, filesDir), 0o750); err != nil {
		return nil, fmt.Errorf("begin snapshot: %w", err)
	}
	stream, err := s.fs.OpenFile(path.Join(k.dir, streamFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err != nil {
		return nil, fmt.Errorf("begin snapshot: %w", err)
	}
	k.stream = stream
	return k, nil
}

// ID returns the snapshot's id.
func (k *sink) ID() string { return k.meta.ID }

// Write adds bytes to the stream.
func (k *sink) Write(b []byte) (int, error) {
	if k.done {
		return 0, errDone
	}
	if k.err != nil {
		return 0, k.err
	}
	if len(k.buf)+len(b) > writeBuffer {
		k.flush()
	}
	if len(b) >= writeBuffer {
		k.put(b)
	} else {
		k.buf = append(k.buf, b...)
	}
	if n := len(k.parts); n > 0 && k.parts[n-1].file == "" {
		k.parts[n-1].bytes += int64(len(b))
	} else if len(b) > 0 {
		k.parts = append(k.parts, part{bytes: int64(len(b))})
	}
	k.meta.Size += int64(len(b))
	return len(b), k.err
}

func (k *sink) flush() {
	if len(k.buf) > 0 {
		k.put(k.buf)
		k.buf = k.buf[:0]
	}
}

func (k *sink) put(b []byte) {
	if k.err != nil {
		return
	}
	if _, err := k.stream.Write(b); err != nil {
		k.err = fmt.Errorf("write snapshot: %w", err)
	}
	k.sum = crc32.Update(k.sum, castagnoli, b)
}

// Refer adds ranges of a file to the stream by making a hard link to it. The bytes in the ranges must be synced and
// must never change.
func (k *sink) Refer(file string, ranges [][2]int64) error {
	if k.done {
		return errDone
	}
	if k.err != nil {
		return k.err
	}
	name := path.Base(file)
	err := k.store.fs.Link(file, path.Join(k.dir, filesDir, name))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		k.err = fmt.Errorf("link into snapshot: %w", err)
		return k.err
	}
	p := part{file: name, ranges: ranges}
	k.parts, k.linked = append(k.parts, p), true
	k.meta.Size += p.size()
	return nil
}

// Close makes the snapshot durable and reaps older ones. A second Close, or one after Cancel, does nothing. After an
// error nothing is left of the snapshot.
func (k *sink) Close() error {
	if k.done {
		return nil
	}
	k.done = true
	if err := k.finish(); err != nil {
		_ = k.store.fs.RemoveAll(k.dir)
		return fmt.Errorf("snapshot %s: %w", k.meta.ID, err)
	}
	if err := k.store.reap(); err != nil { // costs space, takes nothing from this one
		k.store.logger.Warn("old snapshots were not removed", "error", err)
	}
	return nil
}

// finish syncs from the inside out: contents, then names, then the rename that makes it count, then that.
func (k *sink) finish() error {
	k.flush()
	if k.err == nil {
		k.err = k.stream.Sync()
	}
	if err := k.stream.Close(); k.err == nil {
		k.err = err
	}
	if k.err != nil {
		return k.err
	}
	files, s := k.store.fs, k.store
	l := layout{sum: k.sum, parts: k.parts}
	if err := s.writeSealed(path.Join(k.dir, layoutFile), layoutMagic, l.encode()); err != nil {
		return err
	}
	body, err := json.Marshal(k.meta)
	if err != nil {
		return err
	}
	if err := s.writeSealed(path.Join(k.dir, metaFile), metaMagic, body); err != nil {
		return err
	}
	if k.linked {
		if err := files.SyncDir(path.Join(k.dir, filesDir)); err != nil {
			return err
		}
	}
	if err := files.SyncDir(k.dir); err != nil {
		return err
	}
	if err := files.Rename(k.dir, path.Join(s.dir, k.meta.ID)); err != nil {
		return err
	}
	if err := files.SyncDir(s.dir); err != nil {
		// Whether the rename lasts is not known; the log must not be cut on account of it.
		_ = files.Rename(path.Join(s.dir, k.meta.ID), k.dir)
		return err
	}
	return nil
}

// Cancel gives the snapshot up. After Close it does nothing.
func (k *sink) Cancel() error {
	if k.done {
		return nil
	}
	k.done = true
	_ = k.stream.Close()
	if err := k.store.fs.RemoveAll(k.dir); err != nil {
		return fmt.Errorf("cancel snapshot %s: %w", k.meta.ID, err)
	}
	return nil
}
