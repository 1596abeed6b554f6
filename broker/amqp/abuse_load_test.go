package amqp_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/warrenmq/warren/broker/amqp/amqptest"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// TestAbuse12NeverReads: a client that does not read gets so much and no more, and heartbeats end it.
func TestAbuse12NeverReads(t *testing.T) {
	v := startVictim(t)
	v.spare = 32 << 20
	q := v.healthy.Queue(name(t, "q"))
	filler := v.dial()
	const messages = 64
	filler.Fill(q, strings.Split(strings.Repeat(strings.Repeat("x", 1<<20)+",", messages-1)+strings.Repeat("x", 1<<20), ",")...)
	filler.Cut()
	full := used() // with the messages
	deaf := amqptest.DialWith(t, v.address, amqptest.Options{Heartbeat: 1})
	ch := deaf.Channel(1)
	ch.Send(&amqp091.BasicConsume{Queue: q, ConsumerTag: "t"})
	v.healthyChannel(func(look *amqptest.Channel) {
		for look.Look(q).MessageCount == messages { // until something is on its way
		}
		v.work()
		if now := used(); now.heap > full.heap+24<<20 {
			t.Errorf("a client that does not read cost %d MiB", (now.heap-full.heap)>>20)
		}
		look.ExpectDepth(q, messages) // it was ended, and all came back
		look.Call(&amqp091.QueueDelete{Queue: q})
	})
	deaf.Cut()
	v.done()
}

// healthyChannel runs f with another channel of the healthy client.
func (v *victim) healthyChannel(f func(*amqptest.Channel)) {
	v.t.Helper()
	ch := v.healthy.Conn.Channel(7)
	f(ch)
	ch.Leave()
}

// TestAbuse12PublisherNeverReads: confirms and returns that nobody reads are bounded too: its publishes are not read any more.
func TestAbuse12PublisherNeverReads(t *testing.T) {
	v := startVictim(t)
	v.spare = 32 << 20
	deaf := v.dial()
	ch := deaf.Channel(1)
	ch.Confirm()
	var b []byte
	for range 100 {
		b = ch.Message(b, &amqp091.BasicPublish{RoutingKey: []byte(name(t, "none")), Mandatory: true}, nil, []byte(strings.Repeat("x", 10<<10)))
	}
	sent := 0
	for sent < 200<<20 && deaf.TryRaw(b, 500*time.Millisecond) {
		sent += len(b)
	}
	if sent >= 200<<20 {
		t.Errorf("the broker took %d MiB though it could not answer", sent>>20)
	}
	v.work()
	if now := used(); now.heap > v.before.heap+48<<20 {
		t.Errorf("a publisher that does not read cost %d MiB", (now.heap-v.before.heap)>>20)
	}
	deaf.Cut()
	v.done()
}

// TestAbuse13HalfOpen: connections that say nothing, and storms of connections, keep nobody out.
func TestAbuse13HalfOpen(t *testing.T) {
	v := startVictim(t)
	v.spare = 8 << 20
	var silent []*amqptest.Conn
	for i := range 1000 {
		c := amqptest.Connect(t, v.address)
		if i%2 == 0 {
			c.Raw(amqp091.ProtocolHeader[:])
		}
		silent = append(silent, c)
	}
	if now := used(); now.heap > v.before.heap+1000*40<<10 {
		t.Errorf("1,000 idle connections took %d KiB each", (now.heap-v.before.heap)/1000>>10)
	}
	worst := v.work()
	began := time.Now()
	dropped := 0
	for ; time.Since(began) < time.Second; dropped++ {
		c := amqptest.Connect(t, v.address)
		if dropped%3 > 0 {
			c.Raw(amqp091.ProtocolHeader[:])
		}
		c.Cut()
		if dropped%200 == 0 {
			worst = max(worst, v.work())
		}
	}
	v.dial().Close()
	t.Logf("%d connections in a second; the healthy client's longest round trip took %v", dropped, worst)
	if worst > amqptest.Patience {
		t.Errorf("the healthy client waited for %v", worst)
	}
	for _, c := range silent {
		c.Cut()
	}
	v.done()
}

func TestAbuse14ChannelsAndConsumers(t *testing.T) {
	v := startVictim(t)
	c := v.dial()
	q := c.Channel(60000).Queue(name(t, "q"))
	ch := c.Channel(60001)
	rounds := func(n int) {
		for i := range n {
			for j := range 100 {
				c.Send(uint16(j+1), &amqp091.ChannelOpen{}, &amqp091.ChannelClose{ReplyCode: 200})
			}
			for j := range 100 {
				c.Expect(uint16(j+1), amqp091.ChannelOpenOkID)
				c.Expect(uint16(j+1), amqp091.ChannelCloseOkID)
			}
			for j := range 50 {
				tag := fmt.Sprintf("%d.%d", i, j)
				ch.Send(&amqp091.BasicConsume{Queue: q, ConsumerTag: tag}, &amqp091.BasicCancel{ConsumerTag: tag})
			}
			for range 50 {
				ch.Expect(amqp091.BasicConsumeOkID)
				ch.Expect(amqp091.BasicCancelOkID)
			}
		}
	}
	rounds(2)
	before := used()
	rounds(30)
	if now := used(); now.heap > before.heap+2<<20 || now.goroutines > before.goroutines+3 {
		t.Errorf("before %+v, after %+v", before, now)
	}
	c.Cut()
	v.done()
}

func TestAbuse15Tags(t *testing.T) {
	v := startVictim(t)
	c := v.dial()
	ch, other := c.Channel(1), c.Channel(2)
	q := ch.Queue(name(t, "q"))
	c.Fill(q, "1")
	for _, settle := range settlings {
		for _, tag := range []uint64{0, 1, 2, 1 << 32, 1<<64 - 1} {
			ch.Refused(settle(tag), amqp091.PreconditionFailed, fmt.Sprintf("unknown delivery tag %d", tag))
		}
		d := ch.MustGet(q)
		other.Refused(settle(d.Tag), amqp091.PreconditionFailed, "unknown delivery tag 1")
		ch.Nack(d.Tag, false, true)
		ch.Refused(settle(d.Tag), amqp091.PreconditionFailed, "unknown delivery tag 1")
	}
	if d := ch.MustGet(q); d.Text() != "1" {
		t.Errorf("got %q", d.Text())
	}
	c.Cut()
	v.done()
}

func TestAbuse16PublishStorm(t *testing.T) {
	v := startVictim(t)
	c := v.dial()
	ch, other := c.Channel(1), c.Channel(2)
	var b []byte
	for range 1000 {
		b = ch.Message(b, &amqp091.BasicPublish{Exchange: []byte(name(t, "none")), RoutingKey: []byte("k")}, nil, []byte("m"))
	}
	for range 50 {
		c.Raw(b)
	}
	ch.ExpectClose(amqp091.NotFound, amqp091.BasicPublishID, "no exchange '"+name(t, "none")+"' in vhost '/'")
	other.Quiet()
	ch.Reopen()
	ch.Quiet()
	c.Cut()
	v.done()
}

func TestAbuse17ArgumentValues(t *testing.T) {
	v := startVictim(t)
	c := v.dial()
	ch := c.Channel(1)
	q := name(t, "q")
	for _, a := range []argument{
		{"x-message-ttl", int32(-1), "{value_negative,-1}"}, {"x-message-ttl", int64(-1 << 63), "{value_negative,-9223372036854775808}"},
		{"x-message-ttl", int64(1<<63 - 1), "{value_too_large,9223372036854775807}"}, {"x-message-ttl", "abc", `"expected integer, got longstr"`},
		{"x-expires", "abc", `"expected integer, got longstr"`}, {"x-max-length", 1.5, `"expected integer, got double"`},
		{"x-max-priority", int32(256), "{max_value_exceeded,256}"}, {"x-max-length", nil, `"expected integer, got void"`},
	} {
		ch.Refused(&amqp091.QueueDeclare{Queue: q, Arguments: table(t, amqp091.Map{a.key: a.value})}, amqp091.PreconditionFailed,
			"invalid arg '"+a.key+"' for queue '"+q+"' in vhost '/': "+a.reason)
	}
	ch.Declare(&amqp091.QueueDeclare{Queue: name(t, "zero"), Arguments: table(t, amqp091.Map{"x-max-length": int32(0)})})
	ch.Declare(&amqp091.QueueDeclare{Queue: name(t, "limit"), Durable: true, Arguments: table(t, amqp091.Map{"x-queue-type": "quorum", "x-delivery-limit": int32(-5)})})
	c.Cut()
	v.done()
}

func TestAbuse18Expirations(t *testing.T) {
	v := startVictim(t)
	c := v.dial()
	ch := c.Channel(1)
	q := ch.Queue(name(t, "q"))
	for bad, reason := range map[string]string{"12x": `{leftover_string,"x"}`, "-1": "{value_negative,-1}", "1e3": `{leftover_string,"e3"}`,
		"100000000000000000000000000000": "{value_too_large,100000000000000000000000000000}", "-": "no_integer", "0x10": `{leftover_string,"x10"}`} {
		ch.PutWith("", q, "m", amqp091.Properties{Expiration: bad})
		ch.ExpectClose(amqp091.PreconditionFailed, amqp091.BasicPublishID, "invalid expiration '"+bad+"': "+reason)
		ch.Reopen()
	}
	ch.ExpectDepth(q, 0)
	c.Cut()
	v.done()
}
