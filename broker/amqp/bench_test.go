package amqp_test

import (
	"bytes"
	"fmt"
	"net"
	"sync"
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
			p := openLoad(b, node, "confirmed")
			measure(b, size, func() { p.publish(b.N, size) })
			p.ch.Call(&amqp091.QueueDelete{Queue: "confirmed"})
		})
	}
}

// BenchmarkDeliver is what BenchmarkPublish is, and deliveries and acknowledgements beside it.
func BenchmarkDeliver(b *testing.B) {
	for _, size := range []int{256, 4 << 10, 64 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			node := start(b, server.Config{})
			p := openLoad(b, node, "consumed")
			c := openLoad(b, node, "consumed")
			c.ch.Call(&amqp091.BasicQos{PrefetchCount: window})
			c.ch.Call(&amqp091.BasicConsume{Queue: "consumed"})
			measure(b, size, func() {
				var consuming sync.WaitGroup
				consuming.Go(func() { c.consume(b.N) })
				p.publish(b.N, size)
				consuming.Wait()
			})
		})
	}
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
}

func openLoad(b *testing.B, n *node, queue string) *benchLoad {
	socket, err := net.Dial("tcp", n.AMQPAddr())
	if err != nil {
		b.Fatal(err)
	}
	c := amqptest.On(b, socket)
	c.Open(amqptest.Options{})
	l := &benchLoad{b: b, queue: queue, socket: socket, ch: c.Channel(1), reader: amqp091.NewReader(socket, 0)}
	l.ch.Call(&amqp091.QueueDeclare{Queue: queue, Durable: true})
	l.ch.Call(&amqp091.ConfirmSelect{})
	return l
}

// publish publishes and waits for all confirms.
func (l *benchLoad) publish(count, size int) {
	_ = l.socket.SetDeadline(time.Time{})
	frames := (&amqp091.BasicPublish{RoutingKey: []byte(l.queue)}).AppendFrame(nil, 1)
	frames = amqp091.AppendContent(frames, 1, kept, make([]byte, size), 131_072)
	const most = 50 // publishes of one write
	batch := bytes.Repeat(frames, most)
	slots := make(chan struct{}, window)
	var confirming sync.WaitGroup
	confirming.Go(func() {
		for settled := uint64(0); settled < uint64(count); {
			var ack amqp091.BasicAck
			if !l.next(amqp091.BasicAckID, &ack) {
				return
			}
			for ; settled < ack.DeliveryTag; settled++ { // in order, since there is one queue
				<-slots
			}
		}
	})
	for sent := 0; sent < count; {
		n := min(most, count-sent)
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

// kept are properties with delivery mode 2 only.
var kept = amqp091.PropertyBytes{0x10, 0x00, 2}

// consume takes deliveries and acknowledges each hundred.
func (l *benchLoad) consume(count int) {
	_ = l.socket.SetDeadline(time.Time{})
	for taken := 1; taken <= count; taken++ {
		var d amqp091.BasicDeliver
		if !l.next(amqp091.BasicDeliverID, &d) {
			return
		}
		for size := uint64(0); ; { // the content
			f, err := l.reader.Next()
			if err != nil {
				l.b.Error(err)
				return
			}
			if f.Type == amqp091.FrameHeader {
				header, err := l.reader.Payload()
				if err != nil {
					l.b.Error(err)
					return
				}
				for _, x := range header[4:12] {
					size = size<<8 | uint64(x)
				}
				continue
			}
			if size -= uint64(f.Size); size == 0 {
				break
			}
		}
		if taken%100 == 0 || taken == count {
			if _, err := l.socket.Write((&amqp091.BasicAck{DeliveryTag: d.DeliveryTag, Multiple: true}).AppendFrame(nil, 1)); err != nil {
				l.b.Error(err)
				return
			}
		}
	}
}

// next receives a method that must be the one wanted.
func (l *benchLoad) next(want amqp091.MethodID, m interface{ Decode([]byte) error }) bool {
	_, err := l.reader.Next()
	if err == nil {
		var payload []byte
		if payload, err = l.reader.Payload(); err == nil {
			var id amqp091.MethodID
			var args []byte
			if id, args, err = amqp091.SplitMethod(payload); err == nil && id == want {
				if err = m.Decode(args); err == nil {
					return true
				}
			} else if err == nil {
				err = fmt.Errorf("%s came instead of %s", id, want)
			}
		}
	}
	l.b.Error(err)
	return false
}
