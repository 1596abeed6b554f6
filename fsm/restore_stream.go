package fsm

import (
	"bufio"
	"fmt"
	"io"

	"github.com/warrenmq/warren/fsm/store"
)

// receive makes a queue's messages of its records in the stream, which go into new files or into memory.
func (r *restored) receive(in *bufio.Reader, q *store.Queue) (err error) {
	b := r.rebuilt(q)
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
	var record store.Record
	for _, f := range q.Files {
		damaged := 0
		for left := f.LiveBytes(); left > 0; {
			frame, err := readFrame(in, buf, left, offset)
			if err != nil {
				return err
			}
			record = store.Record{}
			_, what := store.DecodeFrame(frame, &record)
			at := offset
			left -= int64(len(frame))
			offset += int64(len(frame))
			if what != "" {
				// The sender's file is damaged. One record is lost if the length in front of it is right; if it is not, nothing
				// behind it makes sense either.
				r.damaged = append(r.damaged, &store.Damage{File: streamName, Offset: at, Queue: q.Number, What: what})
				if damaged++; damaged > 1 {
					if _, err := io.CopyN(io.Discard, in, left); err != nil {
						return cutShort(offset, err)
					}
					offset, left = offset+left, 0
				}
				buf = frame
				continue
			}
			r.progress.messages.Add(1)
			r.progress.bytes.Add(uint64(len(record.Body)))
			if r.files == nil {
				e := record.Entry()
				if err := b.add(&e, 0, contentOf(&record)); err != nil {
					return err
				}
				buf = nil
				continue
			}
			buf = frame
			if w != nil && w.Length() >= r.files.rollBytes {
				if err := queue.close(w); err != nil {
					return err
				}
				w = nil
			}
			if w == nil {
				if w, err = r.files.create(q.Number, queue); err != nil {
					return err
				}
			}
			e, err := w.AppendFrame(frame, &record)
			if err != nil {
				return err
			}
			if err := b.add(&e, w.Number(), nil); err != nil {
				return err
			}
		}
	}
	if last := w; last != nil {
		w = nil
		if err := queue.close(last); err != nil {
			return err
		}
	}
	return r.enter(b)
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
		id: r.ID, transient: r.Transient, deaths: r.Deaths}
}
