package native

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// ErrFrameTooLarge is wrapped by the error for a frame above the maximum.
var ErrFrameTooLarge = errors.New("frame above the agreed maximum")

// ChunkBytes is how much memory a Reader takes at a time.
const ChunkBytes = 64 << 10

// leastRead is the room below which a chunk is given up rather than read into, unless that would copy a large frame.
const leastRead = 4 << 10

// Reader cuts a byte stream into frames. It reads into fresh chunks that it never writes a second time, so that what
// Next returns may be kept. A frame above the maximum is refused at its header; memory for a larger frame than a chunk
// is doubled as its bytes arrive, so a length that is only claimed costs nothing. Not safe for concurrent use.
type Reader struct {
	r     io.Reader
	max   uint32
	chunk []byte // [from:to] has arrived and is not handed out yet
	from  int
	to    int
	err   error // of the last read, returned when what came with it is used up
}

// NewReader returns a Reader that accepts payloads of up to max bytes.
func NewReader(r io.Reader, max uint32) *Reader { return &Reader{r: r, max: max} }

// SetMax changes the maximum, from the next frame on.
func (r *Reader) SetMax(max uint32) { r.max = max }

// Next returns the next frame. It blocks in the underlying reader. At the end of the stream the error is io.EOF, in the
// middle of a frame io.ErrUnexpectedEOF; on ErrFrameTooLarge the type is returned for the answer.
func (r *Reader) Next() (Type, []byte, error) {
	if err := r.fill(HeaderBytes); err != nil {
		if err == io.EOF && r.to > r.from {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	head := r.chunk[r.from:]
	t, n := Type(binary.BigEndian.Uint32(head)), binary.BigEndian.Uint32(head[4:])
	if n > r.max {
		return t, nil, fmt.Errorf("%w: %s of %d bytes, at most %d are accepted", ErrFrameTooLarge, t, n, r.max)
	}
	size := HeaderBytes + int(n)
	if err := r.fill(size); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return t, nil, err
	}
	end := r.from + size
	payload := r.chunk[r.from+HeaderBytes : end : end]
	r.from = end
	return t, payload, nil
}

// Ready reports whether Next will return without reading from the underlying reader.
func (r *Reader) Ready() bool {
	have := r.to - r.from
	if have < HeaderBytes {
		return false
	}
	n := binary.BigEndian.Uint32(r.chunk[r.from+4:])
	return n > r.max || have-HeaderBytes >= int(n)
}

// fill reads until n bytes lie in the chunk.
func (r *Reader) fill(n int) error {
	for empty := 0; r.to-r.from < n; {
		if r.err != nil {
			return r.err
		}
		r.grow(n)
		got, err := r.r.Read(r.chunk[r.to:])
		r.to += got
		r.err = err
		if got == 0 && err == nil {
			if empty++; empty == 100 {
				return io.ErrNoProgress
			}
		}
	}
	return nil
}

// grow makes room behind to when the chunk cannot hold n bytes from from on, at most twice what has arrived.
func (r *Reader) grow(n int) {
	have, room := r.to-r.from, len(r.chunk)-r.to
	if room >= leastRead || have > leastRead && have+room >= n {
		return
	}
	fresh := make([]byte, max(ChunkBytes, min(n, 2*have)))
	copy(fresh, r.chunk[r.from:r.to])
	r.chunk, r.from, r.to = fresh, 0, have
}
