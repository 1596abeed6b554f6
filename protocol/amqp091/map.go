package amqp091

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// Map is a field table as Go values. The values, with the letter they travel under:
//
//	bool t, int8 b, uint8 B, int16 s, uint16 u, int32 I, uint32 i, int64 l, float32 f, float64 d, Decimal D,
//	string S, []byte x, time.Time T (whole seconds), nil V, Map and map[string]any F, []any A
//
// Besides, int and uint travel as l. Decoding also reads L as int64.
type Map map[string]any

// Decimal is Value divided by ten to the power of Scale.
type Decimal struct {
	Scale uint8
	Value int32
}

// AppendMap appends a table's bytes without the length in front, fields sorted by name, so that equal maps have equal bytes. It
// fails for a value of another type, a name above 255 bytes, or a table beyond the bounds; the error wraps ErrTable.
func AppendMap(dst []byte, m map[string]any) ([]byte, error) {
	e := encoder{}
	return e.table(dst, m, 0)
}

// AppendField appends one field to a table's bytes.
func AppendField(dst []byte, name string, value any) ([]byte, error) {
	e := encoder{}
	return e.field(dst, name, value, 0)
}

// encoder counts what it writes; the bounds are those of reading.
type encoder struct{ elements int }

func (e *encoder) table(b []byte, t map[string]any, depth int) (_ []byte, err error) {
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if b, err = e.field(b, name, t[name], depth); err != nil {
			return b, err
		}
	}
	return b, nil
}

func (e *encoder) field(b []byte, name string, value any, depth int) ([]byte, error) {
	if len(name) > maxShort {
		return b, fmt.Errorf("%w: name of %d bytes, at most %d are allowed", ErrTable, len(name), maxShort)
	}
	b, err := e.value(append(append(b, byte(len(name))), name...), value, depth)
	if err != nil {
		err = fmt.Errorf("%w (in field %q)", err, name)
	}
	return b, err
}

func (e *encoder) value(b []byte, value any, depth int) ([]byte, error) {
	if e.elements++; e.elements > MaxTableElements {
		return b, fmt.Errorf("%w: more than %d elements", ErrTable, MaxTableElements)
	}
	switch v := value.(type) {
	case nil:
		return append(b, 'V'), nil
	case bool:
		return append(b, 't', bit(v, 0)), nil
	case int8:
		return append(b, 'b', byte(v)), nil
	case uint8:
		return append(b, 'B', v), nil
	case int16:
		return be.AppendUint16(append(b, 's'), uint16(v)), nil
	case uint16:
		return be.AppendUint16(append(b, 'u'), v), nil
	case int32:
		return be.AppendUint32(append(b, 'I'), uint32(v)), nil
	case uint32:
		return be.AppendUint32(append(b, 'i'), v), nil
	case int64:
		return be.AppendUint64(append(b, 'l'), uint64(v)), nil
	case int:
		return be.AppendUint64(append(b, 'l'), uint64(v)), nil
	case uint:
		return appendUnsigned(b, uint64(v))
	case uint64:
		return appendUnsigned(b, v)
	case float32:
		return be.AppendUint32(append(b, 'f'), math.Float32bits(v)), nil
	case float64:
		return be.AppendUint64(append(b, 'd'), math.Float64bits(v)), nil
	case Decimal:
		return be.AppendUint32(append(b, 'D', v.Scale), uint32(v.Value)), nil
	case string:
		return appendLong(append(b, 'S'), v), nil
	case []byte:
		return appendLong(append(b, 'x'), v), nil
	case time.Time:
		return be.AppendUint64(append(b, 'T'), uint64(v.Unix())), nil
	case Map:
		return e.nested(b, 'F', depth, func(b []byte) ([]byte, error) { return e.table(b, v, depth+1) })
	case map[string]any:
		return e.nested(b, 'F', depth, func(b []byte) ([]byte, error) { return e.table(b, v, depth+1) })
	case []any:
		return e.nested(b, 'A', depth, func(b []byte) ([]byte, error) { return e.array(b, v, depth+1) })
	}
	return b, fmt.Errorf("%w: cannot hold a %T", ErrTable, value)
}

func (e *encoder) array(b []byte, values []any, depth int) (_ []byte, err error) {
	for _, v := range values {
		if b, err = e.value(b, v, depth); err != nil {
			break
		}
	}
	return b, err
}

func (e *encoder) nested(b []byte, tag byte, depth int, content func([]byte) ([]byte, error)) ([]byte, error) {
	if depth >= MaxTableDepth {
		return b, fmt.Errorf("%w: nested more than %d deep", ErrTable, MaxTableDepth)
	}
	b = append(b, tag, 0, 0, 0, 0)
	at := len(b)
	b, err := content(b)
	be.PutUint32(b[at-4:], uint32(len(b)-at))
	return b, err
}

func appendUnsigned(b []byte, v uint64) ([]byte, error) {
	if v > math.MaxInt64 {
		return b, fmt.Errorf("%w: %d is beyond a signed 64-bit number", ErrTable, v)
	}
	return be.AppendUint64(append(b, 'l'), v), nil
}

// Map decodes the table. Byte values alias it; of several fields of one name the first counts.
func (t Table) Map() (Map, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	return t.decode(), nil
}

func (t Table) decode() Map {
	m := Map{}
	for name, v := range t.All() {
		if _, there := m[string(name)]; !there {
			m[string(name)] = v.decode()
		}
	}
	return m
}

// decode returns the Go value of a checked one.
func (v Value) decode() any {
	switch v.Tag {
	case 't':
		return v.Raw[0] != 0
	case 'b':
		return int8(v.Raw[0])
	case 'B':
		return v.Raw[0]
	case 's':
		return int16(be.Uint16(v.Raw))
	case 'u':
		return be.Uint16(v.Raw)
	case 'I':
		return int32(be.Uint32(v.Raw))
	case 'i':
		return be.Uint32(v.Raw)
	case 'l', 'L':
		return int64(be.Uint64(v.Raw))
	case 'f':
		return math.Float32frombits(be.Uint32(v.Raw))
	case 'd':
		return math.Float64frombits(be.Uint64(v.Raw))
	case 'D':
		return Decimal{v.Raw[0], int32(be.Uint32(v.Raw[1:]))}
	case 'S':
		return string(v.Raw)
	case 'x':
		return v.Raw
	case 'T':
		t, _ := v.Time()
		return t
	case 'F':
		return Table(v.Raw).decode()
	case 'A':
		a := []any{}
		for e := range Array(v.Raw).All() {
			a = append(a, e.decode())
		}
		return a
	}
	return nil
}
