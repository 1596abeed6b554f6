package native

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

var head = Head{RID: 7, Channel: 1}

// golden has every frame with the bytes of its payload, written out by hand from the protocol page.
var golden = []struct {
	frame Frame
	bytes string
}{
	{&ChannelOpen{head}, "92 07 01"},
	{&ChannelClose{Head{RID: 300, Channel: 70000}}, "92 cd012c ce00011170"},
	{&ExchangeDeclare{Head: head, Name: "x", Kind: "topic", Durable: true, Arguments: []byte{1}, Passive: true},
		"99 07 01 a178 a5746f706963 c3 c2 c2 c40101 c3"},
	{&ExchangeDelete{head, "x", true}, "94 07 01 a178 c3"},
	{&QueueDeclare{Head: head, Name: "q", Durable: true, AutoDelete: true}, "98 07 01 a171 c3 c2 c3 c400 c2"},
	{&QueueDelete{head, "q", true, false}, "95 07 01 a171 c3 c2"},
	{&Bind{head, Binding{ToExchange, "d", "s", "k", nil}}, "97 07 01 01 a164 a173 a16b c400"},
	{&Unbind{head, Binding{ToQueue, "d", "s", "k", nil}}, "97 07 01 00 a164 a173 a16b c400"},
	{&Publish{Head: head, Exchange: "x", RoutingKey: "k", Properties: []byte{0, 0}, Body: []byte("hi"), Mandatory: true,
		Producer: []byte{9}, Sequence: 256}, "99 07 01 a178 a16b c4020000 c4026869 c3 c40109 cd0100"},
	{&Publish{Head: head, Upload: 5}, "99 07 01 a0 a0 c400 05 c2 c400 00"},
	{&Consume{Head: head, ConsumerTag: "t", Queue: "q", AutoAck: true}, "97 07 01 a174 a171 c3 c2 c400"},
	{&Ack{head, []Range{{1, 3}, {5, 5}}}, "93 07 01 92 920103 920505"},
	{&Deliver{Head{Channel: 1}, Delivery{ConsumerTag: "t", DeliveryTag: 2, Redelivered: true, Exchange: "x",
		RoutingKey: "k", Queue: "q", Body: []byte("b")}}, "9a 00 01 a174 02 c3 a178 a16b a171 c400 c40162"},
	{&Cancel{head, "t"}, "93 07 01 a174"},
	{&Nack{head, []Range{{1, 1}}, true}, "94 07 01 91 920101 c3"},
	{&Get{head, "q", false}, "94 07 01 a171 c2"},
	{&Qos{head, 256, true}, "94 07 01 cd0100 c3"},
	{&Redirect{Leader: "a:1", Term: 3, Members: []string{"a:1", "b:2"}}, "95 00 00 a3613a31 03 92 a3613a31 a3623a32"},
	{&Hello{Head: Head{RID: 1}, Version: 1, ClientName: "c", Vhost: "/", Mechanism: "PLAIN", Response: []byte{0},
		FrameMax: 65536, Heartbeat: 1}, "99 01 00 01 a163 a12f a5504c41494e c40100 ce00010000 01"},
	{&Heartbeat{}, "92 00 00"},
	{&Purge{head, "q"}, "93 07 01 a171"},
	{&Return{Head: head, Code: 312, Text: "NO_ROUTE", Exchange: "x", RoutingKey: "k", Body: []byte("b")},
		"98 07 01 cd0138 a84e4f5f524f555445 a178 a16b c400 c40162"},
	{&Flow{Blocked: true, Reason: "disk"}, "94 00 00 c3 a46469736b"},
	{&Tx{head, []Operation{{Kind: TypePublish, Exchange: "x", RoutingKey: "k", Body: []byte("b")},
		{Kind: TypeAck, Ranges: []Range{{1, 2}}}, {Kind: TypeNack, Ranges: []Range{{3, 3}}, Requeue: true}}},
		"93 07 01 93 9609a178a16bc400c40162c2 920b91920102 930e91920303c3"},
	{&List{head, ListQueues, "n", 1, 50}, "96 07 01 a6717565756573 a16e 01 32"},
	{&ClusterStatusRequest{head}, "92 07 01"},
	{&VhostPut{head, "v"}, "93 07 01 a176"},
	{&VhostDelete{head, "v"}, "93 07 01 a176"},
	{&BodyPart{head, 4, 0, 2, []byte("ab")}, "96 07 01 04 00 02 c4026162"},
	{&Peek{head, "q", 5, 6, 7, 8, Filter{"k.#", []HeaderFilter{{"h", "v", false}, {"x", "", true}}}},
		"99 07 01 a171 05 06 07 08 a36b2e23 92 93a168a176c2 93a178a0c3"},
	{&PolicyPut{head, true, "n", "^", "all", -1, []byte{1}}, "98 07 01 c3 a16e a15e a3616c6c cfffffffffffffffff c40101"},
	{&PolicyDelete{head, false, "n"}, "94 07 01 c2 a16e"},
	{&Move{head, "q", MoveToExchange, "x", "k", true, Filter{Key: "a"}, 3, 4, 5, true}, "9d 07 01 a171 01 a178 a16b c3 a161 90 03 04 05 c3"},

	{&Reply{Head: head, Code: 404, Message: "NF", Of: TypeBind}, "94 07 01 cd0194 a24e46"},
	{&HelloOK{Reply: Reply{Head: head}, NodeID: "n", ClusterID: "c", Leader: "l", Members: []string{"m"}, FrameMax: 1,
		Heartbeat: 2}, "9a 07 01 00 a0 a16e a163 a16c 91a16d 01 02"},
	{&QueueDeclareOK{Reply{Head: head}, "q", 3, 1}, "97 07 01 00 a0 a171 03 01"},
	{&QueueDeleteOK{Reply{Head: head}, 3}, "95 07 01 00 a0 03"},
	{&PurgeOK{Reply{Head: head}, 3}, "95 07 01 00 a0 03"},
	{&PublishOK{Reply{Head: head}, 2, true}, "96 07 01 00 a0 02 c3"},
	{&ConsumeOK{Reply{Head: head}, "t"}, "95 07 01 00 a0 a174"},
	{&GetOK{Reply{Head: head}, true, Delivery{DeliveryTag: 1, Exchange: "x", RoutingKey: "k", Queue: "q", Upload: 200}},
		"9d 07 01 00 a0 c3 a0 01 c2 a178 a16b a171 c400 ccc8"},
	{&TxOK{Reply{Head: head}, []uint32{1, 0}}, "95 07 01 00 a0 920100"},
	{&ListOK{Reply{Head: head}, 9, [][]byte{AppendRow(nil, &VhostRow{"v", 1, 2})}}, "96 07 01 00 a0 09 91 93a1760102"},
	{&PeekOK{Reply{Head: head}, 2, 9, [][]byte{AppendRow(nil, &PeekRow{Sequence: 1, ID: [2]uint64{2, 3}, State: MessageHeld, Reason: "r", Connection: "c",
		Client: "n", Peer: "p", Channel: 4, Consumer: "t", Since: 5, Deliveries: 6, Redeliver: true, Deaths: 7, Expires: 8, Priority: 9,
		Exchange: "x", RoutingKey: "k", Properties: []byte{0, 0}, Body: []byte("b"), BodyBytes: 10, Cut: true})}},
		"97 07 01 00 a0 02 09 91 dc0016 01 02 03 01 a172 a163 a16e a170 04 a174 05 06 c3 07 08 09 a178 a16b c4020000 c40162 0a c3"},
	{&MoveOK{Reply{Head: head}, 5, 4, 1, 2, "r", 8, 9}, "9b 07 01 00 a0 05 04 01 02 a172 08 09"},
	{&ClusterStatusOK{Reply{Head: head}, ClusterStatus{"c", "n", "l", 2, []MemberStatus{{ID: "n", State: "leader",
		Native: "a", AMQP: "b", HTTP: "h", Raft: "r", Gossip: "g", AppliedIndex: 3, CommitIndex: 4, StateHash: "ff",
		StateHashIndex: 3, Version: "v", Alarm: "x", Short: "y", DiskFree: 5, MinDiskFree: 6}}}},
		"99 07 01 00 a0 a163 a16e a16c 02 91 dc0010a16ea66c6561646572a161a162a168a172a1670304a2666603a176a178a1790506"},
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// fresh returns an empty frame of the same kind.
func fresh(f Frame) Frame {
	n := reflect.New(reflect.TypeOf(f).Elem()).Interface().(Frame)
	if r, ok := f.(*Reply); ok {
		n.(*Reply).Of = r.Of
	}
	return n
}

func TestGoldenFrames(t *testing.T) {
	for _, g := range golden {
		b := Append([]byte{0xaa}, g.frame)[1:]
		want := unhex(t, g.bytes)
		if !bytes.Equal(b[HeaderBytes:], want) {
			t.Errorf("%s: payload %x, want %x", g.frame.FrameType(), b[HeaderBytes:], want)
		}
		typ, payload, err := NewReader(bytes.NewReader(b), DefaultFrameMax).Next()
		if err != nil || typ != g.frame.FrameType() {
			t.Fatalf("%s: read %s, %v", g.frame.FrameType(), typ, err)
		}
		got := fresh(g.frame)
		if err := Decode(payload, got); err != nil || !reflect.DeepEqual(got, g.frame) {
			t.Errorf("decoded %+v, %v; want %+v", got, err, g.frame)
		}
	}
}

func TestEveryTypeHasAGoldenFrame(t *testing.T) {
	seen := map[Type]bool{}
	for _, g := range golden {
		seen[g.frame.FrameType()] = true
	}
	for typ := TypeChannelOpen; typ <= TypePolicyDelete; typ++ {
		if !seen[typ] || strings.HasPrefix(typ.String(), "frame type") {
			t.Errorf("no golden frame or name for 0x%x", uint32(typ))
		}
	}
}

// TestBothSidesCanGrow: unknown trailing elements are passed over and missing ones are zero, at every place.
func TestBothSidesCanGrow(t *testing.T) {
	more := unhex(t, "93a178 82a16101a16291c0 c7020aaabb") // an array, with a map and an extension in it
	for _, g := range golden {
		payload := unhex(t, g.bytes)
		if payload[0] >= 0x9f {
			continue
		}
		longer := append(append([]byte{payload[0] + 1}, payload[1:]...), more...)
		got := fresh(g.frame)
		if err := Decode(longer, got); err != nil || !reflect.DeepEqual(got, g.frame) {
			t.Errorf("%s with an unknown element: %+v, %v", g.frame.FrameType(), got, err)
		}
		got = fresh(g.frame)
		if err := Decode(unhex(t, "92 07 01"), got); err != nil {
			t.Errorf("%s with its head alone: %v", g.frame.FrameType(), err)
		}
		if err := Decode([]byte{0x90}, fresh(g.frame)); err != nil {
			t.Errorf("empty %s: %v", g.frame.FrameType(), err)
		}
	}
}

func TestTruncatedPayloadIsRefused(t *testing.T) {
	for _, g := range golden {
		payload := unhex(t, g.bytes)
		for n := range payload {
			if err := Decode(payload[:n:n], fresh(g.frame)); !errors.Is(err, ErrMalformed) {
				t.Errorf("%s cut at %d of %d: %v", g.frame.FrameType(), n, len(payload), err)
			}
		}
	}
}

func TestLengthsAreNotTrusted(t *testing.T) {
	for _, bad := range []string{
		"ddffffffff", "93 07 01 ddffffffff", "93 07 01 dcffff 920101", "99 07 01 dbffffffff", "99 07 01 a0 a0 c6ffffffff",
		"93 07 01 91 dd00000002", "dd00000002 07 df7fffffff", "93 07 01 91 920201", "93 07 01 c1", "93 07 01 91 9201ff",
	} {
		for _, f := range []Frame{&Ack{}, &Tx{}, &Publish{}, &ListOK{}} {
			if err := Decode(unhex(t, bad), f); f.FrameType() == TypeAck && err == nil {
				t.Errorf("%s accepted as %s: %+v", bad, f.FrameType(), f)
			}
		}
	}
	a := Ack{Ranges: make([]Range, MaxRanges+1)}
	if err := Decode(Append(nil, &a)[HeaderBytes:], &Ack{}); !errors.Is(err, ErrMalformed) {
		t.Errorf("too many ranges: %v", err)
	}
	half := Operation{Kind: TypeAck, Ranges: make([]Range, MaxRanges/2+1)}
	if err := Decode(Append(nil, &Tx{Operations: []Operation{half, half}})[HeaderBytes:], &Tx{}); err == nil {
		t.Error("too many ranges in a tx accepted")
	}
}

func TestDecodedBodyAliasesThePayload(t *testing.T) {
	payload := AppendPublish(nil, &Publish{Body: []byte("body")})[HeaderBytes:]
	var p Publish
	if err := DecodePublish(payload, &p); err != nil {
		t.Fatal(err)
	}
	payload[bytes.Index(payload, []byte("body"))] = 'B'
	if string(p.Body) != "Body" || cap(p.Body) != 4 {
		t.Fatalf("body %q with capacity %d", p.Body, cap(p.Body))
	}
}

func TestReaderHandlesAnySplit(t *testing.T) {
	var stream []byte
	var bodies [][]byte
	for _, n := range []int{0, 1, 300, ChunkBytes - 60, ChunkBytes, 3*ChunkBytes + 5, 10, 1 << 20, 7} {
		body := bytes.Repeat([]byte{byte(n)}, n)
		bodies = append(bodies, body)
		stream = AppendPublish(stream, &Publish{Body: body, Sequence: uint64(n)})
	}
	for name, r := range map[string]io.Reader{
		"whole": bytes.NewReader(stream), "one byte": iotest.OneByteReader(bytes.NewReader(stream)),
		"halves": iotest.HalfReader(bytes.NewReader(stream)), "error with data": iotest.DataErrReader(bytes.NewReader(stream)),
	} {
		fr := NewReader(r, DefaultFrameMax)
		var got []Publish
		for {
			_, payload, err := fr.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			var p Publish
			if err := DecodePublish(payload, &p); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got = append(got, p)
		}
		for i, body := range bodies { // only now: nothing was written over
			if !bytes.Equal(got[i].Body, body) {
				t.Errorf("%s: body %d differs", name, i)
			}
		}
	}
	for cut := 1; cut < 12; cut++ {
		if _, _, err := NewReader(bytes.NewReader(stream[:cut]), DefaultFrameMax).Next(); err != io.ErrUnexpectedEOF {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
}

func TestClaimedLengthCostsNothing(t *testing.T) {
	claim := append(unhex(t, "00000009 01000000"), make([]byte, 100)...)
	r := NewReader(bytes.NewReader(claim), DefaultFrameMax)
	if _, _, err := r.Next(); err != io.ErrUnexpectedEOF {
		t.Fatal(err)
	}
	if len(r.chunk) > ChunkBytes {
		t.Errorf("took %d bytes of memory for 108 bytes", len(r.chunk))
	}
	r = NewReader(bytes.NewReader(unhex(t, "00000009 ffffffff")), DefaultFrameMax)
	if typ, _, err := r.Next(); !errors.Is(err, ErrFrameTooLarge) || typ != TypePublish {
		t.Errorf("%s, %v", typ, err)
	}
}

func TestHotFramesDoNotAllocate(t *testing.T) {
	buf := make([]byte, 0, 4096)
	body := make([]byte, 256)
	allocs := testing.AllocsPerRun(100, func() {
		b := AppendPublish(buf, &Publish{Head: head, Exchange: "x", RoutingKey: "key", Body: body, Producer: body[:16]})
		b = AppendDeliver(b, &Deliver{Head: head, Delivery: Delivery{ConsumerTag: "t", Body: body}})
		b = AppendPublishOK(b, &PublishOK{Reply: Reply{Head: head}, Routed: 1})
		b = AppendReply(b, &Reply{Head: head, Of: TypeAck})
		AppendAck(b, &Ack{Head: head, Ranges: nil})
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
	payload := AppendPublishOK(nil, &PublishOK{Reply: Reply{Head: head}, Routed: 1})[HeaderBytes:]
	if n := testing.AllocsPerRun(100, func() {
		var ok PublishOK
		if DecodePublishOK(payload, &ok) != nil {
			t.Fatal()
		}
	}); n != 0 {
		t.Errorf("decoding a confirm: %v allocations", n)
	}
}

func FuzzFrames(f *testing.F) {
	for _, g := range golden {
		f.Add(Append(nil, g.frame))
	}
	kinds := map[Type]Frame{}
	for _, g := range golden {
		kinds[g.frame.FrameType()] = g.frame
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := NewReader(bytes.NewReader(stream), 1<<16)
		for {
			typ, payload, err := r.Next()
			if err != nil {
				return
			}
			kind := kinds[typ]
			if kind == nil {
				continue
			}
			first := fresh(kind)
			if Decode(payload, first) != nil {
				continue
			}
			second := fresh(kind)
			again := Append(nil, first)
			if err := Decode(again[HeaderBytes:], second); err != nil {
				t.Fatalf("%s does not decode what it encoded: %v", typ, err)
			}
			if !bytes.Equal(again, Append(nil, second)) {
				t.Fatalf("%s changes when encoded twice", typ)
			}
		}
	})
}

func BenchmarkPublish(b *testing.B) {
	buf := make([]byte, 0, 4096)
	p := &Publish{Head: head, Exchange: "orders", RoutingKey: "order.42.paid", Body: make([]byte, 256), Producer: make([]byte, 16)}
	var q Publish
	b.ReportAllocs()
	for b.Loop() {
		out := AppendPublish(buf, p)
		if DecodePublish(out[HeaderBytes:], &q) != nil {
			b.Fatal()
		}
	}
}
