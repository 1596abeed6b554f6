package native

import (
	"fmt"
	"unicode/utf8"
)

// CheckTable returns an error when b is no field table that DecodeTable reads. It allocates nothing for one that is.
func CheckTable(b []byte) error {
	e, o := tableCoder{}, octets{b: b}
	e.checkTable(&o, 0)
	return o.err
}

// CheckProperties returns an error when b are no property bytes that DecodeProperties reads, or when a text in them is
// not valid UTF-8, which AMQP 0-9-1 asks for. It allocates nothing for those that are.
func CheckProperties(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	o := octets{b: b}
	flags := uint16(o.uint(2))
	if flags&(flagUnused|flagMore) != 0 {
		return fmt.Errorf("%w: unknown flags 0x%04x", ErrProperties, flags)
	}
	for bit := uint16(flagContentType); bit >= flagClusterID && o.err == nil; bit >>= 1 {
		switch {
		case flags&bit == 0:
		case bit == flagHeaders:
			e, table := tableCoder{}, octets{b: o.long()}
			e.checkTable(&table, 0)
			if o.err == nil && table.err != nil {
				o.err = fmt.Errorf("headers: %w", table.err)
			}
		case bit == flagDeliveryMode, bit == flagPriority:
			o.take(1)
		case bit == flagTimestamp:
			o.take(8)
		default:
			if s := o.short(); !utf8.Valid(s) {
				o.err = fmt.Errorf("a text that is not valid UTF-8: %q", s)
			}
		}
	}
	if o.err == nil && len(o.b) > 0 {
		o.err = fmt.Errorf("%d bytes behind the last property", len(o.b))
	}
	if o.err != nil {
		return fmt.Errorf("%w: %w", ErrProperties, o.err)
	}
	return nil
}

func (e *tableCoder) checkTable(o *octets, depth int) {
	for len(o.b) > 0 && o.err == nil {
		o.short()
		e.checkValue(o, depth)
	}
}

func (e *tableCoder) checkValue(o *octets, depth int) {
	if err := e.count(depth); err != nil && o.err == nil {
		o.err = err
	}
	letter := o.uint(1)
	if o.err != nil {
		return
	}
	switch letter {
	case 'V':
	case 't', 'b', 'B':
		o.take(1)
	case 's', 'u':
		o.take(2)
	case 'I', 'i', 'f':
		o.take(4)
	case 'D':
		o.take(5)
	case 'l', 'L', 'd', 'T':
		o.take(8)
	case 'S', 'x':
		o.long()
	case 'F':
		inner := octets{b: o.long()}
		e.checkTable(&inner, depth+1)
		o.adopt(inner.err)
	case 'A':
		inner := octets{b: o.long()}
		for len(inner.b) > 0 && inner.err == nil {
			e.checkValue(&inner, depth+1)
		}
		o.adopt(inner.err)
	default:
		o.err = fmt.Errorf("%w: unknown type letter 0x%02x", ErrTable, letter)
	}
}

func (o *octets) adopt(err error) {
	if o.err == nil {
		o.err = err
	}
}
