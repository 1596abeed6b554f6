package client

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/warrenmq/warren/protocol/native"
)

// BenchmarkPublishAsync publishes 256 bytes a message to a server that only confirms.
func BenchmarkPublishAsync(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		confirmAll(conn)
	}()
	ctx := context.Background()
	c, err := Dial(ctx, []string{l.Addr().String()})
	if err != nil {
		b.Fatal(err)
	}
	ch, err := c.Channel(ctx)
	if err != nil {
		b.Fatal(err)
	}
	m := Message{Body: make([]byte, 256)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ch.PublishAsync(ctx, "orders", "order.42.paid", m); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
	c.Close(ctx)
	l.Close()
	wg.Wait()
}

func confirmAll(conn io.ReadWriter) {
	r := native.NewReader(conn, native.DefaultFrameMax)
	var out []byte
	for {
		t, payload, err := r.Next()
		if err != nil {
			return
		}
		head, _ := native.PeekHead(payload)
		reply := native.Reply{Head: head, Of: t}
		switch t {
		case native.TypeHello:
			out = native.Append(out, &native.HelloOK{Reply: reply, NodeID: "n", Heartbeat: 1})
		case native.TypePublish:
			out = native.AppendPublishOK(out, &native.PublishOK{Reply: reply, Routed: 1})
		case native.TypeHeartbeat:
		default:
			out = native.AppendReply(out, &reply)
		}
		if !r.Ready() {
			if _, err := conn.Write(out); err != nil {
				return
			}
			out = out[:0]
		}
	}
}
