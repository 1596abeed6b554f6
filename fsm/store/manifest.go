package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Manifest is what a snapshot is: the small state in full, and for each queue which parts of which files are its
// messages. In a stream the live records of the files follow it, queue by queue and file by file.
type Manifest struct {
	State  []byte // the machine's own encoding of everything but messages
	Queues []Queue
}

// Queue is a queue's messages in a manifest.
type Queue struct {
	Number   uint64
	Last     uint64 // the last sequence given at the snapshot's index; records above it are ignored
	Count    uint64 // live messages
	Bytes    uint64 // their bodies
	Sum      uint64 // over their hashes
	NextFile uint32 // the number that the next file gets, at least
	Changes  []Change
	Files    []File // numbers ascending; number 0 is no file: its records are only in the stream
}

// Change is what became of a message since it came, as the machine encodes it.
type Change struct {
	Sequence uint64
	State    uint32
	Time     int64 // that belongs to the state; 0: none
}

// changeHasTime is set beside the state in front of a time.
const changeHasTime = 1 << 32

const (
	manifestMagic = "WRNMAN\x00\x01" // the last byte is the format's version
	manifestHead  = 20               // magic, length of the body, its checksum
	// maxManifest bounds what a manifest's length field may say.
	maxManifest = 8 << 30
)

// ErrManifest says that bytes are not a whole manifest.
var ErrManifest = errors.New("snapshot manifest is damaged")

// Append appends the manifest's bytes.
func (m *Manifest) Append(b []byte) []byte {
	start := len(b)
	b = append(b, manifestMagic...)
	b = append(b, make([]byte, manifestHead-len(manifestMagic))...)
	b = binary.AppendUvarint(b, uint64(len(m.State)))
	b = append(b, m.State...)
	b = binary.AppendUvarint(b, uint64(len(m.Queues)))
	for i := range m.Queues {
		b = m.Queues[i].append(b)
	}
	body := b[start+manifestHead:]
	little.PutUint64(b[start+8:], uint64(len(body)))
	little.PutUint32(b[start+16:], checksum(body))
	return b
}

func (q *Queue) append(b []byte) []byte {
	for _, v := range []uint64{q.Number, q.Last, q.Count, q.Bytes} {
		b = binary.AppendUvarint(b, v)
	}
	b = little.AppendUint64(b, q.Sum)
	b = binary.AppendUvarint(b, uint64(q.NextFile))
	b = binary.AppendUvarint(b, uint64(len(q.Changes)))
	var before uint64
	for _, d := range q.Changes {
		b = binary.AppendUvarint(b, d.Sequence-before)
		if d.Time == 0 {
			b = binary.AppendUvarint(b, uint64(d.State))
		} else {
			b = binary.AppendUvarint(b, uint64(d.State)|changeHasTime)
			b = binary.AppendUvarint(b, uint64(d.Time))
		}
		before = d.Sequence
	}
	b = binary.AppendUvarint(b, uint64(len(q.Files)))
	for _, f := range q.Files {
		for _, v := range []uint64{uint64(f.Number), uint64(f.Length), uint64(f.Index), f.Records, f.Valid, uint64(len(f.Live))} {
			b = binary.AppendUvarint(b, v)
		}
		var at int64
		for _, e := range f.Live { // the dead range before each live one, and its length
			b = binary.AppendUvarint(b, uint64(e.From-at))
			b = binary.AppendUvarint(b, uint64(e.To-e.From))
			at = e.To
		}
	}
	return b
}

// ReadManifest reads a manifest from the beginning of a stream and leaves the stream behind it. ErrManifest is in
// the chain of the error when the bytes are not a whole manifest.
func ReadManifest(r io.Reader) (*Manifest, error) {
	head := make([]byte, manifestHead)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, fmt.Errorf("%w: read its head: %w", ErrManifest, err)
	}
	if string(head[:8]) != manifestMagic {
		return nil, fmt.Errorf("%w: it begins with %q, expected %q", ErrManifest, head[:8], manifestMagic)
	}
	length := little.Uint64(head[8:])
	if length > maxManifest {
		return nil, fmt.Errorf("%w: its length is %d", ErrManifest, length)
	}
	body, err := readGrowing(r, int64(length))
	if err != nil {
		return nil, fmt.Errorf("%w: read its %d bytes: %w", ErrManifest, length, err)
	}
	if checksum(body) != little.Uint32(head[16:]) {
		return nil, fmt.Errorf("%w: the checksum of its %d bytes does not match", ErrManifest, length)
	}
	return decodeManifest(body)
}

// readGrowing reads n bytes without trusting n for its first allocation.
func readGrowing(r io.Reader, n int64) ([]byte, error) {
	const step = 16 << 20
	b := make([]byte, 0, min(n, step))
	for int64(len(b)) < n {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		part := b[len(b):min(int64(cap(b)), n)]
		if _, err := io.ReadFull(r, part); err != nil {
			return nil, err
		}
		b = b[:len(b)+len(part)]
	}
	return b, nil
}

// fields reads uvarints and bytes; the first that is not there makes it bad.
type fields struct {
	b   []byte
	bad bool
}

func (f *fields) uvarint() uint64 {
	v, n := binary.Uvarint(f.b)
	if n <= 0 {
		f.b, f.bad = nil, true
		return 0
	}
	f.b = f.b[n:]
	return v
}

func (f *fields) bytes(n uint64) []byte {
	if n > uint64(len(f.b)) {
		f.b, f.bad = nil, true
		return nil
	}
	b := f.b[:n:n]
	f.b = f.b[n:]
	return b
}

// count reads a number of things of at least size bytes each.
func (f *fields) count(size int) int {
	n := f.uvarint()
	if n > uint64(len(f.b)/size) {
		f.b, f.bad = nil, true
		return 0
	}
	return int(n)
}

func decodeManifest(body []byte) (*Manifest, error) {
	f := fields{b: body}
	m := &Manifest{State: f.bytes(f.uvarint())}
	n := f.count(15)
	m.Queues = make([]Queue, 0, n)
	for range n {
		q, ok := f.queue()
		if !ok {
			f.bad = true
			break
		}
		if i := len(m.Queues); i > 0 && m.Queues[i-1].Number >= q.Number {
			return nil, fmt.Errorf("%w: queue %d follows queue %d", ErrManifest, q.Number, m.Queues[i-1].Number)
		}
		m.Queues = append(m.Queues, q)
	}
	if f.bad || len(f.b) > 0 {
		return nil, fmt.Errorf("%w: its fields do not fit its length", ErrManifest)
	}
	return m, nil
}

func (f *fields) queue() (q Queue, ok bool) {
	q = Queue{Number: f.uvarint(), Last: f.uvarint(), Count: f.uvarint(), Bytes: f.uvarint()}
	if sum := f.bytes(8); sum != nil {
		q.Sum = little.Uint64(sum)
	}
	q.NextFile = uint32(f.uvarint())
	var sequence uint64
	for range f.count(2) {
		step := f.uvarint()
		if step == 0 || sequence+step < sequence {
			return q, false
		}
		sequence += step
		state := f.uvarint()
		c := Change{Sequence: sequence, State: uint32(state)}
		if state&changeHasTime != 0 {
			c.Time = int64(f.uvarint())
		}
		q.Changes = append(q.Changes, c)
	}
	for range f.count(6) {
		file, ok := f.file()
		if !ok {
			return q, false
		}
		q.Files = append(q.Files, file)
	}
	return q, !f.bad
}

func (f *fields) file() (file File, ok bool) {
	file = File{Number: uint32(f.uvarint()), Length: int64(f.uvarint()), Index: int64(f.uvarint()), Records: f.uvarint(), Valid: f.uvarint()}
	if file.Length < 0 || file.Index < 0 || file.Index > file.Length || file.Valid > file.Records {
		return file, false
	}
	n := f.count(2)
	var at int64
	for range n {
		dead, live := int64(f.uvarint()), int64(f.uvarint())
		if dead < 0 || live <= 0 || dead > file.Length-at || live > file.Length-at-dead {
			return file, false
		}
		file.Live = append(file.Live, Extent{at + dead, at + dead + live})
		at += dead + live
	}
	return file, !f.bad
}
