package amqp091

import (
	"errors"
	"slices"
)

// Content puts a channel's message together: Begin at a method that has content, then Take for each header and body frame of the
// channel. It is used by the connection's reading goroutine. The zero Content waits for a method.
type Content struct {
	// MaxBytes is the largest body that is accepted; 0: MaxBodyBytes.
	MaxBytes uint64

	// Size is the body's announced size, once the header is there; at most MaxBodyBytes.
	Size uint64
	// Properties and Body belong to the caller once Take has said that the message is complete. None are nil.
	Properties PropertyBytes
	Body       []byte

	method MethodID
	header bool   // it is there
	passed uint64 // bytes of the body that Pass has handed out
}

// Begin starts a message after its method.
func (c *Content) Begin(id MethodID) {
	*c = Content{MaxBytes: c.MaxBytes, method: id}
}

// Drop gives up the message under way, as when its channel is closed.
func (c *Content) Drop() { c.Begin(0) }

// Pass hands out what has arrived of the body since the last Pass and forgets it, so that a large body need not be kept.
func (c *Content) Pass() []byte {
	b := c.Body
	c.passed += uint64(len(b))
	c.Body = nil
	return b
}

func (c *Content) received() uint64 { return c.passed + uint64(len(c.Body)) }

// Pending returns the method whose message is under way, or 0.
func (c *Content) Pending() MethodID { return c.method }

// Expect checks whether a frame of this type may come now on the channel; a method may not while a message is under way. Its
// error is an *Error with code UnexpectedFrame.
func (c *Content) Expect(frameType uint8) error {
	switch {
	case c.method == 0 && frameType != FrameMethod:
		return Errorf(UnexpectedFrame, 0, "expected method frame, got non method frame instead")
	case c.method != 0 && !c.header && frameType != FrameHeader:
		return Errorf(UnexpectedFrame, c.method, "expected content header for class %d, got non content header frame instead", c.method.Class())
	case c.method != 0 && c.header && frameType != FrameBody:
		return Errorf(UnexpectedFrame, c.method, "expected content body, got non content body frame instead")
	}
	return nil
}

// Take takes the payload of a header or body frame that r's Next has begun, and says whether the message is complete. Its error is
// an *Error, or one of the connection's. A body above MaxBytes is the only error that closes the channel alone: at the header, with
// nothing kept; the channel's remaining content frames have to be skipped.
func (c *Content) Take(r *Reader, f Frame) (complete bool, err error) {
	if err = c.Expect(f.Type); err != nil {
		return false, err
	}
	if f.Type == FrameHeader {
		err = c.takeHeader(r)
	} else {
		err = c.takeBody(r, f)
	}
	if err != nil || c.received() < c.Size {
		return false, err
	}
	c.method = 0
	return true, nil
}

func (c *Content) takeHeader(r *Reader) error {
	payload, err := r.Payload()
	if err != nil {
		return err
	}
	if len(payload) < contentBytes+2 {
		return Errorf(FrameError, c.method, "a content header of %d bytes is too short", len(payload))
	}
	class, weight, size := be.Uint16(payload), be.Uint16(payload[2:]), be.Uint64(payload[4:])
	properties := PropertyBytes(payload[contentBytes:])
	switch {
	case class != c.method.Class():
		return Errorf(UnexpectedFrame, c.method, "expected content header for class %d, got one for class %d instead", c.method.Class(), class)
	case weight != 0:
		return Errorf(UnexpectedFrame, c.method, "expected content header for class %d, got non content header frame instead", class)
	case size > MaxBodyBytes:
		return Errorf(FrameError, c.method, "a body of %d bytes is larger than the %d a message can have", size, MaxBodyBytes)
	case c.MaxBytes > 0 && size > c.MaxBytes:
		err := Errorf(PreconditionFailed, c.method, "message size %d is larger than configured max size %d", size, c.MaxBytes)
		c.Drop()
		return err
	}
	if err := properties.Check(); err != nil {
		code := FrameError
		if errors.Is(err, ErrTable) {
			code = SyntaxError
		}
		return Errorf(code, c.method, "%v", err)
	}
	c.header, c.Size = true, size
	if uint64(r.Buffered()) < size { // else the body is here, most likely, and goes into the same memory
		c.Properties = properties.Clone()
		return nil
	}
	all := append(make([]byte, 0, len(properties)+int(size)), properties...)
	c.Properties, c.Body = PropertyBytes(all[:len(all):len(all)]), all[len(all):]
	return nil
}

func (c *Content) takeBody(r *Reader, f Frame) (err error) {
	left := c.Size - c.received()
	if uint64(f.Size) > left {
		return Errorf(UnexpectedFrame, c.method, "a content body frame of %d bytes exceeds the %d that remain", f.Size, left)
	}
	if grown := len(c.Body) + int(f.Size); grown > cap(c.Body) && len(c.Body) > 0 {
		// Doubling what has arrived keeps both the copies and the trust in the announced size small.
		c.Body = slices.Grow(c.Body, min(len(c.Body)+int(left), max(grown, 2*len(c.Body)))-len(c.Body))
	}
	c.Body, err = r.AppendPayload(c.Body)
	return err
}
