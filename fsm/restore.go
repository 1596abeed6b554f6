package fsm

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/warrenmq/warren/fsm/store"
)

// restored is a state read from a snapshot, built aside.
type restored struct {
	state   []byte
	queues  map[uint64]*messages
	files   *messageFiles // nil: memory only
	linked  bool          // the files are those of a snapshot of this node's own
	damaged []*store.Damage
}

// readSnapshot reads a snapshot. When it refers to files of this node they are linked into the directory that open
// makes, and only their indexes are read; otherwise the records follow in the stream and go into new files there.
// Without a directory (open nil) everything goes into memory. A file or a record that is damaged costs its queue the
// messages in it and nobody else anything: it is named in damaged. Any other damage is an error, and what was made is
// removed.
func readSnapshot(r io.Reader, open func() (*messageFiles, error)) (_ *restored, err error) {
	source := sourceOf(r)
	in := bufio.NewReaderSize(r, 1<<20)
	manifest, err := store.ReadManifest(in)
	if err != nil {
		return nil, err
	}
	out := &restored{state: manifest.State, queues: make(map[uint64]*messages, len(manifest.Queues))}
	if open != nil {
		if out.files, err = open(); err != nil {
			return nil, err
		}
		defer func() {
			if err != nil {
				out.files.dir.Retire()
			}
		}()
	}
	out.linked = out.files != nil && refers(source, manifest)
	for i := range manifest.Queues {
		q := &manifest.Queues[i]
		var placed []placedEntry
		if out.linked {
			placed, err = out.link(source, q)
		} else {
			placed, err = out.receive(in, q)
		}
		if err != nil {
			return nil, fmt.Errorf("restore queue %d: %w", q.Number, err)
		}
		if err := out.build(q, placed); err != nil {
			return nil, fmt.Errorf("restore queue %d: %w", q.Number, err)
		}
	}
	return out, nil
}

// sourceOf finds the snapshot store's own reader behind what raft wraps around it.
func sourceOf(r io.Reader) FileSource {
	for {
		if s, ok := r.(FileSource); ok {
			return s
		}
		w, ok := r.(interface{ WrappedReadCloser() io.ReadCloser })
		if !ok {
			return nil
		}
		r = w.WrappedReadCloser()
	}
}

// refers reports whether the snapshot's messages are in files beside it.
func refers(source FileSource, m *store.Manifest) bool {
	if source == nil {
		return false
	}
	for _, q := range m.Queues {
		for _, f := range q.Files {
			_, ok := source.Referred(store.FileName(q.Number, f.Number))
			return ok
		}
	}
	return false
}

// placedEntry is a live message as a snapshot describes it.
type placedEntry struct {
	store.Entry
	file    uint32
	content *content // memory only
}

// link takes over a queue's files and reads their indexes.
func (r *restored) link(source FileSource, q *store.Queue) ([]placedEntry, error) {
	queue := r.files.of(q.Number)
	queue.next = q.NextFile
	var live uint64
	for _, f := range q.Files {
		live += f.Valid
	}
	placed := make([]placedEntry, 0, min(live, q.Count)) // at once: growing would leave several times as much garbage
	for _, f := range q.Files {
		queue.next = max(queue.next, f.Number+1)
		entries, err := r.linkFile(source, q.Number, f)
		var damage *store.Damage
		if errors.As(err, &damage) {
			r.damaged = append(r.damaged, damage)
			continue
		} else if err != nil {
			return nil, err
		}
		queue.files[f.Number] = f
		for _, e := range entries {
			placed = append(placed, placedEntry{Entry: e, file: f.Number})
		}
	}
	return placed, nil
}

func (r *restored) linkFile(source FileSource, queue uint64, f store.File) ([]store.Entry, error) {
	name := store.FileName(queue, f.Number)
	from, ok := source.Referred(name)
	if !ok {
		return nil, &store.Damage{File: name, Queue: queue, What: "the snapshot does not refer to the file"}
	}
	if err := r.files.dir.Adopt(queue, f.Number, from); errors.Is(err, fs.ErrNotExist) {
		return nil, &store.Damage{File: from, Queue: queue, What: "the file is missing"}
	} else if err != nil { // no room, too many links
		return nil, fmt.Errorf("link message file %s: %w", from, err)
	}
	return r.files.dir.ReadIndex(queue, f)
}

// receive reads a queue's records from the stream, into new files or into memory.
func (r *restored) receive(in *bufio.Reader, q *store.Queue) (placed []placedEntry, err error) {
	var w *store.Writer
	var queue *queueFiles
	if r.files != nil {
		queue = r.files.of(q.Number)
		defer func() {
			if w != nil && err != nil {
				w.Abandon()
			}
		}()
	}
	var offset int64
	var buf []byte // of the record at hand; a message in memory keeps its own
	for _, f := range q.Files {
		damaged := 0
		for left := f.LiveBytes(); left > 0; {
			frame, err := readFrame(in, buf, left, offset)
			if err != nil {
				return nil, err
			}
			record := new(store.Record)
			_, what := store.DecodeFrame(frame, record)
			at := offset
			left -= int64(len(frame))
			offset += int64(len(frame))
			if what != "" {
				// The sender's file is damaged. One record is lost if the length in front of it is right; if it is not, nothing
				// behind it makes sense either.
				r.damaged = append(r.damaged, &store.Damage{File: streamName, Offset: at, Queue: q.Number, What: what})
				if damaged++; damaged > 1 {
					if _, err := io.CopyN(io.Discard, in, left); err != nil {
						return nil, cutShort(offset, err)
					}
					offset, left = offset+left, 0
				}
				buf = frame
				continue
			}
			p := placedEntry{Entry: store.Entry{Sequence: record.Sequence, Hash: record.Hash, Body: uint32(len(record.Body)), Transient: record.Transient}}
			if r.files == nil {
				p.content = contentOf(record)
				placed = append(placed, p)
				buf = nil
				continue
			}
			buf = frame
			if w != nil && w.Length() >= r.files.rollBytes {
				if err := queue.close(w); err != nil {
					return nil, err
				}
				w = nil
			}
			if w == nil {
				if w, err = r.files.create(q.Number, queue); err != nil {
					return nil, err
				}
			}
			if p.Entry, err = w.AppendFrame(frame, record); err != nil {
				return nil, err
			}
			p.file = w.Number()
			placed = append(placed, p)
		}
	}
	if w != nil {
		return placed, queue.close(w)
	}
	return placed, nil
}

// close finishes a file that is complete.
func (q *queueFiles) close(w *store.Writer) error {
	f, err := w.Finish()
	if err == nil {
		q.files[f.Number] = f
	}
	return err
}

// streamName stands for a file where a snapshot's records came in a stream.
const streamName = "snapshot stream"

// readFrame reads the next frame, into buf if it is large enough; what it returns aliases the buffer. A frame that
// claims to be longer than the bytes left for it is all of those: no record.
func readFrame(in *bufio.Reader, buf []byte, left, offset int64) ([]byte, error) {
	head, err := in.Peek(int(min(store.FrameHead, left)))
	if err != nil {
		return nil, cutShort(offset, err)
	}
	size := left
	if left >= store.FrameHead {
		size = min(left, store.FrameLength(head))
	}
	if int64(cap(buf)) < size {
		buf = make([]byte, size)
	}
	frame := buf[:size]
	if _, err := io.ReadFull(in, frame); err != nil {
		return nil, cutShort(offset, err)
	}
	return frame, nil
}

func cutShort(offset int64, err error) error {
	return fmt.Errorf("%w: %w", &store.Damage{File: streamName, Offset: offset, What: "it ends before its last record"}, err)
}

func contentOf(r *store.Record) *content {
	return &content{exchange: r.Exchange, routingKey: r.RoutingKey, properties: r.Properties, body: r.Body, hash: r.Hash,
		id: r.ID, transient: r.Transient}
}

// build makes a queue's messages and checks them against the manifest.
func (r *restored) build(q *store.Queue, placed []placedEntry) error {
	bySequence := func(a, b placedEntry) int { return cmp.Compare(a.Sequence, b.Sequence) }
	if !slices.IsSortedFunc(placed, bySequence) { // a collection copied records out of turn
		slices.SortFunc(placed, bySequence)
	}
	m := &messages{last: q.Last}
	deliveries := q.Deliveries
	var before uint64
	for i := range placed {
		p := &placed[i]
		if p.Sequence <= before || p.Sequence > q.Last {
			return fmt.Errorf("%w: message %d follows message %d, the last is %d", store.ErrManifest, p.Sequence, before, q.Last)
		}
		before = p.Sequence
		s := slot{content: p.content, hash: p.Hash, offset: uint64(p.Offset), file: p.file, length: p.Length, body: p.Body}
		for len(deliveries) > 0 && deliveries[0].Sequence < p.Sequence {
			deliveries = deliveries[1:]
		}
		if len(deliveries) > 0 && deliveries[0].Sequence == p.Sequence {
			s.state = min(deliveries[0].Count, maxDeliveryCount)
		}
		if p.Transient {
			s.state |= slotTransient
		}
		m.put(p.Sequence, s)
	}
	r.queues[q.Number] = m
	if m.count == q.Count && m.bytes == q.Bytes && m.sum == q.Sum {
		return nil
	}
	for _, d := range r.damaged {
		if d.Queue == q.Number {
			return nil
		}
	}
	return fmt.Errorf("%w: it has %d messages of %d bytes with sum %x, the manifest says %d, %d, %x", store.ErrManifest,
		m.count, m.bytes, m.sum, q.Count, q.Bytes, q.Sum)
}
