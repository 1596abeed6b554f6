package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/warrenmq/warren/fsm/store/vfs"
)

const (
	readOnly  = os.O_RDONLY
	fileHead  = 32
	fileMagic = "WRNMSG\x00\x01" // the last byte is the format's version
	// writeBuffer is how many bytes a writer gathers for one write.
	writeBuffer = 256 << 10
	// syncStep is how many bytes may wait for a sync: the log's small syncs wait for whatever else is on its way to the
	// disk.
	syncStep = 2 << 20
	// mostYield bounds how long a gentle writer stays away after a sync.
	mostYield = 100 * time.Millisecond
	// blockEntries bounds an index block.
	blockEntries = 1 << 16
)

// Extent is a range of bytes in a file; To is the first byte after it.
type Extent struct{ From, To int64 }

// File is what a manifest says of a message file.
type File struct {
	Number  uint32
	Length  int64    // bytes that count; whatever lies beyond is no part of the snapshot
	Index   int64    // offset of the last index block; 0 when there is none
	Records uint64   // in the file
	Valid   uint64   // live ones
	Live    []Extent // where the live ones are, ascending, not touching
}

// LiveBytes returns the bytes of the live records.
func (f *File) LiveBytes() int64 {
	var n int64
	for _, e := range f.Live {
		n += e.To - e.From
	}
	return n
}

// DeadBytes returns the bytes of the records that nobody needs any more, and of what writers left.
func (f *File) DeadBytes() int64 {
	return max(0, f.Length-fileHead-f.LiveBytes()-int64(f.Records)*entryBytes)
}

// head is what a message file begins with.
func head(queue uint64, number uint32) []byte {
	b := append(make([]byte, 0, fileHead), fileMagic...)
	b = little.AppendUint64(b, queue)
	b = little.AppendUint32(b, number)
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
	return little.AppendUint32(b, checksum(b))
}

// Writer appends to one message file. It is used by one goroutine. After an error the file must not be written again:
// what it holds beyond its recorded length is not known.
type Writer struct {
	queue   uint64
	file    File
	out     vfs.File
	before  int64  // the file's length when this writer began
	remove  func() // a file that this writer created
	buf     []byte
	written int64 // bytes handed to out
	synced  int64 // of those, at least
	gentle  bool
	block   []byte // the index block of the records since the last one, with room for its head; empty without any
	err     error
}

// Create begins a message file. The name must be new: fs.ErrExist says that it is not.
func (d *Dir) Create(queue uint64, number uint32) (*Writer, error) {
	if err := d.fs.MkdirAll(d.shard(queue), 0o750); err != nil {
		return nil, fmt.Errorf("make message directory: %w", err)
	}
	out, err := d.fs.OpenFile(d.Path(queue, number), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o640)
	if err != nil {
		return nil, fmt.Errorf("create message file: %w", err)
	}
	remove := func() { _ = d.fs.Remove(d.Path(queue, number)) }
	return &Writer{queue: queue, file: File{Number: number, Length: fileHead}, out: out, remove: remove, buf: head(queue, number)}, nil
}

// Continue goes on after the recorded length of a file that this process made and synced.
func (d *Dir) Continue(queue uint64, f File) (*Writer, error) {
	out, err := d.fs.OpenFile(d.Path(queue, f.Number), os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open message file: %w", err)
	}
	f.Live = nil
	return &Writer{queue: queue, file: f, out: out, before: f.Length, written: f.Length, synced: f.Length}, nil
}

// Append writes a record and returns its place.
func (w *Writer) Append(r *Record) (Entry, error) {
	e := r.Entry()
	before := len(w.buf)
	w.buf = r.AppendFrame(w.buf)
	return w.note(e, len(w.buf)-before)
}

// AppendFrame writes a frame that was read from another file.
func (w *Writer) AppendFrame(frame []byte, r *Record) (Entry, error) {
	e := r.Entry()
	w.buf = append(w.buf, frame...)
	return w.note(e, len(frame))
}

func (w *Writer) note(e Entry, length int) (Entry, error) {
	e.Offset, e.Length = w.file.Length, uint32(length)
	w.file.Length += int64(length)
	w.file.Records++
	if len(w.block) == 0 {
		w.block = append(w.block, make([]byte, frameHead+blockHead)...)
	}
	w.block = appendEntry(w.block, e)
	if len(w.block) >= frameHead+blockHead+blockEntries*entryBytes {
		w.closeBlock()
	}
	if len(w.buf) >= writeBuffer {
		w.flush()
	}
	return e, w.err
}

// closeBlock writes the index of the records since the last block.
func (w *Writer) closeBlock() {
	if len(w.block) == 0 {
		return
	}
	w.flush()
	p := w.block[frameHead:]
	p[0] = kindIndex
	little.PutUint32(p[4:], uint32((len(p)-blockHead)/entryBytes))
	little.PutUint64(p[8:], uint64(w.file.Index))
	w.file.Index = w.file.Length
	w.file.Length += int64(len(w.block))
	w.write(sealFrame(w.block, 0))
	w.block = w.block[:0]
}

func (w *Writer) flush() {
	w.write(w.buf)
	if w.buf = w.buf[:0]; cap(w.buf) > 4*writeBuffer {
		w.buf = nil
	}
}

// write hands bytes to the file, at most writeBuffer at a time: who waits for a processor waits that long at most.
func (w *Writer) write(b []byte) {
	for len(b) > 0 && w.err == nil {
		n := min(len(b), writeBuffer)
		w.writePiece(b[:n])
		b = b[n:]
	}
}

func (w *Writer) writePiece(b []byte) {
	if _, err := w.out.WriteAt(b, w.written); err != nil {
		w.err = fmt.Errorf("write message file %s: %w", w.out.Name(), err)
		return
	}
	w.written += int64(len(b))
	if w.written-w.synced >= syncStep {
		began := time.Now()
		w.sync()
		if took := time.Since(began); w.gentle && took > time.Millisecond {
			time.Sleep(min(took, mostYield))
		}
	}
}

// Gentle makes the writer leave the disk to others for as long as each of its syncs took, and returns it.
func (w *Writer) Gentle() *Writer {
	w.gentle = true
	return w
}

func (w *Writer) sync() {
	if w.err != nil {
		return
	}
	if err := w.out.Sync(); err != nil {
		w.err = fmt.Errorf("sync message file %s: %w", w.out.Name(), err)
	}
	w.synced = w.written
}

// Unsynced is how many bytes Finish has to write and sync, the index block not counted.
func (w *Writer) Unsynced() int64 { return w.file.Length - w.synced }

// Length is how long the file is so far, without the index block that Finish adds.
func (w *Writer) Length() int64 { return w.file.Length }

// Finish writes the last index block, syncs the file and returns its new description, without Valid and Live. After an
// error the file is abandoned.
func (w *Writer) Finish() (File, error) {
	w.closeBlock()
	w.flush()
	w.sync()
	if w.err != nil {
		w.Abandon()
		return w.file, w.err
	}
	if err := w.out.Close(); err != nil {
		w.err = fmt.Errorf("close message file %s: %w", w.out.Name(), err)
	}
	return w.file, w.err
}

// Abandon closes the file without syncing it and gives the space that the writer took back. What was recorded of the file
// stays. The name of a file that the writer created is never used again.
func (w *Writer) Abandon() {
	if w.remove == nil {
		_ = w.out.Truncate(w.before)
	}
	_ = w.out.Close()
	if w.remove != nil {
		w.remove()
	}
}

// ReadIndex returns the entries of the live records of a file, ascending by offset. It reads the index blocks; when
// one of them is damaged it reads the records instead. An error that is a *Damage names what is lost; only a file that
// cannot be opened though it is there gives another one.
func (d *Dir) ReadIndex(queue uint64, f File) ([]Entry, error) {
	name := d.Path(queue, f.Number)
	h, err := d.acquire(name)
	if errors.Is(err, ErrGone) {
		return nil, &Damage{File: name, Queue: queue, What: "the file is missing"}
	} else if err != nil {
		return nil, err
	}
	defer d.release(h)
	damage := func(offset int64, what string) error {
		return &Damage{File: name, Offset: offset, Queue: queue, What: what}
	}
	info, err := h.file.Stat()
	if err != nil {
		return nil, damage(0, err.Error())
	}
	if info.Size() < f.Length {
		return nil, damage(info.Size(), fmt.Sprintf("the file is cut short: it must have %d bytes", f.Length))
	}
	first := make([]byte, fileHead)
	if err := readFull(h.file, first, 0); err != nil {
		return nil, damage(0, err.Error())
	}
	if string(first) != string(head(queue, f.Number)) {
		return nil, damage(0, "the head is not that of this queue's file")
	}
	entries, err := readBlocks(h.file, f, damage)
	if err != nil {
		entries, err = d.scan(queue, f)
	}
	var found *Damage
	if err != nil && !errors.As(err, &found) { // a sector that cannot be read
		err = damage(f.Index, err.Error())
	}
	if err != nil {
		return nil, err
	}
	return only(entries, f, damage)
}

// readBlocks follows the chain of index blocks from the last to the first.
func readBlocks(r io.ReaderAt, f File, damage func(int64, string) error) ([]Entry, error) {
	var blocks [][]byte // payloads, the last first
	var total uint64
	for at, end := f.Index, f.Length; at != 0; {
		if at < fileHead || at+frameHead+blockHead > end {
			return nil, damage(at, "an index block lies outside the file")
		}
		size := make([]byte, frameHead)
		if err := readFull(r, size, at); err != nil {
			return nil, damage(at, err.Error())
		}
		length := int64(little.Uint32(size))
		if length > end-at-frameHead {
			return nil, damage(at, "an index block is longer than the file")
		}
		b := make([]byte, frameHead+length)
		if err := readFull(r, b, at); err != nil {
			return nil, damage(at, err.Error())
		}
		p, what := openFrame(b)
		if what != "" {
			return nil, damage(at, what)
		}
		count, previous, what := blockOf(p)
		if what != "" {
			return nil, damage(at, what)
		}
		if previous >= at {
			return nil, damage(at, "an index block does not follow the one before it")
		}
		blocks = append(blocks, p)
		total += count
		at, end = previous, at
	}
	if total != f.Records {
		return nil, damage(f.Index, fmt.Sprintf("the index has %d records, the manifest %d", total, f.Records))
	}
	all := make([]Entry, 0, total)
	for _, b := range slices.Backward(blocks) {
		var ok bool
		if all, ok = decodeBlock(b, all); !ok {
			return nil, damage(f.Index, "an index block's entries do not fit its length")
		}
	}
	return all, nil
}

// scan reads the live records themselves: slow, and needed only when an index block is damaged.
func (d *Dir) scan(queue uint64, f File) ([]Entry, error) {
	entries := make([]Entry, 0, f.Valid)
	err := d.Records(queue, f, func(frame []byte, r *Record, at int64) error {
		e := r.Entry()
		e.Offset, e.Length = at, uint32(len(frame))
		entries = append(entries, e)
		return nil
	})
	return entries, err
}

// only keeps the entries of the live records.
func only(entries []Entry, f File, damage func(int64, string) error) ([]Entry, error) {
	live, at := entries[:0], 0
	for _, e := range entries {
		for at < len(f.Live) && f.Live[at].To <= e.Offset {
			at++
		}
		if at < len(f.Live) && e.Offset >= f.Live[at].From && e.Offset+int64(e.Length) <= f.Live[at].To {
			live = append(live, e)
		}
	}
	if uint64(len(live)) != f.Valid {
		return nil, damage(f.Index, fmt.Sprintf("%d live records are indexed, the manifest has %d", len(live), f.Valid))
	}
	return live, nil
}

// readFull fills b from offset at.
func readFull(r io.ReaderAt, b []byte, at int64) error {
	n, err := r.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if err == nil || err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Number returns the file's number.
func (w *Writer) Number() uint32 { return w.file.Number }
