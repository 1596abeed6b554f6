package client

import (
	"errors"
	"testing"
)

// TestDeliveriesCanBeAcknowledgedWhileTheRestIsRestored acknowledges what arrives before the link is whole again: a
// refusal there would leave the consumer's prefetch used up for ever.
func TestDeliveriesCanBeAcknowledgedWhileTheRestIsRestored(t *testing.T) {
	ctx, f, _, ch := setup(t, 3)
	s, err := ch.Consume(ctx, "q", ConsumeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ch.Publish(ctx, "", "q", Message{Body: []byte("a")}); err != nil {
		t.Fatal(err)
	}
	first := <-s.Deliveries()
	f.mu.Lock()
	f.consumeWaits = true
	f.mu.Unlock()
	f.lead(1)
	again := <-s.Deliveries()
	if err := first.Ack(ctx); !errors.Is(err, ErrStaleDelivery) {
		t.Fatalf("ack of a delivery over the lost connection: %v", err)
	}
	if !again.Redelivered {
		t.Fatal("the second delivery is not marked")
	}
	if err := again.Ack(ctx); err != nil {
		t.Fatalf("ack of a delivery that came before its consumer was confirmed: %v", err)
	}
	if _, err := ch.Publish(ctx, "", "q", Message{Body: []byte("b")}); err != nil {
		t.Fatal(err)
	}
}
