package fsm

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
)

// field is a field of an AMQP field table. It aliases the table.
type field struct {
	name  string
	tag   byte
	value []byte // as on the wire, without a length prefix
}

// tagNames are RabbitMQ's names of the types.
var tagNames = map[byte]string{'t': "bool", 'b': "byte", 'B': "unsignedbyte", 's': "short", 'u': "unsignedshort",
	'I': "signedint", 'i': "unsignedint", 'l': "long", 'L': "long", 'f': "float", 'd': "double", 'D': "decimal", 'S': "longstr",
	'A': "array", 'F': "table", 'T': "timestamp", 'V': "void", 'x': "binary"}

// fixedWidth is how many bytes a value of a type has; -1: a length prefix says it.
func fixedWidth(tag byte) (int, bool) {
	switch tag {
	case 'V':
		return 0, true
	case 't', 'b', 'B':
		return 1, true
	case 's', 'u':
		return 2, true
	case 'I', 'i', 'f':
		return 4, true
	case 'D':
		return 5, true
	case 'l', 'L', 'd', 'T':
		return 8, true
	case 'S', 'A', 'F', 'x':
		return -1, true
	}
	return 0, false
}

// parseTable appends the fields of a table without its length prefix; ok is false when the bytes are no table. What
// is inside arrays and tables is passed over.
func parseTable(b []byte, into []field) (fields []field, ok bool) {
	for len(b) > 0 {
		f, rest, ok := cutField(b)
		if !ok {
			return into, false
		}
		into, b = append(into, f), rest
	}
	return into, true
}

// cutField cuts the first field off a table.
func cutField(b []byte) (f field, rest []byte, ok bool) {
	if len(b) == 0 || len(b) < 1+int(b[0]) {
		return field{}, nil, false
	}
	n := 1 + int(b[0])
	f.name = string(b[1:n])
	f.tag, f.value, rest, ok = cutValue(b[n:])
	return f, rest, ok
}

// cutValue cuts the first value, with its tag, off an array.
func cutValue(b []byte) (tag byte, value, rest []byte, ok bool) {
	if len(b) == 0 {
		return 0, nil, nil, false
	}
	tag, b = b[0], b[1:]
	width, known := fixedWidth(tag)
	if width < 0 {
		if len(b) < 4 || uint64(big.Uint32(b)) > uint64(len(b)-4) {
			return 0, nil, nil, false
		}
		width, b = int(big.Uint32(b)), b[4:]
	}
	if !known || len(b) < width {
		return 0, nil, nil, false
	}
	return tag, b[:width:width], b[width:], true
}

// append appends the field to a table.
func (f *field) append(table []byte) []byte {
	table = append(append(append(table, byte(len(f.name))), f.name...), f.tag)
	if width, _ := fixedWidth(f.tag); width < 0 {
		table = big.AppendUint32(table, uint32(len(f.value)))
	}
	return append(table, f.value...)
}

func appendText(table []byte, name, text string) []byte {
	return (&field{name: name, tag: 'S', value: []byte(text)}).append(table)
}

func appendLong(table []byte, name string, x int64) []byte {
	return (&field{name: name, tag: 'l', value: big.AppendUint64(nil, uint64(x))}).append(table)
}

// integer returns the value of the integer types, which compare by value.
func (f *field) integer() (int64, bool) {
	switch f.tag {
	case 'b':
		return int64(int8(f.value[0])), true
	case 'B':
		return int64(f.value[0]), true
	case 's':
		return int64(int16(big.Uint16(f.value))), true
	case 'u':
		return int64(big.Uint16(f.value)), true
	case 'I':
		return int64(int32(big.Uint32(f.value))), true
	case 'i':
		return int64(big.Uint32(f.value)), true
	case 'l', 'L': // both signed in RabbitMQ
		return int64(big.Uint64(f.value)), true
	}
	return 0, false
}

func (f *field) float() (float64, bool) {
	switch f.tag {
	case 'f':
		return float64(math.Float32frombits(big.Uint32(f.value))), true
	case 'd':
		return math.Float64frombits(big.Uint64(f.value)), true
	}
	return 0, false
}

// equal compares by class: integers of any width, floats of any width, bools by truth, all else by type and bytes.
func (f *field) equal(g *field) bool {
	if x, ok := f.integer(); ok {
		y, ok := g.integer()
		return ok && x == y
	}
	if x, ok := f.float(); ok {
		y, ok := g.float()
		return ok && x == y
	}
	if f.tag == 't' && g.tag == 't' {
		return f.value[0] == 0 == (g.value[0] == 0)
	}
	return f.tag == g.tag && bytes.Equal(f.value, g.value)
}

// describeBoth is how RabbitMQ's error texts show two arguments that differ: the values, or with its type the one that is there.
func describeBoth(a, b *field) (string, string) {
	if a != nil && b != nil {
		return quoted(a.text()), quoted(b.text())
	}
	return a.describe(), b.describe()
}

// describe shows an argument where the other is absent; nil is the absent one.
func (f *field) describe() string {
	if f == nil {
		return "none"
	}
	return fmt.Sprintf("the value '%s' of type '%s'", f.text(), tagNames[f.tag])
}

// text is a value as texts show it, without its type.
func (f *field) text() string {
	if x, ok := f.integer(); ok {
		return fmt.Sprint(x)
	}
	if x, ok := f.float(); ok {
		return fmt.Sprint(x)
	}
	switch f.tag {
	case 'S':
		return string(f.value)
	case 't':
		return fmt.Sprint(f.value[0] != 0)
	case 'T':
		return fmt.Sprint(big.Uint64(f.value))
	case 'V':
		return "undefined"
	}
	return fmt.Sprintf("%q", f.value)
}

// sortedTable returns a table with its fields ascending by name, so that tables that differ in order only are the
// same bytes: many clients write a table in any order. It is the same slice when nothing moves or the bytes are no table.
func sortedTable(b []byte) []byte {
	type span struct {
		name  string
		bytes []byte
	}
	byName := func(a, b span) int { return strings.Compare(a.name, b.name) }
	var spans []span
	for rest := b; len(rest) > 0; {
		f, after, ok := cutField(rest)
		if !ok {
			return b
		}
		spans = append(spans, span{f.name, rest[:len(rest)-len(after)]})
		rest = after
	}
	if slices.IsSortedFunc(spans, byName) {
		return b
	}
	slices.SortStableFunc(spans, byName)
	sorted := make([]byte, 0, len(b))
	for _, s := range spans {
		sorted = append(sorted, s.bytes...)
	}
	return sorted
}

func find(fields []field, name string) *field {
	for i := range fields {
		if fields[i].name == name {
			return &fields[i]
		}
	}
	return nil
}

// headersAt returns where the fields of the headers table are in property bytes, which are not empty; without a table,
// the empty range where it would be. ok is false when they are malformed up to there.
func headersAt(p []byte) (from, to int, ok bool) {
	if len(p) < 2 {
		return 0, 0, false
	}
	flags, at := big.Uint16(p), 2
	for _, flag := range [...]uint16{contentTypeFlag, contentEncodingFlag} {
		if flags&flag == 0 {
			continue
		}
		if len(p) == at || len(p) < at+1+int(p[at]) {
			return 0, 0, false
		}
		at += 1 + int(p[at])
	}
	if flags&headersFlag == 0 {
		return at, at, true
	}
	if len(p) < at+4 || uint64(big.Uint32(p[at:])) > uint64(len(p)-at-4) {
		return 0, 0, false
	}
	return at + 4, at + 4 + int(big.Uint32(p[at:])), true
}

// headersAndMode finds the headers table and the delivery mode (0: absent) in property bytes; ok is false when they
// are malformed up to there.
func headersAndMode(p []byte) (table []byte, mode byte, ok bool) {
	if len(p) == 0 {
		return nil, 0, true
	}
	from, to, ok := headersAt(p)
	if !ok {
		return nil, 0, false
	}
	if big.Uint16(p)&deliveryModeFlag == 0 {
		return p[from:to], 0, true
	}
	if len(p) == to {
		return p[from:to], 0, false
	}
	return p[from:to], p[to], true
}

func messageHeaders(properties []byte, into []field) []field {
	table, _, _ := headersAndMode(properties)
	fields, _ := parseTable(table, into)
	return fields
}

// isTransient reports whether a message may go at a cold start. What cannot be read is kept.
func isTransient(properties []byte) bool {
	_, mode, ok := headersAndMode(properties)
	return ok && mode != 2
}
