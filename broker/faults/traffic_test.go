package faults

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/warrenmq/warren/broker/simulation"
	"github.com/warrenmq/warren/client"
)

// The queues of the traffic: one that only grows, with one message of keptEvery, and one that is consumed.
const (
	keptQueue = "kept"
	liveQueue = "live"
	keptEvery = 15
	pace      = 20 * time.Millisecond
)

// traffic is a publisher and a consumer on a cluster, and what they saw. Safe for concurrent use.
type traffic struct {
	cluster *simulation.Cluster
	stop    context.CancelFunc // ends publishing
	leave   context.CancelFunc // ends consuming
	giveUp  context.CancelFunc // ends a publish that does not come back
	done    sync.WaitGroup

	mu        sync.Mutex // guards everything below
	kept      []string   // confirmed, in order
	live      map[int]bool
	delivered map[int]int
	wrong     []string
}

// text is the body of the nth message.
func text(n int) string {
	return fmt.Sprintf("m%d|%s", n, strings.Repeat(string(rune('a'+n%26)), 100+n%7*300))
}

func number(body []byte) (n int, ok bool) {
	_, err := fmt.Sscanf(string(body), "m%d|", &n)
	return n, err == nil && text(n) == string(body)
}

func (t *traffic) violation(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wrong = append(t.wrong, fmt.Sprintf(format, args...))
}

func dial(ctx context.Context, c *simulation.Cluster, name string) (*client.Connection, *client.Channel, error) {
	conn, err := client.Dial(ctx, c.Addresses(), client.WithDialer(c.Net.Attach(name).Dial), client.WithLogger(c.Log.With("host", name)))
	if err != nil {
		return nil, nil, err
	}
	ch, err := conn.Channel(ctx)
	return conn, ch, err
}

func startTraffic(c *simulation.Cluster) (*traffic, error) {
	t := &traffic{cluster: c, live: map[int]bool{}, delivered: map[int]int{}}
	var publishing, consuming, patience context.Context
	patience, t.giveUp = context.WithCancel(context.Background())
	publishing, t.stop = context.WithCancel(context.Background())
	consuming, t.leave = context.WithCancel(context.Background())
	forming, cancel := context.WithTimeout(publishing, time.Minute)
	defer cancel()
	conn, ch, err := dial(forming, c, "p1")
	if err != nil {
		return nil, err
	}
	for _, q := range []string{keptQueue, liveQueue} {
		if _, err := ch.DeclareQueue(forming, client.Queue{Name: q, Durable: true}); err != nil {
			return nil, err
		}
	}
	taker, taking, err := dial(forming, c, "c1")
	if err != nil {
		return nil, err
	}
	t.done.Go(func() {
		defer drop(conn)
		t.publish(publishing, patience, ch)
	})
	t.done.Go(func() {
		defer drop(taker)
		t.consume(consuming, taking)
	})
	return t, nil
}

// drop closes a connection without waiting for anything.
func drop(conn *client.Connection) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = conn.Close(ctx)
}

// publish publishes until ctx ends, and finishes what it began unless patience ends: nothing is left in doubt.
func (t *traffic) publish(ctx, patience context.Context, ch *client.Channel) {
	for n := 1; ctx.Err() == nil; n++ {
		queue := liveQueue
		if n%keptEvery == 0 {
			queue = keptQueue
		}
		t.mu.Lock()
		if queue == liveQueue {
			t.live[n] = false
		}
		t.mu.Unlock()
		if _, err := ch.Publish(patience, "", queue, client.Message{Body: []byte(text(n))}); err != nil {
			t.violation("publish %d: %v", n, err)
			return
		}
		t.mu.Lock()
		if queue == keptQueue {
			t.kept = append(t.kept, text(n))
		} else {
			t.live[n] = true
		}
		t.mu.Unlock()
		select {
		case <-time.After(pace):
		case <-ctx.Done():
		}
	}
}

func (t *traffic) consume(ctx context.Context, ch *client.Channel) {
	if err := ch.Qos(ctx, 20, false); err != nil {
		t.violation("qos: %v", err)
		return
	}
	consumer, err := ch.Consume(ctx, liveQueue, client.ConsumeOptions{})
	if err != nil {
		t.violation("consume: %v", err)
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case d, ok := <-consumer.Deliveries():
			if !ok {
				t.violation("the consumer was ended: %v", consumer.Err())
				return
			}
			t.took(d)
			_ = d.Ack(ctx)
		}
	}
}

func (t *traffic) took(d *client.Delivery) {
	n, ok := number(d.Body)
	t.mu.Lock()
	defer t.mu.Unlock()
	_, sent := t.live[n]
	switch {
	case !ok || !sent:
		t.wrong = append(t.wrong, fmt.Sprintf("a message that was never sent there: %.40q", d.Body))
	case t.delivered[n] > 0 && !d.Redelivered:
		t.wrong = append(t.wrong, fmt.Sprintf("message %d came twice as if for the first time", n))
	}
	t.delivered[n]++
}

// missing returns the confirmed messages that were not delivered yet.
func (t *traffic) missing() (all []int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range slices.Sorted(maps.Keys(t.live)) {
		if t.live[n] && t.delivered[n] == 0 {
			all = append(all, n)
		}
	}
	return all
}

// confirmed returns what the queue that grows must have.
func (t *traffic) confirmed() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.kept)
}

// violations returns what went wrong so far.
func (t *traffic) violations() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.wrong)
}
