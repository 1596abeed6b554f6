package native_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/warrenmq/warren/client"
)

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func declare(t testing.TB, ch *client.Channel, q client.Queue) client.QueueState {
	t.Helper()
	return must[client.QueueState](t)(ch.DeclareQueue(within(t), q))
}

func publish(t testing.TB, ch *client.Channel, key string, bodies ...string) {
	t.Helper()
	for _, b := range bodies {
		c := must[client.Confirmation](t)(ch.Publish(within(t), "", key, client.Message{Body: []byte(b)}))
		if c.Routed != 1 {
			t.Fatalf("message %q reached %d queues", b, c.Routed)
		}
	}
}

func next(t testing.TB, s *client.Consumer) *client.Delivery {
	t.Helper()
	select {
	case d, open := <-s.Deliveries():
		if !open {
			t.Fatalf("the consumer ended: %v", s.Err())
		}
		return d
	case <-within(t).Done():
		t.Fatal("no delivery came")
		return nil
	}
}

func TestPublishConsumeAck(t *testing.T) {
	node := start(t)
	_, ch := dial(t, node)
	ok(t, ch.DeclareExchange(within(t), client.Exchange{Name: "orders", Kind: "topic", Durable: true}))
	declare(t, ch, client.Queue{Name: "invoices", Durable: true})
	ok(t, ch.Bind(within(t), "orders", "invoices", "order.*.paid", nil))
	for i := range 10 {
		c := must[client.Confirmation](t)(ch.Publish(within(t), "orders", "order.42.paid", client.Message{Body: fmt.Append(nil, i), ContentType: "text/plain"}))
		if c.Routed != 1 {
			t.Fatalf("routed to %d queues", c.Routed)
		}
	}
	s := must[*client.Consumer](t)(ch.Consume(within(t), "invoices", client.ConsumeOptions{}))
	for i := range 10 {
		d := next(t, s)
		if string(d.Body) != fmt.Sprint(i) || d.Redelivered || d.ContentType != "text/plain" || d.Exchange != "orders" || d.RoutingKey != "order.42.paid" {
			t.Fatalf("delivery %d is %+v", i, d)
		}
		ok(t, d.Ack(within(t)))
	}
	ok(t, s.Cancel(within(t)))
	if q := declare(t, ch, client.Queue{Name: "invoices", Passive: true}); q.Messages != 0 || q.Consumers != 0 {
		t.Fatalf("after all acks the queue is %+v", q)
	}
}

func TestNackReturnsToItsPlace(t *testing.T) {
	node := start(t)
	_, ch := dial(t, node)
	declare(t, ch, client.Queue{Name: "q", Durable: true})
	publish(t, ch, "q", "a", "b", "c", "d")
	get := func() *client.Delivery { return must[*client.Delivery](t)(ch.Get(within(t), "q", false)) }
	a := get()
	ok(t, a.Nack(within(t), true))
	again := get()
	if string(again.Body) != "a" || !again.Redelivered {
		t.Fatalf("after the nack came %q, redelivered %v", again.Body, again.Redelivered)
	}
	b, c := get(), get()
	for _, d := range []*client.Delivery{c, again, b} {
		ok(t, d.Nack(within(t), true))
	}
	for _, want := range []string{"a", "b", "c", "d"} {
		d := get()
		if string(d.Body) != want {
			t.Fatalf("got %q, want %q", d.Body, want)
		}
		ok(t, d.Reject(within(t)))
	}
	if d := get(); d != nil {
		t.Fatalf("a rejected message is still there: %q", d.Body)
	}
}

func TestPrefetchAndRoundRobin(t *testing.T) {
	node := start(t)
	_, one := dial(t, node)
	_, two := dial(t, node)
	declare(t, one, client.Queue{Name: "q", Durable: true})
	ok(t, one.Qos(within(t), 3, false))
	ok(t, two.Qos(within(t), 3, false))
	first := must[*client.Consumer](t)(one.Consume(within(t), "q", client.ConsumeOptions{}))
	second := must[*client.Consumer](t)(two.Consume(within(t), "q", client.ConsumeOptions{}))
	for i := range 10 {
		publish(t, one, "q", fmt.Sprint(i))
	}
	got := map[string]bool{}
	for range 3 {
		got[string(next(t, first).Body)] = true
		got[string(next(t, second).Body)] = true
	}
	if len(got) != 6 {
		t.Fatalf("two consumers with prefetch 3 hold %v", got)
	}
	q := declare(t, one, client.Queue{Name: "q", Passive: true})
	if q.Messages != 4 || q.Consumers != 2 {
		t.Fatalf("ready and consumers: %+v", q)
	}
}

func TestClosingAConnectionReturnsWhatItHeld(t *testing.T) {
	node := start(t)
	conn, ch := dial(t, node)
	_, other := dial(t, node)
	declare(t, ch, client.Queue{Name: "q", Durable: true})
	declare(t, ch, client.Queue{Name: "mine", Exclusive: true})
	if _, err := other.DeclareQueue(within(t), client.Queue{Name: "mine", Exclusive: true}); !errors.Is(err, client.ErrResourceLocked) {
		t.Fatalf("another connection's declare of an exclusive queue: %v", err)
	}
	publish(t, ch, "q", "a", "b")
	s := must[*client.Consumer](t)(ch.Consume(within(t), "q", client.ConsumeOptions{}))
	next(t, s)
	next(t, s)
	ok(t, conn.Close(within(t)))
	t2 := must[*client.Consumer](t)(other.Consume(within(t), "q", client.ConsumeOptions{}))
	for _, want := range []string{"a", "b"} {
		if d := next(t, t2); string(d.Body) != want || !d.Redelivered {
			t.Fatalf("got %q redelivered %v, want %q", d.Body, d.Redelivered, want)
		}
	}
	// The exclusive queue went with its connection, some time after it.
	for {
		if _, err := other.DeclareQueue(within(t), client.Queue{Name: "mine", Durable: true}); err == nil {
			return
		} else if !errors.Is(err, client.ErrResourceLocked) {
			t.Fatal(err)
		}
	}
}

func TestErrorsAreNamed(t *testing.T) {
	node := start(t)
	_, ch := dial(t, node)
	declare(t, ch, client.Queue{Name: "q", Durable: true})
	for name, c := range map[string]struct {
		err  error
		want error
	}{
		"missing queue":       {second(ch.DeclareQueue(within(t), client.Queue{Name: "none", Passive: true})), client.ErrNotFound},
		"inequivalent":        {second(ch.DeclareQueue(within(t), client.Queue{Name: "q"})), client.ErrPreconditionFailed},
		"reserved name":       {second(ch.DeclareQueue(within(t), client.Queue{Name: "amq.mine"})), client.ErrAccessRefused},
		"missing exchange":    {second(ch.Publish(within(t), "none", "k", client.Message{})), client.ErrNotFound},
		"returned":            {second(ch.Publish(within(t), "", "none", client.Message{Mandatory: true})), client.ErrReturned},
		"consume of no queue": {second(ch.Consume(within(t), "none", client.ConsumeOptions{})), client.ErrNotFound},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", name, c.err, c.want)
		}
	}
	publish(t, ch, "q", "still works")
}

func second[T any](_ T, err error) error { return err }

func TestRule03PurgeKeepsWhatIsHeld(t *testing.T) {
	node := start(t)
	_, ch := dial(t, node)
	declare(t, ch, client.Queue{Name: "q", Durable: true})
	publish(t, ch, "q", "a", "b", "c")
	a := must[*client.Delivery](t)(ch.Get(within(t), "q", false))
	if n := must[uint64](t)(ch.Purge(within(t), "q")); n != 2 {
		t.Fatalf("purged %d messages, want 2", n)
	}
	ok(t, a.Nack(within(t), true))
	if d := must[*client.Delivery](t)(ch.Get(within(t), "q", true)); d == nil || string(d.Body) != "a" {
		t.Fatalf("the held message is gone: %v", d)
	}
	publish(t, ch, "q", "d")
	if d := must[*client.Delivery](t)(ch.Get(within(t), "q", true)); d == nil || string(d.Body) != "d" {
		t.Fatalf("after a purge came %v", d)
	}
}

func TestLargeBodiesGoInParts(t *testing.T) {
	node := start(t)
	_, ch := dial(t, node)
	declare(t, ch, client.Queue{Name: "q", Durable: true})
	body := bytes.Repeat([]byte("warren"), 1<<20)
	must[client.Confirmation](t)(ch.Publish(within(t), "", "q", client.Message{Body: body}))
	if d := must[*client.Delivery](t)(ch.Get(within(t), "q", false)); d == nil || !bytes.Equal(d.Body, body) {
		t.Fatal("the body came back changed by get")
	} else {
		ok(t, d.Nack(within(t), true))
	}
	s := must[*client.Consumer](t)(ch.Consume(within(t), "q", client.ConsumeOptions{}))
	if d := next(t, s); !bytes.Equal(d.Body, body) {
		t.Fatal("the body came back changed by a consumer")
	}
}

func TestTransactionIsAllOrNone(t *testing.T) {
	node := start(t)
	_, ch := dial(t, node)
	declare(t, ch, client.Queue{Name: "a", Durable: true})
	declare(t, ch, client.Queue{Name: "b", Durable: true})
	publish(t, ch, "a", "first")
	d := must[*client.Delivery](t)(ch.Get(within(t), "a", false))
	tx := ch.Tx()
	tx.Publish("", "b", client.Message{Body: []byte("x")})
	tx.Publish("none", "b", client.Message{Body: []byte("y")})
	tx.Ack(d)
	if _, err := tx.Commit(within(t)); !errors.Is(err, client.ErrNotFound) {
		t.Fatalf("a transaction with a refused publish: %v", err)
	}
	if q := declare(t, ch, client.Queue{Name: "b", Passive: true}); q.Messages != 0 {
		t.Fatalf("a refused transaction left %d messages", q.Messages)
	}
	tx = ch.Tx()
	tx.Publish("", "b", client.Message{Body: []byte("x")})
	tx.Ack(d)
	if routed := must[[]uint32](t)(tx.Commit(within(t))); len(routed) != 1 || routed[0] != 1 {
		t.Fatalf("routed %v", routed)
	}
	if q := declare(t, ch, client.Queue{Name: "a", Passive: true}); q.Messages != 0 {
		t.Fatalf("the acked message is still there: %+v", q)
	}
}

func TestConsumerIsToldThatItsQueueIsGone(t *testing.T) {
	node := start(t)
	_, ch := dial(t, node)
	_, other := dial(t, node)
	declare(t, ch, client.Queue{Name: "q", Durable: true})
	s := must[*client.Consumer](t)(ch.Consume(within(t), "q", client.ConsumeOptions{}))
	if _, err := other.DeleteQueue(within(t), "q", true, false); !errors.Is(err, client.ErrPreconditionFailed) {
		t.Fatalf("delete of a queue in use: %v", err)
	}
	must[uint64](t)(other.DeleteQueue(within(t), "q", false, false))
	select {
	case _, open := <-s.Deliveries():
		if open {
			t.Fatal("a delivery of a deleted queue")
		}
	case <-within(t).Done():
		t.Fatal("the consumer was not told")
	}
}

func TestRule01AnotherTermClosesEveryConnection(t *testing.T) {
	node := start(t)
	_, ch := dial(t, node)
	declare(t, ch, client.Queue{Name: "q", Durable: true})
	var confirms []*client.Confirm
	for i := range 1000 {
		if i == 500 {
			node.lead(true) // the same node, another term
		}
		confirms = append(confirms, must[*client.Confirm](t)(ch.PublishAsync(within(t), "", "q", client.Message{Body: fmt.Append(nil, i)})))
	}
	for _, c := range confirms {
		must[client.Confirmation](t)(c.Wait(within(t)))
	}
	s := must[*client.Consumer](t)(ch.Consume(within(t), "q", client.ConsumeOptions{}))
	for i := range 1000 {
		if d := next(t, s); string(d.Body) != fmt.Sprint(i) {
			t.Fatalf("delivery %d is %q", i, d.Body)
		} else {
			ok(t, d.AckAsync())
		}
	}
	q := declare(t, ch, client.Queue{Name: "q", Passive: true})
	if q.Messages != 0 {
		t.Fatalf("%d messages more than were published", q.Messages)
	}
}

func TestRule11RedeliveriesAfterATermAreMarked(t *testing.T) {
	node := start(t)
	_, ch := dial(t, node)
	declare(t, ch, client.Queue{Name: "q", Durable: true})
	publish(t, ch, "q", "a", "b")
	s := must[*client.Consumer](t)(ch.Consume(within(t), "q", client.ConsumeOptions{}))
	next(t, s)
	next(t, s)
	node.lead(true)
	for _, want := range []string{"a", "b"} {
		if d := next(t, s); string(d.Body) != want || !d.Redelivered {
			t.Fatalf("after the change came %q, redelivered %v", d.Body, d.Redelivered)
		}
	}
	publish(t, ch, "q", "c")
	if d := next(t, s); string(d.Body) != "c" || d.Redelivered {
		t.Fatalf("a new message came as %q, redelivered %v", d.Body, d.Redelivered)
	}
}

func BenchmarkPublishConsume(b *testing.B) {
	node := start(b)
	_, ch := dial(b, node)
	_, sink := dial(b, node)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	declare(b, ch, client.Queue{Name: "q", Durable: true})
	s := must[*client.Consumer](b)(sink.Consume(ctx, "q", client.ConsumeOptions{}))
	body := make([]byte, 256)
	b.ResetTimer()
	go func() {
		for range b.N {
			if _, err := ch.PublishAsync(ctx, "", "q", client.Message{Body: body}); err != nil {
				return
			}
		}
	}()
	for range b.N {
		d := <-s.Deliveries()
		_ = d.AckAsync()
	}
}
