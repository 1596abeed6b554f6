package amqp091

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestPropertiesGolden(t *testing.T) {
	p := Properties{ContentType: "a", ContentEncoding: "b", Headers: Map{"k": int32(1)}, DeliveryMode: Persistent, Priority: 3,
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

func TestMapHoldsEveryType(t *testing.T) {
	table := Map{"t": true, "b": int8(-1), "B": uint8(200), "s": int16(-2), "u": uint16(60000), "I": int32(-3),
		"i": uint32(1 << 31), "l": int64(-4), "f": float32(1.5), "d": 2.5, "D": Decimal{2, 314}, "S": "s", "x": []byte{1},
		"T": time.Unix(5, 0).UTC(), "V": nil, "F": Map{"n": "x"}, "A": []any{int32(1), "two", []any{}}}
	b, err := AppendMap(nil, table)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Table(b).Map()
	if err != nil || !reflect.DeepEqual(got, table) {
		t.Fatalf("%v, %v", got, err)
	}
	if got, err := Table(unhex(t, "01614c0000000000000002 016149 00000007")).Map(); err != nil || got["a"] != int64(2) {
		t.Fatalf("first of two: %v, %v", got, err)
	}
}

func TestMapDepthIsBounded(t *testing.T) {
	deep := any("x")
	for range MaxTableDepth + 1 {
		deep = []any{deep}
	}
	_, err := AppendMap(nil, Map{"a": deep})
	if !errors.Is(err, ErrTable) {
		t.Fatalf("encoded: %v", err)
	}
	b := []byte{1, 'a'}
	for n := 5 * 1000; n >= 0; n -= 5 {
		b = append(b, 'A', 0, 0, byte(n>>8), byte(n))
	}
	if _, err := Table(b).Map(); !errors.Is(err, ErrTable) {
		t.Fatalf("decoded: %v", err)
	}
	if _, err := AppendMap(nil, Map{"a": struct{}{}}); !errors.Is(err, ErrTable) {
		t.Fatal(err)
	}
}

func TestPropertiesRoundTrip(t *testing.T) {
	value := rapid.OneOf(rapid.Bool().AsAny(), rapid.Int32().AsAny(), rapid.Int64().AsAny(), rapid.String().AsAny(),
		rapid.Just[any](nil), rapid.SliceOfN(rapid.Int16().AsAny(), 0, 3).AsAny())
	rapid.Check(t, func(t *rapid.T) {
		p := Properties{ContentType: rapid.StringN(0, 60, 200).Draw(t, "type"), DeliveryMode: rapid.Uint8().Draw(t, "mode"),
			Priority: rapid.Uint8().Draw(t, "priority"), MessageID: rapid.StringN(0, 60, 200).Draw(t, "id"),
			Headers: Map(rapid.MapOfN(rapid.StringN(0, 10, 100), value, 0, 5).Draw(t, "headers"))}
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
