package client_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/warrenmq/warren/client"
	"github.com/warrenmq/warren/protocol/native"
)

// operated is a connection to a real node with two queues.
type operated struct {
	*testing.T
	ctx  context.Context
	conn *client.Connection
	ch   *client.Channel
}

func operate(t *testing.T) *operated {
	address, stop := startNode()
	t.Cleanup(stop)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	conn, err := client.Dial(ctx, []string{address}, client.WithName("operator"))
	o := &operated{t, ctx, conn, nil}
	o.check(err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	o.ch, err = conn.Channel(ctx)
	o.check(err)
	for _, q := range []string{"from", "to"} {
		_, err := o.ch.DeclareQueue(ctx, client.Queue{Name: q, Durable: true})
		o.check(err)
	}
	return o
}

func (o *operated) check(err error) {
	o.Helper()
	if err != nil {
		o.Fatal(err)
	}
}

func (o *operated) publish(queue string, bodies ...[]byte) {
	o.Helper()
	var confirms []*client.Confirm
	for i, body := range bodies {
		c, err := o.ch.PublishAsync(o.ctx, "", queue, client.Message{Body: body, Headers: map[string]any{"even": i%2 == 0, "n": int64(i)}})
		o.check(err)
		confirms = append(confirms, c)
	}
	for _, c := range confirms {
		_, err := c.Wait(o.ctx)
		o.check(err)
	}
}

func (o *operated) peek(queue string, p client.Peek) (list []*client.Peeked) {
	o.Helper()
	o.check(o.conn.Peek(o.ctx, queue, p, func(m *client.Peeked) error { list = append(list, m); return nil }))
	return list
}

func (o *operated) bodies(queue string) (list []string) {
	o.Helper()
	for _, m := range o.peek(queue, client.Peek{}) {
		list = append(list, string(m.Body))
	}
	return list
}

func (o *operated) move(m client.Move, want client.Tally) {
	o.Helper()
	got, err := o.conn.Move(o.ctx, m, nil)
	o.check(err)
	if got.Reason != "" && want.Reason == "" {
		got.Reason = ""
	}
	if got != want {
		o.Errorf("%+v moved %+v, want %+v", m, got, want)
	}
}

func numbered(n int) (bodies [][]byte) {
	for i := range n {
		bodies = append(bodies, fmt.Appendf(nil, "%05d", i))
	}
	return bodies
}

// TestPeekChangesNothing: who holds a message is seen, and a look leaves no trace.
func TestPeekChangesNothing(t *testing.T) {
	o := operate(t)
	o.publish("from", numbered(3000)...)
	o.check(o.ch.Qos(o.ctx, 1, false))
	consumer, err := o.ch.Consume(o.ctx, "from", client.ConsumeOptions{})
	o.check(err)
	first := <-consumer.Deliveries()
	began := time.Now()
	for range 3 {
		all := o.peek("from", client.Peek{})
		if len(all) != 3000 || all[2999].Sequence != 3000 {
			t.Fatalf("%d messages", len(all))
		}
		m := all[0]
		if h := m.Holder; m.State != client.StateHeld || h == nil || h.ConsumerTag != first.ConsumerTag || h.ClientName != "operator" || h.Peer == "" ||
			h.Since.After(began.Add(time.Second)) || h.Since.Before(began.Add(-time.Minute)) {
			t.Fatalf("the held message: %+v, %+v", m, m.Holder)
		}
		if m := all[1]; m.State != client.StateReady || m.Holder != nil || m.Deliveries != 0 || m.Redelivered || string(m.Body) != "00001" || m.Headers["n"] != int64(1) {
			t.Fatalf("a ready message: %+v", m)
		}
	}
	got := o.peek("from", client.Peek{Offset: 1000, Limit: 1200, Truncate: 3, Filter: client.Filter{Headers: []client.HeaderFilter{{Name: "even", Value: "true"}}}})
	if len(got) != 500 || string(got[0].Body) != "020" || got[0].BodyBytes != 5 || got[0].Sequence != 2001 {
		t.Fatalf("%d messages, %+v", len(got), got[0])
	}
	o.check(first.Nack(o.ctx, true))
	if again := <-consumer.Deliveries(); string(again.Body) != "00000" || !again.Redelivered {
		t.Fatalf("%s", again.Body)
	} else {
		o.check(again.Ack(o.ctx))
	}
	if next := <-consumer.Deliveries(); string(next.Body) != "00001" || next.Redelivered {
		t.Fatalf("what was looked at comes as %s, redelivered %v", next.Body, next.Redelivered)
	}
}

// TestMovesBesideConsumers: rule 3. Each message is consumed once or moved, never both, while messages go there and back.
func TestMovesBesideConsumers(t *testing.T) {
	const count = 4000
	o := operate(t)
	o.check(o.ch.Qos(o.ctx, 50, false))
	consumer, err := o.ch.Consume(o.ctx, "from", client.ConsumeOptions{})
	o.check(err)
	var consumed []string
	var work sync.WaitGroup
	enough := make(chan struct{})
	work.Go(func() {
		for {
			select {
			case d := <-consumer.Deliveries():
				consumed = append(consumed, string(d.Body))
				_ = d.AckAsync()
			case <-enough:
				return
			}
		}
	})
	published := make(chan struct{})
	work.Go(func() { o.publish("from", numbered(count)...); close(published) })
	moved := 0
	for range 40 {
		there, err := o.conn.Move(o.ctx, client.Move{Queue: "from", Target: native.MoveToQueue, To: "to", Limit: 300}, nil)
		o.check(err)
		back, err := o.conn.Move(o.ctx, client.Move{Queue: "to", Target: native.MoveToQueue, To: "from", Limit: 100}, nil)
		o.check(err)
		moved += int(there.Moved + back.Moved)
	}
	<-published
	for { // until nothing is left there, neither ready nor unacknowledged
		rows, err := o.conn.Queues(o.ctx, "from")
		o.check(err)
		if rows[0].Messages == 0 {
			break
		}
	}
	close(enough)
	work.Wait()
	all := append(o.bodies("to"), consumed...)
	slices.Sort(all)
	if n := len(slices.Compact(slices.Clone(all))); n != count || len(all) != count {
		t.Errorf("%d messages were consumed or are moved, %d different ones, of %d", len(all), n, count)
	}
	t.Logf("%d moves, %d consumed", moved, len(consumed))
}

// TestLargeBodiesMove: bodies that travel in parts.
func TestLargeBodiesMove(t *testing.T) {
	o := operate(t)
	large := func(b byte) []byte { return bytes.Repeat([]byte{b}, 3<<20+1) }
	o.publish("from", large('a'), []byte("small"), large('b'), large('c'))
	d, err := o.ch.Get(o.ctx, "from", false) // a is held
	o.check(err)
	o.move(client.Move{Queue: "from", Target: native.MoveToQueue, To: "to"}, client.Tally{Matched: 4, Moved: 3, Held: 1})
	got := o.peek("to", client.Peek{Truncate: 1 << 30})
	if len(got) != 3 || string(got[0].Body) != "small" || got[1].BodyBytes != 3<<20+1 || got[2].Body[0] != 'c' {
		t.Fatalf("%d messages", len(got))
	}
	_, err = o.ch.Get(o.ctx, "to", true) // small
	o.check(err)
	if moved, err := o.ch.Get(o.ctx, "to", true); err != nil || !bytes.Equal(moved.Body, large('b')) || moved.Headers["n"] != int64(2) {
		t.Fatalf("the body was changed: %v", err)
	}
	o.check(d.Nack(o.ctx, true))
	o.move(client.Move{Queue: "from", Target: native.MoveToExchange, To: "", Key: "nowhere"}, client.Tally{Matched: 1, Kept: 1})
	o.move(client.Move{Queue: "from", Target: native.MoveToExchange, To: "", Key: "to"}, client.Tally{Matched: 1, Moved: 1})
	if n := len(o.bodies("from")); n != 0 {
		t.Errorf("%d messages are left", n)
	}
}

// TestDeleteByFilter: with a limit and without.
func TestDeleteByFilter(t *testing.T) {
	o := operate(t)
	o.publish("from", numbered(1000)...)
	even := client.Filter{Headers: []client.HeaderFilter{{Name: "even", Value: "true"}}}
	o.move(client.Move{Queue: "from", Target: native.MoveToNowhere, Filter: even, Limit: 10, DryRun: true}, client.Tally{Matched: 10, Moved: 10})
	o.move(client.Move{Queue: "from", Target: native.MoveToNowhere, Filter: even, Limit: 10}, client.Tally{Matched: 10, Moved: 10})
	if got := o.bodies("from"); len(got) != 990 || got[10] != "00020" {
		t.Fatalf("%d messages, %s", len(got), got[10])
	}
	o.move(client.Move{Queue: "from", Target: native.MoveToNowhere, Filter: even}, client.Tally{Matched: 490, Moved: 490})
	if got := o.bodies("from"); len(got) != 500 || got[0] != "00001" {
		t.Fatalf("%d messages, %s", len(got), got[0])
	}
}

// BenchmarkMove moves messages of 100 bytes there and back, on one node.
func BenchmarkMove(b *testing.B) {
	const count = 20_000
	address, stop := startNode()
	defer stop()
	conn, err := client.Dial(b.Context(), []string{address})
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(context.Background())
	ch, err := conn.Channel(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	queues := []string{"bench-a", "bench-b"}
	for _, q := range queues {
		if _, err := ch.DeclareQueue(b.Context(), client.Queue{Name: q, Durable: true}); err != nil {
			b.Fatal(err)
		}
	}
	var last *client.Confirm
	for range count {
		if last, err = ch.PublishAsync(b.Context(), "", queues[0], client.Message{Body: make([]byte, 100)}); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := last.Wait(b.Context()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		sum, err := conn.Move(b.Context(), client.Move{Queue: queues[0], Target: native.MoveToQueue, To: queues[1]}, nil)
		if err != nil || sum.Moved != count {
			b.Fatalf("%+v, %v", sum, err)
		}
		slices.Reverse(queues)
	}
	b.ReportMetric(float64(count*b.N)/b.Elapsed().Seconds(), "messages/s")
}
