package relay

import (
	"encoding/binary"

	"github.com/warrenmq/warren/protocol/amqp091"
)

// A frame is type, channel(2), size(4), payload, end octet.
const (
	frameHead  = 7
	frameExtra = frameHead + 1
)

// boundaries follows where the frames of a byte stream end, so that something can be said between two of them.
type boundaries struct {
	left  uint64 // bytes to come of a frame that is passed on in pieces
	begun bool   // a whole frame has passed
	over  bool   // the last frame was a connection.close or close-ok: its sender has said the last word
}

// pass returns how many of the bytes at the beginning of b can be passed on now. The rest is the beginning of a frame
// and is held back until it is whole, unless that would take more than limit bytes. After pass returned everything up
// to the end of a frame, between reports true.
func (f *boundaries) pass(b []byte, limit int) (whole int) {
	if f.left > 0 {
		n := min(f.left, uint64(len(b)))
		f.left -= n
		whole = int(n)
	}
	for len(b)-whole >= frameHead {
		rest := b[whole:]
		total := uint64(binary.BigEndian.Uint32(rest[3:])) + frameExtra
		f.over = false
		if total > uint64(limit) {
			f.left = total - uint64(len(rest))
			f.begun = true
			return len(b)
		}
		if uint64(len(rest)) < total {
			return whole
		}
		f.begun = true
		if m := method(rest[:total]); m == amqp091.ConnectionCloseID || m == amqp091.ConnectionCloseOkID {
			f.over = true
		}
		whole += int(total)
	}
	return whole
}

// between reports whether what was passed on ends with a frame.
func (f *boundaries) between() bool { return f.left == 0 }

// method returns the class and method of a method frame on channel 0; 0 of any other frame.
func method(frame []byte) amqp091.MethodID {
	if len(frame) < frameExtra+4 || frame[0] != amqp091.FrameMethod || frame[1] != 0 || frame[2] != 0 {
		return 0
	}
	return amqp091.MethodID(binary.BigEndian.Uint32(frame[frameHead:]))
}
