package failover

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// TestLargeQueue: what is asked of a large queue holds nobody up who uses another one. The long form asks it of a million
// messages and holds it to 50 ms.
func TestLargeQueue(t *testing.T) {
	messages, stall := 20_000, 5*time.Second // a busy machine is no failure of the short form
	if *long {
		messages, stall = 1_000_000, 50*time.Millisecond
	}
	c := startCluster(t, 1)
	c.Declare("large", "doomed", "other")
	c.fill("large", messages, 16)
	c.fill("doomed", messages, 16)
	conn, ch := c.dialAMQP(t.Context(), 0)
	defer conn.Close()
	other := c.startProbe("other")
	defer other.Stop()

	other.Rest("nothing asked")
	for range 20 {
		q, err := ch.QueueDeclarePassive("large", true, false, false, false, nil)
		c.check(err)
		if q.Messages != messages {
			t.Fatalf("the queue has %d messages, not %d", q.Messages, messages)
		}
	}
	worst := other.Rest("queue.declare passive")
	for range 20 {
		m, ok, err := ch.Get("large", true)
		c.check(err)
		if !ok || len(m.Body) != 16 {
			t.Fatal("the queue has no message to get")
		}
	}
	worst = max(worst, other.Rest("basic.get"))
	count, err := ch.QueuePurge("large", false)
	c.check(err)
	if count != messages-20 {
		t.Errorf("%d messages were purged, not %d", count, messages-20)
	}
	worst = max(worst, other.Rest("queue.purge"))
	count, err = ch.QueueDelete("doomed", false, false, false)
	c.check(err)
	if count != messages {
		t.Errorf("a queue of %d messages was deleted, not of %d", count, messages)
	}
	if worst = max(worst, other.Rest("queue.delete")); worst > stall {
		t.Errorf("somebody who used another queue waited %v for a confirm", worst)
	}
}

// probe publishes to a queue, one message after the other, and measures how long each confirm takes.
type probe struct {
	t       *testing.T
	cancel  context.CancelFunc
	working sync.WaitGroup

	mu        sync.Mutex
	published int           // guarded by mu
	slowest   time.Duration // since the last Rest; guarded by mu
}

func (c *cluster) startProbe(queue string) *probe {
	ctx, cancel := context.WithCancel(c.t.Context())
	p := &probe{t: c.t, cancel: cancel}
	conn, ch := c.dialAMQP(ctx, 0)
	c.check(ch.Confirm(false))
	p.working.Go(func() {
		defer conn.Close()
		for ctx.Err() == nil {
			began := time.Now()
			confirm, err := ch.PublishWithDeferredConfirm("", queue, false, false, amqp.Publishing{Body: []byte("x")})
			if err == nil {
				_, err = confirm.WaitContext(ctx)
			}
			if err != nil {
				if ctx.Err() == nil {
					c.t.Errorf("publish beside a large queue: %v", err)
				}
				return
			}
			p.mu.Lock()
			p.published++
			p.slowest = max(p.slowest, time.Since(began))
			p.mu.Unlock()
		}
	})
	return p
}

// Rest lets the probe publish a hundred more, and returns and logs the slowest since the last Rest.
func (p *probe) Rest(what string) time.Duration {
	p.t.Helper()
	p.mu.Lock()
	target := p.published + 100
	p.mu.Unlock()
	await(p.t, 30*time.Second, "a hundred confirms", func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.published < target {
			return fmt.Errorf("%d of %d", p.published, target)
		}
		return nil
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	slowest := p.slowest
	p.slowest = 0
	p.t.Logf("%s: the slowest confirm of another queue took %v", what, slowest.Round(10*time.Microsecond))
	return slowest
}

func (p *probe) Stop() { p.cancel(); p.working.Wait() }
