package amqp091

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// ids is every method by class.method, written down apart from methods.txt.
const ids = `
10.10 connection.start S, 10.11 connection.start-ok C, 10.20 connection.secure S, 10.21 connection.secure-ok C, 10.30 connection.tune S,
10.31 connection.tune-ok C, 10.40 connection.open C, 10.41 connection.open-ok S, 10.50 connection.close CS, 10.51 connection.close-ok CS,
10.60 connection.blocked S, 10.61 connection.unblocked S, 10.70 connection.update-secret C, 10.71 connection.update-secret-ok S,
20.10 channel.open C, 20.11 channel.open-ok S, 20.20 channel.flow CS, 20.21 channel.flow-ok CS, 20.40 channel.close CS, 20.41 channel.close-ok CS,
30.10 access.request C, 30.11 access.request-ok S,
40.10 exchange.declare C, 40.11 exchange.declare-ok S, 40.20 exchange.delete C, 40.21 exchange.delete-ok S, 40.30 exchange.bind C,
40.31 exchange.bind-ok S, 40.40 exchange.unbind C, 40.51 exchange.unbind-ok S,
50.10 queue.declare C, 50.11 queue.declare-ok S, 50.20 queue.bind C, 50.21 queue.bind-ok S, 50.30 queue.purge C, 50.31 queue.purge-ok S,
50.40 queue.delete C, 50.41 queue.delete-ok S, 50.50 queue.unbind C, 50.51 queue.unbind-ok S,
60.10 basic.qos C, 60.11 basic.qos-ok S, 60.20 basic.consume C, 60.21 basic.consume-ok S, 60.30 basic.cancel CS, 60.31 basic.cancel-ok CS,
60.40 basic.publish C content, 60.50 basic.return S content, 60.60 basic.deliver S content, 60.70 basic.get C, 60.71 basic.get-ok S content,
60.72 basic.get-empty S, 60.80 basic.ack CS, 60.90 basic.reject C, 60.100 basic.recover-async C, 60.110 basic.recover C,
60.111 basic.recover-ok S, 60.120 basic.nack CS,
85.10 confirm.select C, 85.11 confirm.select-ok S,
90.10 tx.select C, 90.11 tx.select-ok S, 90.20 tx.commit C, 90.21 tx.commit-ok S, 90.30 tx.rollback C, 90.31 tx.rollback-ok S`

func TestMethodIDs(t *testing.T) {
	var got []string
	for _, m := range methods {
		who := ""
		if m.id.FromClient() {
			who += "C"
		}
		if m.id.FromServer() {
			who += "S"
		}
		if m.id.HasContent() {
			who += " content"
		}
		got = append(got, fmt.Sprintf("%d.%d %s %s", m.id.Class(), m.id.Method(), m.id, who))
		if !m.id.Known() || MakeMethodID(m.id.Class(), m.id.Method()) != m.id || New(m.id).ID() != m.id {
			t.Errorf("%s is not itself", m.id)
		}
	}
	want := strings.Split(strings.ReplaceAll(strings.TrimSpace(ids), ",\n", ", "), ", ")
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if id := MakeMethodID(60, 41); id.Known() || id.String() != "60.41" || New(id) != nil || id.FromClient() || id.HasContent() {
		t.Errorf("%s is known", id)
	}
}

// fill sets every field of a method to something drawn, nothing being as likely as anything.
func fill(t *rapid.T, m Method) {
	v := reflect.ValueOf(m).Elem()
	for i := range v.NumField() {
		f, name := v.Field(i), v.Type().Field(i).Name
		switch f.Interface().(type) {
		case string:
			f.SetString(rapid.StringN(0, 20, 255).Draw(t, name))
		case bool:
			f.SetBool(rapid.Bool().Draw(t, name))
		case Table:
			if b, err := AppendMap(nil, drawMap(t, 2)); err != nil {
				t.Fatal(err)
			} else if len(b) > 0 {
				f.SetBytes(b)
			}
		case []byte:
			f.SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 255).Draw(t, name))
		case uint8:
			f.SetUint(uint64(rapid.Uint8().Draw(t, name)))
		case uint16:
			f.SetUint(uint64(rapid.Uint16().Draw(t, name)))
		case uint32, MethodID:
			f.SetUint(uint64(rapid.Uint32().Draw(t, name)))
		case uint64:
			f.SetUint(rapid.Uint64().Draw(t, name))
		default:
			t.Fatalf("%s has a field of type %s", m.ID(), f.Type())
		}
	}
}

// TestMethodsRoundTrip: what is encoded is decoded to the same, and every cut or lengthened encoding is refused.
func TestMethodsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		info := rapid.SampledFrom(methods).Draw(t, "method")
		m := New(info.id)
		fill(t, m)
		payload := m.Append(nil)
		got, err := DecodeMethod(payload)
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Fatalf("%+v, %v; want %+v", got, err, m)
		}
		if frame := m.AppendFrame([]byte("front"), 7); !bytes.Equal(frame[12:len(frame)-1], payload) || int(be.Uint32(frame[8:])) != len(payload) {
			t.Fatalf("%x is no frame of %x", frame, payload)
		}
		n := rapid.IntRange(0, len(payload)).Draw(t, "cut")
		if n < len(payload) {
			payload = payload[:n]
		} else {
			payload = append(payload, 0)
		}
		var wrong *Error
		if _, err := DecodeMethod(payload); !errors.As(err, &wrong) || wrong.Code != FrameError || !wrong.Hard() || wrong.Fatal {
			t.Fatalf("%x: %v", payload, err)
		} else if len(payload) >= 4 && wrong.Cause != m.ID() {
			t.Fatalf("%x: %v is said of %s", payload, err, wrong.Cause)
		}
	})
}

func TestLongStringsAreCut(t *testing.T) {
	m := ConnectionClose{ReplyText: strings.Repeat("ä", 200)}
	got, err := DecodeMethod(m.Append(nil))
	if want := strings.Repeat("ä", 127); err != nil || got.(*ConnectionClose).ReplyText != want {
		t.Fatalf("%+v, %v", got, err)
	}
}

func TestErrorTexts(t *testing.T) {
	e := Errorf(NotFound, QueueBindID, "no queue '%s' in vhost '/'", "a\xff"+strings.Repeat("q", 300))
	if text := e.ReplyText(); !strings.HasPrefix(text, "NOT_FOUND - no queue 'a\uFFFDqq") || len(text) != 255 || e.Hard() {
		t.Errorf("%q, hard: %t", text, e.Hard())
	}
	if s := Errorf(SyntaxError, BasicAckID, "x").Error(); s != "502 SYNTAX_ERROR - x (basic.ack)" {
		t.Error(s)
	}
	for code, name := range codeNames {
		if hard := code >= 500 || code == ConnectionForced || code == InvalidPath; code.String() != name || code.Hard() != hard {
			t.Errorf("%d %s, hard: %t", code, code, code.Hard())
		}
	}
}

func TestStringsRemember(t *testing.T) {
	var s Strings
	for i := range 1000 {
		key := fmt.Sprint("key ", i%100)
		if got := s.String([]byte(key)); got != key {
			t.Fatalf("%q for %q", got, key)
		}
	}
	view := []byte("orders")
	s.String(view)
	if n := testing.AllocsPerRun(100, func() { s.String(view) }); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}
