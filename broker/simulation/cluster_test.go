package simulation

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/warrenmq/warren/client"
)

func logger() *slog.Logger {
	var w io.Writer = io.Discard
	if *verbose {
		w = os.Stderr
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func TestThreeNodesServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCluster(1, logger())
		for i := range Nodes {
			if err := c.Start(i); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		conn, err := client.Dial(ctx, c.Addresses(), client.WithDialer(c.Net.Attach("c1").Dial))
		if err != nil {
			t.Fatal(err)
		}
		ch, err := conn.Channel(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ch.DeclareQueue(ctx, client.Queue{Name: "q", Durable: true}); err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			if _, err := ch.Publish(ctx, "", "q", client.Message{Body: fmt.Appendf(nil, "%d", i)}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 100 {
			d, err := ch.Get(ctx, "q", false)
			if err != nil || d == nil || string(d.Body) != fmt.Sprint(i) {
				t.Fatalf("%d: %v %v", i, d, err)
			}
			if err := d.Ack(ctx); err != nil {
				t.Fatal(err)
			}
		}
		_ = conn.Close(ctx)
		for i := range Nodes {
			if err := c.Stop(i); err != nil {
				t.Error(err)
			}
		}
		c.Wait()
	})
}
