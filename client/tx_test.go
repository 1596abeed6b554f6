package client

import (
	"errors"
	"testing"
)

func TestRule8TxIsNeverSentTwice(t *testing.T) {
	ctx, f, _, ch := setup(t, 1)
	tx := ch.Tx()
	tx.Publish("", "q", Message{Body: []byte("a")})
	if routed, err := tx.Commit(ctx); err != nil || len(routed) != 1 {
		t.Fatal(routed, err)
	}
	f.mu.Lock()
	f.loseTx = true
	f.mu.Unlock()
	if _, err := tx.Commit(ctx); !errors.Is(err, ErrOutcomeUnknown) {
		t.Fatal(err)
	}
	if _, err := ch.Publish(ctx, "", "q", Message{}); err != nil { // the connection is back
		t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.txs != 2 {
		t.Fatalf("sent %d times", f.txs)
	}
}

func TestStaleDeliveryFailsATx(t *testing.T) {
	ctx, f, _, ch := setup(t, 2)
	if _, err := ch.Publish(ctx, "", "q", Message{}); err != nil {
		t.Fatal(err)
	}
	d, err := ch.Get(ctx, "q", false)
	if err != nil {
		t.Fatal(err)
	}
	f.lead(1)
	if _, err := ch.Publish(ctx, "", "q", Message{}); err != nil {
		t.Fatal(err)
	}
	tx := ch.Tx()
	tx.Ack(d)
	if _, err := tx.Commit(ctx); !errors.Is(err, ErrStaleDelivery) || f.txs != 0 {
		t.Fatal(err)
	}
}
