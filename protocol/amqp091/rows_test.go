package amqp091

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// message is what collect put together.
type message struct {
	method  Method
	content *Content
}

// collect reads frames to the end of the input or to the first error, as a front end does.
func collect(r *Reader) (messages []message, err error) {
	contents := map[uint16]*Content{}
	under := map[uint16]Method{}
	for {
		f, err := r.Next()
		if err == io.EOF {
			return messages, nil
		}
		if err != nil {
			return messages, err
		}
		if f.Type == FrameHeartbeat {
			continue
		}
		c := contents[f.Channel]
		if c == nil {
			c = &Content{MaxBytes: 128 << 20}
			contents[f.Channel] = c
		}
		if f.Type != FrameMethod {
			complete, err := c.Take(r, f)
			if err != nil {
				return messages, err
			}
			if complete {
				messages = append(messages, message{under[f.Channel], &Content{Size: c.Size, Properties: c.Properties, Body: c.Body}})
			}
			continue
		}
		if err := c.Expect(f.Type); err != nil {
			return messages, err
		}
		payload, err := r.Payload()
		if err != nil {
			return messages, err
		}
		m, err := DecodeMethod(bytes.Clone(payload))
		if err != nil {
			return messages, err
		}
		if m.ID().HasContent() {
			c.Begin(m.ID())
			under[f.Channel] = m
		} else {
			messages = append(messages, message{m, nil})
		}
	}
}

func frame(kind uint8, channel uint16, payload ...byte) []byte {
	return endFrame(append(beginFrame(nil, kind, channel), payload...), 0)
}

// header is a header frame's payload with the body's size and property bytes.
func header(size uint64, properties ...byte) []byte {
	return append(be.AppendUint64([]byte{0, ClassBasic, 0, 0}, size), properties...)
}

func publishing(channel uint16) []byte {
	return (&BasicPublish{RoutingKey: []byte("q")}).AppendFrame(nil, channel)
}

// refused checks that the input, at once and byte by byte, ends in a connection error of that code and method.
func refused(t *testing.T, code Code, cause MethodID, fatal bool, input ...[]byte) {
	t.Helper()
	all := slices.Concat(input...)
	for _, source := range []io.Reader{bytes.NewReader(all), oneByte{bytes.NewReader(all)}} {
		_, err := collect(NewReader(source, 131072))
		var wrong *Error
		if !errors.As(err, &wrong) || wrong.Code != code || wrong.Cause != cause || wrong.Fatal != fatal || !wrong.Hard() {
			t.Errorf("%.60x: %v, want %d of %s, fatal: %t", all, err, code, cause, fatal)
		}
	}
}

type oneByte struct{ r io.Reader }

func (o oneByte) Read(b []byte) (int, error) { return o.r.Read(b[:min(1, len(b))]) }

func TestRow44UnknownFrameType(t *testing.T) {
	for _, kind := range []uint8{0, 4, 7, 9, 255} {
		refused(t, FrameError, 0, false, frame(kind, 1, 1, 2, 3))
	}
	refused(t, FrameError, 0, false, frame(FrameMethod, 1, 0, 10, 0)) // too short for class and method
}

func TestRow45WrongEndByteIsFatal(t *testing.T) {
	b := publishing(1)
	b[len(b)-1] = 0
	refused(t, FrameError, 0, true, b)
	b = frame(FrameBody, 1, make([]byte, 100_000)...)
	b[len(b)-1] = 0xCF
	refused(t, FrameError, 0, true, publishing(1), frame(FrameHeader, 1, header(100_000, 0, 0)...), b)
	b = AppendHeartbeat(nil)
	b[len(b)-1] = 1
	refused(t, FrameError, 0, true, b)
}

func TestRow46FrameMaxHasSlack(t *testing.T) {
	for size, good := range map[int]bool{4088: true, 4096: true, 4097: false} {
		input := slices.Concat(publishing(1), frame(FrameHeader, 1, header(uint64(size), 0, 0)...), frame(FrameBody, 1, make([]byte, size)...))
		got, err := collect(NewReader(bytes.NewReader(input), 4096))
		if good != (err == nil) || good != (len(got) == 1) {
			t.Errorf("%d bytes: %d messages, %v", size, len(got), err)
		}
	}
	refused(t, FrameError, 0, true, []byte{FrameBody, 0, 1, 0xFF, 0xFF, 0xFF, 0xFF, 1, 2, 3})
	refused(t, FrameError, 0, true, []byte{FrameMethod, 0, 0, 0, 2, 0, 1})
}

func TestRow47HeartbeatWithChannelOrPayload(t *testing.T) {
	refused(t, UnexpectedFrame, 0, false, frame(FrameHeartbeat, 1))
	refused(t, FrameError, 0, false, frame(FrameHeartbeat, 0, 1))
}

func TestRow48ContentWithoutPublish(t *testing.T) {
	refused(t, UnexpectedFrame, 0, false, frame(FrameHeader, 1, header(2, 0, 0)...))
	refused(t, UnexpectedFrame, 0, false, frame(FrameBody, 1, 1, 2))
	refused(t, UnexpectedFrame, 0, false, (&BasicAck{DeliveryTag: 1}).AppendFrame(nil, 1), frame(FrameHeader, 1, header(2, 0, 0)...))
	refused(t, UnexpectedFrame, 0, false, publishing(1), frame(FrameHeader, 2, header(2, 0, 0)...))
	refused(t, UnexpectedFrame, 0, false, frame(FrameBody, 0, 1, 2))
}

func TestRow49MethodInsteadOfContent(t *testing.T) {
	refused(t, UnexpectedFrame, BasicPublishID, false, publishing(1), publishing(1))
	refused(t, UnexpectedFrame, BasicPublishID, false, publishing(1), frame(FrameBody, 1, 1))
	refused(t, UnexpectedFrame, BasicPublishID, false, publishing(1), frame(FrameHeader, 1, header(2, 0, 0)...), publishing(1))
	refused(t, UnexpectedFrame, BasicPublishID, false, publishing(1), frame(FrameHeader, 1, header(2, 0, 0)...), frame(FrameHeader, 1, header(2, 0, 0)...))
}

func TestRow50HeaderOfAnotherClassOrWithWeight(t *testing.T) {
	b := header(0, 0, 0)
	b[1] = 10
	refused(t, UnexpectedFrame, BasicPublishID, false, publishing(1), frame(FrameHeader, 1, b...))
	b = header(0, 0, 0)
	b[3] = 1
	refused(t, UnexpectedFrame, BasicPublishID, false, publishing(1), frame(FrameHeader, 1, b...))
}

func TestRow51MoreBodyThanAnnounced(t *testing.T) {
	head := frame(FrameHeader, 1, header(3, 0, 0)...)
	refused(t, UnexpectedFrame, BasicPublishID, false, publishing(1), head, frame(FrameBody, 1, 1, 2, 3, 4))
	refused(t, UnexpectedFrame, BasicPublishID, false, publishing(1), head, frame(FrameBody, 1, 1, 2), frame(FrameBody, 1, 3, 4))
}

func TestRow52EmptyBody(t *testing.T) {
	input := slices.Concat(publishing(1), frame(FrameHeader, 1, header(0, 0, 0)...))
	if got, err := collect(reading(input)); err != nil || len(got) != 1 || len(got[0].content.Body) != 0 {
		t.Fatal(got, err)
	}
	refused(t, UnexpectedFrame, 0, false, input, frame(FrameBody, 1))
}

func TestRow53EmptyBodyFramesInside(t *testing.T) {
	got, err := collect(reading(slices.Concat(publishing(1), frame(FrameHeader, 1, header(2, 0, 0)...), frame(FrameBody, 1),
		frame(FrameBody, 1, 'h'), frame(FrameBody, 1), frame(FrameBody, 1, 'i'))))
	if err != nil || len(got) != 1 || string(got[0].content.Body) != "hi" {
		t.Fatal(got, err)
	}
}

func TestRow54BodyAbove512MiB(t *testing.T) {
	for _, size := range []uint64{MaxBodyBytes + 1, 1 << 32, 1 << 63, 1<<64 - 1} {
		refused(t, FrameError, BasicPublishID, false, publishing(1), frame(FrameHeader, 1, header(size, 0, 0)...))
	}
}

// TestRow55BodyAboveTheConfiguredSize closes the channel only; the next message of the connection is read.
func TestRow55BodyAboveTheConfiguredSize(t *testing.T) {
	r := reading(slices.Concat(publishing(1), frame(FrameHeader, 1, header(11, 0, 0)...), frame(FrameBody, 1, make([]byte, 11)...)))
	c := Content{MaxBytes: 10}
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	c.Begin(BasicPublishID)
	f, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	var wrong *Error
	if _, err = c.Take(r, f); !errors.As(err, &wrong) || wrong.Hard() || wrong.ReplyText() != "PRECONDITION_FAILED - message size 11 is larger than configured max size 10" {
		t.Fatal(err)
	}
	if f, err = r.Next(); f.Type != FrameBody || err != nil || c.Pending() != 0 {
		t.Fatal(f, err)
	}
	if _, err = r.Next(); err != io.EOF {
		t.Fatal(err)
	}
}

func TestRow56WrongLengthOfArguments(t *testing.T) {
	whole := (&QueueDeclare{Queue: "q", Arguments: Table(unhex(t, "01 61 42 01"))}).Append(nil)
	for n := 4; n < len(whole); n++ {
		refused(t, FrameError, QueueDeclareID, false, frame(FrameMethod, 1, whole[:n]...))
	}
	refused(t, FrameError, QueueDeclareID, false, frame(FrameMethod, 1, append(whole, 0)...))
	refused(t, FrameError, TxSelectID, false, frame(FrameMethod, 1, 0, 90, 0, 10, 0))
	whole[9+2] = 0xFF // the table's length
	refused(t, FrameError, QueueDeclareID, false, frame(FrameMethod, 1, whole...))
}

// TestRow57InvalidUTF8InShortStrings: in methods without content only. RabbitMQ takes routing keys and properties as they are.
func TestRow57InvalidUTF8InShortStrings(t *testing.T) {
	refused(t, FrameError, 0, false, (&QueueDeclare{Queue: "q\xff"}).AppendFrame(nil, 1))
	refused(t, FrameError, 0, false, (&BasicConsume{ConsumerTag: "\xc0\x80"}).AppendFrame(nil, 1))
	key := (&BasicPublish{RoutingKey: []byte("\xff")}).AppendFrame(nil, 1)
	got, err := collect(reading(slices.Concat(key, frame(FrameHeader, 1, header(0, 0x04, 0, 1, 0xFF)...))))
	if err != nil || len(got) != 1 || string(got[0].method.(*BasicPublish).RoutingKey) != "\xff" {
		t.Fatal(got, err)
	}
}

func TestRow58UnknownFieldTag(t *testing.T) {
	for _, table := range []string{"01 61 55 0001", "01 61 63", "01 61 41 00000002 7A 00"} {
		b := unhex(t, table)
		refused(t, SyntaxError, QueueDeclareID, false, (&QueueDeclare{Queue: "q", Arguments: b}).AppendFrame(nil, 1))
		refused(t, SyntaxError, BasicPublishID, false, publishing(1), frame(FrameHeader, 1, header(0, appendLong([]byte{0x20, 0}, b)...)...))
	}
	for _, b := range [][]byte{nested('A', 10_000), nested('F', 10_000), bytes.Repeat([]byte{0, 'V'}, 65_537)} {
		input := (&QueueBind{Arguments: b}).AppendFrame(nil, 1)
		var wrong *Error
		if _, err := collect(NewReader(bytes.NewReader(input), 1<<20)); !errors.As(err, &wrong) || wrong.Code != SyntaxError {
			t.Errorf("a table of %d bytes: %v", len(b), err)
		}
	}
}

func TestRow60DamagedProperties(t *testing.T) {
	for _, properties := range []string{"", "80", "0001 0000", "8001 0161 0000", "8000", "8000 0561", "1000", "0040 00000000", "2000 00000005 0161", "0000 00", "1000 02 01"} {
		refused(t, FrameError, BasicPublishID, false, publishing(1), frame(FrameHeader, 1, header(0, unhex(t, properties)...)...))
	}
	refused(t, SyntaxError, BasicPublishID, false, publishing(1), frame(FrameHeader, 1, header(0, unhex(t, "2000 00000003 016149")...)...))
	got, err := collect(reading(slices.Concat(publishing(1), frame(FrameHeader, 1, header(0, unhex(t, "1002 02")...)...))))
	if mode, _ := got[0].content.Properties.Byte(PropertyDeliveryMode); err != nil || mode != Persistent {
		t.Fatal("the unused flag is not ignored:", got, err)
	}
}

// TestRow62BodiesAreCut into frames of exactly frame_max, the last one shorter, none empty.
func TestRow62BodiesAreCut(t *testing.T) {
	for frameMax, want := range map[uint32][]uint32{131072: {131064, 131064, 37872}, 0: {300_000}} {
		body := bytes.Repeat([]byte("0123456789"), 30_000)
		r := NewReader(bytes.NewReader(AppendContent(nil, 3, nil, body, frameMax)), frameMax)
		var sizes []uint32
		var c Content
		c.Begin(BasicPublishID)
		for complete := false; !complete; {
			f, err := r.Next()
			if err == nil {
				complete, err = c.Take(r, f)
			}
			if err != nil {
				t.Fatal(err)
			}
			if f.Type == FrameBody {
				sizes = append(sizes, f.Size)
			}
		}
		if !slices.Equal(sizes, want) || !bytes.Equal(c.Body, body) {
			t.Errorf("frame_max %d: %d", frameMax, sizes)
		}
	}
	if b := AppendContent(nil, 1, nil, nil, 4096); !bytes.Equal(b, frame(FrameHeader, 1, header(0, 0, 0)...)) {
		t.Errorf("an empty body: %x", b)
	}
	if b := AppendContent(nil, 1, nil, make([]byte, 2*4088), 4096); len(b) != 7+14+1+2*4096 {
		t.Errorf("two full frames: %d bytes", len(b))
	}
}

func TestRow63UnknownMethod(t *testing.T) {
	for _, id := range []MethodID{MakeMethodID(60, 41), MakeMethodID(110, 10), MakeMethodID(0, 0), MakeMethodID(40, 41)} {
		refused(t, CommandInvalid, id, false, frame(FrameMethod, 1, be.AppendUint32(nil, uint32(id))...))
	}
	_, err := DecodeMethod([]byte{0, 60, 0, 41})
	if text := err.(*Error).ReplyText(); text != "COMMAND_INVALID - unknown method 60.41" {
		t.Error(text)
	}
}

func TestRow64ChannelsInterleave(t *testing.T) {
	got, err := collect(reading(slices.Concat(publishing(1), publishing(2), frame(FrameHeader, 2, header(2, 0, 0)...), AppendHeartbeat(nil),
		frame(FrameHeader, 1, header(4, 0, 0)...), frame(FrameBody, 1, 'o', 'n'), frame(FrameBody, 2, 't', 'w'), frame(FrameBody, 1, 'e', '.'))))
	if err != nil || len(got) != 2 || string(got[0].content.Body) != "tw" || string(got[1].content.Body) != "one." {
		t.Fatal(got, err)
	}
}

// TestInputMayEndAnywhere: the end is io.EOF between frames and io.ErrUnexpectedEOF inside one.
func TestInputMayEndAnywhere(t *testing.T) {
	input := slices.Concat(publishing(1), AppendContent(nil, 1, nil, []byte(strings.Repeat("body", 300)), 4096), AppendHeartbeat(nil))
	ends := map[int]bool{0: true}
	for at := 0; at < len(input); at += FrameOverhead + int(be.Uint32(input[at+3:])) {
		ends[at] = true
	}
	for n := range input {
		r := reading(input[:n])
		var err error
		for err == nil {
			if _, err = r.Next(); err == nil {
				_, err = r.Payload()
			}
		}
		if want := fmt.Sprint(map[bool]error{true: io.EOF, false: io.ErrUnexpectedEOF}[ends[n]]); err.Error() != want {
			t.Fatalf("cut at %d: %v, want %s", n, err, want)
		}
	}
}
