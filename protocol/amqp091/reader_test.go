package amqp091

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"slices"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

// TestReaderTakesFramesFromAnyCut: whatever the reads return, and in whichever way payloads are taken, the frames are the same.
func TestReaderTakesFramesFromAnyCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var input []byte
		var sizes []int
		size := rapid.OneOf(rapid.IntRange(0, 50), rapid.IntRange(4000, 4200), rapid.IntRange(0, 100_000))
		for i := range rapid.IntRange(1, 20).Draw(t, "frames") {
			n := size.Draw(t, "size")
			sizes = append(sizes, n)
			input = append(input, frame(FrameBody, uint16(i+1), bytes.Repeat([]byte{byte(i)}, n)...)...)
		}
		read := rapid.OneOf(rapid.IntRange(50, 200), rapid.IntRange(1000, 10_000), rapid.Just(1<<20)).Draw(t, "read")
		if len(input) < 10_000 {
			read = max(1, read/50)
		}
		r := NewReader(chunks{bytes.NewReader(input), read}, 0)
		for i, n := range sizes {
			f, err := r.Next()
			if err != nil || f != (Frame{FrameBody, uint16(i + 1), uint32(n)}) {
				t.Fatalf("frame %d: %v, %v", i, f, err)
			}
			var payload []byte
			switch rapid.SampledFrom([]string{"payload", "append", "skip", "next"}).Draw(t, "how") {
			case "payload":
				payload, err = r.Payload()
			case "append":
				payload, err = r.AppendPayload(make([]byte, 3, 10))
				payload = payload[3:]
			case "skip":
				err = r.Skip()
				fallthrough
			case "next":
				n = 0
			}
			if err != nil || !bytes.Equal(payload, bytes.Repeat([]byte{byte(i)}, n)) {
				t.Fatalf("frame %d: %d bytes for %d, %v", i, len(payload), n, err)
			}
		}
		if _, err := r.Next(); err != io.EOF {
			t.Fatal(err)
		}
	})
}

type chunks struct {
	source io.Reader
	size   int
}

func (c chunks) Read(b []byte) (int, error) { return c.source.Read(b[:min(len(b), c.size)]) }

// TestReaderHoldsALargeBufferOnlyWhileThereIsMore: a connection that waits has the small one.
func TestReaderHoldsALargeBufferOnlyWhileThereIsMore(t *testing.T) {
	input := bytes.Repeat(publishing(1), 10_000)
	r := reading(input)
	largest := 0
	for {
		if _, err := r.Next(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		largest = max(largest, len(r.buffer))
	}
	if largest != largeBuffer || len(r.buffer) != smallBuffer || r.Buffered() != 0 {
		t.Errorf("largest %d, at the end %d", largest, len(r.buffer))
	}
}

// TestNothingIsTakenForAnAnnouncedSize: neither for a frame's nor for a body's, however large the limits are.
func TestNothingIsTakenForAnAnnouncedSize(t *testing.T) {
	for name, input := range map[string][]byte{
		"method": {FrameMethod, 0, 1, 0x1F, 0, 0, 0, 0, 60},
		"header": append(publishing(1), FrameHeader, 0, 1, 0x1F, 0, 0, 0, 0, 60),
		"body":   slices.Concat(publishing(1), frame(FrameHeader, 1, header(100<<20, 0, 0)...), []byte{FrameBody, 0, 1, 6, 0, 0, 0, 'x'}),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := collect(NewReader(bytes.NewReader(input), 0))
		runtime.ReadMemStats(&after)
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v", name, err)
		}
		if taken := after.TotalAlloc - before.TotalAlloc; taken > 4*readAhead {
			t.Errorf("%s: %d bytes taken", name, taken)
		}
	}
}

func TestReaderPassesOnTheSourcesErrors(t *testing.T) {
	broken := errors.New("cable cut")
	r := NewReader(io.MultiReader(bytes.NewReader(frame(FrameBody, 1, 1, 2)[:8]), iotest.ErrReader(broken)), 4096)
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Payload(); err != broken {
		t.Fatal(err)
	}
	if _, err := NewReader(stuck{}, 4096).Next(); err != io.ErrNoProgress {
		t.Fatal(err)
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

func TestPreface(t *testing.T) {
	r := reading(append(ProtocolHeader[:], AppendHeartbeat(nil)...))
	if h, err := r.ReadPreface(); h != ProtocolHeader || err != nil {
		t.Fatal(h, err)
	}
	if f, err := r.Next(); f.Type != FrameHeartbeat || err != nil {
		t.Fatal(f, err)
	}
	if _, err := reading([]byte("AMQP")).ReadPreface(); err != io.ErrUnexpectedEOF {
		t.Fatal(err)
	}
}

// TestBodyIsPassedOnInParts: in whatever parts it is taken, a body is the same, and completes at the same frame.
func TestBodyIsPassedOnInParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := bytes.Repeat([]byte("0123456789"), rapid.IntRange(1, 30_000).Draw(t, "tens"))
		r := reading(AppendContent(nil, 1, nil, body, 4096+uint32(rapid.IntRange(0, 100_000).Draw(t, "frame max"))))
		var c Content
		c.Begin(BasicPublishID)
		var got []byte
		for complete := false; !complete; {
			f, err := r.Next()
			if err == nil {
				complete, err = c.Take(r, f)
			}
			if err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "pass") {
				got = append(got, c.Pass()...)
			}
		}
		if got = append(got, c.Body...); !bytes.Equal(got, body) || c.Pending() != 0 {
			t.Fatalf("%d bytes of %d", len(got), len(body))
		}
		if _, err := r.Next(); err != io.EOF {
			t.Fatal(err)
		}
	})
}
