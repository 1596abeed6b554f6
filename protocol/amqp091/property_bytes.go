package amqp091

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
)

// PropertyBytes are a message's properties as on the wire: the flags word, then the values in the order of the flags. None at
// all are no properties. Reading bytes that Check refuses gives what lies in front of the damage.
type PropertyBytes []byte

// Property is a property's flag; the higher one comes first.
type Property uint16

// The properties.
const (
	PropertyContentType     Property = 1 << 15
	PropertyContentEncoding Property = 1 << 14
	PropertyHeaders         Property = 1 << 13
	PropertyDeliveryMode    Property = 1 << 12
	PropertyPriority        Property = 1 << 11
	PropertyCorrelationID   Property = 1 << 10
	PropertyReplyTo         Property = 1 << 9
	PropertyExpiration      Property = 1 << 8
	PropertyMessageID       Property = 1 << 7
	PropertyTimestamp       Property = 1 << 6
	PropertyType            Property = 1 << 5
	PropertyUserID          Property = 1 << 4
	PropertyAppID           Property = 1 << 3
	PropertyClusterID       Property = 1 << 2

	flagMore = 1 // another flags word follows; no such property exists. Flag 2 is ignored.
)

// Text reports whether the property is a short string.
func (p Property) Text() bool {
	switch p {
	case PropertyHeaders, PropertyDeliveryMode, PropertyPriority, PropertyTimestamp:
		return false
	}
	return true
}

// Check walks through the properties, headers included, without taking memory. It fails for a second flags word, for values
// that end early, for bytes behind the last one, and for headers that Table.Check refuses (the error wraps ErrTable as well).
func (p PropertyBytes) Check() error {
	if len(p) == 0 {
		return nil
	}
	if len(p) < 2 {
		return fmt.Errorf("%w: no flags word", ErrProperties)
	}
	if p[1]&flagMore != 0 {
		return fmt.Errorf("%w: more than one flags word", ErrProperties)
	}
	w := p.walk()
	for w.next() {
		if w.property == PropertyHeaders {
			if err := Table(w.value).Check(); err != nil {
				return fmt.Errorf("%w: headers: %w", ErrProperties, err)
			}
		}
	}
	switch {
	case w.short:
		return fmt.Errorf("%w: the values end early", ErrProperties)
	case len(w.rest) > 0:
		return fmt.Errorf("%w: %d bytes behind the last value", ErrProperties, len(w.rest))
	}
	return nil
}

// walk goes through the values of properties.
type walk struct {
	flags    uint16
	rest     []byte // behind value
	property Property
	value    []byte // without a length in front
	prefix   int    // bytes of that length
	short    bool   // the values ended early
}

func (p PropertyBytes) walk() walk {
	if len(p) < 2 {
		return walk{}
	}
	return walk{flags: be.Uint16(p) &^ 3, rest: p[2:]}
}

// next steps to the next value.
func (w *walk) next() bool {
	if w.flags == 0 {
		return false
	}
	w.property = Property(1 << 15)
	for w.flags&uint16(w.property) == 0 {
		w.property >>= 1
	}
	w.flags &^= uint16(w.property)
	b, n := w.rest, uint64(0)
	w.prefix = 0
	switch w.property {
	case PropertyDeliveryMode, PropertyPriority:
		n = 1
	case PropertyTimestamp:
		n = 8
	case PropertyHeaders:
		if w.prefix = 4; len(b) >= 4 {
			n = uint64(be.Uint32(b))
		}
	default:
		if w.prefix = 1; len(b) >= 1 {
			n = uint64(b[0])
		}
	}
	if uint64(len(b)) < uint64(w.prefix)+n {
		w.flags, w.short = 0, true
		return false
	}
	to := w.prefix + int(n)
	w.value, w.rest = b[w.prefix:to:to], b[to:]
	return true
}

// All yields the properties that are there and their values, strings and headers without the length in front.
func (p PropertyBytes) All() iter.Seq2[Property, []byte] {
	return func(yield func(Property, []byte) bool) {
		for w := p.walk(); w.next(); {
			if !yield(w.property, w.value) {
				return
			}
		}
	}
}

// Has reports whether the property's flag is set.
func (p PropertyBytes) Has(property Property) bool {
	return len(p) >= 2 && be.Uint16(p)&uint16(property) != 0
}

// Value returns a property's value, which aliases p: a string's bytes, the headers' Table, one byte of delivery mode and
// priority, eight of the timestamp. It takes no memory, and only a look when the property is absent.
func (p PropertyBytes) Value(property Property) (value []byte, found bool) {
	if !p.Has(property) {
		return nil, false
	}
	for w := p.walk(); w.next(); {
		if w.property == property {
			return w.value, true
		}
	}
	return nil, false
}

// Byte returns the delivery mode or the priority; 0 if it is absent.
func (p PropertyBytes) Byte(property Property) (n uint8, found bool) {
	if value, found := p.Value(property); found && len(value) == 1 {
		return value[0], true
	}
	return 0, false
}

// Headers returns the headers; nil if there are none.
func (p PropertyBytes) Headers() Table {
	t, _ := p.Value(PropertyHeaders)
	return t
}

// span returns where a property's value, with the length in front, lies, or would have to be put.
func (p PropertyBytes) span(property Property) (from, to int) {
	w := p.walk()
	for at := len(p) - len(w.rest); ; at = len(p) - len(w.rest) {
		if !w.next() || w.property < property {
			return at, at
		}
		if w.property == property {
			return at, len(p) - len(w.rest)
		}
	}
}

// AppendWith appends to dst the properties with one of them set to another value, given as Value returns it; a nil value takes
// the property out. dst must not overlap p. Strings are cut at 255 bytes.
func (p PropertyBytes) AppendWith(dst []byte, property Property, value []byte) PropertyBytes {
	if len(p) < 2 {
		p = PropertyBytes{0, 0}
	}
	at := len(dst)
	from, to := p.span(property)
	dst = append(dst, p[:from]...)
	flags := be.Uint16(p) &^ uint16(property)
	if value != nil {
		flags |= uint16(property)
		switch property {
		case PropertyDeliveryMode, PropertyPriority, PropertyTimestamp:
			dst = append(dst, value...)
		case PropertyHeaders:
			dst = appendLong(dst, value)
		default:
			dst = appendShort(dst, value)
		}
	}
	be.PutUint16(dst[at:], flags)
	return append(dst, p[to:]...)
}

// AppendWithField appends to dst the properties with headers added behind the others, in place of those of the same names. The
// fields are what AppendField made, one or several; the other headers keep their bytes and order. dst must not overlap p.
func (p PropertyBytes) AppendWithField(dst []byte, fields []byte) PropertyBytes {
	return p.appendHeaders(dst, fields, func(name []byte) bool {
		n, _, rest, ok := Table(fields).next()
		for ok && !bytes.Equal(n, name) {
			n, _, rest, ok = rest.next()
		}
		return !ok
	})
}

// AppendWithoutHeader appends to dst the properties without the headers of that name; the others keep their bytes and order. dst
// must not overlap p.
func (p PropertyBytes) AppendWithoutHeader(dst []byte, name string) PropertyBytes {
	if _, found := p.Headers().Lookup(name); !found {
		return append(dst, p...)
	}
	return p.appendHeaders(dst, nil, func(n []byte) bool { return string(n) != name })
}

// appendHeaders appends the properties with the headers that are kept, and the fields behind them.
func (p PropertyBytes) appendHeaders(dst []byte, fields []byte, keep func(name []byte) bool) PropertyBytes {
	if len(p) < 2 {
		p = PropertyBytes{0, 0}
	}
	at := len(dst)
	from, to := p.span(PropertyHeaders)
	dst = append(append(dst, p[:from]...), 0, 0, 0, 0)
	be.PutUint16(dst[at:], be.Uint16(p)|uint16(PropertyHeaders))
	start := len(dst)
	if from < to {
		// Headers that are kept are copied together.
		t := Table(p[from+4 : to])
		kept := t
		for n, _, rest, ok := t.next(); ok; n, _, rest, ok = t.next() {
			if !keep(n) {
				dst = append(dst, kept[:len(kept)-len(t)]...)
				kept = rest
			}
			t = rest
		}
		dst = append(dst, kept...)
	}
	dst = append(dst, fields...)
	be.PutUint32(dst[start-4:], uint32(len(dst)-start))
	return append(dst, p[to:]...)
}

// Clone returns a copy; nil for no properties at all, whatever their bytes.
func (p PropertyBytes) Clone() PropertyBytes {
	if len(p) < 2 || be.Uint16(p)&^3 == 0 {
		return nil
	}
	return slices.Clone(p)
}
