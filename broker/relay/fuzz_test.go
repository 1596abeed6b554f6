package relay

import (
	"bytes"
	"encoding/binary"
	"net"
	"testing"

	"github.com/warrenmq/warren/protocol/amqp091"
)

// FuzzBoundaries cuts a stream anywhere: what is passed on is always the same, and ends where a frame ends.
func FuzzBoundaries(f *testing.F) {
	stream := append(frame(3, []byte("body")), forced("gone")...)
	f.Add(stream, uint8(3), uint8(40))
	f.Add(append(frame(3, make([]byte, 100)), frame(8, nil)...), uint8(7), uint8(60))
	f.Add([]byte("AMQP\x00\x00\x09\x01"), uint8(2), uint8(30))
	f.Fuzz(func(t *testing.T, stream []byte, step, small uint8) {
		limit := int(small) + frameExtra
		var cut boundaries
		var got, held []byte
		for rest := stream; len(rest) > 0; {
			n := min(len(rest), max(int(step), 1), limit-len(held))
			held, rest = append(held, rest[:n]...), rest[n:]
			whole := cut.pass(held, limit)
			got = append(got, held[:whole]...)
			held = append([]byte(nil), held[whole:]...)
			if len(held) >= limit {
				t.Fatalf("%d bytes are held, the limit is %d", len(held), limit)
			}
			if cut.between() && !ends(got) {
				t.Fatalf("%x does not end with a frame", got)
			}
		}
		if !bytes.Equal(append(got, held...), stream) {
			t.Fatal("the stream was changed")
		}
	})
}

// ends walks over whole frames.
func ends(b []byte) bool {
	for len(b) >= frameHead {
		total := uint64(binary.BigEndian.Uint32(b[3:])) + frameExtra
		if total > uint64(len(b)) {
			return false
		}
		b = b[total:]
	}
	return len(b) == 0
}

func FuzzReadPeer(f *testing.F) {
	f.Add([]byte("\x0e127.0.0.1:5672\x0a[::1]:5672"))
	f.Add([]byte("\x41"))
	f.Fuzz(func(t *testing.T, b []byte) {
		near, far := net.Pipe()
		defer near.Close()
		go func() {
			_, _ = far.Write(b)
			_ = far.Close()
		}()
		if p, err := readPeer(near); err == nil && (len(p.RemoteAddr().String()) > 2*maxAddress || p.LocalAddr() == nil) {
			t.Fatalf("%v", p.RemoteAddr())
		}
	})
}

func FuzzGreeting(f *testing.F) {
	f.Add(new(amqp091.ConnectionOpen).AppendFrame(new(amqp091.ConnectionStartOk).AppendFrame(nil, 0), 0))
	f.Add([]byte{1, 0, 0, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := amqp091.NewReader(bytes.NewReader(b), maxGreetingBytes)
		for range maxGreetingFrames {
			if _, last, err := refuseOpen(r, "x"); err != nil || last {
				return
			}
		}
	})
}
