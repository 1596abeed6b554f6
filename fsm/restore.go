package fsm

import (
	"bufio"
	"fmt"
	"io"
	"sync"

	"github.com/warrenmq/warren/fsm/store"
)

// restored is a state read from a snapshot, built aside.
type restored struct {
	state    []byte
	files    *messageFiles // nil: memory only
	linked   bool          // the files are those of a snapshot of this node's own
	progress *progress

	mu      sync.Mutex // guards what follows, and files, while queues are linked
	queues  map[uint64]*messages
	damaged []*store.Damage
}

// readSnapshot reads a snapshot. When it refers to files of this node they are linked into the directory that open
// makes, and only their indexes are read; otherwise the records follow in the stream and go into new files there.
// Without a directory (open nil) everything goes into memory. A file or a record that is damaged costs its queue the
// messages in it and nobody else anything: it is named in damaged. Any other damage is an error, and what was made is
// removed.
func readSnapshot(r io.Reader, open func() (*messageFiles, error), p *progress) (_ *restored, err error) {
	source := sourceOf(r)
	in := bufio.NewReaderSize(r, 1<<20)
	manifest, err := store.ReadManifest(in)
	if err != nil {
		return nil, err
	}
	p.begin(manifest)
	out := &restored{state: manifest.State, queues: make(map[uint64]*messages, len(manifest.Queues)), progress: p}
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
	if out.linked = out.files != nil && refers(source, manifest); out.linked {
		return out, out.linkAll(source, manifest.Queues)
	}
	for i := range manifest.Queues {
		q := &manifest.Queues[i]
		if err := out.receive(in, q); err != nil {
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
