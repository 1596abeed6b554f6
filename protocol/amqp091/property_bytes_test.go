package amqp091

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func drawProperties(t *rapid.T) Properties {
	text := rapid.StringN(0, 20, 255)
	p := Properties{ContentType: text.Draw(t, "content type"), ContentEncoding: text.Draw(t, "content encoding"),
		DeliveryMode: rapid.Uint8().Draw(t, "mode"), Priority: rapid.Uint8().Draw(t, "priority"), CorrelationID: text.Draw(t, "correlation"),
		ReplyTo: text.Draw(t, "reply to"), Expiration: text.Draw(t, "expiration"), MessageID: text.Draw(t, "message id"),
		Type: text.Draw(t, "type"), UserID: text.Draw(t, "user"), AppID: text.Draw(t, "app"), ClusterID: text.Draw(t, "cluster")}
	if rapid.Bool().Draw(t, "has headers") {
		p.Headers = drawMap(t, 2)
	}
	if rapid.Bool().Draw(t, "has timestamp") {
		p.Timestamp = time.Unix(rapid.Int64Range(0, 1<<40).Draw(t, "timestamp"), 0).UTC()
	}
	return p
}

// TestRow61AllPropertiesRoundTrip: as Go values, and byte for byte through a message's frames.
func TestRow61AllPropertiesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawProperties(t)
		b, err := AppendProperties(nil, &want)
		if err != nil {
			t.Fatal(err)
		}
		var got Properties
		if err := DecodeProperties(b, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, %v; want %+v", got, err, want)
		}
		messages, err := collect(reading(AppendContent(publishing(1), 1, b, []byte("x"), 4096)))
		if err != nil || len(messages) != 1 {
			t.Fatal(messages, err)
		}
		if kept := messages[0].content.Properties; !bytes.Equal(kept, b) && !(len(kept) == 0 && bytes.Equal(b, []byte{0, 0})) {
			t.Fatalf("%x kept of %x", kept, b)
		}
		n := 0
		for property, value := range PropertyBytes(b).All() {
			if again, found := PropertyBytes(b).Value(property); !found || !bytes.Equal(again, value) {
				t.Fatalf("%x: %x, %t", property, again, found)
			}
			n++
		}
		if mode, _ := PropertyBytes(b).Byte(PropertyDeliveryMode); mode != want.DeliveryMode {
			t.Fatal(mode)
		}
		cut := rapid.IntRange(1, len(b)).Draw(t, "cut")
		if cut == len(b) {
			b = append(b, 0)
		} else {
			b = b[:cut]
		}
		if err := PropertyBytes(b).Check(); !errors.Is(err, ErrProperties) {
			t.Fatalf("%x: %v", b, err)
		}
	})
}

// decoded returns the Go values of property bytes that must be good.
func decoded(t *rapid.T, b PropertyBytes) (p Properties) {
	if err := DecodeProperties(b, &p); err != nil {
		t.Fatalf("%x: %v", b, err)
	}
	return p
}

// TestPropertiesAreChangedInTheirBytes: a property set or taken out, a header added or taken out, and nothing else touched.
func TestPropertiesAreChangedInTheirBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawProperties(t)
		var b PropertyBytes
		if rapid.Bool().Draw(t, "has any") {
			b, _ = AppendProperties(nil, &want)
		} else {
			want = Properties{}
		}
		front := []byte("front")
		text := rapid.StringN(1, 10, 255).Draw(t, "text")

		with := want
		with.ReplyTo = text
		if got := decoded(t, b.AppendWith(front, PropertyReplyTo, []byte(text))[5:]); !reflect.DeepEqual(got, with) {
			t.Fatalf("reply to: %+v; want %+v", got, with)
		}
		with = want
		with.Expiration = ""
		if got := decoded(t, b.AppendWith(front, PropertyExpiration, nil)[5:]); !reflect.DeepEqual(got, with) {
			t.Fatalf("expiration: %+v; want %+v", got, with)
		}
		with = want
		with.DeliveryMode = 2
		if got := decoded(t, b.AppendWith(front, PropertyDeliveryMode, []byte{2})[5:]); !reflect.DeepEqual(got, with) {
			t.Fatalf("delivery mode: %+v; want %+v", got, with)
		}

		const name = "x-delivery-count" // longer than any drawn name
		field, err := AppendField(nil, name, int64(7))
		if err != nil {
			t.Fatal(err)
		}
		with = want
		with.Headers = Map{name: int64(7)}
		for k, v := range want.Headers {
			with.Headers[k] = v
		}
		added := b.AppendWithField(front, field)[5:]
		if got := decoded(t, added); !reflect.DeepEqual(got, with) {
			t.Fatalf("added: %+v; want %+v", got, with)
		}
		if added.Has(PropertyHeaders) && b.Has(PropertyHeaders) && !bytes.Equal(added.AppendWithoutHeader(front, name)[5:], b) {
			t.Fatalf("taken out again: %x of %x", added.AppendWithoutHeader(nil, name), b)
		}
		for k := range want.Headers {
			with = want
			with.Headers = Map{}
			for k, v := range want.Headers {
				with.Headers[k] = v
			}
			delete(with.Headers, k)
			if got := decoded(t, b.AppendWithoutHeader(front, k)[5:]); !reflect.DeepEqual(got, with) {
				t.Fatalf("without %q: %+v; want %+v", k, got, with)
			}
			break
		}
		if same := b.AppendWithoutHeader(nil, "not there"); !bytes.Equal(same, b) {
			t.Fatalf("%x of %x", same, b)
		}
	})
}

// TestHeadersKeepTheirBytes: a change does not encode the others anew; L stays L, and repeated names stay.
func TestHeadersKeepTheirBytes(t *testing.T) {
	b := PropertyBytes(unhex(t, "3000 00000016 0161 4C 0000000000000001 0162 74 07 0161 42 03 0162 56  02"))
	if err := b.Check(); err != nil {
		t.Fatal(err)
	}
	got := b.AppendWithField(nil, unhex(t, "0163 56"))
	if want := unhex(t, "3000 00000019 0161 4C 0000000000000001 0162 74 07 0161 42 03 0162 56 0163 56 02"); !bytes.Equal(got, want) {
		t.Errorf("added: %x", got)
	}
	got = b.AppendWithField(nil, unhex(t, "0161 42 04 0164 56"))
	if want := unhex(t, "3000 0000000E 0162 74 07 0162 56 0161 42 04 0164 56  02"); !bytes.Equal(got, want) {
		t.Errorf("replaced, and another added: %x", got)
	}
	got = b.AppendWithoutHeader(nil, "b")
	if want := unhex(t, "3000 0000000F 0161 4C 0000000000000001 0161 42 03  02"); !bytes.Equal(got, want) {
		t.Errorf("taken out, twice: %x", got)
	}
}

func TestReadingDamagedPropertiesIsHarmless(t *testing.T) {
	for _, s := range []string{"", "80", "8000", "2000", "2000 FFFFFFFF 01", "8000 0561", "FFFC", "FFFF 00 00", "0040 00"} {
		b := PropertyBytes(unhex(t, s))
		for p := Property(1 << 15); p > 0; p >>= 1 {
			b.Value(p)
			b.Byte(p)
		}
		b.Headers().Lookup("a")
		b.AppendWith(nil, PropertyReplyTo, []byte("a"))
		b.AppendWithField(nil, []byte{1, 'a', 'V'})
		b.AppendWithoutHeader(nil, "a")
	}
}
