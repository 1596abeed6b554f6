package amqp091

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"time"
)

// ErrTable is wrapped by every error about a field table, its encoding or a value it cannot hold.
var ErrTable = errors.New("field table")

// Bounds of a field table.
const (
	MaxTableDepth    = 64     // tables and arrays inside each other
	MaxTableElements = 65_536 // fields and array elements of the whole table
)

// Table is a field table as on the wire, without the length in front of it. Nil is an empty one. Reading a table that Check
// refuses gives what lies in front of the damage.
type Table []byte

// Array is an array as on the wire, without the length in front of it.
type Array []byte

// Value is a field's value as on the wire: the letter of its type and its bytes, which alias the table's.
type Value struct {
	Tag byte
	Raw []byte // without a length in front
}

// Check walks through the whole table, nested ones included, without taking memory. It fails for bytes that are no table, an
// unknown type, and a table beyond the bounds; the error wraps ErrTable.
func (t Table) Check() error {
	elements := 0
	return check(t, true, 0, &elements)
}

func check(b []byte, named bool, depth int, elements *int) error {
	if depth > MaxTableDepth {
		return fmt.Errorf("%w: nested more than %d deep", ErrTable, MaxTableDepth)
	}
	for len(b) > 0 {
		if *elements++; *elements > MaxTableElements {
			return fmt.Errorf("%w: more than %d elements", ErrTable, MaxTableElements)
		}
		if named {
			n := 1 + int(b[0])
			if len(b) < n {
				return errTableEnds
			}
			b = b[n:]
		}
		v, rest, err := nextValue(b)
		if err != nil {
			return err
		}
		if v.Tag == 'F' || v.Tag == 'A' {
			if err := check(v.Raw, v.Tag == 'F', depth+1, elements); err != nil {
				return err
			}
		}
		b = rest
	}
	return nil
}

var errTableEnds = fmt.Errorf("%w: ends inside a field", ErrTable)

// nextValue takes a value with its letter off the front of b.
func nextValue(b []byte) (v Value, rest []byte, err error) {
	if len(b) == 0 {
		return v, nil, errTableEnds
	}
	v.Tag, b = b[0], b[1:]
	width := 0
	switch v.Tag {
	case 'V':
	case 't', 'b', 'B':
		width = 1
	case 's', 'u':
		width = 2
	case 'I', 'i', 'f':
		width = 4
	case 'D':
		width = 5
	case 'l', 'L', 'd', 'T':
		width = 8
	case 'S', 'x', 'A', 'F':
		if len(b) < 4 {
			return v, nil, errTableEnds
		}
		length := be.Uint32(b)
		if b = b[4:]; uint64(length) > uint64(len(b)) {
			return v, nil, errTableEnds
		}
		width = int(length)
	default:
		return v, nil, fmt.Errorf("%w: unknown type letter 0x%02x", ErrTable, v.Tag)
	}
	if len(b) < width {
		return v, nil, errTableEnds
	}
	v.Raw = b[:width:width]
	return v, b[width:], nil
}

// next takes a field off the front of the table; ok is false at its end, or at damage.
func (t Table) next() (name []byte, v Value, rest Table, ok bool) {
	if len(t) == 0 || len(t) < 1+int(t[0]) {
		return nil, v, nil, false
	}
	n := 1 + int(t[0])
	v, b, err := nextValue(t[n:])
	return t[1:n:n], v, b, err == nil
}

// All yields the fields in their order; names alias the table.
func (t Table) All() iter.Seq2[[]byte, Value] {
	return func(yield func([]byte, Value) bool) {
		for name, v, rest, ok := t.next(); ok; name, v, rest, ok = rest.next() {
			if !yield(name, v) {
				return
			}
		}
	}
}

// Lookup returns the first field of the name.
func (t Table) Lookup(name string) (v Value, found bool) {
	for n, v := range t.All() {
		if string(n) == name {
			return v, true
		}
	}
	return Value{}, false
}

// All yields the elements in their order.
func (a Array) All() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		for b := []byte(a); len(b) > 0; {
			v, rest, err := nextValue(b)
			if err != nil || !yield(v) {
				return
			}
			b = rest
		}
	}
}

// Int returns the value of any integer type; they compare by value, whatever their width. L counts as signed.
func (v Value) Int() (n int64, ok bool) {
	switch v.Tag {
	case 'b':
		return int64(int8(v.Raw[0])), true
	case 'B':
		return int64(v.Raw[0]), true
	case 's':
		return int64(int16(be.Uint16(v.Raw))), true
	case 'u':
		return int64(be.Uint16(v.Raw)), true
	case 'I':
		return int64(int32(be.Uint32(v.Raw))), true
	case 'i':
		return int64(be.Uint32(v.Raw)), true
	case 'l', 'L':
		return int64(be.Uint64(v.Raw)), true
	}
	return 0, false
}

// Float returns the value of either floating-point type.
func (v Value) Float() (f float64, ok bool) {
	switch v.Tag {
	case 'f':
		return float64(math.Float32frombits(be.Uint32(v.Raw))), true
	case 'd':
		return math.Float64frombits(be.Uint64(v.Raw)), true
	}
	return 0, false
}

// Bool returns the value of a t.
func (v Value) Bool() (b, ok bool) { return v.Tag == 't' && v.Raw[0] != 0, v.Tag == 't' }

// Text returns the bytes of an S, which need not be UTF-8.
func (v Value) Text() (s []byte, ok bool) {
	if v.Tag != 'S' {
		return nil, false
	}
	return v.Raw, true
}

// Time returns the value of a T.
func (v Value) Time() (t time.Time, ok bool) {
	if v.Tag != 'T' {
		return t, false
	}
	return time.Unix(int64(be.Uint64(v.Raw)), 0).UTC(), true
}

// Table returns the value of an F.
func (v Value) Table() (t Table, ok bool) {
	if v.Tag != 'F' {
		return nil, false
	}
	return v.Raw, true
}

// Array returns the value of an A.
func (v Value) Array() (a Array, ok bool) {
	if v.Tag != 'A' {
		return nil, false
	}
	return v.Raw, true
}

var tagNames = map[byte]string{'t': "bool", 'b': "byte", 'B': "unsignedbyte", 's': "short", 'u': "unsignedshort", 'I': "signedint",
	'i': "unsignedint", 'l': "long", 'L': "long", 'f': "float", 'd': "double", 'D': "decimal", 'S': "longstr", 'x': "binary",
	'T': "timestamp", 'A': "array", 'F': "table", 'V': "void"}

// TypeName is RabbitMQ's name of the value's type, which its error texts use.
func (v Value) TypeName() string { return tagNames[v.Tag] }
