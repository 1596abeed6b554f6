package amqp_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/warrenmq/warren/broker/amqp/amqptest"
	"github.com/warrenmq/warren/broker/server"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// The benchmarks run a whole node, log and disk included, with a client in the same process that does next to nothing.
// cpu-ns/op is the processor time of both: unlike ns/op it means something on a busy machine.

// window is how many publishes are unconfirmed at once, and the prefetch.
const window = 2000

// BenchmarkPublish is publishes with confirms.
func BenchmarkPublish(b *testing.B) {
	for _, size := range []int{256, 4 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			node := start(b, server.Config{})
			p := openLoad(b, node, "confirmed", nil)
			measure(b, size, func() { p.publish(b.N, size, 50) })
		})
	}
}

// BenchmarkDeliver is what BenchmarkPublish is, and deliveries and acknowledgements beside it.
func BenchmarkDeliver(b *testing.B) {
	for _, size := range []int{256, 4 << 10, 64 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			node := start(b, server.Config{})
			measureAll(b, size, openLoads(b, node, 1), openLoads(b, node, 1), 50, 100)
		})
	}
}

// BenchmarkFeatures is BenchmarkDeliver at 256 bytes with queues that do more, for what it costs.
func BenchmarkFeatures(b *testing.B) {
	for _, feature := range []struct {
		name      string
		arguments amqp091.Map
		levels    int
	}{
		{"none", nil, 0},
		{"quorum", amqp091.Map{"x-queue-type": "quorum"}, 0},
		{"ttl", amqp091.Map{"x-message-ttl": int64(3_600_000)}, 0},
		{"priorities-unused", amqp091.Map{"x-max-priority": int64(10)}, 0},
		{"priorities", amqp091.Map{"x-max-priority": int64(10)}, 10},
		{"limit", amqp091.Map{"x-max-length": int64(1_000_000)}, 0},
		{"refusing", amqp091.Map{"x-max-length": int64(1_000_000), "x-overflow": "reject-publish"}, 0},
		{"retry", amqp091.Map{"x-delayed-retry-min": int64(1000)}, 0},
	} {
		b.Run(feature.name, func(b *testing.B) {
			node := start(b, server.Config{})
			arguments := table(b, feature.arguments)
			publishers := openLoadsWith(b, node, 1, arguments)
			publishers[0].levels = feature.levels
			measureAll(b, 256, publishers, openLoadsWith(b, node, 1, arguments), 50, 100)
		})
	}
}

// BenchmarkSmallWrites is BenchmarkDeliver with four clients of each kind that write every publish, and an acknowledgement
// of every second delivery, by itself: as RabbitMQ's Go client does.
func BenchmarkSmallWrites(b *testing.B) {
	node := start(b, server.Config{})
	measureAll(b, 256, openLoads(b, node, 4), openLoads(b, node, 4), 1, 2)
}

// measureAll has all messages published and delivered once.
func measureAll(b *testing.B, size int, publishers, consumers []*benchLoad, together, acknowledge int) {
	for _, c := range consumers {
		c.ch.Call(&amqp091.BasicQos{PrefetchCount: window})
		c.ch.Call(&amqp091.BasicConsume{Queue: c.queue})
	}
	measure(b, size, func() {
		var publishing, consuming sync.WaitGroup
		var taken atomic.Int64
		all := make(chan struct{})
		for _, c := range consumers {
			consuming.Go(func() {
				c.consume(acknowledge, func() {
					if taken.Add(1) == int64(b.N) {
						close(all)
					}
				})
			})
		}
		for i, p := range publishers {
			count := (b.N + i) / len(publishers)
			publishing.Go(func() { p.publish(count, size, together) })
		}
		publishing.Wait()
		<-all
		for _, c := range consumers {
			c.over.Store(true)
			_ = c.socket.SetReadDeadline(time.Unix(1, 0))
		}
		consuming.Wait()
	})
}

// measure times and counts processor time.
func measure(b *testing.B, size int, run func()) {
	b.SetBytes(int64(size))
	b.ReportAllocs()
	b.ResetTimer()
	began := processorTime(b)
	run()
	b.StopTimer()
	b.ReportMetric(float64(processorTime(b)-began)/float64(b.N), "cpu-ns/op")
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// benchLoad is a connection under load, with channel 1 open and confirming.
type benchLoad struct {
	b      *testing.B
	queue  string
	socket net.Conn
	ch     *amqptest.Channel
	reader *amqp091.Reader
	over   atomic.Bool // everything was consumed
	levels int         // of priority that its publishes have in turn; 0: none
}

func openLoads(b *testing.B, n *node, count int) (all []*benchLoad) {
	return openLoadsWith(b, n, count, nil)
}

func openLoadsWith(b *testing.B, n *node, count int, arguments amqp091.Table) (all []*benchLoad) {
	for range count {
		all = append(all, openLoad(b, n, "consumed", arguments))
	}
	return all
}

func openLoad(b *testing.B, n *node, queue string, arguments amqp091.Table) *benchLoad {
	socket, err := net.Dial("tcp", n.AMQPAddr())
	if err != nil {
		b.Fatal(err)
	}
	c := amqptest.On(b, socket)
	c.Open(amqptest.Options{})
	l := &benchLoad{b: b, queue: queue, socket: socket, ch: c.Channel(1), reader: amqp091.NewReader(socket, 0)}
	l.ch.Call(&amqp091.QueueDeclare{Queue: queue, Durable: true, Arguments: arguments})
	l.ch.Call(&amqp091.ConfirmSelect{})
	return l
}

// publish publishes and waits for all confirms. together is how many publishes are one write.
func (l *benchLoad) publish(count, size, together int) {
	_ = l.socket.SetDeadline(time.Time{})
	frames := l.frames(size, kept)
	batch := bytes.Repeat(frames, together)
	if l.levels > 0 {
		batch = batch[:0]
		for i := range together {
			frames = l.frames(size, amqptest.Properties(l.b, amqp091.Properties{DeliveryMode: amqp091.Persistent, Priority: uint8(1 + i%l.levels)}))
			batch = append(batch, frames...)
		}
	}
	slots := make(chan struct{}, window)
	var confirming sync.WaitGroup
	confirming.Go(func() {
		for settled := uint64(0); settled < uint64(count); {
			var ack amqp091.BasicAck
			if err := l.next(amqp091.BasicAckID, &ack); err != nil {
				l.b.Error(err)
				return
			}
			for ; settled < ack.DeliveryTag; settled++ { // in order, since there is one queue
				<-slots
			}
		}
	})
	for sent := 0; sent < count; {
		n := min(together, count-sent)
		for range n {
			slots <- struct{}{}
		}
		if _, err := l.socket.Write(batch[:n*len(frames)]); err != nil {
			l.b.Error(err)
			return
		}
		sent += n
	}
	confirming.Wait()
}

// frames are those of one publish.
func (l *benchLoad) frames(size int, p amqp091.PropertyBytes) []byte {
	frames := (&amqp091.BasicPublish{RoutingKey: []byte(l.queue)}).AppendFrame(nil, 1)
	return amqp091.AppendContent(frames, 1, p, make([]byte, size), 131_072)
}

// kept are properties with delivery mode 2 only.
var kept = amqp091.PropertyBytes{0x10, 0x00, 2}

// consume takes deliveries until all are over, and acknowledges so many at once.
func (l *benchLoad) consume(together int, take func()) {
	_ = l.socket.SetDeadline(time.Time{})
	for taken := 1; ; taken++ {
		var d amqp091.BasicDeliver
		err := l.next(amqp091.BasicDeliverID, &d)
		if err == nil {
			err = l.skipContent()
		}
		if err == nil && taken%together == 0 {
			_, err = l.socket.Write((&amqp091.BasicAck{DeliveryTag: d.DeliveryTag, Multiple: true}).AppendFrame(nil, 1))
		}
		if err != nil {
			if !l.over.Load() {
				l.b.Error(err)
			}
			return
		}
		take()
	}
}

// skipContent receives a content, which has a body.
func (l *benchLoad) skipContent() error {
	if _, err := l.reader.Next(); err != nil {
		return err
	}
	header, err := l.reader.Payload()
	if err != nil {
		return err
	}
	for size := binary.BigEndian.Uint64(header[4:]); size > 0; {
		f, err := l.reader.Next()
		if err != nil {
			return err
		}
		size -= uint64(f.Size)
	}
	return nil
}

// next receives a method that must be the one wanted.
func (l *benchLoad) next(want amqp091.MethodID, m interface{ Decode([]byte) error }) error {
	if _, err := l.reader.Next(); err != nil {
		return err
	}
	payload, err := l.reader.Payload()
	if err != nil {
		return err
	}
	id, args, err := amqp091.SplitMethod(payload)
	if err == nil && id != want {
		err = fmt.Errorf("%s came instead of %s", id, want)
	}
	if err != nil {
		return err
	}
	return m.Decode(args)
}
