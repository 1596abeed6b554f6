package store

import (
	"fmt"
	"io"
)

// scanBuffer is how much a walk over many records reads at a time.
const scanBuffer = 1 << 20

// Read reads the bytes [from, to) of a queue's file. ErrGone means that the file was collected meanwhile.
func (d *Dir) Read(queue uint64, number uint32, from, to int64) ([]byte, error) {
	name := d.Path(queue, number)
	h, err := d.acquire(name)
	if err != nil {
		return nil, err
	}
	defer d.release(h)
	b := make([]byte, to-from)
	if err := readFull(h.file, b, from); err == io.ErrUnexpectedEOF {
		return nil, &Damage{File: name, Offset: from, Queue: queue, What: "the file is cut short"}
	} else if err != nil {
		return nil, fmt.Errorf("read message file %s: %w", name, err)
	}
	return b, nil
}

// Records calls yield with each live record of a file, in the file's order, with its frame and the frame's offset.
// What yield gets is valid until it returns.
func (d *Dir) Records(queue uint64, f File, yield func(frame []byte, r *Record, at int64) error) error {
	for _, e := range f.Live {
		if err := d.records(queue, f.Number, e, yield); err != nil {
			return err
		}
	}
	return nil
}

func (d *Dir) records(queue uint64, number uint32, e Extent, yield func([]byte, *Record, int64) error) error {
	for at, want := e.From, int64(scanBuffer); at < e.To; {
		b, err := d.Read(queue, number, at, min(e.To, at+want))
		if err != nil {
			return err
		}
		used := 0
		for used < len(b) {
			rest := b[used:]
			if int64(len(rest)) < e.To-at && (len(rest) < frameHead || int64(len(rest)) < frameHead+int64(little.Uint32(rest))) {
				break // the rest of this record comes with the next read
			}
			var r Record
			n, what := DecodeFrame(rest, &r)
			if what != "" {
				return &Damage{File: d.Path(queue, number), Offset: at, Queue: queue, What: what}
			}
			if err := yield(rest[:n], &r, at); err != nil {
				return err
			}
			used, at = used+n, at+int64(n)
		}
		if want = scanBuffer; used == 0 { // one record larger than the buffer
			want = frameHead + int64(little.Uint32(b))
			if want > e.To-at || want <= int64(len(b)) {
				return &Damage{File: d.Path(queue, number), Offset: at, Queue: queue, What: "a record is longer than its place"}
			}
		}
	}
	return nil
}

// Decode reads the record whose frame starts at b, read from offset at of a queue's file, and checks that it is the
// message with that sequence.
func (d *Dir) Decode(b []byte, queue uint64, number uint32, at int64, sequence uint64, r *Record) error {
	_, what := DecodeFrame(b, r)
	if what == "" && r.Sequence != sequence {
		what = fmt.Sprintf("the record of message %d is that of message %d", sequence, r.Sequence)
	}
	if what != "" {
		return &Damage{File: d.Path(queue, number), Offset: at, Queue: queue, What: what}
	}
	return nil
}
