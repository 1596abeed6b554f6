package amqp091

import (
	"bytes"
	"testing"
)

// endless repeats its bytes.
type endless struct {
	b  []byte
	at int
}

func (e *endless) Read(into []byte) (int, error) {
	n := copy(into, e.b[e.at:])
	e.at = (e.at + n) % len(e.b)
	return n, nil
}

func benchmarkPublish(b *testing.B, size int) {
	properties, _ := AppendProperties(nil, &Properties{ContentType: "text/plain", DeliveryMode: Persistent, MessageID: "message-1"})
	input := AppendContent((&BasicPublish{Exchange: []byte("orders"), RoutingKey: []byte("order.42.paid")}).AppendFrame(nil, 1), 1, properties, make([]byte, size), 131072)
	r := NewReader(&endless{b: bytes.Repeat(input, 1+100_000/len(input))}, 131072)
	b.SetBytes(int64(len(input)))
	b.ReportAllocs()
	var c Content
	var m BasicPublish
	var s Strings
	for b.Loop() {
		if _, err := r.Next(); err != nil {
			b.Fatal(err)
		}
		payload, _ := r.Payload()
		id, args, err := SplitMethod(payload)
		if err == nil {
			err = m.Decode(args)
		}
		if err != nil {
			b.Fatal(err)
		}
		_, _ = s.String(m.Exchange), s.String(m.RoutingKey)
		c.Begin(id)
		for complete := false; !complete; {
			f, err := r.Next()
			if err == nil {
				complete, err = c.Take(r, f)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkReadPublish100(b *testing.B)  { benchmarkPublish(b, 100) }
func BenchmarkReadPublish64K(b *testing.B)  { benchmarkPublish(b, 64<<10) }
func BenchmarkReadPublish1MiB(b *testing.B) { benchmarkPublish(b, 1<<20) }

func BenchmarkReadAck(b *testing.B) {
	r := NewReader(&endless{b: bytes.Repeat((&BasicAck{DeliveryTag: 7}).AppendFrame(nil, 1), 1000)}, 131072)
	b.ReportAllocs()
	var m BasicAck
	for b.Loop() {
		if _, err := r.Next(); err != nil {
			b.Fatal(err)
		}
		payload, _ := r.Payload()
		if _, args, err := SplitMethod(payload); err != nil || m.Decode(args) != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkDeliver(b *testing.B, size int) {
	properties, _ := AppendProperties(nil, &Properties{ContentType: "text/plain", DeliveryMode: Persistent})
	body := make([]byte, size)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	var out []byte
	for n := uint64(1); b.Loop(); n++ {
		m := BasicDeliver{ConsumerTag: "consumer", DeliveryTag: n, Exchange: "orders", RoutingKey: "order.42.paid"}
		if out = AppendContent(m.AppendFrame(out, 1), 1, properties, body, 131072); n%50 == 0 {
			out = out[:0]
		}
	}
}

func BenchmarkWriteDeliver100(b *testing.B) { benchmarkDeliver(b, 100) }
func BenchmarkWriteDeliver1M(b *testing.B)  { benchmarkDeliver(b, 1<<20) }

func BenchmarkWriteAck(b *testing.B) {
	b.ReportAllocs()
	var buf []byte
	for n := uint64(1); b.Loop(); n++ {
		m := BasicAck{DeliveryTag: n}
		buf = m.AppendFrame(buf[:0], 1)
	}
}

func BenchmarkAddHeader(b *testing.B) {
	properties, _ := AppendProperties(nil, &Properties{ContentType: "text/plain", DeliveryMode: Persistent, Headers: Map{"a": "b", "c": 1}})
	field, _ := AppendField(nil, "x-delivery-count", int64(1))
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		buf = PropertyBytes(properties).AppendWithField(buf[:0], field)
	}
}

// TestHotPathsTakeNoMemory, but for a message's body and properties.
func TestHotPathsTakeNoMemory(t *testing.T) {
	properties, _ := AppendProperties(nil, &Properties{ContentType: "text/plain", Headers: Map{"CC": []any{"a"}}, DeliveryMode: Persistent})
	raw, buf := PropertyBytes(properties), make([]byte, 0, 4096)
	publish := BasicPublish{RoutingKey: []byte("key")}
	payload := publish.Append(nil)
	field, _ := AppendField(nil, "x-delivery-count", int64(1))
	for name, f := range map[string]func(){
		"check properties": func() { _ = raw.Check() },
		"one property":     func() { raw.Byte(PropertyDeliveryMode); raw.Value(PropertyExpiration) },
		"one header":       func() { raw.Headers().Lookup("CC") },
		"add a header":     func() { raw.AppendWithField(buf, field) },
		"decode publish":   func() { _, args, _ := SplitMethod(payload); _ = publish.Decode(args) },
		"encode deliver":   func() { m := BasicDeliver{ConsumerTag: "c"}; m.AppendFrame(buf, 1) },
		"encode return":    func() { m := BasicReturn{ReplyCode: 312, ReplyText: "NO_ROUTE"}; m.AppendFrame(buf, 1) },
		"encode get-ok":    func() { m := BasicGetOk{DeliveryTag: 1}; m.AppendFrame(buf, 1) },
		"encode nack":      func() { m := BasicNack{DeliveryTag: 1}; m.AppendFrame(buf, 1) },
		"encode content":   func() { AppendContent(buf, 1, raw, payload, 4096) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
