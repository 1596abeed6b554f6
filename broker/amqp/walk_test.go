package amqp_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/warrenmq/warren/broker/amqp/amqptest"
	"github.com/warrenmq/warren/protocol/amqp091"
)

var (
	walkSeed = flag.Uint64("seed", 0, "of the random walk; 0 draws one")
	walkTime = flag.Duration("walk", 2*time.Second, "how long the random walk takes")
)

// chooser draws a walk's decisions, from a seed or from a fuzzer's bytes.
type chooser interface{ IntN(n int) int }

// fuzzed are decisions out of bytes; behind the last one all are 0.
type fuzzed struct{ left []byte }

func (f *fuzzed) IntN(n int) int {
	if len(f.left) == 0 {
		return 0
	}
	b := int(f.left[0])
	f.left = f.left[1:]
	if n > 256 && len(f.left) > 0 {
		b = b<<8 | int(f.left[0])
		f.left = f.left[1:]
	}
	return b % n
}

// walker is one client that does anything at all.
type walker struct {
	chooser
	prefix string // of names, so that it leaves others alone
}

func pick[V any](w *walker, values ...V) V { return values[w.IntN(len(values))] }

func (w *walker) yes() bool { return w.IntN(2) == 1 }

func (w *walker) queue() string {
	return pick(w, w.prefix+"a", w.prefix+"b", w.prefix+"c", "", "amq.rabbitmq.reply-to", w.prefix+"none")
}

func (w *walker) exchange() string {
	return pick(w, w.prefix+"x", w.prefix+"y", "amq.topic", "amq.headers", "amq.fanout", "", w.prefix+"none")
}

func (w *walker) key() string { return pick(w, w.prefix+"a", w.prefix+"b", "a.b", "#", "") }

func (w *walker) tag() string { return pick(w, "t", "u", "v", "") }

func (w *walker) table() amqp091.Table {
	b, err := amqp091.AppendMap(nil, pick(w, nil, amqp091.Map{"x-match": pick(w, "any", "all", "none")}, amqp091.Map{"x-priority": int32(w.IntN(5))},
		amqp091.Map{"x-single-active-consumer": true}, amqp091.Map{"x-queue-type": pick(w, "quorum", "classic", "stream")},
		amqp091.Map{"x-consumer-timeout": int32(w.IntN(500))}, amqp091.Map{"alternate-exchange": w.prefix + "y"}, amqp091.Map{"x-max-length": int32(w.IntN(9) - 2)}))
	if err != nil {
		panic(err)
	}
	return b
}

// method draws a client's method.
func (w *walker) method() amqp091.Method {
	switch w.IntN(24) {
	case 0:
		return &amqp091.QueueDeclare{Queue: w.queue(), Passive: w.yes(), Durable: w.yes(), Exclusive: w.yes(), AutoDelete: w.yes(), NoWait: w.yes(), Arguments: w.table()}
	case 1:
		return &amqp091.QueueDeclare{Queue: w.prefix + "a"}
	case 2:
		return &amqp091.QueueBind{Queue: w.queue(), Exchange: w.exchange(), RoutingKey: w.key(), NoWait: w.yes(), Arguments: w.table()}
	case 3:
		return &amqp091.QueueUnbind{Queue: w.queue(), Exchange: w.exchange(), RoutingKey: w.key()}
	case 4:
		return &amqp091.QueuePurge{Queue: w.queue(), NoWait: w.yes()}
	case 5:
		return &amqp091.QueueDelete{Queue: w.queue(), IfUnused: w.yes(), IfEmpty: w.yes(), NoWait: w.yes()}
	case 6:
		return &amqp091.ExchangeDeclare{Exchange: w.exchange(), Type: pick(w, "direct", "fanout", "topic", "headers"), AutoDelete: w.yes(), Internal: w.IntN(5) == 1, NoWait: w.yes(), Arguments: w.table()}
	case 7:
		return &amqp091.ExchangeDelete{Exchange: w.exchange(), IfUnused: w.yes(), NoWait: w.yes()}
	case 8:
		return &amqp091.ExchangeBind{Destination: w.exchange(), Source: w.exchange(), RoutingKey: w.key(), NoWait: w.yes()}
	case 9:
		return &amqp091.ExchangeUnbind{Destination: w.exchange(), Source: w.exchange(), RoutingKey: w.key(), NoWait: w.yes()}
	case 10, 11:
		return &amqp091.BasicConsume{Queue: w.queue(), ConsumerTag: w.tag(), NoAck: w.yes(), Exclusive: w.IntN(5) == 1, NoWait: w.yes(), Arguments: w.table()}
	case 12:
		return &amqp091.BasicCancel{ConsumerTag: w.tag(), NoWait: w.yes()}
	case 13, 14:
		return &amqp091.BasicGet{Queue: w.queue(), NoAck: w.yes()}
	case 15:
		return &amqp091.BasicAck{DeliveryTag: uint64(w.IntN(6)), Multiple: w.yes()}
	case 16:
		return &amqp091.BasicNack{DeliveryTag: uint64(w.IntN(6)), Multiple: w.yes(), Requeue: w.yes()}
	case 17:
		return &amqp091.BasicReject{DeliveryTag: uint64(w.IntN(6)), Requeue: w.yes()}
	case 18:
		return &amqp091.BasicQos{PrefetchCount: uint16(w.IntN(4)), Global: w.yes()}
	case 19:
		return pick[amqp091.Method](w, &amqp091.BasicRecover{Requeue: w.IntN(9) > 0}, &amqp091.BasicRecoverAsync{Requeue: w.IntN(9) > 0})
	case 20:
		return pick[amqp091.Method](w, &amqp091.ConfirmSelect{NoWait: w.yes()}, &amqp091.TxSelect{})
	case 21:
		return pick[amqp091.Method](w, &amqp091.TxCommit{}, &amqp091.TxRollback{})
	case 22:
		return pick[amqp091.Method](w, &amqp091.ChannelClose{ReplyCode: 200}, &amqp091.ChannelCloseOk{}, &amqp091.ChannelOpen{})
	}
	return pick[amqp091.Method](w, &amqp091.ChannelFlow{Active: w.IntN(9) > 0}, &amqp091.AccessRequest{})
}

// properties draws property bytes.
func (w *walker) properties() amqp091.PropertyBytes {
	p := pick(w, amqp091.Properties{}, amqp091.Properties{ReplyTo: "amq.rabbitmq.reply-to"}, amqp091.Properties{Expiration: pick(w, "1000", "no")},
		amqp091.Properties{Headers: amqp091.Map{"CC": []any{w.key()}, "BCC": []any{w.key()}}}, amqp091.Properties{UserID: pick(w, "guest", "bob"), DeliveryMode: uint8(w.IntN(4))},
		amqp091.Properties{Headers: amqp091.Map{"x-delivery-count": "mine", "CC": pick[any](w, "no array", []any{})}})
	b, err := amqp091.AppendProperties(nil, &p)
	if err != nil {
		panic(err)
	}
	return b
}

// frames draws what is sent next on a channel.
func (w *walker) frames(channel uint16) []byte {
	switch w.IntN(10) {
	case 0, 1, 2:
		m := &amqp091.BasicPublish{Exchange: []byte(w.exchange()), RoutingKey: []byte(w.key()), Mandatory: w.yes(), Immediate: w.IntN(50) == 1}
		size := pick(w, 0, 1, 10, 5000, 200_000)
		if w.IntN(100) == 1 {
			size = 2 << 20
		}
		return amqp091.AppendContent(m.AppendFrame(nil, channel), channel, w.properties(), bytes.Repeat([]byte("b"), size), 131072)
	}
	return w.method().AppendFrame(nil, channel)
}

// spoil breaks a frame in one of many ways.
func (w *walker) spoil(b []byte) []byte {
	switch w.IntN(6) {
	case 0:
		b[w.IntN(len(b))] ^= 1 << w.IntN(8)
	case 1:
		b = b[:w.IntN(len(b))]
	case 2:
		b = append(b, byte(w.IntN(256)))
	case 3:
		b = append(b[w.IntN(len(b)):], b...)
	case 4:
		b = amqptest.RawFrame(uint8(w.IntN(10)), uint16(w.IntN(4)), b[:w.IntN(len(b))])
	case 5:
		for range 20 {
			b = append(b, byte(w.IntN(256)))
		}
	}
	return b
}

// walk is the life of a connection of so many steps. It ends when the broker has had enough, or else as the walker likes.
func (w *walker) walk(c *amqptest.Conn, steps int) {
	c.Open(amqptest.Options{Heartbeat: uint16(w.IntN(3))})
	spoiling := w.IntN(3) == 0
	for ch := range uint16(3) {
		c.Send(ch+1, &amqp091.ChannelOpen{})
	}
	for range steps {
		b := w.frames(uint16(w.IntN(3) + 1))
		if spoiling && w.IntN(20) == 0 {
			b = w.spoil(b)
		}
		if !c.TryRaw(b, amqptest.Patience) {
			break
		}
		for e, code := c.Poll(time.Microsecond); e != nil || code != amqptest.Open; e, code = c.Poll(time.Microsecond) {
			if code != amqptest.Open {
				return
			}
			if e.Method.ID() == amqp091.ChannelCloseID && w.IntN(5) > 0 {
				c.Send(e.Channel, &amqp091.ChannelCloseOk{}, &amqp091.ChannelOpen{})
			}
		}
	}
	switch w.IntN(4) {
	case 0:
		c.Cut()
	case 1:
		c.Send(0, &amqp091.ConnectionClose{ReplyCode: 200})
	default: // a valid end of what may be an incomplete frame
		c.Raw(heartbeat)
		c.Send(0, &amqp091.ConnectionClose{ReplyCode: 200})
	}
}

// TestRandomWalk: many connections do anything at all, valid and broken. A healthy client does not notice, and nothing of them
// stays.
func TestRandomWalk(t *testing.T) {
	seed := *walkSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-seed %d", seed)
	v := startVictim(t)
	v.spare = 64 << 20
	end := time.Now().Add(*walkTime)
	var walking sync.WaitGroup
	var mu sync.Mutex
	walked := 0
	for i := range 6 {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		walking.Go(func() {
			for time.Now().Before(end) && !t.Failed() {
				w := &walker{chooser: random, prefix: name(t, fmt.Sprint(random.IntN(2)))}
				c := amqptest.Connect(t, v.address)
				w.walk(c, 1+random.IntN(300))
				c.Cut()
				mu.Lock()
				walked++
				mu.Unlock()
			}
		})
	}
	worst := time.Duration(0)
	for time.Now().Before(end) {
		worst = max(worst, v.work())
	}
	walking.Wait()
	t.Logf("%d connections; the healthy client's longest round trip took %v", walked, worst.Round(time.Millisecond))
	for until := time.Now().Add(amqptest.Patience); *against == ""; v.work() { // until the broker has cleared up
		if rows, err := shared(t).Broker().Connections(); err != nil || time.Now().After(until) {
			t.Fatalf("%d connections are left, %v", len(rows), err)
		} else if len(rows) == 1 {
			break
		}
	}
	ch := v.healthy.Conn.Channel(2)
	for _, prefix := range []string{name(t, "0"), name(t, "1")} {
		for _, q := range []string{"a", "b", "c", "none"} {
			deleteSoon(ch, prefix+q)
		}
		for _, x := range []string{"x", "y", "none"} {
			ch.Call(&amqp091.ExchangeDelete{Exchange: prefix + x})
		}
	}
	ch.Leave()
	v.done()
}

// deleteSoon deletes a queue that may still be exclusive to a connection whose end is being dealt with.
func deleteSoon(ch *amqptest.Channel, q string) {
	ch.T.Helper()
	for until := time.Now().Add(amqptest.Patience); ; {
		ch.Send(&amqp091.QueueDelete{Queue: q})
		m, refused := ch.Next().Method.(*amqp091.ChannelClose)
		if !refused {
			return
		}
		if time.Now().After(until) {
			ch.T.Fatalf("queue %s cannot be deleted: %s", q, amqptest.Describe(m))
		}
		ch.Send(&amqp091.ChannelCloseOk{})
		ch.Reopen()
	}
}

// FuzzConnection is a walk whose decisions come from the fuzzer. Run it with -fuzzminimizetime 1x: what a connection covers is not the
// same each time, so that making an input smaller leads nowhere.
func FuzzConnection(f *testing.F) {
	for i := range 8 {
		random := rand.New(rand.NewPCG(uint64(i), 7))
		seed := make([]byte, 400)
		for j := range seed {
			seed[j] = byte(random.IntN(256))
		}
		f.Add(seed)
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, decisions []byte) {
		if len(decisions) > 4096 {
			return
		}
		w := &walker{chooser: &fuzzed{decisions}, prefix: "fuzz."}
		c := amqptest.Connect(t, address(t))
		w.walk(c, 1+len(decisions)/8)
		c.Cut()
		ch := dial(t).Channel(1)
		q := ch.Declare(&amqp091.QueueDeclare{Exclusive: true}).Queue
		ch.Put("", q, "healthy")
		if d := ch.MustGet(q); d.Text() != "healthy" {
			t.Fatalf("got %q", d.Text())
		}
		ch.Conn.Close()
	})
}
