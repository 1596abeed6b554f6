package fsm

import (
	"errors"
	"fmt"
	"io"

	"github.com/warrenmq/warren/fsm/store"
)

// FileSink is what a snapshot's sink offers beside io.Writer when it can take files without copying them. The
// snapshot's stream is what was written and, in turn, the ranges referred to.
type FileSink interface {
	// Refer adds byte ranges [from, to) of a synced file, ascending, to the stream. The sink makes a name of its own
	// for the file, so that it outlives the one given; the file's base name is unique. The ranges never change.
	Refer(path string, ranges [][2]int64) error
}

// FileSource is what a snapshot's reader offers when the snapshot was made with references.
type FileSource interface {
	// Referred returns where the file with a base name is kept; false when the snapshot refers to no such file.
	Referred(name string) (path string, ok bool)
}

// snapshot is the state at one index, on its way to disk or to another node. It holds references only.
type snapshot struct {
	index   uint64
	term    uint64
	state   func() []byte // everything but messages
	views   []queueView   // ascending by number
	files   *messageFiles // nil: memory only
	keep    bool          // contents stay in memory once written
	hold    func(queue uint64, f func(*messages))
	damaged func(*store.Damage)
	written func() // called when all messages are in files; may be nil
	release func() // lets go of the files; called once, when the snapshot is no longer needed
}

// persist writes the snapshot. Into a FileSink go the manifest and references to message files, after the messages
// that are in none have been written to theirs; into any other writer goes the stream of manifest and records.
func (s *snapshot) persist(w io.Writer) error {
	sink, ok := w.(FileSink)
	if !ok || s.files == nil {
		return s.stream(w)
	}
	queues, err := s.files.write(s.views, s.keep, s.hold, s.damaged)
	if err != nil {
		return fmt.Errorf("write message files: %w", err)
	}
	if s.written != nil {
		s.written()
	}
	manifest := store.Manifest{State: s.state(), Queues: queues}
	if _, err := w.Write(manifest.Append(nil)); err != nil {
		return fmt.Errorf("write snapshot manifest: %w", err)
	}
	for i := range queues {
		for _, f := range queues[i].Files {
			ranges := make([][2]int64, len(f.Live))
			for i, e := range f.Live {
				ranges[i] = [2]int64{e.From, e.To}
			}
			if err := sink.Refer(s.files.dir.Path(queues[i].Number, f.Number), ranges); err != nil {
				return fmt.Errorf("refer to message file: %w", err)
			}
		}
	}
	return nil
}

// stream writes the manifest and the live records.
func (s *snapshot) stream(w io.Writer) error {
	manifest := store.Manifest{State: s.state(), Queues: make([]store.Queue, len(s.views))}
	for i := range s.views {
		manifest.Queues[i] = streamEntry(&s.views[i])
	}
	if _, err := w.Write(manifest.Append(nil)); err != nil {
		return fmt.Errorf("write snapshot manifest: %w", err)
	}
	var buf []byte
	for i := range s.views {
		number := s.views[i].number
		for _, f := range manifest.Queues[i].Files {
			var err error
			if f.Number == 0 {
				buf, err = s.views[i].unwritten(w, buf)
			} else {
				err = s.files.dir.Records(number, f, func(frame []byte, _ *store.Record, _ int64) error {
					_, err := w.Write(frame)
					return err
				})
			}
			var damage *store.Damage
			if errors.As(err, &damage) && s.damaged != nil {
				s.damaged(damage)
			}
			if err != nil {
				return fmt.Errorf("write messages of queue %d: %w", number, err)
			}
		}
	}
	return nil
}

// streamEntry describes a view for a stream: what is in no file is in file 0.
func streamEntry(v *queueView) store.Queue {
	var places []place
	var at int64
	v.all(func(c *chunk, i int, s *slot) bool {
		if s.file == 0 {
			length := c.record(i).FrameSize()
			places = append(places, place{sequence: c.first() + uint64(i), offset: at, length: uint32(length)})
			at += length
		}
		return true
	})
	entry, files, _ := entryOf(v, places, nil)
	for _, f := range files {
		entry.Files = append(entry.Files, f)
	}
	sortFiles(entry.Files)
	return entry
}

// streamBuffer is how many bytes of records are gathered for one write.
const streamBuffer = 256 << 10

// unwritten writes the records of the messages that are in no file.
func (v *queueView) unwritten(w io.Writer, buf []byte) ([]byte, error) {
	var err error
	buf = buf[:0]
	v.all(func(c *chunk, i int, s *slot) bool {
		if s.file == 0 {
			buf = c.record(i).AppendFrame(buf)
		}
		if len(buf) >= streamBuffer {
			_, err = w.Write(buf)
			buf = buf[:0]
		}
		return err == nil
	})
	if err == nil && len(buf) > 0 {
		_, err = w.Write(buf)
	}
	return buf, err
}
