package amqp091

import (
	"fmt"
	"io"
	"slices"
	"sync"
)

const (
	smallBuffer = 4 << 10  // bytes that a Reader holds while it waits
	largeBuffer = 64 << 10 // bytes of the one it borrows while the peer has more to send than it asked for
	readAhead   = 64 << 10 // bytes that are allocated at most in front of those that have arrived
)

// largeBuffers are shared by all readers: only those that have work hold one.
var largeBuffers = sync.Pool{New: func() any { return new([largeBuffer]byte) }}

// Frame is what stands in front of a payload.
type Frame struct {
	Type    uint8
	Channel uint16
	Size    uint32 // of the payload, in bytes
}

// Reader reads frames. It is used by one goroutine. Its errors are *Error for what the peer did wrong, io.EOF when the input
// ended between frames, io.ErrUnexpectedEOF inside one, and the source's own otherwise.
type Reader struct {
	source io.Reader
	limit  uint32 // of a payload

	buffer  []byte // small's or large's; buffer[at:end] has arrived and is not yet taken
	at, end int
	full    bool // the last read filled the buffer: there is more
	small   *[smallBuffer]byte
	large   *[largeBuffer]byte // nil while small is in use
	rest    uint32             // bytes of the payload under way not yet taken
	open    bool               // a frame was begun by Next and its end byte is not yet taken
}

// NewReader returns a reader that accepts frames of up to frameMax bytes (see SetFrameMax).
func NewReader(source io.Reader, frameMax uint32) *Reader {
	r := &Reader{source: source, small: new([smallBuffer]byte)}
	r.buffer = r.small[:]
	r.SetFrameMax(frameMax)
	return r
}

// SetFrameMax changes the largest accepted frame, from the next one on. As RabbitMQ does, 8 bytes more are tolerated: the payload
// alone may be frameMax bytes long. 0 is no limit but that of a message.
func (r *Reader) SetFrameMax(frameMax uint32) {
	if r.limit = frameMax; frameMax == 0 {
		r.limit = noLimit
	}
}

// Buffered is how many bytes have arrived and are not yet taken. When it is 0, Next will wait for the peer.
func (r *Reader) Buffered() int { return r.end - r.at }

// ReadPreface reads the 8 bytes that come before the first frame. It must be called before Next, or not at all.
func (r *Reader) ReadPreface() (header [8]byte, err error) {
	if err = r.fill(len(header)); err == nil {
		r.at += copy(header[:], r.buffer[r.at:r.end])
	}
	return header, err
}

// Next begins the next frame; what is left of the one before is skipped. Take the payload with Payload, AppendPayload or Skip.
// After an *Error that is not Fatal Next may be called again.
func (r *Reader) Next() (Frame, error) {
	if r.open {
		if err := r.Skip(); err != nil {
			return Frame{}, err
		}
	}
	if err := r.fill(headerBytes); err != nil {
		return Frame{}, err
	}
	h := r.buffer[r.at : r.at+headerBytes]
	f := Frame{Type: h[0], Channel: be.Uint16(h[1:]), Size: be.Uint32(h[3:])}
	r.at += headerBytes
	if f.Size > r.limit {
		return f, fatal("a frame of type %d with %d bytes of payload is larger than the %d allowed", f.Type, f.Size, r.limit-FrameOverhead)
	}
	r.open, r.rest = true, f.Size
	return f, f.check()
}

// check tells a wrong type, and a channel on which that type cannot be.
func (f Frame) check() error {
	switch f.Type {
	case FrameMethod:
	case FrameHeader, FrameBody:
		if f.Channel == 0 {
			return Errorf(UnexpectedFrame, 0, "a content frame on channel 0")
		}
	case FrameHeartbeat:
		if f.Channel != 0 {
			return Errorf(UnexpectedFrame, 0, "a heartbeat on channel %d", f.Channel)
		}
		if f.Size != 0 {
			return Errorf(FrameError, 0, "a heartbeat with %d bytes of payload", f.Size)
		}
	default:
		return Errorf(FrameError, 0, "unknown frame type %d", f.Type)
	}
	return nil
}

// Payload takes the frame's payload. It is valid until the next call of the reader: then its memory may go to another one.
func (r *Reader) Payload() ([]byte, error) {
	n := int(r.rest)
	if n < max(smallBuffer, r.Buffered()) {
		if err := r.fill(n + 1); err != nil {
			return nil, err
		}
		payload := r.buffer[r.at : r.at+n : r.at+n]
		r.at += n
		return payload, r.finish()
	}
	return r.AppendPayload(nil)
}

// AppendPayload takes the frame's payload and appends it to dst, straight from the source as far as it has not arrived yet. dst
// grows as bytes arrive, whatever size was announced.
func (r *Reader) AppendPayload(dst []byte) ([]byte, error) {
	n := min(r.Buffered(), int(r.rest))
	dst = slices.Grow(dst, min(int(r.rest), n+readAhead))
	dst = append(dst, r.buffer[r.at:r.at+n]...)
	r.at += n
	r.rest -= uint32(n)
	for r.rest > 0 {
		if len(dst) == cap(dst) {
			dst = slices.Grow(dst, min(int(r.rest), max(len(dst), readAhead)))
		}
		n, err := r.read(dst[len(dst):min(cap(dst), len(dst)+int(r.rest))])
		if err != nil {
			return dst, err
		}
		dst = dst[:len(dst)+n]
		r.rest -= uint32(n)
	}
	return dst, r.finish()
}

// Skip takes the frame's payload and drops it.
func (r *Reader) Skip() error {
	for r.rest > 0 {
		if r.Buffered() == 0 {
			if err := r.fill(1); err != nil {
				return err
			}
		}
		n := min(r.Buffered(), int(r.rest))
		r.at += n
		r.rest -= uint32(n)
	}
	return r.finish()
}

// finish takes the end byte.
func (r *Reader) finish() error {
	r.rest = 0
	if err := r.fill(1); err != nil {
		return err
	}
	last := r.buffer[r.at]
	r.at++
	r.open = false
	if last != frameEnd {
		return fatal("a frame ends with 0x%02x, not with 0xce", last)
	}
	return nil
}

// fill waits until n bytes are in the buffer; n is at most smallBuffer, or what is there already.
func (r *Reader) fill(n int) error {
	if r.Buffered() >= n {
		return nil
	}
	if r.Buffered() == 0 {
		r.swap()
		r.at, r.end = 0, 0
	} else if r.at+n > len(r.buffer) {
		r.at, r.end = 0, copy(r.buffer, r.buffer[r.at:r.end])
	}
	for r.Buffered() < n {
		got, err := r.read(r.buffer[r.end:])
		if err != nil {
			return err
		}
		r.end += got
		r.full = r.end == len(r.buffer)
	}
	return nil
}

// swap changes the empty buffer for one that fits the amount of input.
func (r *Reader) swap() {
	switch {
	case r.full && r.large == nil:
		r.large = largeBuffers.Get().(*[largeBuffer]byte)
		r.buffer = r.large[:]
	case !r.full && r.large != nil:
		largeBuffers.Put(r.large)
		r.large, r.buffer = nil, r.small[:]
	}
}

// read reads at least one byte.
func (r *Reader) read(into []byte) (int, error) {
	for range 100 {
		n, err := r.source.Read(into)
		if n > 0 {
			return n, nil
		}
		if err == io.EOF && (r.open || r.Buffered() > 0) {
			return 0, io.ErrUnexpectedEOF
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, io.ErrNoProgress
}

func fatal(format string, args ...any) *Error {
	return &Error{Code: FrameError, Text: fmt.Sprintf(format, args...), Fatal: true}
}
