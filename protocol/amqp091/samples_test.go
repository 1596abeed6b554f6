package amqp091

import (
	"bytes"
	"encoding/hex"
	"io"
	"reflect"
	"strings"
	"testing"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// reading returns a reader of the bytes, with the frame_max that servers suggest.
func reading(b []byte) *Reader { return NewReader(bytes.NewReader(b), 131072) }

// TestMethodSamples: whole frames as they are on the wire, both ways.
func TestMethodSamples(t *testing.T) {
	for frame, want := range map[string]Method{
		"01 0001 00000005 0014 000A 00 CE":                           &ChannelOpen{},
		"01 0001 0000000D 0032 000A 0000 01 71 0A 00000000 CE":       &QueueDeclare{Queue: "q", Durable: true, AutoDelete: true},
		"01 0001 0000000A 003C 0028 0000 00 01 71 01 CE":             &BasicPublish{Exchange: []byte{}, RoutingKey: []byte("q"), Mandatory: true},
		"01 0001 0000000D 003C 0050 0000000000000001 01 CE":          &BasicAck{DeliveryTag: 1, Multiple: true},
		"01 0001 0000000D 003C 0078 0000000000000003 03 CE":          &BasicNack{DeliveryTag: 3, Multiple: true, Requeue: true},
		"01 0001 0000000C 0014 0028 0194 01 78 0032 000A CE":         &ChannelClose{ReplyCode: 404, ReplyText: "x", Cause: QueueDeclareID},
		"01 0001 0000000C 001E 000A 01 2F 1F CE":                     nil, // a byte too few for its size
		"01 0000 0000000C 000A 001F 07FF 00020000 003C CE":           &ConnectionTuneOk{ChannelMax: 2047, FrameMax: 131072, Heartbeat: 60},
		"01 0001 00000007 001E 000A 01 2F 1F CE":                     &AccessRequest{Realm: "/", Exclusive: true, Passive: true, Active: true, Write: true, Read: true},
		"01 0001 0000000D 0032 0032 0000 01 71 00 00 00000000 CE":    nil, // cut: unbind has three strings
		"01 0001 0000000E 0032 0032 0000 01 71 00 00 00000000 CE":    &QueueUnbind{Queue: "q"},
		"01 0001 00000004 0028 0033 CE":                              &ExchangeUnbindOk{},
		"01 0001 0000000F 003C 0032 0138 02 4E4F 00 01 6B 00 00 CE":  nil, // two bytes too many
		"01 0001 0000000D 003C 0032 0138 02 4E4F 00 01 6B CE":        nil, // the size says two bytes more
		"01 0001 0000000C 003C 0032 0138 02 4E4F 00 01 6B CE":        &BasicReturn{ReplyCode: 312, ReplyText: "NO", RoutingKey: "k"},
		"01 0000 00000010 000A 0046 00000002 7B7D 03 6E6577 CE":      nil,
		"01 0000 0000000E 000A 0046 00000002 7B7D 03 6E6577 CE":      &ConnectionUpdateSecret{NewSecret: "{}", Reason: "new"},
		"01 0001 00000015 003C 003C 01 74 0000000000000007 01 00 CE": nil,
	} {
		r := reading(unhex(t, frame))
		var got Method
		f, err := r.Next()
		if err == nil {
			var payload []byte
			if payload, err = r.Payload(); err == nil {
				got, err = DecodeMethod(payload)
			}
		}
		if want == nil {
			if err == nil {
				t.Errorf("%s: decoded to %+v", frame, got)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", frame, got, err, want)
			continue
		}
		if b := want.AppendFrame(nil, f.Channel); !bytes.Equal(b, unhex(t, frame)) {
			t.Errorf("%s: encoded as %x", frame, b)
		}
	}
}

// TestContentSamples: heartbeat, header and body frames as they are on the wire, both ways.
func TestContentSamples(t *testing.T) {
	if b := AppendHeartbeat(nil); !bytes.Equal(b, unhex(t, "08000000000000CE")) {
		t.Fatalf("heartbeat: %x", b)
	}
	frames := unhex(t, "02 0001 00000017 003C 0000 0000000000000002 3000 00000004 01 61 74 01 02 CE  03 0001 00000002 6869 CE")
	r := reading(append(AppendHeartbeat(nil), frames...))
	if f, err := r.Next(); err != nil || f != (Frame{Type: FrameHeartbeat}) {
		t.Fatalf("%+v, %v", f, err)
	}
	var c Content
	c.Begin(BasicPublishID)
	for want := range 2 {
		f, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if complete, err := c.Take(r, f); err != nil || complete != (want == 1) {
			t.Fatalf("frame %d: %v, %v", want, complete, err)
		}
	}
	if _, err := r.Next(); err != io.EOF {
		t.Fatal(err)
	}
	var p Properties
	if err := DecodeProperties(c.Properties, &p); err != nil || string(c.Body) != "hi" || p.DeliveryMode != Persistent || p.Headers["a"] != true {
		t.Fatalf("%+v %q %v", p, c.Body, err)
	}
	if b := AppendContent(nil, 1, c.Properties, c.Body, 131072); !bytes.Equal(b, frames) {
		t.Fatalf("%x", b)
	}
}
