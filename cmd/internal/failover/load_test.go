package failover

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/warrenmq/warren/client"
)

// message names one published message: who published it and its place in that publisher's order.
type message struct{ publisher, number uint32 }

func (m message) body(size int) []byte {
	b := make([]byte, max(size, 8))
	binary.BigEndian.PutUint32(b, m.publisher)
	binary.BigEndian.PutUint32(b[4:], m.number)
	return b
}

func messageOf(body []byte) (m message, err error) {
	if len(body) < 8 {
		return m, fmt.Errorf("a body of %d bytes that nobody published", len(body))
	}
	return message{binary.BigEndian.Uint32(body), binary.BigEndian.Uint32(body[4:])}, nil
}

// load publishes to an exchange at an even rate until it is stopped. Each publisher has its own connection, with
// deduplication. Any failed publish fails the test.
type load struct {
	t       *testing.T
	cancel  context.CancelFunc
	working sync.WaitGroup
	clients []*client.Connection

	mu        sync.Mutex
	abandoned bool             // nobody waits for confirms any more; guarded by mu
	published map[message]bool // true once confirmed; guarded by mu
	confirms  []time.Time      // when each confirm came, in order; guarded by mu
}

const bodyBytes = 256

// startLoad starts publishers that publish perSecond messages a second each. routed is how many queues each message
// must reach.
func (c *cluster) startLoad(exchange, key string, publishers, perSecond int, routed uint32) *load {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{t: c.t, cancel: cancel, published: map[message]bool{}}
	for p := range publishers {
		conn := c.Dial(client.WithName(fmt.Sprintf("publisher %d", p)), client.WithPublishWindow(4096, 32<<20))
		ch, err := conn.Channel(c.t.Context())
		c.check(err)
		l.clients = append(l.clients, conn)
		sent := make(chan sentMessage, 65_536) // closed by publish
		l.working.Go(func() { l.publish(ctx, ch, exchange, key, uint32(p), perSecond, sent) })
		l.working.Go(func() { l.confirm(sent, routed) })
	}
	c.t.Cleanup(func() { l.Abandon() })
	return l
}

type sentMessage struct {
	message
	confirm *client.Confirm
}

func (l *load) publish(ctx context.Context, ch *client.Channel, exchange, key string, publisher uint32, perSecond int, sent chan<- sentMessage) {
	defer close(sent)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	began := time.Now()
	for n := uint32(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for due := time.Since(began).Seconds() * float64(perSecond); float64(n) < due; n++ {
			m := message{publisher, n}
			l.mu.Lock()
			l.published[m] = false
			l.mu.Unlock()
			confirm, err := ch.PublishAsync(ctx, exchange, key, client.Message{Body: m.body(bodyBytes)})
			if err != nil {
				if ctx.Err() == nil {
					l.t.Errorf("publish %v: %v", m, err)
				}
				return // it stays unconfirmed
			}
			sent <- sentMessage{m, confirm}
		}
	}
}

func (l *load) confirm(sent <-chan sentMessage, routed uint32) {
	for s := range sent {
		within, cancel := context.WithTimeout(context.Background(), time.Minute)
		got, err := s.confirm.Wait(within)
		cancel()
		l.mu.Lock()
		abandoned := l.abandoned
		l.mu.Unlock()
		if err != nil {
			if !abandoned {
				l.t.Errorf("message %v was not confirmed: %v", s.message, err)
			}
			continue
		}
		if got.Routed != routed {
			l.t.Errorf("message %v reached %d queues, not %d", s.message, got.Routed, routed)
		}
		l.mu.Lock()
		l.published[s.message] = true
		l.confirms = append(l.confirms, time.Now())
		l.mu.Unlock()
	}
}

// Stop stops publishing, waits for the outstanding confirms and returns what was published; true is confirmed.
func (l *load) Stop() map[message]bool {
	l.cancel()
	l.working.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.published
}

// Abandon stops publishing without waiting for confirms and returns what was published so far.
func (l *load) Abandon() map[message]bool {
	l.mu.Lock()
	l.abandoned = true
	l.mu.Unlock()
	l.cancel()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for _, conn := range l.clients {
		_ = conn.Close(ended)
	}
	l.working.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.published
}

// Confirmed is how many confirms have come.
func (l *load) Confirmed() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.confirms)
}

// AwaitConfirms waits for more confirms.
func (l *load) AwaitConfirms(more int, within time.Duration) {
	l.t.Helper()
	want := l.Confirmed() + more
	await(l.t, within, fmt.Sprintf("%d more confirms", more), func() error {
		if n := l.Confirmed(); n < want {
			return fmt.Errorf("%d are missing", want-n)
		}
		return nil
	})
}

// Gap is the longest time without a confirm that ended after at.
func (l *load) Gap(at time.Time) time.Duration { return gapOf(at, l) }

// gapOf is the longest time without a confirm of any of some loads that ended after at.
func gapOf(at time.Time, loads ...*load) (gap time.Duration) {
	var all []time.Time
	for _, l := range loads {
		l.mu.Lock()
		all = append(all, l.confirms...)
		l.mu.Unlock()
	}
	slices.SortFunc(all, time.Time.Compare)
	for i := 1; i < len(all); i++ {
		if all[i].After(at) {
			gap = max(gap, all[i].Sub(all[i-1]))
		}
	}
	return gap
}

// counter consumes a queue, acknowledges everything, and counts.
type counter struct {
	t       *testing.T
	cancel  context.CancelFunc
	working sync.WaitGroup

	mu         sync.Mutex
	deliveries map[message]int // guarded by mu
	unmarked   []message       // delivered again without saying so; guarded by mu
	disordered []string        // first deliveries out of order; guarded by mu
	highest    map[uint32]int64
}

// startCounter starts a consumer of a queue on a connection of its own.
func (c *cluster) startCounter(queue string) *counter {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	k := &counter{t: c.t, cancel: cancel, deliveries: map[message]int{}, highest: map[uint32]int64{}}
	consumer, err := c.Channel(client.WithName("counter")).Consume(c.t.Context(), queue, client.ConsumeOptions{})
	c.check(err)
	k.working.Go(func() { k.count(ctx, consumer) })
	c.t.Cleanup(k.Stop)
	return k
}

func (k *counter) Stop() { k.cancel(); k.working.Wait() }

func (k *counter) count(ctx context.Context, consumer *client.Consumer) {
	for d, err := range consumer.All(ctx) {
		if err != nil {
			if ctx.Err() == nil {
				k.t.Errorf("the consumer ended: %v", err)
			}
			return
		}
		m, err := messageOf(d.Body)
		if err != nil {
			k.t.Error(err)
			return
		}
		k.note(m, d.Redelivered)
		if err := d.AckAsync(); err != nil && !errors.Is(err, client.ErrStaleDelivery) && ctx.Err() == nil {
			k.t.Errorf("ack %v: %v", m, err)
		}
	}
}

func (k *counter) note(m message, redelivered bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.deliveries[m]++
	if k.deliveries[m] > 1 {
		if !redelivered {
			k.unmarked = append(k.unmarked, m)
		}
		return
	}
	if before, ok := k.highest[m.publisher]; ok && int64(m.number) < before && !redelivered {
		k.disordered = append(k.disordered, fmt.Sprintf("%v came after %d", m, before))
	}
	k.highest[m.publisher] = max(k.highest[m.publisher], int64(m.number))
}

// Expect waits until everything confirmed has been delivered and checks that nothing was that should not.
func (k *counter) Expect(published map[message]bool, within time.Duration) {
	k.t.Helper()
	await(k.t, within, "every confirmed message delivered", func() error {
		k.mu.Lock()
		defer k.mu.Unlock()
		var missing []message
		for m, confirmed := range published {
			if confirmed && k.deliveries[m] == 0 {
				missing = append(missing, m)
			}
		}
		if len(missing) > 0 {
			return fmt.Errorf("%d of %d are missing, among them %v", len(missing), len(published), missing[:min(5, len(missing))])
		}
		return nil
	})
	k.mu.Lock()
	defer k.mu.Unlock()
	again := 0
	for m, times := range k.deliveries {
		if _, ok := published[m]; !ok {
			k.t.Errorf("%v was delivered and never published", m)
		}
		again += times - 1
	}
	if len(k.unmarked) > 0 {
		k.t.Errorf("%d messages were delivered again without being marked as redelivered, among them %v", len(k.unmarked), k.unmarked[:min(5, len(k.unmarked))])
	}
	if len(k.disordered) > 0 {
		k.t.Errorf("%d first deliveries were out of order: %v", len(k.disordered), k.disordered[:min(5, len(k.disordered))])
	}
	k.t.Logf("published %d, delivered %d, of those again %d", len(published), len(k.deliveries), again)
}

// ExpectKept drains a queue that nobody consumed from and checks that each confirmed message is in it exactly once,
// in its publisher's order, and nothing else; what was published and never confirmed may be there, once.
func (c *cluster) ExpectKept(queue string, published map[message]bool) {
	c.t.Helper()
	var order []message
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	ch := c.Channel()
	c.check(ch.Qos(ctx, 4096, false))
	depth := c.Depth(queue)
	consumer, err := ch.Consume(ctx, queue, client.ConsumeOptions{})
	c.check(err)
	for d, err := range consumer.All(ctx) {
		if err != nil {
			c.t.Fatalf("draining %s ended after %d of %d messages: %v", queue, len(order), depth, err)
		}
		m, err := messageOf(d.Body)
		c.check(err)
		order = append(order, m)
		c.check(d.AckAsync())
		if uint64(len(order)) == depth {
			break
		}
	}
	c.check(consumer.Cancel(ctx))
	times, highest := map[message]int{}, map[uint32]int64{}
	for _, m := range order {
		times[m]++
		if _, ok := published[m]; !ok {
			c.t.Errorf("%s holds %v, which was never published", queue, m)
		}
		if before, ok := highest[m.publisher]; ok && int64(m.number) < before {
			c.t.Errorf("%s holds %v after number %d", queue, m, before)
		}
		highest[m.publisher] = int64(m.number)
	}
	lost, doubled := 0, 0
	for m, confirmed := range published {
		switch n := times[m]; {
		case n == 0 && confirmed:
			lost++
		case n > 1:
			doubled++
		}
	}
	if lost > 0 || doubled > 0 {
		c.t.Errorf("%s: of %d published messages, %d confirmed ones are lost and %d are there more than once", queue, len(published), lost, doubled)
	}
}
