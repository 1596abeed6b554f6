package amqp_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/warrenmq/warren/broker/amqp"
	"github.com/warrenmq/warren/broker/amqp/amqptest"
	"github.com/warrenmq/warren/broker/server"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// The tests of these files are bad input of every kind. None of it disturbs a healthy client, and none leaves memory, goroutines
// or descriptors behind. They count what the whole process has, so they do not run side by side with others.

// usage is what the process has.
type usage struct {
	goroutines, descriptors int
	heap                    uint64 // bytes
}

func used() usage {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fds, _ := os.ReadDir("/proc/self/fd")
	return usage{runtime.NumGoroutine(), len(fds), m.HeapAlloc}
}

// victim is the node of a test with a healthy client, and what there was before the abuse.
type victim struct {
	t       *testing.T
	address string
	healthy *amqptest.Channel
	queue   string
	before  usage
	spare   uint64 // bytes by which the heap may be larger at the end, for what the node keeps of its log
}

func startVictim(t *testing.T) *victim {
	t.Helper()
	v := &victim{t: t, address: address(t), spare: 4 << 20}
	v.healthy = amqptest.Dial(t, v.address).Channel(1)
	v.queue = v.healthy.Queue(name(t, "healthy"))
	v.healthy.Consume(v.queue, "healthy")
	v.work()
	v.before = used()
	return v
}

// work is a round trip of the healthy client, which returns how long it took.
func (v *victim) work() time.Duration {
	v.t.Helper()
	began := time.Now()
	v.healthy.Put("", v.queue, "m")
	v.healthy.Ack(v.healthy.ExpectBodies("m")[0].Tag, false)
	return time.Since(began)
}

func (v *victim) dial() *amqptest.Conn { return amqptest.Dial(v.t, v.address) }

// done checks that the healthy client is well and that all is as before.
func (v *victim) done() {
	v.t.Helper()
	v.work()
	var now usage
	for until := time.Now().Add(amqptest.Patience); time.Now().Before(until); runtime.Gosched() {
		now = used()
		if now.goroutines <= v.before.goroutines+2 && now.descriptors <= v.before.descriptors+2 && now.heap <= v.before.heap+v.spare {
			return
		}
	}
	v.t.Errorf("before %+v, now %+v", v.before, now)
	if now.goroutines > v.before.goroutines+2 {
		stacks := make([]byte, 1<<20)
		v.t.Logf("%s", stacks[:runtime.Stack(stacks, true)])
	}
}

// ends sends input on many connections, each of which has to end with one of the codes (0: without a word).
func (v *victim) ends(open func(*amqptest.Conn), input []byte, codes ...amqp091.Code) {
	v.t.Helper()
	for range 5 {
		c := amqptest.Connect(v.t, v.address)
		open(c)
		c.Raw(input)
		code := c.Verdict()
		ok := false
		for _, want := range codes {
			ok = ok || code == want
		}
		if !ok {
			v.t.Fatalf("it ended with %d, want one of %v; input %.60q", code, codes, input)
		}
		c.Cut()
	}
}

// opened brings a connection as far as channel 1.
func opened(c *amqptest.Conn) {
	c.Open(amqptest.Options{})
	c.Channel(1)
}

func TestAbuse01Silence(t *testing.T) {
	v := startVictim(t)
	slow := configured(t, amqp.Config{HandshakeTimeout: time.Second})
	v.before = used()
	began := time.Now()
	for _, input := range []string{"", "AMQP\x00\x00\x09\x01\x01\x00\x00\x00\x00\x10\x00"} {
		c := amqptest.Connect(t, slow)
		for i := 0; !c.ClosedWithin(200 * time.Millisecond); i++ {
			if i < len(input) {
				c.Raw([]byte(input[i : i+1]))
			}
		}
		c.Cut()
	}
	if d := time.Since(began); d > amqptest.Patience {
		t.Fatalf("it took %v", d)
	}
	v.done()
}

func TestAbuse02OtherProtocols(t *testing.T) {
	v := startVictim(t)
	random := make([]byte, 2000)
	for i := range random {
		random[i] = byte(rand.IntN(256))
	}
	for _, input := range []string{"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + string(random[:500]), "\xff" + string(random),
		"AMQP\x00\x01\x00\x00", "AMQP\x03\x01\x00\x00"} {
		c := amqptest.Connect(t, v.address)
		c.Raw([]byte(input))
		c.ExpectBytes(amqp091.ProtocolHeader[:])
		c.Cut()
	}
	v.done()
}

func TestAbuse03SizeField(t *testing.T) {
	v := startVictim(t)
	for _, size := range []string{"\xff\xff\xff\xff", "\x7f\xff\xff\xff", "\x00\x02\x00\x01"} {
		for _, kind := range []string{"\x01\x00\x00", "\x03\x00\x01", "\x01\x00\x01"} {
			v.ends(opened, []byte(kind+size+"abc"), amqp091.FrameError)
		}
		v.ends(func(c *amqptest.Conn) { c.Start() }, []byte("\x01\x00\x00"+size+"abc"), amqp091.FrameError)
	}
	v.done()
}

// TestAbuse03Announced: what is announced and does not come takes no memory.
func TestAbuse03Announced(t *testing.T) {
	v := startVictim(t)
	var conns []*amqptest.Conn
	for i := range 100 {
		c := v.dial()
		c.Channel(1)
		b := append(publishFrame("q"), header(60, 0, 128<<20, noProperties)...)
		switch i % 3 {
		case 0:
			b = append(b, "\x03\x00\x01\x00\x02\x00\x00x"...) // a frame of frame_max bytes begins
		case 1:
			b = append(publishFrame("q"), "\x02\x00\x01\x00\x01\xff\xf0\x00\x3c"...)
		}
		c.Raw(b)
		conns = append(conns, c)
	}
	v.work()
	if now := used(); now.heap > v.before.heap+100*192<<10 {
		t.Errorf("100 connections took %d KiB each", (now.heap-v.before.heap)/100>>10)
	}
	for _, c := range conns {
		c.Cut()
	}
	v.done()
}

func TestAbuse04Frames(t *testing.T) {
	v := startVictim(t)
	flow := (&amqp091.ChannelFlow{Active: true}).AppendFrame(nil, 1)
	flow[len(flow)-1] = 0xcd
	v.ends(opened, flow, amqp091.FrameError)
	v.ends(opened, amqptest.RawFrame(9, 1, nil), amqp091.FrameError)
	v.ends(opened, amqptest.RawFrame(8, 0, []byte("x")), amqp091.FrameError)
	v.ends(opened, amqptest.RawFrame(8, 1, nil), amqp091.UnexpectedFrame)
	v.done()
}

func TestAbuse05Arguments(t *testing.T) {
	v := startVictim(t)
	declare := func(table string) []byte {
		return amqptest.RawFrame(1, 1, []byte("\x00\x32\x00\x0a\x00\x00\x01q\x00"+table))
	}
	for _, input := range [][]byte{
		amqptest.RawFrame(1, 1, []byte("\x00\x32\x00\x0a\x00\x00\xffq")),
		declare(""), declare("\x00\x00"), declare("\x00\x00\x00\x00x"), declare("\xff\xff\xff\xff"), declare("\x00\x00\x00\x01"),
		declare("\x00\x00\x00\x09\x01aF\x00\x00\x00\x09\x01b"), declare("\x00\x00\x00\x07\x01aS\xff\xff\xff\xff"), declare("\x00\x00\x00\x03\x01al"),
		declare("\x00\x00\x00\x07\x01aA\x00\x00\x00\x05"), declare("\x00\x00\x00\x02\x05a"), declare("\x00\x00\x00\x03\x01aQ"),
	} {
		v.ends(opened, input, amqp091.FrameError, amqp091.SyntaxError)
	}
	v.done()
}

func TestAbuse06Tables(t *testing.T) {
	large := configured(t, amqp.Config{FrameMax: 8 << 20})
	v := startVictim(t)
	deep := []byte{}
	for range 10_000 {
		deep = append([]byte("\x00F"), append([]byte{0, byte(len(deep) >> 16), byte(len(deep) >> 8), byte(len(deep))}, deep...)...)
	}
	array := append(bytes.Repeat([]byte("A\x00\x00\xff\x00"), 10_000), 0)
	declare := func(table []byte) []byte {
		return (&amqp091.QueueDeclare{Queue: "q", Arguments: table}).AppendFrame(nil, 1)
	}
	began := time.Now()
	v.ends(opened, declare(deep), amqp091.SyntaxError)
	v.ends(opened, declare(append([]byte("\x01a"), array...)), amqp091.SyntaxError)
	v.address = large
	v.ends(opened, declare(bytes.Repeat([]byte("\x00V"), 1_000_000)), amqp091.SyntaxError)
	// As headers of a message too.
	properties := []byte{0x20, 0, byte(len(deep) >> 24), byte(len(deep) >> 16), byte(len(deep) >> 8), byte(len(deep))}
	v.ends(opened, message(append(properties, deep...)), amqp091.SyntaxError)
	if d := time.Since(began); d > amqptest.Patience {
		t.Errorf("it took %v", d)
	}
	v.done()
}

func TestAbuse07ContentOutOfTurn(t *testing.T) {
	v := startVictim(t)
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	one := header(60, 0, 1, noProperties)
	for _, input := range [][]byte{one, body("x"), join(publishFrame("q"), body("x")), join(publishFrame("q"), one, publishFrame("q")), join(publishFrame("q"), publishFrame("q")),
		join(publishFrame("q"), one, one), amqptest.RawFrame(3, 0, []byte("x")), amqptest.RawFrame(2, 0, one)} {
		v.ends(opened, input, amqp091.UnexpectedFrame)
	}
	v.ends(opened, join(publishFrame("q"), one, body("too long")), amqp091.UnexpectedFrame, amqp091.FrameError)
	v.done()
}

func TestAbuse08HugeBody(t *testing.T) {
	v := startVictim(t)
	for _, size := range []uint64{1 << 63, 1<<64 - 1, 1 << 32, 512<<20 + 1} {
		v.ends(opened, append(publishFrame("q"), header(60, 0, size, noProperties)...), amqp091.FrameError)
	}
	v.done()
}

func TestAbuse09Channels(t *testing.T) {
	v := startVictim(t)
	v.ends(opened, (&amqp091.QueueDeclare{}).AppendFrame(nil, 65535), amqp091.ChannelError)
	v.ends(opened, (&amqp091.ChannelClose{}).AppendFrame(nil, 2), amqp091.ChannelError)
	v.ends(opened, (&amqp091.ChannelOpen{}).AppendFrame(nil, 0), amqp091.ChannelError)
	var many []byte
	for i := range 2100 {
		many = (&amqp091.ChannelOpen{}).AppendFrame(many, uint16(i+2))
	}
	v.ends(opened, many, amqp091.NotAllowed)
	// What comes behind a close is dropped until close-ok.
	c := v.dial()
	ch := c.Channel(65535)
	closing := (&amqp091.ChannelClose{ReplyCode: 200}).AppendFrame(nil, 65535)
	for range 100 {
		closing = (&amqp091.QueueDeclare{Queue: name(t, "q")}).AppendFrame(closing, 65535)
	}
	c.Raw(closing)
	ch.Expect(amqp091.ChannelCloseOkID)
	c.Cut()
	v.done()
}

func TestAbuse10Names(t *testing.T) {
	dir := t.TempDir()
	var config server.Config
	config.Cluster.DataDir = filepath.Join(dir, "data")
	n := start(t, config)
	ch := amqptest.Dial(t, n.AMQPAddr()).Channel(1)
	names := []string{"a\x00b", "../../escape", "..", ".", "/", "/etc/passwd", "a/b", "%2F", "%2e%2e%2f", "😀", " ", "\t", "con", "a\\b", strings.Repeat("x", 255), "~", "*", "'; --", "\u202e"}
	for _, q := range names {
		if got := ch.Queue(q); got != q {
			t.Errorf("%q became %q", q, got)
		}
		ch.Exchange(q, "direct")
		ch.Bind(q, q, q, nil)
		ch.PutWith(q, q, q, amqp091.Properties{DeliveryMode: 2})
	}
	if got := ch.Queue("line\r\nbreak"); got != "linebreak" {
		t.Errorf("line breaks are kept: %q", got)
	}
	if err := n.Node().Snapshot(); err != nil {
		t.Fatal(err)
	}
	for _, q := range names {
		if d := ch.MustGet(q); d.Text() != q || d.Exchange != q || d.Key != q {
			t.Errorf("%q got %q", q, d.Text())
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("beside the data directory are %v", entries)
	}
}

func TestAbuse11Logins(t *testing.T) {
	v := startVictim(t)
	var odd, guessing []*amqptest.Conn
	for _, response := range []string{"\x00guest\x00" + strings.Repeat("p", 100<<10), "\x00guest\x00pass\x00word", "\x00\x00\x00\x00", "\x00guest\x00" + strings.Repeat("p", 10<<10)} {
		c := amqptest.Connect(t, v.address)
		c.Start()
		c.SendStartOk(amqptest.Options{Response: response})
		odd = append(odd, c)
	}
	for i := range 50 {
		c := amqptest.Connect(t, v.address)
		c.Start()
		c.SendStartOk(amqptest.Options{Response: fmt.Sprintf("\x00guest\x00wrong%d", i)})
		guessing = append(guessing, c)
		if i%10 == 0 {
			v.work()
		}
	}
	began := time.Now()
	good := v.dial()
	if d := time.Since(began); d > amqptest.Patience {
		t.Errorf("a good login took %v beside 50 bad ones", d)
	}
	good.Close()
	for i, c := range odd {
		if code := c.Verdict(); code != 0 && code != amqp091.AccessRefused && code != amqp091.FrameError {
			t.Errorf("login %d ended with %d", i, code)
		}
	}
	for _, c := range append(odd, guessing...) {
		c.Cut()
	}
	v.done()
}
