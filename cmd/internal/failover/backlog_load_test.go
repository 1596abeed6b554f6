package failover

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"time"

	"github.com/warrenmq/warren/client"
)

var backlog = flag.Int("messages", 0, "how many messages the tests of a backlog publish, in place of their own number")

var backlogSize = flag.Int("size", 0, "how large a body is in bytes in the test of memory, in place of 1024")

// messagesOr is the number of messages asked for, or a test's own.
func messagesOr(own int) int {
	if *backlog > 0 {
		return *backlog
	}
	return own
}

// publishBacklog publishes numbered messages as fast as they are confirmed. It returns the rate in each of some parts
// and the longest time without a confirm.
func (c *cluster) publishBacklog(ctx context.Context, queue string, messages, size, parts int) (rates []float64, slowest time.Duration) {
	c.t.Helper()
	ch, err := c.Dial(client.WithPublishWindow(4096, 32<<20)).Channel(c.t.Context())
	c.check(err)
	confirms := make(chan *client.Confirm, 8192) // closed by the publisher
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var publishing sync.WaitGroup
	defer publishing.Wait()
	publishing.Go(func() {
		defer close(confirms)
		for i := range messages {
			confirm, err := ch.PublishAsync(ctx, "", queue, client.Message{Body: message{0, uint32(i)}.body(size)})
			if err != nil {
				c.t.Errorf("publish %d: %v", i, err)
				return
			}
			confirms <- confirm
		}
	})
	began, n := time.Now(), 0
	last := began
	for confirm := range confirms {
		if _, err := confirm.Wait(ctx); err != nil {
			cancel()
			c.t.Errorf("message %d: %v", n, err)
		}
		now := time.Now()
		slowest, last = max(slowest, now.Sub(last)), now
		if n++; n%(messages/parts) == 0 {
			rates = append(rates, float64(messages/parts)/now.Sub(began).Seconds())
			began = now
		}
	}
	if n != messages {
		c.t.FailNow()
	}
	return rates, slowest
}

// draining is some consumers that take the numbered messages of a queue.
type draining struct {
	c       *cluster
	queue   string
	cancel  context.CancelFunc
	ctx     context.Context
	working sync.WaitGroup
	done    chan struct{} // closed when everything has come
	all     []*client.Consumer

	mu   sync.Mutex
	seen []bool // guarded by mu
	left int    // guarded by mu
}

// startDrain starts consumers of a queue.
func (c *cluster) startDrain(ctx context.Context, queue string, messages, consumers int) *draining {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Minute)
	k := &draining{c: c, queue: queue, ctx: ctx, cancel: cancel, done: make(chan struct{}), seen: make([]bool, messages), left: messages}
	for range consumers {
		ch := c.Channel()
		c.check(ch.Qos(ctx, 2000, false))
		consumer, err := ch.Consume(ctx, queue, client.ConsumeOptions{})
		c.check(err)
		k.all = append(k.all, consumer)
		k.working.Go(func() { k.consume(consumer) })
	}
	return k
}

func (k *draining) consume(consumer *client.Consumer) {
	before := int64(-1)
	for d, err := range consumer.All(k.ctx) {
		if err != nil {
			if k.ctx.Err() == nil {
				k.c.t.Errorf("the consumer ended: %v", err)
			}
			return
		}
		m, err := messageOf(d.Body)
		if err == nil && int64(m.number) < before {
			err = fmt.Errorf("message %d came after %d", m.number, before)
		}
		if err == nil {
			before = int64(m.number)
			err = d.AckAsync()
		}
		if err == nil {
			err = k.note(m)
		}
		if err != nil {
			k.c.t.Error(err)
			k.cancel()
			return
		}
	}
}

func (k *draining) note(m message) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if int(m.number) >= len(k.seen) || k.seen[m.number] {
		return fmt.Errorf("message %d came twice or was never published", m.number)
	}
	k.seen[m.number] = true
	if k.left--; k.left == 0 {
		close(k.done)
	}
	return nil
}

// Wait waits until every message has come, once and to each consumer in order, and is acknowledged.
func (k *draining) Wait() {
	k.c.t.Helper()
	defer k.working.Wait()
	defer k.cancel()
	select {
	case <-k.done:
	case <-k.ctx.Done():
		k.c.t.Fatalf("%d of %d messages did not come", k.left, len(k.seen))
	}
	await(k.c.t, 20*time.Second, "everything acknowledged", func() error {
		if depth := k.c.Depth(k.queue); depth > 0 {
			return fmt.Errorf("%d messages are still there", depth)
		}
		return nil
	})
	for _, consumer := range k.all {
		k.c.check(consumer.Cancel(k.c.t.Context()))
	}
}
