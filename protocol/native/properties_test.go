package native

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestPropertiesGolden(t *testing.T) {
	p := Properties{ContentType: "a", ContentEncoding: "b", Headers: Table{"k": int32(1)}, DeliveryMode: Persistent, Priority: 3,
		CorrelationID: "c", ReplyTo: "r", Expiration: "5", MessageID: "m", Timestamp: time.Unix(1, 0).UTC(), Type: "t",
		UserID: "u", AppID: "p", ClusterID: "l"}
	want := unhex(t, "fffc 0161 0162 00000007 016b4900000001 02 03 0163 0172 0135 016d 0000000000000001 0174 0175 0170 016c")
	b, err := AppendProperties(nil, &p)
	if err != nil || !bytes.Equal(b, want) {
		t.Fatalf("%x, %v; want %x", b, err, want)
	}
	var got Properties
	if err := DecodeProperties(b, &got); err != nil || !reflect.DeepEqual(got, p) {
		t.Fatalf("%+v, %v", got, err)
	}
	if b, _ := AppendProperties(nil, &Properties{}); !bytes.Equal(b, []byte{0, 0}) {
		t.Fatalf("no properties: %x", b)
	}
	for n := 1; n < len(want); n++ {
		if err := DecodeProperties(want[:n], &got); !errors.Is(err, ErrProperties) {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
	if _, err := AppendProperties(nil, &Properties{Type: strings.Repeat("x", 256)}); !errors.Is(err, ErrProperties) {
		t.Fatal(err)
	}
}

func TestTableHoldsEveryType(t *testing.T) {
	table := Table{"t": true, "b": int8(-1), "B": uint8(200), "s": int16(-2), "u": uint16(60000), "I": int32(-3),
		"i": uint32(1 << 31), "l": int64(-4), "f": float32(1.5), "d": 2.5, "D": Decimal{2, 314}, "S": "s", "x": []byte{1},
		"T": time.Unix(5, 0).UTC(), "V": nil, "F": Table{"n": "x"}, "A": []any{int32(1), "two", []any{}}}
	b, err := EncodeTable(nil, table)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeTable(b)
	if err != nil || !reflect.DeepEqual(got, table) {
		t.Fatalf("%v, %v", got, err)
	}
	if got, err := DecodeTable(unhex(t, "01614c0000000000000002 016149 00000007")); err != nil || got["a"] != int64(2) {
		t.Fatalf("first of two: %v, %v", got, err)
	}
}

func TestTableDepthIsBounded(t *testing.T) {
	deep := any("x")
	for range MaxTableDepth + 1 {
		deep = []any{deep}
	}
	_, err := EncodeTable(nil, Table{"a": deep})
	if !errors.Is(err, ErrTable) {
		t.Fatalf("encoded: %v", err)
	}
	b := []byte{1, 'a'}
	for n := 5 * 1000; n >= 0; n -= 5 {
		b = append(b, 'A', 0, 0, byte(n>>8), byte(n))
	}
	if _, err := DecodeTable(b); !errors.Is(err, ErrTable) {
		t.Fatalf("decoded: %v", err)
	}
	if _, err := EncodeTable(nil, Table{"a": struct{}{}}); !errors.Is(err, ErrTable) {
		t.Fatal(err)
	}
}

func TestPropertiesRoundTrip(t *testing.T) {
	value := rapid.OneOf(rapid.Bool().AsAny(), rapid.Int32().AsAny(), rapid.Int64().AsAny(), rapid.String().AsAny(),
		rapid.Just[any](nil), rapid.SliceOfN(rapid.Int16().AsAny(), 0, 3).AsAny())
	rapid.Check(t, func(t *rapid.T) {
		p := Properties{ContentType: rapid.StringN(0, 60, 200).Draw(t, "type"), DeliveryMode: rapid.Uint8().Draw(t, "mode"),
			Priority: rapid.Uint8().Draw(t, "priority"), MessageID: rapid.StringN(0, 60, 200).Draw(t, "id"),
			Headers: Table(rapid.MapOfN(rapid.StringN(0, 10, 100), value, 0, 5).Draw(t, "headers"))}
		b, err := AppendProperties(nil, &p)
		if err != nil {
			t.Fatal(err)
		}
		var got Properties
		if err := DecodeProperties(b, &got); err != nil || !reflect.DeepEqual(got, p) {
			t.Fatalf("%+v, %v; want %+v", got, err, p)
		}
	})
}

func TestPublishRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytesOf := func(name string) []byte {
			if b := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, name); len(b) > 0 {
				return b
			}
			return nil
		}
		p := Publish{Head: Head{rapid.Uint64().Draw(t, "rid"), rapid.Uint32().Draw(t, "channel")},
			Exchange: rapid.String().Draw(t, "exchange"), RoutingKey: rapid.String().Draw(t, "key"),
			Properties: bytesOf("properties"), Body: bytesOf("body"), Mandatory: rapid.Bool().Draw(t, "mandatory"),
			Producer: bytesOf("producer"), Sequence: rapid.Uint64().Draw(t, "sequence")}
		var got Publish
		if err := DecodePublish(AppendPublish(nil, &p)[HeaderBytes:], &got); err != nil || !reflect.DeepEqual(got, p) {
			t.Fatalf("%+v, %v; want %+v", got, err, p)
		}
	})
}

func hasBadText(p *Properties) bool {
	return slices.ContainsFunc([]string{p.ContentType, p.ContentEncoding, p.CorrelationID, p.ReplyTo, p.Expiration, p.MessageID,
		p.Type, p.UserID, p.AppID, p.ClusterID}, func(s string) bool { return !utf8.ValidString(s) })
}

func TestChecksAllocateNothing(t *testing.T) {
	b, err := AppendProperties(nil, &Properties{ContentType: "text/plain", Headers: Table{"a": []any{nil, Table{"x": 1}}}, DeliveryMode: Persistent, AppID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { err = CheckProperties(b) }); n != 0 || err != nil {
		t.Fatalf("%v allocations, %v", n, err)
	}
}

func FuzzProperties(f *testing.F) {
	f.Add([]byte{0, 0})
	b, _ := AppendProperties(nil, &Properties{ContentType: "a", Headers: Table{"a": []any{nil, Table{"x": 1}}}, Priority: 1})
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var p, q Properties
		err := DecodeProperties(b, &p)
		if checked := CheckProperties(b); checked == nil && err != nil || checked != nil && err == nil && !hasBadText(&p) {
			t.Fatalf("checked: %v; decoded: %v", checked, err)
		}
		if err != nil {
			return
		}
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

func FuzzTable(f *testing.F) {
	b, _ := EncodeTable(nil, Table{"a": []any{nil, Table{"x": 1}}, "d": Decimal{1, 2}, "x": []byte("x")})
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		table, err := DecodeTable(b)
		if checked := CheckTable(b); (checked == nil) != (err == nil) {
			t.Fatalf("checked: %v; decoded: %v", checked, err)
		}
		if err != nil {
			return
		}
		if _, err := EncodeTable(nil, table); err != nil {
			t.Fatal(err)
		}
	})
}
