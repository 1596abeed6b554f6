package native_test

import (
	"bufio"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/warrenmq/warren/client"
	"github.com/warrenmq/warren/protocol/native"
)

// raw is a client that does as it likes.
type raw struct {
	t      testing.TB
	conn   net.Conn
	reader *native.Reader
}

// connect says hello and opens channel 1.
func connect(t testing.TB, node *alone) *raw {
	r := bare(t, node)
	r.send(&native.Hello{Version: native.ProtocolVersion, Vhost: "/"}, &native.ChannelOpen{Head: native.Head{RID: 1, Channel: 1}})
	for range 2 {
		if p := r.reply(); p.Code != 0 {
			t.Fatalf("refused: %s", p.Message)
		}
	}
	return r
}

func bare(t testing.TB, node *alone) *raw {
	c, err := net.Dial("tcp", node.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return &raw{t, c, native.NewReader(bufio.NewReader(c), native.DefaultFrameMax)}
}

func (r *raw) send(frames ...native.Frame) {
	r.t.Helper()
	var b []byte
	for _, f := range frames {
		b = native.Append(b, f)
	}
	if _, err := r.conn.Write(b); err != nil {
		r.t.Fatal(err)
	}
}

// reply reads the next response, whatever it answers.
func (r *raw) reply() native.Reply {
	r.t.Helper()
	for {
		t, payload, err := r.reader.Next()
		if err != nil {
			r.t.Fatal(err)
		}
		if t.IsResponse() {
			p := native.Reply{Of: t.Request()}
			if err := native.Decode(payload, &p); err != nil {
				r.t.Fatal(err)
			}
			return p
		}
	}
}

// A client need not wait for answers, however many requests that makes: the socket is left unread until there is room.
func TestPipelinedRequestsWaitForRoom(t *testing.T) {
	node := start(t)
	r := connect(t, node)
	held := make(chan struct{})
	node.queue <- func() { <-held } // nothing is committed meanwhile
	const requests = 5000
	var once sync.Once
	go func() {
		var b []byte
		for i := range requests {
			b = native.Append(b, &native.QueueDeclare{Head: native.Head{RID: uint64(i), Channel: 1}, Name: "q", Durable: true})
			b = native.Append(b, &native.Publish{Head: native.Head{RID: requests + uint64(i), Channel: 1}, RoutingKey: "q", Body: make([]byte, 1000)})
		}
		for len(b) > 0 { // slices, so that the client is a slow one
			n := min(len(b), 1<<20)
			if _, err := r.conn.Write(b[:n]); err != nil {
				return
			}
			b = b[n:]
			once.Do(func() { close(held) })
		}
	}()
	for i := range 2 * requests {
		if p := r.reply(); p.Code != 0 {
			t.Fatalf("answer %d, to a %s: %d %s", i, p.Of, p.Code, p.Message)
		}
	}
}

// Answers that the client does not read are bounded: the requests behind them wait.
func TestAnswersWaitForTheirReader(t *testing.T) {
	node := start(t)
	_, ch := dial(t, node)
	declare(t, ch, client.Queue{Name: "q", Durable: true})
	const messages = 64
	for range messages {
		must[client.Confirmation](t)(ch.Publish(within(t), "", "q", client.Message{Body: make([]byte, 1<<20)}))
	}
	r := connect(t, node)
	gets := make([]native.Frame, messages)
	for i := range gets {
		gets[i] = &native.Get{Head: native.Head{RID: uint64(i), Channel: 1}, Queue: "q"}
	}
	r.send(gets...)
	for last, same := uint64(messages), 0; same < 200; same++ {
		now := declare(t, ch, client.Queue{Name: "q", Passive: true}).Messages
		if now < messages/2 {
			t.Fatalf("%d MiB of answers wait for a client that reads nothing", messages-now)
		}
		if now != last {
			last, same = now, 0
		}
	}
	for range messages {
		if p := r.reply(); p.Code != 0 {
			t.Fatal(p.Message)
		}
	}
}

// What no log entry can say is refused before it is in one: each node would stop at such an entry, at every start.
func TestUnknownDestinationKindIsRefused(t *testing.T) {
	node := start(t)
	r := connect(t, node)
	b := native.Binding{DestinationKind: 7, Destination: "q", Exchange: "amq.direct"}
	r.send(&native.QueueDeclare{Head: native.Head{RID: 2, Channel: 1}, Name: "q"},
		&native.Bind{Head: native.Head{RID: 3, Channel: 1}, Binding: b}, &native.Unbind{Head: native.Head{RID: 4, Channel: 1}, Binding: b},
		&native.QueueDeclare{Head: native.Head{RID: 5, Channel: 1}, Name: "q", Passive: true})
	for i, want := range []native.Code{0, native.PreconditionFailed, native.PreconditionFailed, 0} {
		if p := r.reply(); p.Code != want {
			t.Fatalf("answer %d, to a %s: %d %s, want %d", i, p.Of, p.Code, p.Message, want)
		}
	}
}
