package native

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// ErrTable is wrapped by every error about a field table, its encoding or a value it cannot hold.
var ErrTable = errors.New("field table")

// Bounds of a field table.
const (
	MaxTableDepth    = 32     // tables and arrays inside each other
	MaxTableElements = 65_536 // fields and array elements of the whole table
)

// Table is an AMQP field table. The values, with the letter they travel under:
//
//	bool t, int8 b, uint8 B, int16 s, uint16 u, int32 I, uint32 i, int64 l, float32 f, float64 d, Decimal D,
//	string S, []byte x, time.Time T (whole seconds), nil V, Table and map[string]any F, []any A
//
// Besides, int and uint travel as l. Decoding also reads L as int64.
type Table map[string]any

// Decimal is Value divided by ten to the power of Scale.
type Decimal struct {
	Scale uint8
	Value int32
}

// EncodeTable appends a table's bytes without their length prefix, fields sorted by name, so that equal tables have
// equal bytes. It fails for a value of another type, a name above 255 bytes, or a table beyond the bounds.
func EncodeTable(b []byte, t map[string]any) ([]byte, error) {
	e := tableCoder{}
	return e.table(b, t, 0)
}

type tableCoder struct{ elements int }

func (e *tableCoder) count(depth int) error {
	if e.elements++; e.elements > MaxTableElements {
		return fmt.Errorf("%w: more than %d elements", ErrTable, MaxTableElements)
	}
	if depth > MaxTableDepth {
		return fmt.Errorf("%w: nested more than %d deep", ErrTable, MaxTableDepth)
	}
	return nil
}

func (e *tableCoder) table(b []byte, t map[string]any, depth int) ([]byte, error) {
	names := make([]string, 0, len(t))
	for name := range t {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if len(name) > math.MaxUint8 {
			return b, fmt.Errorf("%w: name of %d bytes, at most 255 are allowed", ErrTable, len(name))
		}
		b = append(append(b, byte(len(name))), name...)
		var err error
		if b, err = e.value(b, t[name], depth); err != nil {
			return b, fmt.Errorf("%w (in field %q)", err, name)
		}
	}
	return b, nil
}

func (e *tableCoder) value(b []byte, value any, depth int) ([]byte, error) {
	if err := e.count(depth); err != nil {
		return b, err
	}
	be := binary.BigEndian
	switch v := value.(type) {
	case nil:
		return append(b, 'V'), nil
	case bool:
		if v {
			return append(b, 't', 1), nil
		}
		return append(b, 't', 0), nil
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
		return e.unsigned(b, uint64(v))
	case uint64:
		return e.unsigned(b, v)
	case float32:
		return be.AppendUint32(append(b, 'f'), math.Float32bits(v)), nil
	case float64:
		return be.AppendUint64(append(b, 'd'), math.Float64bits(v)), nil
	case Decimal:
		return be.AppendUint32(append(b, 'D', v.Scale), uint32(v.Value)), nil
	case string:
		return append(be.AppendUint32(append(b, 'S'), uint32(len(v))), v...), nil
	case []byte:
		return append(be.AppendUint32(append(b, 'x'), uint32(len(v))), v...), nil
	case time.Time:
		return be.AppendUint64(append(b, 'T'), uint64(v.Unix())), nil
	case Table:
		return e.nested(b, 'F', func(b []byte) ([]byte, error) { return e.table(b, v, depth+1) })
	case map[string]any:
		return e.nested(b, 'F', func(b []byte) ([]byte, error) { return e.table(b, v, depth+1) })
	case []any:
		return e.nested(b, 'A', func(b []byte) (_ []byte, err error) {
			for _, x := range v {
				if b, err = e.value(b, x, depth+1); err != nil {
					break
				}
			}
			return b, err
		})
	}
	return b, fmt.Errorf("%w: cannot hold a %T", ErrTable, value)
}

func (e *tableCoder) unsigned(b []byte, v uint64) ([]byte, error) {
	if v > math.MaxInt64 {
		return b, fmt.Errorf("%w: %d is beyond a signed 64-bit number", ErrTable, v)
	}
	return binary.BigEndian.AppendUint64(append(b, 'l'), v), nil
}

func (e *tableCoder) nested(b []byte, letter byte, content func([]byte) ([]byte, error)) ([]byte, error) {
	b = append(b, letter, 0, 0, 0, 0)
	at := len(b)
	b, err := content(b)
	binary.BigEndian.PutUint32(b[at-4:], uint32(len(b)-at))
	return b, err
}

// DecodeTable reads a table from its bytes without their length prefix, to their end. Byte values alias b; of several
// fields of one name the first counts.
func DecodeTable(b []byte) (Table, error) {
	d := tableCoder{}
	return d.readTable(&octets{b: b}, 0)
}

func (e *tableCoder) readTable(o *octets, depth int) (Table, error) {
	t := Table{}
	for len(o.b) > 0 && o.err == nil {
		name := string(o.short())
		v, err := e.readValue(o, depth)
		if err != nil {
			return nil, err
		}
		if _, there := t[name]; !there {
			t[name] = v
		}
	}
	return t, o.err
}

func (e *tableCoder) readArray(o *octets, depth int) ([]any, error) {
	a := []any{}
	for len(o.b) > 0 && o.err == nil {
		v, err := e.readValue(o, depth)
		if err != nil {
			return nil, err
		}
		a = append(a, v)
	}
	return a, o.err
}

func (e *tableCoder) readValue(o *octets, depth int) (v any, err error) {
	if err := e.count(depth); err != nil {
		return nil, err
	}
	switch letter := o.uint(1); letter {
	case 't':
		v = o.uint(1) != 0
	case 'b':
		v = int8(o.uint(1))
	case 'B':
		v = uint8(o.uint(1))
	case 's':
		v = int16(o.uint(2))
	case 'u':
		v = uint16(o.uint(2))
	case 'I':
		v = int32(o.uint(4))
	case 'i':
		v = uint32(o.uint(4))
	case 'l', 'L':
		v = int64(o.uint(8))
	case 'f':
		v = math.Float32frombits(uint32(o.uint(4)))
	case 'd':
		v = math.Float64frombits(o.uint(8))
	case 'D':
		scale := uint8(o.uint(1))
		v = Decimal{scale, int32(o.uint(4))}
	case 'S':
		v = string(o.long())
	case 'x':
		v = o.long()
	case 'T':
		v = time.Unix(int64(o.uint(8)), 0).UTC()
	case 'V':
	case 'F':
		v, err = e.readTable(&octets{b: o.long()}, depth+1)
	case 'A':
		v, err = e.readArray(&octets{b: o.long()}, depth+1)
	default:
		if o.err == nil {
			o.err = fmt.Errorf("%w: unknown type letter 0x%02x", ErrTable, letter)
		}
	}
	if o.err != nil {
		return nil, o.err
	}
	return v, err
}

// octets takes AMQP's values off the front of b; an error sticks.
type octets struct {
	b   []byte
	err error
}

func (o *octets) take(n uint64) []byte {
	if o.err != nil {
		return nil
	}
	if n > uint64(len(o.b)) {
		o.err = fmt.Errorf("%w: ends early, %d bytes wanted, %d left", ErrTable, n, len(o.b))
		return nil
	}
	s := o.b[:n:n]
	o.b = o.b[n:]
	return s
}

func (o *octets) uint(n uint64) (v uint64) {
	for _, x := range o.take(n) {
		v = v<<8 | uint64(x)
	}
	return v
}

func (o *octets) short() []byte { return o.take(o.uint(1)) }
func (o *octets) long() []byte  { return o.take(o.uint(4)) }
