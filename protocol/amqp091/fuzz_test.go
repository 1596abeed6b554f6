package amqp091

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"
	"time"
)

// FuzzFrames: any input ends in an error of the peer's or at its end, in the same way however it is cut, and what was read as a
// message is written and read again as the same.
func FuzzFrames(f *testing.F) {
	f.Add(slices.Concat(publishing(1), frame(FrameHeader, 1, header(2, 0x10, 0, 2)...), frame(FrameBody, 1, 'h', 'i')))
	f.Add(slices.Concat((&ChannelOpen{}).AppendFrame(nil, 1), AppendHeartbeat(nil), (&BasicAck{DeliveryTag: 1}).AppendFrame(nil, 1)))
	f.Add(slices.Concat(publishing(1), frame(FrameHeader, 1, header(1<<40, 0, 0)...)))
	f.Add([]byte{FrameMethod, 0, 1, 0xFF, 0xFF, 0xFF, 0xFF})
	f.Fuzz(func(t *testing.T, input []byte) {
		got, err := collect(NewReader(bytes.NewReader(input), 4096))
		var wrong *Error
		if err != nil && !errors.As(err, &wrong) && err != io.ErrUnexpectedEOF {
			t.Fatal(err)
		}
		again, errAgain := collect(NewReader(oneByte{bytes.NewReader(input)}, 4096))
		if len(again) != len(got) || (err == nil) != (errAgain == nil) || err != nil && err.Error() != errAgain.Error() {
			t.Fatalf("%d messages, %v; byte by byte %d, %v", len(got), err, len(again), errAgain)
		}
		for _, m := range got {
			b := m.method.AppendFrame(nil, 9)
			if m.content != nil {
				b = AppendContent(b, 9, m.content.Properties, m.content.Body, 4096)
			}
			same, err := collect(NewReader(bytes.NewReader(b), 4096))
			if err != nil || len(same) != 1 {
				t.Fatalf("%x: %v", b, err)
			}
			if c := m.content; c != nil && (!bytes.Equal(c.Body, same[0].content.Body) || !bytes.Equal(c.Properties, same[0].content.Properties)) {
				t.Fatalf("%x %x came back as %x %x", c.Properties, c.Body, same[0].content.Properties, same[0].content.Body)
			}
		}
	})
}

// FuzzMethod: what is decoded is encoded to something that decodes to the same.
func FuzzMethod(f *testing.F) {
	for _, m := range methods {
		f.Add(New(m.id).Append(nil))
	}
	f.Add((&QueueDeclare{Queue: "q", Arguments: Table{1, 'a', 'V'}}).Append(nil))
	f.Fuzz(func(t *testing.T, payload []byte) {
		m, err := DecodeMethod(payload)
		if err != nil {
			if _, ok := err.(*Error); !ok {
				t.Fatal(err)
			}
			return
		}
		once := m.Append(nil)
		again, err := DecodeMethod(once)
		if err != nil {
			t.Fatalf("%x, then %x: %v", payload, once, err)
		}
		if twice := again.Append(nil); !bytes.Equal(once, twice) {
			t.Fatalf("%x, then %x, then %x", payload, once, twice)
		}
	})
}

// FuzzProperties: checking and decoding agree, and changes of good bytes give good bytes.
func FuzzProperties(f *testing.F) {
	f.Add([]byte{0, 0})
	b, _ := AppendProperties(nil, &Properties{ContentType: "a", Headers: Map{"a": []any{nil, Map{"x": 1}}}, Priority: 1})
	f.Add(b)
	f.Add([]byte{0x20, 0, 0, 0, 0, 3, 1, 'a', 'V'})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, raw := Properties{}, PropertyBytes(b)
		err := DecodeProperties(b, &p)
		if checked := raw.Check(); (checked == nil) != (err == nil) {
			t.Fatalf("checked: %v; decoded: %v", checked, err)
		}
		raw.Headers().Lookup("a")
		raw.Value(PropertyMessageID)
		field, _ := AppendField(nil, "x-delivery-count", int64(1))
		changed := []PropertyBytes{raw.AppendWith(nil, PropertyReplyTo, []byte("r")), raw.AppendWith(nil, PropertyExpiration, nil),
			raw.AppendWithoutHeader(nil, "a"), raw.Clone()}
		if err != nil {
			return
		}
		for _, c := range append(changed, raw.AppendWithField(nil, field)) {
			// A table may have been full before the field was added.
			if err := c.Check(); err != nil && !errors.Is(err, ErrTable) {
				t.Fatalf("%x became %x: %v", b, c, err)
			}
		}
		var q Properties
		once, err := AppendProperties(nil, &p)
		if err != nil {
			t.Fatal(err)
		}
		if err := DecodeProperties(once, &q); err != nil {
			t.Fatal(err)
		}
		if twice, _ := AppendProperties(nil, &q); !bytes.Equal(once, twice) {
			t.Fatalf("%x then %x", once, twice)
		}
	})
}

// FuzzTable: checking and decoding agree, and what is decoded is encoded to something that decodes to the same.
func FuzzTable(f *testing.F) {
	b, _ := AppendMap(nil, Map{"a": []any{nil, Map{"x": 1}}, "d": Decimal{1, 2}, "x": []byte("x")})
	f.Add(b)
	f.Add(nested('F', 65))
	f.Add(nested('A', 3))
	every, _ := AppendMap(nil, Map{"t": true, "b": int8(1), "B": uint8(1), "s": int16(1), "u": uint16(1), "I": int32(1), "i": uint32(1), "l": int64(1),
		"f": float32(1), "d": 1.0, "S": "s", "T": time.Unix(1, 0), "V": nil})
	f.Add(every)
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Table(b).Map()
		if checked := Table(b).Check(); (checked == nil) != (err == nil) {
			t.Fatalf("checked: %v; decoded: %v", checked, err)
		}
		for name, v := range Table(b).All() {
			if first, found := Table(b).Lookup(string(name)); !found || v.TypeName() == "" || first.TypeName() == "" {
				t.Fatalf("%q is not found", name)
			}
		}
		if err != nil {
			return
		}
		once, err := AppendMap(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Table(once).Map(); err != nil {
			t.Fatal(err)
		} else if twice, _ := AppendMap(nil, again); !bytes.Equal(once, twice) {
			t.Fatalf("%x then %x", once, twice)
		}
	})
}
