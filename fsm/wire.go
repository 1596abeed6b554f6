package fsm

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

var big = binary.BigEndian

// The msgpack primitives of the entry format, each in its shortest form.

func appendUint(b []byte, v uint64) []byte {
	switch {
	case v < 1<<7:
		return append(b, byte(v))
	case v < 1<<8:
		return append(b, 0xcc, byte(v))
	case v < 1<<16:
		return append(b, 0xcd, byte(v>>8), byte(v))
	case v < 1<<32:
		return big.AppendUint32(append(b, 0xce), uint32(v))
	}
	return big.AppendUint64(append(b, 0xcf), v)
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 0xc3)
	}
	return append(b, 0xc2)
}

func appendArray(b []byte, n int) []byte {
	switch {
	case n < 16:
		return append(b, 0x90|byte(n))
	case n < 1<<16:
		return append(b, 0xdc, byte(n>>8), byte(n))
	}
	return big.AppendUint32(append(b, 0xdd), uint32(n))
}

func appendString(b []byte, s string) []byte {
	switch n := len(s); {
	case n < 32:
		b = append(b, 0xa0|byte(n))
	case n < 1<<8:
		b = append(b, 0xd9, byte(n))
	case n < 1<<16:
		b = append(b, 0xda, byte(n>>8), byte(n))
	default:
		b = big.AppendUint32(append(b, 0xdb), uint32(n))
	}
	return append(b, s...)
}

func appendBin(b, v []byte) []byte {
	switch n := len(v); {
	case n < 1<<8:
		b = append(b, 0xc4, byte(n))
	case n < 1<<16:
		b = append(b, 0xc5, byte(n>>8), byte(n))
	default:
		b = big.AppendUint32(append(b, 0xc6), uint32(n))
	}
	return append(b, v...)
}

func appendSession(b []byte, s Session) []byte { return appendUint(appendUint(b, s.Term), s.Number) }

// appendRuns writes ascending, disjoint runs as a bin of uvarints: gap to the run before, length - 1.
func appendRuns(b []byte, runs []Run) []byte {
	size, after := 0, uint64(0)
	for _, r := range runs {
		size += uvarintLen(r.From-after) + uvarintLen(r.To-r.From)
		after = r.To
	}
	b = big.AppendUint32(append(b, 0xc6), uint32(size))
	after = 0
	for _, r := range runs {
		b = binary.AppendUvarint(b, r.From-after)
		b = binary.AppendUvarint(b, r.To-r.From)
		after = r.To
	}
	return b
}

func uvarintLen(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// decoder reads what the functions above write, and nothing else: what is not in its shortest form is a mistake, since
// no Batch makes it. After the first mistake every read yields zero and bad is set. What it returns aliases its bytes.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) fail() { d.bad, d.b = true, nil }

func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.b)) {
		d.fail()
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.fail()
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

// number reads an unsigned big-endian integer of n bytes.
func (d *decoder) number(n uint64) (v uint64) {
	for _, x := range d.take(n) {
		v = v<<8 | uint64(x)
	}
	return v
}

func (d *decoder) uint() uint64 {
	switch x := d.byte(); {
	case x < 0x80:
		return uint64(x)
	case x == 0xcc:
		return d.atLeast(1<<7, d.number(1))
	case x >= 0xcd && x <= 0xcf:
		n := uint64(1) << (x - 0xcc)
		return d.atLeast(1<<(4*n), d.number(n))
	}
	d.fail()
	return 0
}

// atLeast refuses a value that has a shorter form.
func (d *decoder) atLeast(least, v uint64) uint64 {
	if v < least {
		d.fail()
		return 0
	}
	return v
}

// fixed reads an unsigned integer that is always written with one head and width.
func (d *decoder) fixed(head byte, width uint64) uint64 {
	if d.byte() != head {
		d.fail()
	}
	return d.number(width)
}

func (d *decoder) uint32() uint32 {
	v := d.uint()
	if v > 1<<32-1 {
		d.fail()
	}
	return uint32(v)
}

func (d *decoder) bool() bool {
	x := d.byte()
	if x != 0xc2 && x != 0xc3 {
		d.fail()
	}
	return x == 0xc3
}

func (d *decoder) array() uint64 {
	switch x := d.byte(); {
	case x&0xf0 == 0x90:
		return uint64(x & 0x0f)
	case x == 0xdc:
		return d.atLeast(16, d.number(2))
	case x == 0xdd:
		return d.atLeast(1<<16, d.number(4))
	}
	d.fail()
	return 0
}

// want reads the head of an array that must have n elements.
func (d *decoder) want(n uint64) {
	if d.array() != n {
		d.fail()
	}
}

func (d *decoder) string() string {
	var b []byte
	switch x := d.byte(); {
	case x&0xe0 == 0xa0:
		b = d.take(uint64(x & 0x1f))
	case x == 0xd9:
		b = d.take(d.atLeast(32, d.number(1)))
	case x == 0xda:
		b = d.take(d.atLeast(1<<8, d.number(2)))
	case x == 0xdb:
		b = d.take(d.atLeast(1<<16, d.number(4)))
	default:
		d.fail()
	}
	return unsafe.String(unsafe.SliceData(b), len(b))
}

func (d *decoder) bin() []byte {
	switch d.byte() {
	case 0xc4:
		return d.take(d.number(1))
	case 0xc5:
		return d.take(d.atLeast(1<<8, d.number(2)))
	case 0xc6:
		return d.take(d.atLeast(1<<16, d.number(4)))
	}
	d.fail()
	return nil
}

func (d *decoder) session() Session { return Session{Term: d.uint(), Number: d.uint()} }

// runs appends the runs read to into.
func (d *decoder) runs(into []Run) []Run {
	b, after, start := d.take(d.fixed(0xc6, 4)), uint64(0), len(into)
	for len(b) > 0 {
		gap, n := binary.Uvarint(b)
		if n <= 0 {
			d.fail()
			return into
		}
		length, m := binary.Uvarint(b[n:])
		from := after + gap
		to := from + length
		if m <= 0 || from < after || to < from || gap == 0 && len(into) > start || n+m != uvarintLen(gap)+uvarintLen(length) {
			d.fail()
			return into
		}
		into, after, b = append(into, Run{from, to}), to, b[n+m:]
	}
	return into
}
