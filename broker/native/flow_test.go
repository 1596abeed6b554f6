package native_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/client"
	"github.com/warrenmq/warren/protocol/native"
)

// startFull starts a node whose memory use is what full says.
func startFull(t *testing.T) (node *alone, full *atomic.Uint64) {
	full = &atomic.Uint64{}
	return startWith(t, broker.Config{Watermarks: broker.Watermarks{MemoryUsed: full.Load, MaxMemory: 1 << 20}}), full
}

// While publishes are held up, acknowledgements behind them go on, on the same channel too.
func TestHeldUpPublishesHoldNothingElseUp(t *testing.T) {
	node, full := startFull(t)
	r := connect(t, node)
	h := native.Head{RID: 2, Channel: 1}
	r.send(&native.QueueDeclare{Head: h, Name: "q"}, &native.Publish{Head: h, RoutingKey: "q"}, &native.ChannelOpen{Head: native.Head{RID: 3, Channel: 2}})
	r.expect(0, 0, 0)
	r.send(&native.Get{Head: h, Queue: "q"})
	r.expect(0)
	flow := func(want bool) {
		t.Helper()
		for {
			if kind, payload := r.next(); kind == native.TypeFlow {
				var f native.Flow
				if err := native.Decode(payload, &f); err != nil || f.Blocked != want || f.Blocked == (f.Reason == "") {
					t.Fatalf("%+v, %v", f, err)
				}
				return
			}
		}
	}
	full.Store(2 << 20)
	flow(true)
	for i := range uint64(600) { // more than the reader collects
		r.send(&native.Publish{Head: native.Head{RID: 100 + i, Channel: 1}, RoutingKey: "q"})
	}
	r.send(&native.Ack{Head: native.Head{RID: 4, Channel: 1}, Ranges: []native.Range{{From: 1, To: 1}}},
		&native.QueueDeclare{Head: native.Head{RID: 5, Channel: 2}, Name: "q", Passive: true})
	for range 2 {
		if p := r.reply(); p.Code != 0 || p.Of == native.TypePublish {
			t.Fatalf("a %s was answered with %d %s", p.Of, p.Code, p.Message)
		}
	}
	full.Store(0)
	flow(false)
	for range 600 {
		r.expect(0)
	}
}

// The client keeps publishes to itself while the broker holds them up, and says why when that takes too long.
func TestClientHonoursFlow(t *testing.T) {
	node, full := startFull(t)
	conn, ch := dial(t, node)
	declare(t, ch, client.Queue{Name: "q", Durable: true})
	publish(t, ch, "q", "a")
	d := must[*client.Delivery](t)(ch.Get(within(t), "q", false))
	full.Store(2 << 20)
	for conn.Blocked() == "" {
		if err := within(t).Err(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := ch.Publish(ctx, "", "q", client.Message{}); !errors.Is(err, client.ErrBlocked) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a publish while they are held up: %v", err)
	}
	ok(t, d.Ack(within(t)))
	_, late := dial(t, node) // one that connects now is told too
	ctx, cancel = context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := late.Publish(ctx, "", "q", client.Message{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a publish while they are held up: %v", err)
	}
	waiting := make(chan error, 1)
	go func() {
		_, err := ch.Publish(within(t), "", "q", client.Message{})
		waiting <- err
	}()
	full.Store(0)
	ok(t, <-waiting)
	if reason := conn.Blocked(); reason != "" {
		t.Fatalf("still held up: %s", reason)
	}
}

// A transaction may be larger than a frame.
func TestLargeTransactionGoesInParts(t *testing.T) {
	node := start(t)
	_, ch := dial(t, node)
	declare(t, ch, client.Queue{Name: "q", Durable: true})
	tx := ch.Tx()
	const messages = 20
	for range messages {
		tx.Publish("", "q", client.Message{Body: make([]byte, native.MaxInlineBody)})
	}
	if routed := must[[]uint32](t)(tx.Commit(within(t))); len(routed) != messages {
		t.Fatalf("routed %v", routed)
	}
	tx = ch.Tx()
	for range 17 {
		tx.Publish("", "q", client.Message{Headers: map[string]any{"h": make([]byte, 1<<20-100)}})
	}
	if _, err := tx.Commit(within(t)); !errors.Is(err, client.ErrContentTooLarge) {
		t.Fatalf("a transaction with 17 MiB of headers: %v", err)
	}
	if q := declare(t, ch, client.Queue{Name: "q", Passive: true}); q.Messages != messages {
		t.Fatalf("%+v", q)
	}
}
