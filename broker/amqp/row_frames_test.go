package amqp_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/warrenmq/warren/broker/amqp"
	"github.com/warrenmq/warren/broker/amqp/amqptest"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// toQueue is a publish to a queue of the default exchange.
func toQueue(queue string) *amqp091.BasicPublish {
	return &amqp091.BasicPublish{RoutingKey: []byte(queue)}
}

// header is a content header frame of channel 1, with everything open to choice.
func header(class, weight uint16, size uint64, properties []byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, class)
	b = binary.BigEndian.AppendUint16(b, weight)
	return amqptest.RawFrame(amqp091.FrameHeader, 1, append(binary.BigEndian.AppendUint64(b, size), properties...))
}

var noProperties = []byte{0, 0}

// message is a publish with these properties.
func message(properties []byte) []byte {
	return bytes.Join([][]byte{publishFrame("q"), header(60, 0, 1, properties), body("x")}, nil)
}

func body(payload string) []byte { return amqptest.RawFrame(amqp091.FrameBody, 1, []byte(payload)) }

// publishFrame is basic.publish on channel 1 to a queue.
func publishFrame(queue string) []byte { return toQueue(queue).AppendFrame(nil, 1) }

// broken is input that ends a connection.
type broken struct {
	input []byte
	code  amqp091.Code
	cause amqp091.MethodID
	text  string // "" is any
}

// expectBroken sends each input on a connection of its own with channel 1 open. A healthy connection is none the worse for it.
func expectBroken(t *testing.T, inputs map[string]broken) {
	t.Helper()
	t.Parallel()
	healthy := dial(t).Channel(1)
	t.Cleanup(func() { healthy.Quiet() })
	each(t, inputs, func(t *testing.T, b broken) {
		c := dial(t)
		c.Channel(1)
		c.Raw(b.input)
		c.ExpectClose(b.code, b.cause, b.text)
	})
}

func TestRow44UnknownFrameType(t *testing.T) {
	expectBroken(t, map[string]broken{
		"type 4 on a channel": {amqptest.RawFrame(4, 1, []byte("abc")), amqp091.FrameError, 0, ""},
		"type 4 on channel 0": {amqptest.RawFrame(4, 0, nil), amqp091.FrameError, 0, ""},
		"type 0":              {amqptest.RawFrame(0, 1, nil), amqp091.FrameError, 0, ""},
		"type 255":            {amqptest.RawFrame(255, 1, nil), amqp091.FrameError, 0, ""},
		"short method":        {amqptest.RawFrame(1, 1, []byte{0, 60, 0}), amqp091.FrameError, 0, ""},
	})
}

func TestRow45WrongEnd(t *testing.T) {
	c, ch := begin(t)
	frame := (&amqp091.ChannelFlow{Active: true}).AppendFrame(nil, 1)
	frame[len(frame)-1] = 0
	c.Raw(frame)
	c.ReceiveClose(amqp091.FrameError, 0, "")
	q := name(t, "q")
	ch.Send(&amqp091.QueueDeclare{Queue: q})
	c.Send(0, &amqp091.ConnectionClose{ReplyCode: 200})
	c.ExpectClosed(amqptest.Patience)
	if dial(t).Channel(1).Exists(q) {
		t.Fatal("the broker read on behind a frame without its end")
	}
}

func TestRow46FrameTooLarge(t *testing.T) {
	t.Parallel()
	c := amqptest.DialWith(t, address(t), amqptest.Options{FrameMax: 4096})
	ch := c.Channel(1)
	q := ch.Queue(name(t, "q"))
	payload := strings.Repeat("x", 4096)
	c.Raw(bytes.Join([][]byte{publishFrame(q), header(60, 0, 4096, noProperties), body(payload)}, nil))
	ch.ExpectDepth(q, 1)
	if d := ch.MustGet(q); d.Text() != payload {
		t.Fatalf("%d bytes came back", len(d.Body))
	}
	c.Raw(bytes.Join([][]byte{publishFrame(q), header(60, 0, 4097, noProperties), body(payload + "x")}, nil))
	c.ExpectClose(amqp091.FrameError, 0, "")
}

func TestRow47Heartbeat(t *testing.T) {
	expectBroken(t, map[string]broken{
		"on channel 1": {amqptest.RawFrame(8, 1, nil), amqp091.UnexpectedFrame, 0, ""},
		"with payload": {amqptest.RawFrame(8, 0, []byte{0}), amqp091.FrameError, 0, ""},
	})
}

func TestRow48ContentWithoutPublish(t *testing.T) {
	expectBroken(t, map[string]broken{
		"header": {header(60, 0, 1, noProperties), amqp091.UnexpectedFrame, 0, "expected method frame, got non method frame instead"},
		"body":   {body("x"), amqp091.UnexpectedFrame, 0, "expected method frame, got non method frame instead"},
	})
}

func TestRow49MethodInsteadOfContent(t *testing.T) {
	flow := (&amqp091.ChannelFlow{Active: true}).AppendFrame(nil, 1)
	expectBroken(t, map[string]broken{
		"method instead of header": {append(publishFrame("q"), flow...), amqp091.UnexpectedFrame, amqp091.BasicPublishID,
			"expected content header for class 60, got non content header frame instead"},
		"body instead of header": {append(publishFrame("q"), body("x")...), amqp091.UnexpectedFrame, amqp091.BasicPublishID,
			"expected content header for class 60, got non content header frame instead"},
		"method instead of body": {bytes.Join([][]byte{publishFrame("q"), header(60, 0, 1, noProperties), flow}, nil), amqp091.UnexpectedFrame,
			amqp091.BasicPublishID, "expected content body, got non content body frame instead"},
		"header instead of body": {bytes.Join([][]byte{publishFrame("q"), header(60, 0, 1, noProperties), header(60, 0, 1, noProperties)}, nil),
			amqp091.UnexpectedFrame, amqp091.BasicPublishID, "expected content body, got non content body frame instead"},
	})
}

func TestRow50WrongHeader(t *testing.T) {
	expectBroken(t, map[string]broken{
		"class 10": {append(publishFrame("q"), header(10, 0, 1, noProperties)...), amqp091.UnexpectedFrame, amqp091.BasicPublishID,
			"expected content header for class 60, got one for class 10 instead"},
		"weight 1": {append(publishFrame("q"), header(60, 1, 1, noProperties)...), amqp091.UnexpectedFrame, amqp091.BasicPublishID,
			"expected content header for class 60, got non content header frame instead"},
	})
}

func TestRow51BodyTooLong(t *testing.T) {
	t.Parallel()
	each(t, map[string][]string{"one frame": {"ab"}, "second frame": {"", "ab"}}, func(t *testing.T, bodies []string) {
		c := dial(t)
		ch := c.Channel(1)
		q := ch.Queue(name(t, "q"))
		b := append(publishFrame(q), header(60, 0, 1, noProperties)...)
		for _, payload := range bodies {
			b = append(b, body(payload)...)
		}
		c.Raw(b)
		if code := c.ExpectEnd(); code != amqp091.FrameError && code != amqp091.UnexpectedFrame {
			t.Fatalf("code %d", code)
		}
		if n := dial(t).Channel(1).Look(q).MessageCount; n != 0 {
			t.Fatalf("%d messages were published", n)
		}
	})
}

func TestRow52EmptyBody(t *testing.T) {
	c, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	c.Raw(append(publishFrame(q), header(60, 0, 0, noProperties)...))
	ch.ExpectDepth(q, 1)
	if d := ch.MustGet(q); len(d.Body) != 0 {
		t.Fatalf("the body is %q", d.Body)
	}
	c.Raw(bytes.Join([][]byte{publishFrame(q), header(60, 0, 0, noProperties), body("")}, nil))
	c.ExpectClose(amqp091.UnexpectedFrame, 0, "expected method frame, got non method frame instead")
}

func TestRow53EmptyFrameInBody(t *testing.T) {
	c, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	c.Raw(bytes.Join([][]byte{publishFrame(q), header(60, 0, 2, noProperties), body(""), body("a"), body(""), body("b")}, nil))
	ch.ExpectDepth(q, 1)
	if d := ch.MustGet(q); d.Text() != "ab" {
		t.Fatalf("the body is %q", d.Body)
	}
}

func TestRow54HugeBody(t *testing.T) {
	expectBroken(t, map[string]broken{
		"512 MiB and 1": {append(publishFrame("q"), header(60, 0, 512<<20+1, noProperties)...), amqp091.FrameError, amqptest.AnyMethod, ""},
		"2^63":          {append(publishFrame("q"), header(60, 0, 1<<63, noProperties)...), amqp091.FrameError, amqptest.AnyMethod, ""},
		"2^64-1":        {append(publishFrame("q"), header(60, 0, 1<<64-1, noProperties)...), amqp091.FrameError, amqptest.AnyMethod, ""},
	})
}

func TestRow55MessageTooLarge(t *testing.T) {
	t.Parallel()
	c := amqptest.Dial(t, configured(t, amqp.Config{MaxMessage: 1000}))
	ch, other := c.Channel(1), c.Channel(2)
	q := ch.Queue(name(t, "q"))
	ch.Put("", q, strings.Repeat("x", 1000))
	ch.ExpectDepth(q, 1)
	ch.Put("", q, strings.Repeat("x", 1001)) // its body is dropped with the channel
	ch.ExpectClose(amqp091.PreconditionFailed, amqp091.BasicPublishID, "message size 1001 is larger than configured max size 1000")
	ch.Reopen()
	ch.ExpectDepth(q, 1)
	other.Quiet()
}

func TestRow56WrongArguments(t *testing.T) {
	declare := (&amqp091.QueueDeclare{Queue: "q"}).Append(nil)
	table := &amqp091.QueueDeclare{Queue: "q", Arguments: amqp091.Table("\x01aS\x00\x00\x00\x09x")} // the string leaves the table
	consume := (&amqp091.BasicConsume{Queue: "q", ConsumerTag: "tag"}).Append(nil)
	expectBroken(t, map[string]broken{
		"truncated":               {amqptest.RawFrame(1, 1, declare[:len(declare)-1]), amqp091.FrameError, amqp091.QueueDeclareID, ""},
		"ends inside a string":    {amqptest.RawFrame(1, 1, declare[:7]), amqp091.FrameError, amqp091.QueueDeclareID, ""},
		"nothing":                 {amqptest.RawFrame(1, 1, declare[:4]), amqp091.FrameError, amqp091.QueueDeclareID, ""},
		"trailing":                {amqptest.RawFrame(1, 1, append(consume, 0)), amqp091.FrameError, amqp091.BasicConsumeID, ""},
		"trailing behind a bit":   {amqptest.RawFrame(1, 1, []byte{0, 20, 0, 20, 1, 0}), amqp091.FrameError, amqp091.ChannelFlowID, ""},
		"publish truncated":       {amqptest.RawFrame(1, 1, []byte{0, 60, 0, 40, 0, 0, 0, 9, 'x'}), amqp091.FrameError, amqp091.BasicPublishID, ""},
		"ack truncated":           {amqptest.RawFrame(1, 1, []byte{0, 60, 0, 80, 0, 0}), amqp091.FrameError, amqp091.BasicAckID, ""},
		"on channel 0":            {amqptest.RawFrame(1, 0, []byte{0, 10, 0, 50, 0}), amqp091.FrameError, amqp091.ConnectionCloseID, ""},
		"string leaves its table": {table.AppendFrame(nil, 1), amqp091.SyntaxError, amqp091.QueueDeclareID, ""},
	})
}

func TestRow57InvalidUTF8(t *testing.T) {
	expectBroken(t, map[string]broken{
		"queue":       {(&amqp091.QueueDeclare{Queue: "q\xff"}).AppendFrame(nil, 1), amqp091.FrameError, 0, "Malformed UTF-8 in shortstr"},
		"exchange":    {(&amqp091.ExchangeDeclare{Exchange: "\xc3(", Type: "direct"}).AppendFrame(nil, 1), amqp091.FrameError, 0, "Malformed UTF-8 in shortstr"},
		"key to bind": {(&amqp091.QueueBind{Queue: "q", Exchange: "amq.direct", RoutingKey: "\xed\xa0\x80"}).AppendFrame(nil, 1), amqp091.FrameError, 0, "Malformed UTF-8 in shortstr"},
	})
}

func TestRow58UnknownFieldTag(t *testing.T) {
	properties := append([]byte{0x20, 0, 0, 0, 0, 4}, "\x01aU\x00"...)
	expectBroken(t, map[string]broken{
		"U in arguments": {(&amqp091.QueueDeclare{Queue: "q", Arguments: amqp091.Table("\x01aU\x00\x01")}).AppendFrame(nil, 1), amqp091.SyntaxError, amqp091.QueueDeclareID, ""},
		"c in arguments": {(&amqp091.QueueDeclare{Queue: "q", Arguments: amqp091.Table("\x01ac\x00")}).AppendFrame(nil, 1), amqp091.SyntaxError, amqp091.QueueDeclareID, ""},
		"nested":         {(&amqp091.QueueDeclare{Queue: "q", Arguments: amqp091.Table("\x01aF\x00\x00\x00\x04\x01bU\x00")}).AppendFrame(nil, 1), amqp091.SyntaxError, amqp091.QueueDeclareID, ""},
		"in headers":     {message(properties), amqp091.SyntaxError, amqp091.BasicPublishID, ""},
	})
}

// everyTag has a field of each of the 18 types.
var everyTag = amqp091.Table("\x01tt\x01" + "\x01bb\x80" + "\x01BB\xff" + "\x01ss\x80\x00" + "\x01uu\xff\xff" + "\x01II\x80\x00\x00\x00" +
	"\x01ii\xff\xff\xff\xff" + "\x01ll\x80\x00\x00\x00\x00\x00\x00\x00" + "\x01LL\x7f\xff\xff\xff\xff\xff\xff\xff" + "\x01ff\x3f\x80\x00\x00" +
	"\x01dd\x3f\xf0\x00\x00\x00\x00\x00\x00" + "\x01DD\x02\x00\x00\x01\x00" + "\x01SS\x00\x00\x00\x03a\xffb" + "\x01xx\x00\x00\x00\x02\x00\xff" +
	"\x01TT\x00\x00\x00\x00\x60\x00\x00\x00" + "\x01AA\x00\x00\x00\x04t\x01VV" + "\x01FF\x00\x00\x00\x03\x01vV" + "\x01VV")

func TestRow59FieldTags(t *testing.T) {
	c, ch := begin(t)
	nested := append(amqp091.Table{}, everyTag...)
	nested = append(append(nested, "\x06nestedF"...), 0, 0, 0, byte(len(everyTag)))
	nested = append(nested, everyTag...)
	nested = append(nested, "\x05arrayA\x00\x00\x00\x00"...)
	properties := append([]byte{0x20, 0, 0, 0, byte(len(nested) >> 8), byte(len(nested))}, nested...)
	for _, q := range []*amqp091.QueueDeclare{{Queue: name(t, "K")}, amqptest.Quorum(name(t, "Q"))} {
		ch.Declare(q)
		c.Raw(ch.Message(nil, toQueue(q.Queue), properties, []byte("x")))
		ch.ExpectDepth(q.Queue, 1)
		d := ch.MustGet(q.Queue)
		if got := d.Headers(); !bytes.Equal(got, nested) {
			t.Errorf("%s: headers\n %q came back as\n %q", q.Queue, nested, got)
		}
	}
	// Arguments can have every type too.
	ch.Call(&amqp091.QueueDeclare{Queue: name(t, "arguments"), Arguments: nested})
	ch.Call(&amqp091.QueueDeclare{Queue: name(t, "arguments"), Arguments: nested})
}

func TestRow60PropertyFlags(t *testing.T) {
	expectBroken(t, map[string]broken{
		"continuation": {message([]byte{0x00, 0x01, 0, 0}), amqp091.FrameError, amqp091.BasicPublishID, ""},
		"no flags":     {message(nil), amqp091.FrameError, amqp091.BasicPublishID, ""},
		"half flags":   {message([]byte{0}), amqp091.FrameError, amqp091.BasicPublishID, ""},
		"truncated":    {message([]byte{0x80, 0, 5, 'a'}), amqp091.FrameError, amqp091.BasicPublishID, ""},
		"trailing":     {message([]byte{0, 0, 7}), amqp091.FrameError, amqp091.BasicPublishID, ""},
		"short header": {append(publishFrame("q"), amqptest.RawFrame(2, 1, []byte{0, 60, 0, 0})...), amqp091.FrameError, amqptest.AnyMethod, ""},
	})
}

func TestRow61Properties(t *testing.T) {
	c, ch := begin(t)
	properties := amqptest.Properties(t, amqp091.Properties{ContentType: "text/plain", ContentEncoding: "gzip", Headers: amqp091.Map{"a": int32(1)}, DeliveryMode: 2,
		Priority: 7, CorrelationID: "c", ReplyTo: "r", Expiration: "60000", MessageID: "m", Timestamp: time.Unix(1600000000, 0), Type: "t", UserID: "guest",
		AppID: "app", ClusterID: "cluster"})
	for _, q := range []*amqp091.QueueDeclare{{Queue: name(t, "K")}, amqptest.Quorum(name(t, "Q"))} {
		ch.Declare(q)
		c.Raw(ch.Message(nil, toQueue(q.Queue), properties, []byte("x")))
		ch.ExpectDepth(q.Queue, 1)
		if d := ch.MustGet(q.Queue); !bytes.Equal(d.Properties, properties) {
			t.Errorf("%s: properties\n %q came back as\n %q", q.Queue, properties, d.Properties)
		}
	}
	// The unused bit is ignored.
	k := name(t, "K")
	c.Raw(bytes.Join([][]byte{publishFrame(k), header(60, 0, 1, []byte{0, 2}), body("x")}, nil))
	ch.ExpectDepth(k, 1)
}

func TestRow62Chunks(t *testing.T) {
	_, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	ch.Put("", q, strings.Repeat("x", 300_000))
	ch.ExpectDepth(q, 1)
	ch.Consume(q, "")
	if d := ch.Deliver(); len(d.Frames) != 3 || d.Frames[0] != 131064 || d.Frames[1] != 131064 || d.Frames[2] != 300_000-2*131064 {
		t.Fatalf("frames of %v", d.Frames)
	}
}

func TestRow63UnknownMethod(t *testing.T) {
	unknown := func(class, method uint16) []byte {
		b := binary.BigEndian.AppendUint16(nil, class)
		return amqptest.RawFrame(1, 1, binary.BigEndian.AppendUint16(b, method))
	}
	expectBroken(t, map[string]broken{
		"class":               {unknown(99, 1), amqp091.CommandInvalid, amqp091.MakeMethodID(99, 1), "unknown method 99.1"},
		"method":              {unknown(50, 99), amqp091.CommandInvalid, amqp091.MakeMethodID(50, 99), "unknown method 50.99"},
		"method on channel 0": {amqptest.RawFrame(1, 0, []byte{0, 10, 0, 99}), amqp091.CommandInvalid, amqp091.MakeMethodID(10, 99), "unknown method 10.99"},
	})
}

func TestRow64Interleaved(t *testing.T) {
	c, one := begin(t)
	two := c.Channel(2)
	q := one.Queue(name(t, "q"))
	frames := func(ch *amqptest.Channel, text string) [][]byte {
		list := [][]byte{toQueue(q).AppendFrame(nil, ch.Number), amqp091.AppendHeader(nil, ch.Number, uint64(len(text)), nil)}
		for i := range len(text) {
			list = append(list, amqptest.RawFrame(amqp091.FrameBody, ch.Number, []byte(text[i:i+1])))
		}
		return list
	}
	a, b := frames(one, "first"), frames(two, "other")
	for i := range a {
		c.Raw(append(append([]byte{}, a[i]...), b[i]...))
		c.Raw(heartbeat)
	}
	one.ExpectDepth(q, 2)
	got := one.Drain(q)
	if len(got) != 2 || got[0] != "first" && got[0] != "other" || got[0] == got[1] {
		t.Fatalf("got %v", got)
	}
}
