package store

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"

	"github.com/warrenmq/warren/fsm/store/vfs"
)

const (
	liveDir = "data/live"
	keptDir = "data/kept" // links to the files of the manifest that counts
)

// content is what a manifest must mean: the sizes of each queue's live messages by sequence.
type content map[uint64]map[uint64]int

func (c content) clone() content {
	n := content{}
	for q := range c {
		n[q] = maps.Clone(c[q])
	}
	return n
}

func text(queue, sequence uint64, size int) []byte {
	b := fmt.Appendf(nil, "%d/%d|", queue, sequence)
	return append(b, bytes.Repeat([]byte{byte('a' + sequence%26)}, size)...)
}

// book keeps messages as a state machine does: it writes files, and then a manifest with links that makes them count.
type book struct {
	files  vfs.FS
	dir    *Dir
	next   uint32 // number of the next file
	counts map[uint64][]kept
}

// kept is a file of a queue with its live entries.
type kept struct {
	File
	entries []Entry
	own     bool // made by this process, which may go on with it
}

// openBook starts a process: it links the files of the manifest into a directory of its own and reads their indexes.
func openBook(files vfs.FS) (*book, error) {
	b := &book{files: files, next: 1, counts: map[uint64][]kept{}}
	for _, err := range []error{files.RemoveAll(liveDir), files.MkdirAll(keptDir, 0o750), files.SyncDir("data")} {
		if err != nil {
			return nil, err
		}
	}
	var err error
	if b.dir, err = NewDir(files, liveDir); err != nil {
		return nil, err
	}
	f, err := files.OpenFile(path.Join(keptDir, "manifest"), os.O_RDONLY, 0)
	if os.IsNotExist(err) {
		return b, b.tidy()
	} else if err != nil {
		return nil, err
	}
	defer f.Close()
	m, err := ReadManifest(f)
	if err != nil {
		return nil, err
	}
	for _, q := range m.Queues {
		b.counts[q.Number] = nil
		for _, f := range q.Files {
			b.next = max(b.next, q.NextFile, f.Number+1)
			if err := b.dir.Adopt(q.Number, f.Number, path.Join(keptDir, FileName(q.Number, f.Number))); err != nil {
				return nil, err
			}
			entries, err := b.dir.ReadIndex(q.Number, f)
			if err != nil {
				return nil, err
			}
			b.counts[q.Number] = append(b.counts[q.Number], kept{f, entries, false})
		}
	}
	return b, b.tidy()
}

// tidy removes links that an unfinished commit left: their names are given again.
func (b *book) tidy() error {
	names, err := b.files.ReadDir(keptDir)
	for _, name := range names {
		counts := name == "manifest"
		for queue, files := range b.counts {
			counts = counts || slices.ContainsFunc(files, func(f kept) bool { return FileName(queue, f.Number) == name })
		}
		if !counts && err == nil {
			err = b.files.Remove(path.Join(keptDir, name))
		}
	}
	return err
}

// close ends the process gracefully.
func (b *book) close() { b.dir.Close() }

// add writes messages into a queue's newest file, or into a new one.
func (b *book) add(queue uint64, size int, again bool, sequences ...uint64) error {
	files := slices.Clone(b.counts[queue])
	var old kept
	var w *Writer
	var err error
	if n := len(files); n > 0 && files[n-1].own && !again {
		old = files[n-1]
		files = files[:n-1]
		w, err = b.dir.Continue(queue, old.File)
	} else {
		b.next++
		w, err = b.dir.Create(queue, b.next-1)
	}
	if err != nil {
		return err
	}
	entries := slices.Clone(old.entries)
	for _, s := range sequences {
		e, err := w.Append(&Record{Sequence: s, Hash: s * 7, Exchange: "x", RoutingKey: "k", Body: text(queue, s, size)})
		if err != nil {
			w.Abandon()
			return err
		}
		entries = append(entries, e)
	}
	f, err := w.Finish()
	if err != nil {
		return err
	}
	return b.commit(queue, append(files, lively(f, entries, true)))
}

// lively sets what is live in a file.
func lively(f File, entries []Entry, own bool) kept {
	f.Live, f.Valid = nil, uint64(len(entries))
	for _, e := range entries {
		if n := len(f.Live); n > 0 && f.Live[n-1].To == e.Offset {
			f.Live[n-1].To += int64(e.Length)
		} else {
			f.Live = append(f.Live, Extent{e.Offset, e.Offset + int64(e.Length)})
		}
	}
	return kept{f, entries, own}
}

// drop takes messages away by the manifest alone, and files with none left.
func (b *book) drop(queue uint64, sequences ...uint64) error {
	var files []kept
	for _, f := range b.counts[queue] {
		left := slices.DeleteFunc(slices.Clone(f.entries), func(e Entry) bool { return slices.Contains(sequences, e.Sequence) })
		if len(left) > 0 {
			files = append(files, lively(f.File, left, f.own))
		}
	}
	return b.commit(queue, files)
}

// collect writes a queue's live messages into one new file.
func (b *book) collect(queue uint64) error {
	b.dir.Lease()
	defer b.dir.Release()
	b.next++
	w, err := b.dir.Create(queue, b.next-1)
	if err != nil {
		return err
	}
	var entries []Entry
	for _, f := range b.counts[queue] {
		err := b.dir.Records(queue, f.File, func(frame []byte, r *Record, _ int64) error {
			e, err := w.Gentle().AppendFrame(frame, r)
			entries = append(entries, e)
			return err
		})
		if err != nil {
			w.Abandon()
			return err
		}
	}
	f, err := w.Finish()
	if err != nil {
		return err
	}
	return b.commit(queue, []kept{lively(f, entries, true)})
}

// commit makes a queue's files count.
func (b *book) commit(queue uint64, files []kept) error {
	counts := maps.Clone(b.counts)
	counts[queue] = files
	var m Manifest
	for _, number := range slices.Sorted(maps.Keys(counts)) {
		q := Queue{Number: number, NextFile: b.next}
		for _, f := range counts[number] {
			q.Files = append(q.Files, f.File)
			to := path.Join(keptDir, FileName(number, f.Number))
			if err := b.files.Link(b.dir.Path(number, f.Number), to); err != nil && !os.IsExist(err) {
				return err
			}
		}
		slices.SortFunc(q.Files, func(a, b File) int { return cmp.Compare(a.Number, b.Number) })
		m.Queues = append(m.Queues, q)
	}
	if err := b.writeManifest(m.Append(nil)); err != nil {
		return err
	}
	for _, f := range b.counts[queue] {
		if !slices.ContainsFunc(files, func(n kept) bool { return n.Number == f.Number }) {
			b.dir.Remove(queue, f.Number)
			_ = b.files.Remove(path.Join(keptDir, FileName(queue, f.Number))) // costs space
		}
	}
	b.counts = counts
	return nil
}

func (b *book) writeManifest(data []byte) error {
	name := path.Join(keptDir, "manifest")
	f, err := b.files.OpenFile(name+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil { // the links last before the manifest that names them
		err = b.files.SyncDir(keptDir)
	}
	if err == nil {
		err = b.files.Rename(name+".new", name)
	}
	if err == nil {
		err = b.files.SyncDir(keptDir)
	}
	return err
}

// content reads every message, each way that there is.
func (b *book) content() (content, error) {
	c := content{}
	for queue, files := range b.counts {
		c[queue] = map[uint64]int{}
		for _, f := range files {
			indexed, err := b.dir.ReadIndex(queue, f.File)
			if err != nil {
				return nil, err
			}
			if !slices.Equal(indexed, f.entries) {
				return nil, fmt.Errorf("queue %d: the index says %v, must be %v", queue, indexed, f.entries)
			}
			for _, e := range f.entries {
				frame, err := b.dir.Read(queue, f.Number, e.Offset, e.Offset+int64(e.Length))
				if err != nil {
					return nil, err
				}
				var r Record
				if err := b.dir.Decode(frame, queue, f.Number, e.Offset, e.Sequence, &r); err != nil {
					return nil, err
				}
				size := len(r.Body) - len(text(queue, e.Sequence, 0))
				if size < 0 || !bytes.Equal(r.Body, text(queue, e.Sequence, size)) {
					return nil, fmt.Errorf("%w: %q", errWrongMessage, r.Body)
				}
				c[queue][e.Sequence] = size
			}
			n := 0
			err = b.dir.Records(queue, f.File, func(_ []byte, r *Record, at int64) error {
				if n >= len(f.entries) || f.entries[n].Sequence != r.Sequence || f.entries[n].Offset != at {
					return fmt.Errorf("%w: message %d at %d", errWrongMessage, r.Sequence, at)
				}
				n++
				return nil
			})
			if err == nil && n != len(f.entries) {
				err = io.ErrUnexpectedEOF
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}
