package native_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/warrenmq/warren/client"
	"github.com/warrenmq/warren/protocol/native"
)

// next reads the next frame but heartbeats.
func (r *raw) next() (native.Type, []byte) {
	r.t.Helper()
	for {
		t, payload, err := r.reader.Next()
		if err != nil {
			r.t.Fatal(err)
		}
		if t != native.TypeHeartbeat {
			return t, payload
		}
	}
}

// agree says hello with a frame maximum, opens channel 1 and from then on accepts nothing larger.
func agree(t testing.TB, node *alone, frameMax uint32) *raw {
	t.Helper()
	r := bare(t, node)
	r.reader.SetMax(frameMax)
	r.send(&native.Hello{Version: native.ProtocolVersion, Vhost: "/", FrameMax: frameMax}, &native.ChannelOpen{Head: native.Head{RID: 1, Channel: 1}})
	for range 2 {
		if p := r.reply(); p.Code != 0 {
			t.Fatalf("refused: %s", p.Message)
		}
	}
	return r
}

// expect reads responses and compares their codes.
func (r *raw) expect(want ...native.Code) {
	r.t.Helper()
	for i, code := range want {
		if p := r.reply(); p.Code != code {
			r.t.Fatalf("answer %d, to a %s: %d %s, want %d", i, p.Of, p.Code, p.Message, code)
		}
	}
}

// A channel's number can be used again at once: the client need not wait for the answer to its close.
func TestChannelNumberIsFreeBehindItsClose(t *testing.T) {
	node := start(t)
	r := connect(t, node)
	r.send(&native.QueueDeclare{Head: native.Head{RID: 2, Channel: 1}, Name: "q"})
	r.expect(0)
	const rounds = 1000
	go func() {
		var b []byte
		rid := uint64(10)
		head := func() native.Head { rid++; return native.Head{RID: rid, Channel: 1} }
		for range rounds {
			b = native.Append(b, &native.Publish{Head: head(), RoutingKey: "q", Body: []byte("x")})
			b = native.Append(b, &native.Get{Head: head(), Queue: "q"})
			b = native.Append(b, &native.ChannelClose{Head: head()})
			b = native.Append(b, &native.ChannelOpen{Head: head()})
		}
		_, _ = r.conn.Write(b)
	}()
	opened := 0
	for range 4 * rounds {
		p := r.reply()
		if p.Code != 0 {
			t.Fatalf("answer to a %s: %d %s", p.Of, p.Code, p.Message)
		}
		if p.Of == native.TypeChannelOpen {
			opened++
		}
	}
	r.send(&native.QueueDeclare{Head: native.Head{RID: 2, Channel: 1}, Name: "q", Passive: true})
	t2, payload := r.next()
	var ok native.QueueDeclareOK
	if err := native.Decode(payload, &ok); err != nil || t2 != native.TypeQueueDeclare.Response() || ok.Messages != rounds || opened != rounds {
		t.Fatalf("%d opened; the queue is %+v (%v)", opened, ok, err)
	}
}

// Other numbers may be opened and closed without waiting too, however many while nothing is committed.
func TestClosedChannelsThatWaitAreBounded(t *testing.T) {
	node := start(t)
	r := connect(t, node)
	held := make(chan struct{})
	node.queue <- func() { <-held }
	const channels = 5000
	written := make(chan struct{})
	go func() {
		defer close(written)
		b := native.Append(nil, &native.QueueDeclare{Head: native.Head{RID: 2, Channel: 1}, Name: "q"})
		for i := range uint64(channels) {
			head := native.Head{RID: i + 10, Channel: uint32(i) + 2}
			b = native.Append(b, &native.ChannelOpen{Head: head})
			b = native.Append(b, &native.ChannelClose{Head: head})
		}
		_, _ = r.conn.Write(b)
	}()
	r.expect(0) // the first open
	close(held)
	for range 2 * channels {
		r.expect(0)
	}
	<-written
}

// What the client asked for in hello holds for all that it is sent: deliveries, gets and returns come in parts that fit.
func TestAgreedFrameMaximumIsKept(t *testing.T) {
	node := start(t)
	_, ch := dial(t, node)
	declare(t, ch, client.Queue{Name: "q", Durable: true})
	bodies := map[int][]byte{}
	for i, size := range []int{1000, 60_000, 65_000, 65_500, 65_536, 70_000, 200_000, 1 << 20, 1<<20 + 1} {
		bodies[i] = bytes.Repeat([]byte{byte('a' + i)}, size)
		must[client.Confirmation](t)(ch.Publish(within(t), "", "q", client.Message{Body: bodies[i], Headers: map[string]any{"n": strings.Repeat("h", 300)}}))
	}
	r := agree(t, node, native.MinFrameMax)
	body := func(want native.Type) []byte {
		t.Helper()
		var parts []byte
		var upload uint64
		for {
			kind, payload := r.next()
			switch kind {
			case native.TypeBodyPart:
				var p native.BodyPart
				ok(t, native.Decode(payload, &p))
				upload, parts = p.Upload, append(parts, p.Bytes...)
			case want:
				d := native.Delivery{}
				if want == native.TypeDeliver {
					var f native.Deliver
					ok(t, native.Decode(payload, &f))
					d = f.Delivery
				} else {
					var f native.GetOK
					ok(t, native.Decode(payload, &f))
					d = f.Delivery
				}
				if d.Upload != upload {
					t.Fatalf("names upload %d, the parts %d", d.Upload, upload)
				}
				return append(d.Body, parts...)
			}
		}
	}
	for i := range len(bodies) {
		r.send(&native.Get{Head: native.Head{RID: 2, Channel: 1}, Queue: "q"})
		if got := body(native.TypeGet.Response()); !bytes.Equal(got, bodies[i]) {
			t.Fatalf("get %d has %d bytes, want %d", i, len(got), len(bodies[i]))
		}
	}
	r.send(&native.Nack{Head: native.Head{RID: 3, Channel: 1}, Ranges: []native.Range{{From: 1, To: uint64(len(bodies))}}, Requeue: true},
		&native.Consume{Head: native.Head{RID: 4, Channel: 1}, Queue: "q"})
	for i := range len(bodies) {
		if got := body(native.TypeDeliver); !bytes.Equal(got, bodies[i]) {
			t.Fatalf("delivery %d has %d bytes, want %d", i, len(got), len(bodies[i]))
		}
	}
	// A return has a little more around its body than the publish had.
	frame := &native.Publish{Head: native.Head{RID: 5, Channel: 1}, RoutingKey: "none", Mandatory: true}
	frame.Body = make([]byte, native.MinFrameMax-len(native.Append(nil, frame)))
	r.send(frame)
	for {
		if kind, _ := r.next(); kind == native.TypePublish.Response() {
			break
		}
	}
}

// A message whose properties alone are above the client's frame maximum ends the connection, which says why, and stays.
func TestMessageThatFitsNoFrame(t *testing.T) {
	node := start(t)
	_, ch := dial(t, node)
	declare(t, ch, client.Queue{Name: "q", Durable: true})
	must[client.Confirmation](t)(ch.Publish(within(t), "", "q", client.Message{Headers: map[string]any{"n": strings.Repeat("h", 100_000)}}))
	r := agree(t, node, native.MinFrameMax)
	r.send(&native.Consume{Head: native.Head{RID: 4, Channel: 1}, Queue: "q"})
	r.expect(0, native.FrameError)
	for ctx := within(t); ; { // it returns once the connection is gone
		if d := must[*client.Delivery](t)(ch.Get(ctx, "q", true)); d != nil {
			break
		}
	}
}

// A body above the bound of inline ones is refused, alone and in a transaction, and costs nothing else.
func TestLargeInlineBodyIsRefused(t *testing.T) {
	node := start(t)
	r := connect(t, node)
	large := make([]byte, native.MaxInlineBody+1)
	r.send(&native.QueueDeclare{Head: native.Head{RID: 2, Channel: 1}, Name: "q"})
	r.expect(0)
	r.send(&native.Publish{Head: native.Head{RID: 3, Channel: 1}, RoutingKey: "q", Body: large[1:]})
	r.expect(0)
	r.send(&native.Publish{Head: native.Head{RID: 4, Channel: 1}, RoutingKey: "q", Body: large})
	r.expect(native.ContentTooLarge)
	r.send(&native.Tx{Head: native.Head{RID: 5, Channel: 1}, Operations: []native.Operation{
		{Kind: native.TypePublish, RoutingKey: "q", Body: []byte("x")}, {Kind: native.TypePublish, RoutingKey: "q", Body: large}}})
	r.expect(native.ContentTooLarge)
	r.send(&native.BodyPart{Head: native.Head{RID: 6, Channel: 1}, Upload: 1, Total: uint64(len(large)), Bytes: large})
	r.expect(native.ContentTooLarge)
	r.send(&native.Purge{Head: native.Head{RID: 7, Channel: 1}, Name: "q"})
	_, payload := r.next()
	var purged native.PurgeOK
	if err := native.Decode(payload, &purged); err != nil || purged.Messages != 1 {
		t.Fatalf("%+v, %v", purged, err)
	}
}

// Names are valid UTF-8 of at most 255 bytes, without line breaks; anything else is refused and nothing comes of it.
func TestNamesAreChecked(t *testing.T) {
	node := start(t)
	r := connect(t, node)
	h := native.Head{RID: 2, Channel: 1}
	for _, bad := range []string{"a\xffb", "\xed\xa0\x80", strings.Repeat("x", 256), "a\nb", "a\rb"} {
		frames := []native.Frame{
			&native.QueueDeclare{Head: h, Name: bad}, &native.QueueDeclare{Head: h, Name: bad, Passive: true},
			&native.ExchangeDeclare{Head: h, Name: bad, Kind: "topic"}, &native.ExchangeDeclare{Head: h, Name: "e", Kind: bad},
			&native.QueueDelete{Head: h, Name: bad}, &native.ExchangeDelete{Head: h, Name: bad}, &native.Purge{Head: h, Name: bad},
			&native.Bind{Head: h, Binding: native.Binding{Destination: bad, Exchange: "amq.topic"}},
			&native.Bind{Head: h, Binding: native.Binding{Destination: "q", Exchange: bad}},
			&native.Unbind{Head: h, Binding: native.Binding{Destination: bad, Exchange: "amq.topic"}},
			&native.Consume{Head: h, Queue: bad}, &native.Get{Head: h, Queue: bad},
			&native.VhostPut{Head: h, Name: bad}, &native.VhostDelete{Head: h, Name: bad},
			&native.Publish{Head: h, Exchange: bad}, &native.Publish{Head: h, Exchange: bad, Mandatory: true},
			&native.Tx{Head: h, Operations: []native.Operation{{Kind: native.TypePublish, Exchange: bad}}},
		}
		if !strings.ContainsAny(bad, "\r\n") { // keys and tags may have them
			frames = append(frames, &native.Publish{Head: h, RoutingKey: bad}, &native.Bind{Head: h, Binding: native.Binding{Destination: "q", Exchange: "amq.topic", BindingKey: bad}},
				&native.Consume{Head: h, Queue: "q", ConsumerTag: bad}, &native.Cancel{Head: h, ConsumerTag: bad},
				&native.Tx{Head: h, Operations: []native.Operation{{Kind: native.TypePublish, RoutingKey: bad}}})
		}
		for _, f := range frames {
			r.send(f)
			if p := r.reply(); p.Code != native.PreconditionFailed || len(p.Message) > 400 || p.Of != f.FrameType() {
				t.Errorf("%s with a name %.10q: %d %.200s", f.FrameType(), bad, p.Code, p.Message)
			}
		}
	}
	for _, good := range []string{"a\x00b", "\x00", "schlüssel", "../../etc", "a/b%2F", "😀", strings.Repeat("x", 255)} {
		r.send(&native.QueueDeclare{Head: h, Name: good}, &native.Publish{Head: h, RoutingKey: good}, &native.QueueDelete{Head: h, Name: good})
		r.expect(0, 0, 0)
	}
	r.send(&native.List{Head: h, Kind: native.ListQueues})
	_, payload := r.next()
	var list native.ListOK
	if err := native.Decode(payload, &list); err != nil || list.Total != 0 {
		t.Errorf("%d queues are left, %v", list.Total, err)
	}
}

// Property bytes and arguments that are none are refused one by one: the publishes around them are confirmed.
func TestMalformedPropertiesAreRefused(t *testing.T) {
	node := start(t)
	r := connect(t, node)
	r.send(&native.QueueDeclare{Head: native.Head{RID: 1, Channel: 1}, Name: "q"})
	r.expect(0)
	bad := [][]byte{{0}, {0x80, 0}, {0x80, 0, 5, 'a'}, {0, 0, 1}, {0, 1}, {0, 1, 0}, {0x80, 0, 1, 0xff}, {0x20, 0, 0, 0, 0, 9, 1},
		{0x20, 0, 0, 0, 0, 3, 1, 'k', '?'}, {0x20, 0, 0, 0, 0, 8, 1, 'k', 'F', 0, 0, 0, 1, 1}}
	var b []byte
	rid := uint64(1)
	for _, p := range bad {
		for _, properties := range [][]byte{nil, p, {0x10, 0, 2}} {
			b = native.Append(b, &native.Publish{Head: native.Head{RID: rid, Channel: 1}, RoutingKey: "q", Properties: properties})
			rid++
		}
	}
	_, err := r.conn.Write(b)
	ok(t, err)
	codes := map[uint64]native.Reply{}
	for range 3 * len(bad) {
		p := r.reply()
		codes[p.RID] = p
	}
	for rid := uint64(1); rid <= uint64(3*len(bad)); rid++ {
		want := native.OK
		if rid%3 == 2 {
			want = native.SyntaxError
		}
		if codes[rid].Code != want {
			t.Errorf("publish %d: %d %s, want %d", rid, codes[rid].Code, codes[rid].Message, want)
		}
	}
	h := native.Head{RID: 90, Channel: 1}
	r.send(&native.Tx{Head: h, Operations: []native.Operation{{Kind: native.TypePublish, RoutingKey: "q"}, {Kind: native.TypePublish, RoutingKey: "q", Properties: bad[0]}}},
		&native.QueueDeclare{Head: h, Name: "r", Arguments: bad[0]}, &native.ExchangeDeclare{Head: h, Name: "e", Kind: "topic", Arguments: []byte{1, 'k', 'F', 0, 0, 0, 1, 1}},
		&native.Bind{Head: h, Binding: native.Binding{Destination: "q", Exchange: "amq.topic", Arguments: []byte{9}}},
		&native.Consume{Head: h, Queue: "q", Arguments: []byte{1, 'k', '?'}})
	r.expect(native.SyntaxError, native.SyntaxError, native.SyntaxError, native.SyntaxError, native.SyntaxError)
	r.send(&native.QueueDeclare{Head: h, Name: "q", Passive: true})
	_, payload := r.next()
	var q native.QueueDeclareOK
	if err := native.Decode(payload, &q); err != nil || q.Messages != uint64(2*len(bad)) {
		t.Errorf("the queue has %d messages, want %d (%v)", q.Messages, 2*len(bad), err)
	}
}
