package fsm

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// array encodes the values of a table as an array, which it takes for the name.
func array(name string, values ...any) []byte {
	var elements []byte
	for _, v := range values {
		elements = append(elements, table("", v)[1:]...)
	}
	b := append([]byte{byte(len(name))}, name...)
	return append(big.AppendUint32(append(b, 'A'), uint32(len(elements))), elements...)
}

func TestRow131CopiesGoToMoreKeys(t *testing.T) {
	w := newWorld(t)
	for _, q := range []string{"own", "cc", "bcc", "both", "other"} {
		w.queue(q)
	}
	w.do(PutExchange{Vhost: 1, Name: "d", Type: direct, Arguments: table("alternate-exchange", "f")}, PutExchange{Vhost: 1, Name: "t", Type: topic},
		PutExchange{Vhost: 1, Name: "f", Type: fanout}, PutExchange{Vhost: 1, Name: "e", Type: fanout},
		PutBinding{Vhost: 1, Source: "d", Destination: "cc", Key: "cc"}, PutBinding{Vhost: 1, Source: "d", Destination: "bcc", Key: "bcc"},
		PutBinding{Vhost: 1, Source: "d", Destination: "both", Key: "cc"}, PutBinding{Vhost: 1, Source: "d", Destination: "both", Key: "bcc"},
		PutBinding{Vhost: 1, Source: "t", Destination: "other", Key: "c*.#"}, PutBinding{Vhost: 1, Source: "t", Destination: "both", Key: "#"},
		PutBinding{Vhost: 1, Source: "t", Destination: "own", Key: "*.own"}, PutBinding{Vhost: 1, Source: "t", Destination: "bcc", Key: "bcc.*"},
		PutBinding{Vhost: 1, Source: "f", Destination: "other"}, PutBinding{Vhost: 1, Source: "f", Destination: "own"},
		PutBinding{Vhost: 1, Source: "e", Kind: ToExchange, Destination: "d"})
	copies := func(fields ...[]byte) []byte { return bytes.Join(fields, nil) }
	for _, c := range []struct {
		exchange, key string
		headers       []byte
		want          string
	}{
		{"", "own", nil, "own"},
		{"", "own", copies(array("CC", "cc", "cc", "none")), "own cc"},
		{"", "own", copies(table("a", "1"), array("BCC", "bcc", "own"), array("CC", "cc")), "own cc bcc"},
		{"", "none", copies(array("CC", int32(7), "cc", nil, true, "bcc")), "cc bcc"},
		{"", "none", copies(array("CC")), ""},
		{"", "none", copies(array("cc", "cc"), array("XCC", "cc"), table("CCC", "cc")), ""},
		{"d", "cc", copies(array("CC", "bcc")), "cc bcc both"},
		{"d", "none", copies(array("BCC", "bcc")), "bcc both"}, // an alternate exchange only when no key matches
		{"d", "none", copies(array("BCC", "nor this")), "own other"},
		{"t", "x.own", copies(array("CC", "bcc.1", "bcc.2"), array("BCC", "z.own")), "own bcc both"},
		{"f", "none", copies(array("CC", "cc")), "own other"},
		{"e", "none", copies(array("CC", "cc")), "cc both"},
	} {
		for _, q := range w.Queues(1) {
			w.do(Purge{Queue: q.Number})
		}
		want := strings.Fields(c.want)
		r := w.one(&Publish{Vhost: 1, Exchange: c.exchange, RoutingKey: c.key, Properties: properties(c.headers, 2), Body: []byte("x")})
		w.is("routed", r, Result{Routed: uint32(len(want))})
		var reached []string
		for _, name := range []string{"own", "cc", "bcc", "both", "other"} {
			q, _ := w.Queue(1, name)
			if q.Messages > 0 {
				reached = append(reached, name)
			}
			w.is("one copy", q.Messages <= 1, true)
			for at := q.FirstLive; at < q.Next; at++ {
				m, _, _ := w.Get(q.Number, at)
				w.is("exchange and key", m.Exchange+" "+m.RoutingKey, c.exchange+" "+c.key)
				if h := messageHeaders(m.Properties, nil); find(h, "BCC") != nil || bytes.Contains(c.headers, []byte("\x02CC")) != (find(h, "CC") != nil) {
					t.Errorf("%q is read with %q", c.headers, m.Properties)
				}
			}
		}
		w.is(fmt.Sprintf("%s to %q with %q", c.key, c.exchange, c.headers), strings.Join(reached, " "), c.want)
	}
}

func TestRow131StoredPropertiesKeepBCC(t *testing.T) {
	w := newWorld(t)
	q := w.queue("q")
	p := properties(append(array("BCC", "q"), table("a", "1")...), 2)
	w.is("routed", w.one(&Publish{Vhost: 1, RoutingKey: "none", Properties: p}).Routed, uint32(1))
	w.swapped()
	w.is("stored", w.state.queues[q].messages.chunks[0].slots[0].content.properties, p)
	m, _, _ := w.Get(q, 1)
	w.is("read", m.Properties, properties(table("a", "1"), 2))
}

func TestStripBCC(t *testing.T) {
	before, after := append([]byte{0xc0 | 0x20 | 0x10, 0}, "\x04text\x04gzip"...), []byte{2}
	with := func(headers []byte) []byte {
		b := append(big.AppendUint32(bytes.Clone(before), uint32(len(headers))), headers...)
		return append(b, after...)
	}
	for _, c := range []struct{ in, want []byte }{
		{nil, nil}, {[]byte{0, 0}, []byte{0, 0}}, {properties(nil, 1), properties(nil, 1)},
		{with(array("BCC", "a")), with(nil)},
		{with(append(array("BCC", "a"), array("CC", "b")...)), with(array("CC", "b"))},
		{with(append(table("x", int64(1)), append(array("BCC", "a"), array("BCC", "b")...)...)), with(table("x", int64(1)))},
		{with(table("x", "\x03BCC")), with(table("x", "\x03BCC"))},
		{with(table("BCC", "a text")), with(nil)},
		{with(append(array("BCC", "a"), "torn"...)), with([]byte("torn"))},
		{[]byte("\x20\x00\x00\x00\x00\x99\x03BCC"), []byte("\x20\x00\x00\x00\x00\x99\x03BCC")},
	} {
		in := bytes.Clone(c.in)
		if got := StripBCC(c.in); !bytes.Equal(got, c.want) {
			t.Errorf("%q is stripped to %q, want %q", c.in, got, c.want)
		}
		if !bytes.Equal(in, c.in) {
			t.Errorf("%q is changed to %q", in, c.in)
		}
	}
}

func TestRow132CopiesMustBeArrays(t *testing.T) {
	w := newWorld(t)
	w.queue("q")
	for _, c := range []struct {
		headers []byte
		want    string
	}{
		{table("CC", "q"), `PRECONDITION_FAILED - invalid message: {unacceptable_type_in_header,"CC",longstr}`},
		{table("a", "1", "BCC", int32(1)), `PRECONDITION_FAILED - invalid message: {unacceptable_type_in_header,"BCC",signedint}`},
		{table("BCC", true, "CC", nil), `PRECONDITION_FAILED - invalid message: {unacceptable_type_in_header,"CC",void}`},
		{append(array("CC"), table("BCC", "q")...), `PRECONDITION_FAILED - invalid message: {unacceptable_type_in_header,"BCC",longstr}`},
		{table("cc", "q", "aCC", "q", "x", "\x02CC"), ""},
		{nil, ""},
	} {
		p := properties(c.headers, 2)
		r := w.one(&Publish{Vhost: 1, RoutingKey: "q", Properties: p})
		w.is("message", r.Message, c.want)
		w.is("checked before", CheckProperties(p), Result{Code: r.Code, Message: r.Message})
		if c.want != "" {
			w.is("in a transaction", w.one(&Transaction{Operations: []Command{&Publish{Vhost: 1, RoutingKey: "q"}, &Publish{Vhost: 1, RoutingKey: "q", Properties: p}}}), r)
		}
	}
	w.is("in the queue", w.Totals().Messages, uint64(2))
	w.is("a missing exchange comes first", w.one(&Publish{Vhost: 1, Exchange: "none", Properties: properties(table("CC", "q"), 2)}).Code, NotFound)
}

// TestManyCopiesAreBounded publishes with as many keys as one frame holds to an exchange with many bindings.
func TestManyCopiesAreBounded(t *testing.T) {
	w := newWorld(t)
	w.queue("q")
	var bindings []Command
	for i := range 20_000 {
		bindings = append(bindings, PutBinding{Vhost: 1, Source: "amq.topic", Destination: "q", Key: "#", Arguments: table("n", int32(i))})
	}
	w.do(bindings...)
	keys := make([]any, 20_000)
	for i := range keys {
		keys[i] = fmt.Sprint(i % 10_000)
	}
	// keys times bindings would be 400 million steps
	w.is("routed", w.one(&Publish{Vhost: 1, Exchange: "amq.topic", Properties: properties(array("CC", keys...), 2)}), Result{Routed: 1})
}

func BenchmarkCheckProperties(b *testing.B) {
	for name, p := range map[string][]byte{"none": properties(nil, 2), "headers": properties(table("tenant", "blue", "attempt", int32(3), "trace", strings.Repeat("f", 64)), 2),
		"copies": properties(array("CC", "one", "two"), 2)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				CheckProperties(p)
			}
		})
	}
}

func FuzzCopies(f *testing.F) {
	f.Add(properties(append(array("BCC", "q"), array("CC", "q", int32(1))...), 2))
	f.Add(properties(table("BCC", "q"), 0))
	f.Add([]byte("\x20\x00\x00\x00\x00\x99\x03BCC"))
	f.Fuzz(func(t *testing.T, p []byte) {
		CheckProperties(p)
		appendCopies(nil, p)
		stripped := StripBCC(p)
		if again := StripBCC(stripped); !bytes.Equal(again, stripped) {
			t.Errorf("%q is stripped to %q, then to %q", p, stripped, again)
		}
		kept := 0
		for _, x := range messageHeaders(p, nil) {
			if x.name != "BCC" {
				kept++
			}
		}
		left := messageHeaders(stripped, nil)
		if find(left, "BCC") != nil || len(left) != kept {
			t.Errorf("%q is stripped to %q", p, stripped)
		}
	})
}
