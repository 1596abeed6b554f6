package failover

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warrenmq/warren/client"
)

// delayedMessages are delayed messages by number, with what happened to each, in ms since the test began.
type delayedMessages struct {
	began                       time.Time
	delay                       []int64
	sent, confirmed, first      []atomic.Int64 // 0: not yet
	again, unmarked, unexpected atomic.Int64
	arrived                     atomic.Int64
}

func newDelayedMessages(n int, least, most time.Duration) *delayedMessages {
	d := &delayedMessages{began: time.Now(), delay: make([]int64, n), sent: make([]atomic.Int64, n), confirmed: make([]atomic.Int64, n), first: make([]atomic.Int64, n)}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range d.delay {
		d.delay[i] = least.Milliseconds() + random.Int64N((most - least).Milliseconds())
	}
	return d
}

func (d *delayedMessages) now() int64 { return max(time.Since(d.began).Milliseconds(), 1) }

// publish publishes those whose number has a remainder, and waits for their confirms.
func (d *delayedMessages) publish(ctx context.Context, t *testing.T, ch *client.Channel, publishers, remainder int) {
	sent := make(chan sentMessage, 65_536)
	var confirming sync.WaitGroup
	confirming.Go(func() {
		for s := range sent {
			if r, err := s.confirm.Wait(ctx); err != nil || r.Routed != 1 {
				t.Errorf("delayed message %v: %+v, %v", s.message, r, err)
			}
			d.confirmed[s.number].Store(d.now())
		}
	})
	for i := remainder; i < len(d.delay); i += publishers {
		m := message{0, uint32(i)}
		d.sent[i].Store(d.now())
		confirm, err := ch.PublishAsync(ctx, "delays", "", client.Message{Headers: map[string]any{"x-delay": d.delay[i]}, Body: m.body(64)})
		if err != nil {
			t.Errorf("publish delayed message %v: %v", m, err)
			break
		}
		sent <- sentMessage{m, confirm}
	}
	close(sent)
	confirming.Wait()
}

// consume notes when each message comes.
func (d *delayedMessages) consume(ctx context.Context, t *testing.T, consumer *client.Consumer) {
	for delivery, err := range consumer.All(ctx) {
		if err != nil {
			if ctx.Err() == nil {
				t.Errorf("the consumer ended: %v", err)
			}
			return
		}
		m, err := messageOf(delivery.Body)
		switch {
		case err != nil || int(m.number) >= len(d.first):
			d.unexpected.Add(1)
		case d.first[m.number].CompareAndSwap(0, d.now()):
			d.arrived.Add(1)
		default:
			if d.again.Add(1); !delivery.Redelivered {
				d.unmarked.Add(1)
			}
		}
		if err := delivery.AckAsync(); err != nil && !errors.Is(err, client.ErrStaleDelivery) && ctx.Err() == nil {
			t.Errorf("ack %v: %v", m, err)
		}
	}
}

// TestDelayedMessagesWhileLeadersAreKilled: a million delayed messages with random delays (long form) while the leader is
// killed five times. None is lost, early, or later than a second after it is due, or after there is a leader again.
func TestDelayedMessagesWhileLeadersAreKilled(t *testing.T) {
	const publishers = 4
	n, least, most := 5000, time.Second, 16*time.Second
	if *long {
		n, least, most = 1_000_000, 90*time.Second, 330*time.Second
	}
	c := startCluster(t, 3)
	ch := c.Channel()
	c.Declare("due")
	c.check(ch.DeclareExchange(t.Context(), client.Exchange{Name: "delays", Kind: "x-delayed-message", Durable: true, Arguments: map[string]any{"x-delayed-type": "fanout"}}))
	c.check(ch.Bind(t.Context(), "delays", "due", "", nil))
	d := newDelayedMessages(n, least, most)
	ctx, cancel := context.WithCancel(t.Context())
	var consuming, publishing sync.WaitGroup
	defer consuming.Wait()
	defer cancel()
	consumer, err := c.Channel(client.WithName("consumer")).Consume(t.Context(), "due", client.ConsumeOptions{})
	c.check(err)
	consuming.Go(func() { d.consume(ctx, t, consumer) })
	for p := range publishers {
		ch, err := c.Dial(client.WithName(fmt.Sprintf("publisher %d", p)), client.WithPublishWindow(4096, 32<<20)).Channel(t.Context())
		c.check(err)
		publishing.Go(func() { d.publish(ctx, t, ch, publishers, p) })
	}
	published := make(chan struct{}) // closed when all are confirmed
	go func() { publishing.Wait(); close(published) }()
	if *long {
		<-published
		t.Logf("%d messages published in %v; memory %v MiB", n, time.Since(d.began).Round(time.Millisecond), mebibytes(c.memory()))
	}
	var gaps [][2]int64 // from a kill until there is a leader
	for kill := range 5 {
		until := least + (most-least)*time.Duration(2*kill+1)/11
		await(t, most, "the time of a kill", func() error {
			if left := until - time.Since(d.began); left > 0 {
				return fmt.Errorf("it is in %v", left)
			}
			return nil
		})
		leader := c.Leader()
		at := d.now()
		leader.Kill()
		c.Leader()
		gaps = append(gaps, [2]int64{at, d.now()})
		leader.Start()
		leader.Ready()
	}
	<-published
	await(t, most+time.Minute, "every delayed message", func() error {
		if left := int64(n) - d.arrived.Load(); left > 0 {
			return fmt.Errorf("%d of %d are missing", left, n)
		}
		return nil
	})
	d.check(t, gaps)
	c.Agree()
}

func mebibytes(rss []int64) (list []int64) {
	for _, n := range rss {
		list = append(list, n>>20)
	}
	return list
}

// clockTolerance is how far the cluster's clock may be from this process's after failovers, in ms: it follows this machine's
// clock, and a new leader goes on from the last entry it applied.
const clockTolerance = 100

func (d *delayedMessages) check(t *testing.T, gaps [][2]int64) {
	var late []int64
	earliest, lateBehindGap := int64(0), int64(0)
	for i := range d.delay {
		got := d.first[i].Load()
		earliest = min(earliest, got-(d.sent[i].Load()+d.delay[i]))
		due, gap := d.confirmed[i].Load()+d.delay[i], false
		for _, g := range gaps { // what was due shortly before a kill may have been on its way to the consumer
			if due >= g[0]-1000 && due < g[1] && got > g[0] {
				due, gap = max(due, g[1]), true
			}
		}
		if late = append(late, got-due); gap {
			lateBehindGap = max(lateBehindGap, got-due)
		}
	}
	slices.Sort(late)
	at := func(part float64) int64 { return late[int(part*float64(len(late)-1))] }
	t.Logf("%d messages, again %d; late by ms: half %d, 99 %% %d, 99.9 %% %d, most %d, of those due without a leader %d; earliest %d; without a leader %v",
		len(late), d.again.Load(), at(0.5), at(0.99), at(0.999), at(1), lateBehindGap, earliest, gaps)
	if at(1) > 1000 {
		t.Errorf("a message came %d ms late", at(1))
	}
	if earliest < -clockTolerance {
		t.Errorf("a message came %d ms early", -earliest)
	}
	if d.unmarked.Load()+d.unexpected.Load() > 0 {
		t.Errorf("%d messages came again without a mark, %d were never published", d.unmarked.Load(), d.unexpected.Load())
	}
}
