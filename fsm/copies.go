package fsm

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// A message has more routing keys than its own in the header arrays CC and BCC. It keeps both headers as they were
// published, since a dead-lettered message goes to the same keys again; BCC is left out where a message is read.

// copyHeaders are the names as they stand in a field table, each after its length.
var copyHeaders = [...][]byte{[]byte("\x02CC"), []byte("\x03BCC")}

func haveHeaders(properties []byte) bool {
	return len(properties) > 2 && properties[0]&(headersFlag>>8) != 0
}

// mayHaveCopies reports whether one of the headers can be in property bytes, without decoding them.
func mayHaveCopies(properties []byte) bool {
	return haveHeaders(properties) && (bytes.Contains(properties, copyHeaders[0]) || bytes.Contains(properties, copyHeaders[1]))
}

// CheckProperties returns what a publish is refused with because of its properties, or OK: a CC or BCC header must
// be an array. It takes some nanoseconds when there is neither.
func CheckProperties(properties []byte) Result {
	if !mayHaveCopies(properties) {
		return Result{}
	}
	fields := messageHeaders(properties, nil)
	for _, header := range copyHeaders {
		if f := find(fields, string(header[1:])); f != nil && f.tag != 'A' {
			return refuse(PreconditionFailed, `invalid message: {unacceptable_type_in_header,"%s",%s}`, f.name, tagNames[f.tag])
		}
	}
	return Result{}
}

// appendCopies appends the strings in the CC and BCC arrays, other elements passed over, and leaves each key in the
// list once.
func appendCopies(keys []string, properties []byte) []string {
	fields := messageHeaders(properties, nil)
	for _, header := range copyHeaders {
		keys = append(keys, textsIn(find(fields, string(header[1:])))...)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// textsIn returns the strings in an array; there are none in what is no array.
func textsIn(f *field) (texts []string) {
	if f == nil || f.tag != 'A' {
		return nil
	}
	for rest := f.value; len(rest) > 0; {
		tag, value, after, ok := cutValue(rest)
		if !ok {
			break
		}
		if tag == 'S' {
			texts = append(texts, string(value))
		}
		rest = after
	}
	return texts
}

// StripBCC returns property bytes without the BCC header, which only the broker may see: the same slice when there is
// none, at the cost of a search for its name, otherwise a copy. Read and Get have done it; a message that goes back
// to its publisher needs it too.
func StripBCC(properties []byte) []byte {
	if !haveHeaders(properties) || !bytes.Contains(properties, copyHeaders[1]) {
		return properties
	}
	from, to, ok := headersAt(properties)
	if !ok {
		return properties
	}
	out := slices.Grow([]byte(nil), len(properties))
	out = append(out, properties[:from]...)
	for rest := properties[from:to]; len(rest) > 0; {
		f, after, ok := cutField(rest)
		if !ok {
			out = append(out, rest...)
			break
		}
		if f.name != "BCC" {
			out = append(out, rest[:len(rest)-len(after)]...)
		}
		rest = after
	}
	if len(out) == to {
		return properties
	}
	binary.BigEndian.PutUint32(out[from-4:], uint32(len(out)-from))
	return append(out, properties[to:]...)
}
