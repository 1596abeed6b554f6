package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/warrenmq/warren/protocol/native"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func setup(t *testing.T, nodes int, opts ...Option) (context.Context, *fake, *Connection, *Channel) {
	t.Helper()
	f := startFake(t, nodes)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	c, err := Dial(ctx, f.addrs()[nodes-1:], opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.shut(ErrClosed) })
	ch, err := c.Channel(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ch.DeclareQueue(ctx, Queue{Name: "q"}); err != nil {
		t.Fatal(err)
	}
	return ctx, f, c, ch
}

func TestFindsTheLeaderThroughAFollower(t *testing.T) {
	ctx, f, c, ch := setup(t, 3)
	if c.Leader() != f.addrs()[0] {
		t.Fatalf("at %s", c.Leader())
	}
	f.lead(1)
	if r, err := ch.Publish(ctx, "", "q", Message{Body: []byte("x")}); err != nil || r.Routed != 1 {
		t.Fatal(r, err)
	}
	if c.Leader() != f.addrs()[1] {
		t.Fatalf("at %s", c.Leader())
	}
}

// TestRule5PublishesTakeEffectOnceInOrder loses answers, changes leaders and refuses, while publishes go on.
func TestRule5PublishesTakeEffectOnceInOrder(t *testing.T) {
	for _, code := range []uint16{0, native.NotLeader, native.NoLeader, native.LeadershipLost, native.Overloaded} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			ctx, f, c, ch := setup(t, 3)
			var confirms []*Confirm
			for i := range 1000 {
				switch i {
				case 100, 500, 900:
					f.mu.Lock()
					f.loseAfter = 20
					f.afterLoss = func() { f.leader = (f.leader + 1) % 3 }
					f.mu.Unlock()
				case 300:
					f.mu.Lock()
					f.refuse, f.refuseCode = 1_000_000, code
					if code == 0 {
						f.refuse = 0
					}
					f.afterLoss = nil
					f.mu.Unlock()
				case 400:
					f.mu.Lock()
					f.refuse = 0
					f.mu.Unlock()
				}
				confirm, err := ch.PublishAsync(ctx, "", "q", Message{Body: fmt.Appendf(nil, "%d", i)})
				if err != nil {
					t.Fatal(err)
				}
				confirms = append(confirms, confirm)
			}
			for i, confirm := range confirms {
				if r, err := confirm.Wait(ctx); err != nil || r.Routed != 1 {
					t.Fatal(i, r, err)
				}
			}
			if err := c.Close(ctx); err != nil {
				t.Fatal(err)
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			if len(f.order) != 1000 || len(f.queues["q"]) != 1000 || !slices.IsSorted(f.order) {
				t.Fatalf("%d took effect, %d in the queue, in order: %v", len(f.order), len(f.queues["q"]), slices.IsSorted(f.order))
			}
		})
	}
}

func TestWithoutDeduplicationALossIsTold(t *testing.T) {
	ctx, f, _, ch := setup(t, 1, WithoutDeduplication())
	f.mu.Lock()
	f.loseAfter = 1
	f.mu.Unlock()
	if _, err := ch.Publish(ctx, "", "q", Message{}); !errors.Is(err, ErrOutcomeUnknown) {
		t.Fatal(err)
	}
}

func TestConsumerGoesOnAfterAFailover(t *testing.T) {
	ctx, f, _, ch := setup(t, 3)
	s, err := ch.Consume(ctx, "q", ConsumeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		if _, err := ch.Publish(ctx, "", "q", Message{Body: fmt.Appendf(nil, "%d", i), Headers: map[string]any{"n": int64(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	acked := map[string]bool{}
	var stale *Delivery
	for d, err := range s.All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if len(acked) == 10 && stale == nil {
			stale = d
			f.lead(1)
			if _, err := ch.Publish(ctx, "", "q", Message{Body: []byte("last")}); err != nil {
				t.Fatal(err)
			}
			if err := d.Ack(ctx); !errors.Is(err, ErrStaleDelivery) {
				t.Fatal(err)
			}
			continue
		}
		if err := d.Ack(ctx); err != nil && !errors.Is(err, ErrStaleDelivery) && !errors.Is(err, ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		if acked[string(d.Body)] = true; len(acked) == 51 {
			break
		}
	}
}

func TestLargeBodiesAndGet(t *testing.T) {
	ctx, _, _, ch := setup(t, 1)
	body := bytes.Repeat([]byte("0123456789"), 300_000)
	if _, err := ch.Publish(ctx, "", "q", Message{Body: body}); err != nil {
		t.Fatal(err)
	}
	d, err := ch.Get(ctx, "q", false)
	if err != nil || !bytes.Equal(d.Body, body) {
		t.Fatal(len(d.Body), err)
	}
	if err := d.Ack(ctx); err != nil {
		t.Fatal(err)
	}
	if d, err := ch.Get(ctx, "q", false); d != nil || err != nil {
		t.Fatal(d, err)
	}
}

func TestErrorsHaveNames(t *testing.T) {
	ctx, _, c, ch := setup(t, 1)
	var refused *Error
	if _, err := ch.DeclareQueue(ctx, Queue{Name: "none", Passive: true}); !errors.Is(err, ErrNotFound) || !errors.As(err, &refused) {
		t.Fatal(err)
	}
	if _, err := ch.Publish(ctx, "", "none", Message{Mandatory: true}); !errors.Is(err, ErrReturned) {
		t.Fatal(err)
	}
	if err := c.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := ch.Publish(ctx, "", "q", Message{}); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
}

func TestNoLeaderIsSaidWhenTimeIsUp(t *testing.T) {
	f := startFake(t, 2)
	f.lead(-1)
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if _, err := Dial(ctx, f.addrs()); !errors.Is(err, ErrNoLeader) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
}

// TestLeaderIsFoundSoonAfterALongElection: nodes that answer are asked often, whatever the wait has grown to.
func TestLeaderIsFoundSoonAfterALongElection(t *testing.T) {
	f := startFake(t, 2)
	f.lead(-1)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	elected := time.AfterFunc(1200*time.Millisecond, func() { f.lead(1) })
	defer elected.Stop()
	c, err := Dial(ctx, f.addrs(), WithReconnect(time.Minute, time.Minute, 0))
	if err != nil {
		t.Fatal(err)
	}
	c.shut(ErrClosed)
}

// A message that cannot be read ends the consumer that it came to, not the connection, over and over.
func TestUnreadableMessageEndsItsConsumer(t *testing.T) {
	ctx, f, c, ch := setup(t, 1)
	f.mu.Lock()
	f.queues["q"] = append(f.queues["q"], native.Delivery{Queue: "q", Properties: []byte{0x80, 0}})
	f.mu.Unlock()
	s, err := ch.Consume(ctx, "q", ConsumeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range s.Deliveries() {
		t.Fatal("delivered")
	}
	if !errors.Is(s.Err(), ErrProtocol) || !errors.Is(s.Err(), native.ErrProperties) {
		t.Error(s.Err())
	}
	if _, err := ch.Publish(ctx, "", "elsewhere", Message{}); err != nil || c.epoch != 1 {
		t.Error(err, c.epoch)
	}
}
