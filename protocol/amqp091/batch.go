package amqp091

import (
	"io"
	"net"
)

// copyLimit is how long a body in bytes may be to be copied between the frames around it; a longer one is referred to.
const copyLimit = 8 << 10

// Batch is output on its way to a socket: what is small lies in one buffer, what is large is referred to. It is used by one
// goroutine; the zero value is ready.
type Batch struct {
	// Buf is where frames are appended: b.Buf = m.AppendFrame(b.Buf, channel).
	Buf []byte

	cut    int // bytes of Buf that are in pieces already
	bytes  int // in pieces
	pieces net.Buffers
	out    net.Buffers // the pieces being written
}

// AppendContent appends the header and body frames of a message, as the function does. A large body is not copied: it must not
// change until the batch is written.
func (b *Batch) AppendContent(channel uint16, properties PropertyBytes, body []byte, frameMax uint32) {
	if len(body) <= copyLimit {
		b.Buf = AppendContent(b.Buf, channel, properties, body, frameMax)
		return
	}
	b.Buf = AppendHeader(b.Buf, channel, uint64(len(body)), properties)
	for most := bodyMax(frameMax); len(body) > 0; {
		n := min(len(body), most)
		b.Buf = be.AppendUint32(append(b.Buf, FrameBody, byte(channel>>8), byte(channel)), uint32(n))
		b.flush()
		b.piece(body[:n:n])
		b.Buf = append(b.Buf, frameEnd)
		body = body[n:]
	}
}

// flush makes a piece of what was appended since the last one. Buf may move when it grows: a piece then keeps the old array.
func (b *Batch) flush() {
	if len(b.Buf) > b.cut {
		b.piece(b.Buf[b.cut:len(b.Buf):len(b.Buf)])
		b.cut = len(b.Buf)
	}
}

func (b *Batch) piece(p []byte) {
	b.pieces = append(b.pieces, p)
	b.bytes += len(p)
}

// Len is how many bytes wait to be written.
func (b *Batch) Len() int { return b.bytes + len(b.Buf) - b.cut }

// Trim gives back the memory that a burst of output took, for a connection that has nothing more to write. It does nothing while
// something waits to be written.
func (b *Batch) Trim() {
	if b.Len() == 0 && cap(b.Buf) > smallBuffer {
		*b = Batch{}
	}
}

// WriteTo writes everything, with one writev where w is a TCP connection, and empties the batch, whatever the outcome.
func (b *Batch) WriteTo(w io.Writer) (n int64, err error) {
	if len(b.pieces) == 0 {
		var short int
		short, err = w.Write(b.Buf)
		n = int64(short)
	} else {
		b.flush()
		b.out = b.pieces
		n, err = b.out.WriteTo(w)
	}
	clear(b.pieces)
	b.Buf, b.cut, b.bytes, b.pieces, b.out = b.Buf[:0], 0, 0, b.pieces[:0], nil
	return n, err
}
