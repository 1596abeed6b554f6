package relay

import "sync"

// Sizes of a direction's buffer, in bytes: an idle connection holds idleBuffer each way; while more comes than fits,
// one of busyBuffer, which takes a whole frame of AMQP's default size.
const (
	idleBuffer = 4 << 10
	busyBuffer = 128 << 10
)

var busyBuffers = sync.Pool{New: func() any { return new([busyBuffer]byte) }}

// buffer is one direction's. It grows when it is full and shrinks when little is in it.
type buffer struct {
	idle [idleBuffer]byte
	busy *[busyBuffer]byte
	held int // bytes at the beginning that are not passed on yet
}

func (b *buffer) space() []byte {
	if b.busy != nil {
		return b.busy[:]
	}
	return b.idle[:]
}

// room returns where to read to; it is never empty while held is less than busyBuffer.
func (b *buffer) room() []byte {
	if b.busy == nil && b.held == idleBuffer {
		b.busy = busyBuffers.Get().(*[busyBuffer]byte)
		copy(b.busy[:], b.idle[:])
	}
	return b.space()[b.held:]
}

// filled returns what is held after n bytes more were read.
func (b *buffer) filled(n int) []byte {
	b.held += n
	return b.space()[:b.held]
}

// drop forgets the first n bytes, which were passed on.
func (b *buffer) drop(n int) {
	all := b.space()[:b.held]
	rest := all[n:]
	switch {
	case b.busy == nil && b.held == idleBuffer && n > 0: // more waits, most likely
		b.busy = busyBuffers.Get().(*[busyBuffer]byte)
		copy(b.busy[:], rest)
	case b.busy != nil && b.held < idleBuffer:
		copy(b.idle[:], rest)
		b.release()
	default:
		copy(all, rest)
	}
	b.held = len(rest)
}

// release gives the large buffer back.
func (b *buffer) release() {
	if b.busy != nil {
		busyBuffers.Put(b.busy)
		b.busy = nil
	}
}
