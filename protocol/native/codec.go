package native

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrMalformed is wrapped by every decoding error.
var ErrMalformed = errors.New("malformed frame")

// codec walks a struct's fields in one of two directions: encoding appends them to b, decoding takes them off it.
// A decoding error sticks and makes all later calls do nothing.
type codec struct {
	b        []byte
	at       int // decoding: next byte
	left     int // decoding: elements left in the current array
	ranges   int // decoding: ranges seen, bounded by MaxRanges
	encoding bool
	err      error
}

func (c *codec) finish(t Type) error {
	if c.err == nil && c.at != len(c.b) {
		c.fail("bytes after the end of the array")
	}
	if c.err != nil {
		return fmt.Errorf("%s: %w", t, c.err)
	}
	return nil
}

func (c *codec) fail(what string) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: %s at byte %d", ErrMalformed, what, c.at)
	}
}

// begin opens an array of n elements and returns what end of it needs.
func (c *codec) begin(n int) (outer int) {
	if c.encoding {
		c.b = appendArray(c.b, n)
		return 0
	}
	outer = c.left
	c.left = c.arrayHeader()
	return outer
}

// end passes over the elements that this side does not know.
func (c *codec) end() {
	if !c.encoding {
		c.skip(c.left)
		c.left = 0
	}
}

// inner opens an array inside an array; close it with outer. ok is false when the element is missing or nil.
func (c *codec) inner(n int) (outer int, ok bool) {
	if c.encoding {
		c.b = appendArray(c.b, n)
		return 0, true
	}
	if !c.more() {
		return 0, false
	}
	outer = c.left
	c.left = c.arrayHeader()
	return outer, c.err == nil
}

func (c *codec) outer(left int) {
	if !c.encoding {
		c.skip(c.left)
		c.left = left
	}
}

// list opens an array of like elements and returns its length: n when encoding, what is there (at most max, each of
// at least least bytes) when decoding.
func (c *codec) list(n, max, least int) (length, outer int) {
	if c.encoding {
		c.b = appendArray(c.b, n)
		return n, 0
	}
	if !c.more() {
		outer, c.left = c.left, 0
		return 0, outer
	}
	outer = c.left
	length = c.arrayHeader()
	if length > max {
		c.fail(fmt.Sprintf("array of %d elements, at most %d are allowed", length, max))
	} else if length*least > len(c.b)-c.at {
		c.fail("array longer than the payload")
	}
	if c.err != nil {
		length = 0
	}
	c.left = length
	return length, outer
}

// more takes one element of the current array; false when there is none left or it is nil.
func (c *codec) more() bool {
	if c.err != nil || c.left == 0 {
		return false
	}
	c.left--
	if c.at >= len(c.b) {
		c.fail("payload ends early")
		return false
	}
	if c.b[c.at] == 0xc0 {
		c.at++
		return false
	}
	return true
}

// take returns the next n bytes, or nil and an error when they are not there.
func (c *codec) take(n uint64) []byte {
	if c.err != nil {
		return nil
	}
	if n > uint64(len(c.b)-c.at) {
		c.fail("payload ends early")
		return nil
	}
	end := c.at + int(n)
	s := c.b[c.at:end:end]
	c.at = end
	return s
}

// number reads a big-endian integer of n bytes.
func (c *codec) number(n uint64) (v uint64) {
	for _, x := range c.take(n) {
		v = v<<8 | uint64(x)
	}
	return v
}

func (c *codec) byte() byte {
	if s := c.take(1); s != nil {
		return s[0]
	}
	return 0
}

func (c *codec) arrayHeader() int {
	var n uint64
	switch x := c.byte(); {
	case c.err != nil:
		return 0
	case x >= 0x90 && x <= 0x9f:
		n = uint64(x & 0x0f)
	case x == 0xdc:
		n = c.number(2)
	case x == 0xdd:
		n = c.number(4)
	default:
		c.at--
		c.fail("not an array")
	}
	if n > uint64(len(c.b)-c.at) {
		c.fail("array longer than the payload")
	}
	if c.err != nil {
		return 0
	}
	return int(n)
}

func (c *codec) uint64(v *uint64) {
	if c.encoding {
		c.b = appendUint(c.b, *v)
	} else if c.more() {
		*v = c.uint(math.MaxUint64)
	}
}

func (c *codec) uint32(v *uint32) {
	if c.encoding {
		c.b = appendUint(c.b, uint64(*v))
	} else if c.more() {
		*v = uint32(c.uint(math.MaxUint32))
	}
}

func (c *codec) uint16(v *uint16) {
	if c.encoding {
		c.b = appendUint(c.b, uint64(*v))
	} else if c.more() {
		*v = uint16(c.uint(math.MaxUint16))
	}
}

func (c *codec) uint8(v *uint8) {
	if c.encoding {
		c.b = appendUint(c.b, uint64(*v))
	} else if c.more() {
		*v = uint8(c.uint(math.MaxUint8))
	}
}

func (c *codec) uint(max uint64) (v uint64) {
	switch x := c.byte(); {
	case c.err != nil:
		return 0
	case x <= 0x7f:
		return uint64(x)
	case x >= 0xcc && x <= 0xcf:
		v = c.number(1 << (x - 0xcc))
	case x >= 0xd0 && x <= 0xd3: // a signed integer does when it is not negative
		n := uint64(1) << (x - 0xd0)
		v = c.number(n)
		if v>>(8*n-1) != 0 {
			c.fail("negative number")
			return 0
		}
	default:
		c.at--
		c.fail("not an unsigned integer")
		return 0
	}
	if c.err == nil && v > max {
		c.fail("number out of range")
		return 0
	}
	return v
}

func (c *codec) bool(v *bool) {
	if c.encoding {
		if *v {
			c.b = append(c.b, 0xc3)
		} else {
			c.b = append(c.b, 0xc2)
		}
		return
	}
	if c.more() {
		switch c.byte() {
		case 0xc2:
			*v = false
		case 0xc3:
			*v = true
		default:
			c.at--
			c.fail("not a boolean")
		}
	}
}

func (c *codec) string(v *string) {
	if c.encoding {
		c.b = appendString(c.b, *v)
	} else if c.more() {
		*v = string(c.blob())
	}
}

// bytes decodes without copying: *v aliases the payload. An empty value decodes as nil.
func (c *codec) bytes(v *[]byte) {
	if c.encoding {
		c.b = appendBytes(c.b, *v)
	} else if c.more() {
		if s := c.blob(); len(s) > 0 {
			*v = s
		}
	}
}

// blob reads a string or binary value.
func (c *codec) blob() []byte {
	switch x := c.byte(); {
	case c.err != nil:
		return nil
	case x >= 0xa0 && x <= 0xbf:
		return c.take(uint64(x & 0x1f))
	case x == 0xc4 || x == 0xd9:
		return c.take(c.number(1))
	case x == 0xc5 || x == 0xda:
		return c.take(c.number(2))
	case x == 0xc6 || x == 0xdb:
		return c.take(c.number(4))
	}
	c.at--
	c.fail("not a string or bytes")
	return nil
}

func (c *codec) strings(v *[]string, max int) {
	n, outer := c.list(len(*v), max, 1)
	if !c.encoding && n > 0 {
		*v = make([]string, n)
	}
	for i := range n {
		c.string(&(*v)[i])
	}
	c.outer(outer)
}

// body is a body inline or the number of the upload that its parts went ahead under.
func (c *codec) body(body *[]byte, upload *uint64) {
	if c.encoding {
		if *upload != 0 {
			c.b = appendUint(c.b, *upload)
		} else {
			c.b = appendBytes(c.b, *body)
		}
		return
	}
	if !c.more() {
		return
	}
	if x := c.b[c.at]; x <= 0x7f || (x >= 0xcc && x <= 0xd3) {
		*upload = c.uint(math.MaxUint64)
	} else if s := c.blob(); len(s) > 0 {
		*body = s
	}
}

// skip passes over n elements of any kind, nested ones included, without recursion.
func (c *codec) skip(n int) {
	for pending := uint64(n); pending > 0 && c.err == nil; pending-- {
		switch x := c.byte(); {
		case c.err != nil || x <= 0x7f || x >= 0xe0 || x == 0xc0 || x == 0xc2 || x == 0xc3:
		case x <= 0x8f:
			pending += 2 * uint64(x&0x0f)
		case x <= 0x9f:
			pending += uint64(x & 0x0f)
		case x <= 0xbf:
			c.take(uint64(x & 0x1f))
		case x == 0xc4 || x == 0xd9:
			c.take(c.number(1))
		case x == 0xc5 || x == 0xda:
			c.take(c.number(2))
		case x == 0xc6 || x == 0xdb:
			c.take(c.number(4))
		case x >= 0xc7 && x <= 0xc9: // extension: length, kind, bytes
			c.take(c.number(1<<(x-0xc7)) + 1)
		case x == 0xca:
			c.take(4)
		case x == 0xcb:
			c.take(8)
		case x >= 0xcc && x <= 0xcf:
			c.take(1 << (x - 0xcc))
		case x >= 0xd0 && x <= 0xd3:
			c.take(1 << (x - 0xd0))
		case x >= 0xd4 && x <= 0xd8:
			c.take(1<<(x-0xd4) + 1)
		case x == 0xdc:
			pending += c.number(2)
		case x == 0xdd:
			pending += c.number(4)
		case x == 0xde:
			pending += 2 * c.number(2)
		case x == 0xdf:
			pending += 2 * c.number(4)
		default:
			c.fail("unknown msgpack byte")
		}
		if pending > uint64(len(c.b)-c.at)+1 {
			c.fail("more elements than the payload can hold")
		}
	}
}

func appendArray(b []byte, n int) []byte {
	switch {
	case n <= 15:
		return append(b, 0x90|byte(n))
	case n <= math.MaxUint16:
		return append(b, 0xdc, byte(n>>8), byte(n))
	}
	return binary.BigEndian.AppendUint32(append(b, 0xdd), uint32(n))
}

func appendUint(b []byte, v uint64) []byte {
	switch {
	case v <= 0x7f:
		return append(b, byte(v))
	case v <= math.MaxUint8:
		return append(b, 0xcc, byte(v))
	case v <= math.MaxUint16:
		return append(b, 0xcd, byte(v>>8), byte(v))
	case v <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(b, 0xce), uint32(v))
	}
	return binary.BigEndian.AppendUint64(append(b, 0xcf), v)
}

func appendString(b []byte, s string) []byte {
	switch n := len(s); {
	case n <= 31:
		b = append(b, 0xa0|byte(n))
	case n <= math.MaxUint8:
		b = append(b, 0xd9, byte(n))
	case n <= math.MaxUint16:
		b = append(b, 0xda, byte(n>>8), byte(n))
	default:
		b = binary.BigEndian.AppendUint32(append(b, 0xdb), uint32(n))
	}
	return append(b, s...)
}

func appendBytes(b, s []byte) []byte {
	switch n := len(s); {
	case n <= math.MaxUint8:
		b = append(b, 0xc4, byte(n))
	case n <= math.MaxUint16:
		b = append(b, 0xc5, byte(n>>8), byte(n))
	default:
		b = binary.BigEndian.AppendUint32(append(b, 0xc6), uint32(n))
	}
	return append(b, s...)
}
