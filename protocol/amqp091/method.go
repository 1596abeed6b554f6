package amqp091

import (
	"encoding/binary"
	"fmt"
	"slices"
	"unicode/utf8"
)

var be = binary.BigEndian

// maxShort is the length in bytes of the longest short string.
const maxShort = 255

// MethodID is a method's class and number: 60<<16|40 is basic.publish. 0 is no method.
type MethodID uint32

// MakeMethodID puts a class and a number together.
func MakeMethodID(class, method uint16) MethodID { return MethodID(class)<<16 | MethodID(method) }

// Class returns the class id.
func (id MethodID) Class() uint16 { return uint16(id >> 16) }

// Method returns the number inside the class.
func (id MethodID) Method() uint16 { return uint16(id) }

// String returns the name, such as basic.publish, or "class.method" in digits for an unknown one.
func (id MethodID) String() string {
	if m := id.info(); m != nil {
		return m.name
	}
	return fmt.Sprintf("%d.%d", id.Class(), id.Method())
}

// Known reports whether there is such a method.
func (id MethodID) Known() bool { return id.info() != nil }

// FromClient reports whether a client may send the method.
func (id MethodID) FromClient() bool { m := id.info(); return m != nil && m.fromClient }

// FromServer reports whether a server may send the method.
func (id MethodID) FromServer() bool { m := id.info(); return m != nil && m.fromServer }

// HasContent reports whether a header and bodies follow the method.
func (id MethodID) HasContent() bool { m := id.info(); return m != nil && m.content }

type methodInfo struct {
	id                              MethodID
	name                            string
	fromClient, fromServer, content bool
}

func (id MethodID) info() *methodInfo {
	i, found := slices.BinarySearchFunc(methods, id, func(m methodInfo, id MethodID) int { return int(m.id) - int(id) })
	if !found {
		return nil
	}
	return &methods[i]
}

// Method is one of the generated structs.
type Method interface {
	ID() MethodID
	// Decode reads the arguments, which follow the method's id in a payload. The method keeps nothing of args, except in
	// fields that say so. An error is an *Error that closes the connection.
	Decode(args []byte) error
	// Append appends a method frame's payload: the id and the arguments. Strings that are too long are cut.
	Append(dst []byte) []byte
	// AppendFrame appends a whole method frame.
	AppendFrame(dst []byte, channel uint16) []byte
}

// SplitMethod takes a method frame's payload apart, without a copy.
func SplitMethod(payload []byte) (id MethodID, args []byte, err error) {
	if len(payload) < 4 {
		return 0, nil, Errorf(FrameError, 0, "a method frame of %d bytes has no class and method", len(payload))
	}
	return MethodID(be.Uint32(payload)), payload[4:], nil
}

// DecodeMethod decodes a method frame's payload into a new method.
func DecodeMethod(payload []byte) (Method, error) {
	id, args, err := SplitMethod(payload)
	if err != nil {
		return nil, err
	}
	m := New(id)
	if m == nil {
		return nil, Errorf(CommandInvalid, id, "unknown method %s", id)
	}
	return m, m.Decode(args)
}

// arguments takes a method's arguments off the front of b. The first failure sticks, and every read after it gives zero.
type arguments struct {
	b       []byte
	failure failure
	cause   error // of failedTable
}

type failure uint8

const (
	failedShort failure = iota + 1 // too few bytes
	failedUTF8
	failedTable
)

// end returns what went wrong, bytes left over included.
func (a *arguments) end(id MethodID) error {
	switch {
	case a.failure == 0 && len(a.b) == 0:
		return nil
	case a.failure == failedUTF8:
		return &Error{Code: FrameError, Text: "Malformed UTF-8 in shortstr"}
	case a.failure == failedTable:
		return Errorf(SyntaxError, id, "cannot decode a table of %s: %v", id, a.cause)
	case a.failure == failedShort:
		return Errorf(FrameError, id, "cannot decode %s: the arguments end early", id)
	}
	return Errorf(FrameError, id, "cannot decode %s: %d bytes behind the arguments", id, len(a.b))
}

func (a *arguments) fail(f failure) {
	if a.failure == 0 {
		a.failure, a.b = f, nil
	}
}

func (a *arguments) take(n uint64) []byte {
	if uint64(len(a.b)) < n {
		a.fail(failedShort)
		return nil
	}
	s := a.b[:n:n]
	a.b = a.b[n:]
	return s
}

func (a *arguments) u8() uint8 {
	if s := a.take(1); s != nil {
		return s[0]
	}
	return 0
}

func (a *arguments) u16() uint16 {
	if s := a.take(2); s != nil {
		return be.Uint16(s)
	}
	return 0
}

func (a *arguments) u32() uint32 {
	if s := a.take(4); s != nil {
		return be.Uint32(s)
	}
	return 0
}

func (a *arguments) u64() uint64 {
	if s := a.take(8); s != nil {
		return be.Uint64(s)
	}
	return 0
}

func (a *arguments) short() string {
	s := a.raw()
	if !utf8.Valid(s) {
		a.fail(failedUTF8)
		return ""
	}
	return string(s)
}

func (a *arguments) raw() []byte  { return a.take(uint64(a.u8())) }
func (a *arguments) long() string { return string(a.take(uint64(a.u32()))) }
func (a *arguments) skipShort()   { a.take(uint64(a.u8())) }
func (a *arguments) skipLong()    { a.take(uint64(a.u32())) }

// table copies, since a table outlives its frame more often than not.
func (a *arguments) table() Table {
	t := Table(a.take(uint64(a.u32())))
	if len(t) == 0 {
		return nil
	}
	if err := t.Check(); err != nil {
		a.cause = err
		a.fail(failedTable)
		return nil
	}
	return slices.Clone(t)
}

func appendShort[S string | []byte](dst []byte, s S) []byte {
	if len(s) > maxShort {
		s = S(ShortText(string(s)))
	}
	return append(append(dst, byte(len(s))), s...)
}

func appendLong[S ~string | ~[]byte](dst []byte, s S) []byte {
	return append(be.AppendUint32(dst, uint32(len(s))), s...)
}

func bit(set bool, n int) byte {
	if set {
		return 1 << n
	}
	return 0
}
