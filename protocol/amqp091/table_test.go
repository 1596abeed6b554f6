package amqp091

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// drawMap draws a table with all types of values, nested at most that deep.
func drawMap(t *rapid.T, depth int) Map {
	return Map(rapid.MapOfN(rapid.StringN(0, 8, 255), drawnValue(depth), 0, 4).Draw(t, "map"))
}

func drawnValue(depth int) *rapid.Generator[any] {
	kinds := []*rapid.Generator[any]{rapid.Bool().AsAny(), rapid.Int8().AsAny(), rapid.Uint8().AsAny(), rapid.Int16().AsAny(),
		rapid.Uint16().AsAny(), rapid.Int32().AsAny(), rapid.Uint32().AsAny(), rapid.Int64().AsAny(), rapid.Float32().AsAny(),
		rapid.Float64().AsAny(), rapid.String().AsAny(), rapid.Just[any](nil),
		rapid.Custom(func(t *rapid.T) any { return Decimal{rapid.Uint8().Draw(t, "scale"), rapid.Int32().Draw(t, "value")} }),
		rapid.Custom(func(t *rapid.T) any { return time.Unix(rapid.Int64().Draw(t, "seconds"), 0).UTC() }),
		rapid.Custom(func(t *rapid.T) any { return rapid.SliceOfN(rapid.Byte(), 0, 10).Draw(t, "bytes") })}
	if depth > 0 {
		kinds = append(kinds, rapid.Custom(func(t *rapid.T) any { return drawMap(t, depth-1) }),
			rapid.Custom(func(t *rapid.T) any { return rapid.SliceOfN(drawnValue(depth-1), 0, 4).Draw(t, "array") }))
	}
	return rapid.OneOf(kinds...)
}

func TestMapsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMap(t, 3)
		b, err := AppendMap([]byte("front"), m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Table(b[5:]).Map()
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Fatalf("%v, %v; want %v", got, err, m)
		}
		for name, value := range m {
			v, found := Table(b[5:]).Lookup(name)
			if !found || v.TypeName() == "" || !reflect.DeepEqual(v.decode(), value) {
				t.Fatalf("%s: %v %v", name, v, found)
			}
		}
	})
}

// TestRow59AllFieldTagsRoundTrip: every type with its value, and nested in tables and arrays, both ways and byte for byte; L alone
// comes back as l.
func TestRow59AllFieldTagsRoundTrip(t *testing.T) {
	for _, c := range []struct {
		name, bytes string
		value       any
	}{
		{"bool", "74 01", true},
		{"byte", "62 FF", int8(-1)},
		{"unsignedbyte", "42 FF", uint8(255)},
		{"short", "73 8000", int16(math.MinInt16)},
		{"unsignedshort", "75 FFFF", uint16(65535)},
		{"signedint", "49 80000000", int32(math.MinInt32)},
		{"unsignedint", "69 FFFFFFFF", uint32(math.MaxUint32)},
		{"long", "6C 8000000000000000", int64(math.MinInt64)},
		{"long", "4C 8000000000000001", int64(math.MinInt64 + 1)},
		{"float", "66 3FC00000", float32(1.5)},
		{"double", "64 3FF8000000000000", 1.5},
		{"decimal", "44 02 FFFFFFFF", Decimal{2, -1}},
		{"longstr", "53 00000002 61FF", "a\xff"},
		{"binary", "78 00000002 00FF", []byte{0, 255}},
		{"timestamp", "54 0000000065000000", time.Unix(0x65000000, 0).UTC()},
		{"array", "41 00000003 56 74 00", []any{nil, false}},
		{"table", "46 00000004 01 6B 42 07", Map{"k": uint8(7)}},
		{"void", "56", nil},
	} {
		value := unhex(t, c.bytes)
		inner := append([]byte{1, 'k'}, value...)
		table := append([]byte{1, 'a'}, appendLong([]byte{'F'}, inner)...)
		table = append(append(table, 1, 'b'), appendLong([]byte{'A'}, append([]byte{'V'}, value...))...)
		table = append(append(table, 1, 'c'), value...)
		want := Map{"a": Map{"k": c.value}, "b": []any{nil, c.value}, "c": c.value}
		got, err := Table(table).Map()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v; want %v", c.bytes, got, err, want)
			continue
		}
		if v, _ := Table(table).Lookup("c"); v.TypeName() != c.name || v.Tag != value[0] {
			t.Errorf("%s is a %s", c.bytes, v.TypeName())
		}
		if b, err := AppendMap(nil, got); err != nil || !bytes.Equal(b, bytes.ReplaceAll(table, []byte{'L', 0x80}, []byte{'l', 0x80})) {
			t.Errorf("%s: encoded as %x, %v", c.bytes, b, err)
		}
	}
	if n, ok := (Value{'t', []byte{7}}).Bool(); !n || !ok {
		t.Error("a bool of 7 is not true")
	}
}

func TestIntegersCompareByValue(t *testing.T) {
	for _, s := range []string{"62 07", "42 07", "73 0007", "75 0007", "49 00000007", "69 00000007", "6C 0000000000000007", "4C 0000000000000007"} {
		if v, _, err := nextValue(unhex(t, s)); err != nil {
			t.Error(err)
		} else if n, ok := v.Int(); n != 7 || !ok {
			t.Errorf("%s is %d, %t", s, n, ok)
		}
	}
	v, _, _ := nextValue(unhex(t, "64 401C000000000000"))
	if _, ok := v.Int(); ok {
		t.Error("a double is an integer")
	}
	if f, ok := v.Float(); f != 7 || !ok {
		t.Error(f, ok)
	}
}

// TestFirstOfANameCounts: names need not be unique; order and repetitions stay in the bytes.
func TestFirstOfANameCounts(t *testing.T) {
	table := Table(unhex(t, "01 61 42 01  01 62 42 02  01 61 42 03"))
	if v, found := table.Lookup("a"); !found || v.Raw[0] != 1 {
		t.Error(v, found)
	}
	if m, err := table.Map(); err != nil || !reflect.DeepEqual(m, Map{"a": uint8(1), "b": uint8(2)}) {
		t.Error(m, err)
	}
	order := ""
	for name, v := range table.All() {
		order += string(name) + string('0'+v.Raw[0])
	}
	if order != "a1b2a3" {
		t.Error(order)
	}
	if _, found := Table(nil).Lookup("a"); found {
		t.Error("found in nothing")
	}
}

// nested returns a table with arrays (tag A) or tables (F) inside each other.
func nested(tag byte, depth int) []byte {
	front := []byte{1, 'k', tag}
	if tag == 'A' {
		front = front[2:]
	}
	var b []byte
	for inside := depth - 1; inside >= 0; inside-- {
		b = be.AppendUint32(append(b, front...), uint32(inside*(len(front)+4)))
	}
	if tag == 'A' {
		b = append([]byte{1, 'k'}, b...)
	}
	return b
}

// TestTablesAreBounded: in depth and in number of elements, without taking memory for what is refused.
func TestTablesAreBounded(t *testing.T) {
	for _, tag := range []byte{'A', 'F'} {
		if err := Table(nested(tag, MaxTableDepth)).Check(); err != nil {
			t.Errorf("%c, just deep enough: %v", tag, err)
		}
		for _, depth := range []int{MaxTableDepth + 1, 10_000} {
			if err := Table(nested(tag, depth)).Check(); !errors.Is(err, ErrTable) {
				t.Errorf("%c, %d deep: %v", tag, depth, err)
			}
		}
	}
	many := bytes.Repeat([]byte{0, 'V'}, 1_000_000)
	if err := Table(many[:2*MaxTableElements]).Check(); err != nil {
		t.Errorf("just few enough: %v", err)
	}
	if n := testing.AllocsPerRun(1, func() { _ = Table(many[:2*MaxTableElements]).Check() }); n != 0 {
		t.Errorf("%v allocations for a good table", n)
	}
	if err := Table(many).Check(); !errors.Is(err, ErrTable) {
		t.Errorf("a million fields: %v", err)
	}
	if _, err := Table(many).Map(); !errors.Is(err, ErrTable) {
		t.Errorf("a million fields: %v", err)
	}
}

func TestDamagedTables(t *testing.T) {
	for name, table := range map[string]string{
		"no type":                   "01 61",
		"name longer than table":    "05 61 62",
		"value cut":                 "01 61 49 0000",
		"string longer than table":  "01 61 53 00000003 6162",
		"array without its length":  "01 61 41 0000",
		"inner longer than outer":   "01 61 46 00000006 01 62 42 01",
		"value runs out of array":   "01 61 41 00000003 49 0000",
		"unknown letter":            "01 61 55 0001",
		"unknown letter in array":   "01 61 41 00000001 63",
		"a length of 4 GiB":         "01 61 53 FFFFFFFF 61",
		"zero name, then no letter": "00",
	} {
		b := Table(unhex(t, table))
		if err := b.Check(); !errors.Is(err, ErrTable) {
			t.Errorf("%s: %v", name, err)
		}
		if _, found := b.Lookup("b"); found {
			t.Errorf("%s: found something", name)
		}
	}
}
