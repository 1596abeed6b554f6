package failover

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// TestLeaderIsKilledUnderAMQP: RabbitMQ's Go client with the reconnect code that everybody writes, one publisher beginning
// at each node, so that two come through a follower. Nothing confirmed is lost.
func TestLeaderIsKilledUnderAMQP(t *testing.T) {
	kills := 2
	if *long {
		kills = 10
	}
	c := startCluster(t, 3)
	c.fanout()
	live := c.startAMQPCounter("live")
	var loads []*load
	for p := range c.nodes {
		loads = append(loads, c.startAMQPLoad("all", uint32(p), 2000/float64(len(c.nodes))))
	}
	all := func(more int) {
		t.Helper()
		for _, l := range loads {
			l.AwaitConfirms(more, 20*time.Second)
		}
	}
	all(300)
	var first, slowest []time.Duration // of each kill: until some client, and until every client, has a confirm again
	for range kills {
		leader := c.Leader()
		killed := time.Now()
		leader.Kill()
		all(500)
		first, slowest = append(first, gapOf(killed, loads...)), append(slowest, 0)
		for _, l := range loads {
			slowest[len(slowest)-1] = max(slowest[len(slowest)-1], l.Gap(killed))
		}
		leader.Start()
		leader.Ready()
		t.Logf("leader %s killed at %s: no confirm for %v, for the slowest client %v", leader.id, killed.Format("05.000"),
			first[len(first)-1].Round(time.Millisecond), slowest[len(slowest)-1].Round(time.Millisecond))
	}
	published := map[message]bool{}
	for _, l := range loads {
		for m, confirmed := range l.Stop() {
			published[m] = confirmed
		}
	}
	t.Logf("%d kills, %d messages: no confirm for %s; for the slowest client %s", kills, len(published), spread(first), spread(slowest))
	live.Expect(published, 30*time.Second)
	live.Stop()
	kept := c.startAMQPCounter("kept")
	kept.Expect(published, 30*time.Second)
	kept.Stop()
	c.Agree()
}

// spread is the smallest, the middle and the largest of some times.
func spread(d []time.Duration) string {
	slices.Sort(d)
	return fmt.Sprintf("%d / %d / %d ms (min, median, max)", d[0].Milliseconds(), d[len(d)/2].Milliseconds(), d[len(d)-1].Milliseconds())
}

// dialAMQP connects to the node of a number, or the one after it, and so on, until one serves; nil when the context ends.
func (c *cluster) dialAMQP(ctx context.Context, node int) (*amqp.Connection, *amqp.Channel) {
	for try := 0; ctx.Err() == nil; try++ {
		url := "amqp://guest:guest@" + c.nodes[(node+try)%len(c.nodes)].addr.amqp + "/"
		conn, err := amqp.DialConfig(url, amqp.Config{Dial: amqp.DefaultDial(5 * time.Second)})
		if err == nil {
			ch, err := conn.Channel()
			if err == nil {
				return conn, ch
			}
			conn.Close()
		}
		if try%len(c.nodes) == len(c.nodes)-1 {
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return nil, nil
}

// maxUnconfirmed bounds what an AMQP publisher has in flight.
const maxUnconfirmed = 16_384

// startAMQPLoad starts one publisher on a connection that begins at the node of its number. It publishes again, on a new
// connection, what was not confirmed.
func (c *cluster) startAMQPLoad(exchange string, publisher uint32, perSecond float64) *load {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{t: c.t, cancel: cancel, published: map[message]bool{}}
	p := &amqpPublisher{load: l, cluster: c, exchange: exchange, number: publisher, perSecond: perSecond, began: time.Now()}
	l.working.Go(func() { p.run(ctx) })
	c.t.Cleanup(func() { l.Abandon() })
	return l
}

// amqpPublisher is used by its one goroutine.
type amqpPublisher struct {
	*load
	cluster   *cluster
	exchange  string
	number    uint32
	perSecond float64
	began     time.Time

	times   int                                // that it publishes each message; 0 is once
	sending func(*amqp.Channel, message) error // nil: to the exchange without a key

	next        uint32
	unconfirmed []message // in the order of publishing
}

// run publishes until the context ends and everything is confirmed, or nobody waits for that.
func (p *amqpPublisher) run(ctx context.Context) {
	within, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { // then there is a time for the rest
		select {
		case <-time.After(30 * time.Second):
			cancel()
		case <-within.Done():
		}
	})()
	for node := int(p.number); ; node++ {
		if conn, ch := p.cluster.dialAMQP(within, node); conn != nil {
			p.publish(ctx, within, ch)
			_ = conn.CloseDeadline(time.Now().Add(time.Second))
		}
		switch {
		case ctx.Err() != nil && (len(p.unconfirmed) == 0 || p.given()):
			return
		case within.Err() != nil:
			p.t.Errorf("publisher %d: %d messages are not confirmed", p.number, len(p.unconfirmed))
			return
		}
	}
}

// given reports whether nobody waits for confirms any more.
func (l *load) given() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.abandoned
}

// publish publishes on a channel until that ends, or there is nothing more to do.
func (p *amqpPublisher) publish(ctx, within context.Context, ch *amqp.Channel) {
	if ch.Confirm(false) != nil {
		return
	}
	confirms := ch.NotifyPublish(make(chan amqp.Confirmation, maxUnconfirmed))
	for _, m := range p.unconfirmed {
		if p.send(ch, m) != nil {
			return
		}
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil || len(p.unconfirmed) > 0 {
		select {
		case confirm, ok := <-confirms:
			if !ok {
				return
			}
			if !confirm.Ack {
				p.t.Errorf("message %v was refused", p.unconfirmed[0])
			}
			m := p.unconfirmed[0]
			p.unconfirmed = p.unconfirmed[1:]
			if len(p.unconfirmed) == 0 || p.unconfirmed[0] != m {
				p.confirmed(m)
			}
		case <-tick.C:
			if ctx.Err() != nil {
				if p.given() {
					return
				}
				continue
			}
			for due := time.Since(p.began).Seconds() * p.perSecond; float64(p.next) < due && len(p.unconfirmed) < maxUnconfirmed; {
				m := message{p.number, p.next}
				p.next++
				p.mu.Lock()
				p.published[m] = false
				p.mu.Unlock()
				for range max(p.times, 1) {
					p.unconfirmed = append(p.unconfirmed, m)
				}
				for range max(p.times, 1) {
					if p.send(ch, m) != nil {
						return
					}
				}
			}
		case <-within.Done():
			return
		}
	}
}

func (p *amqpPublisher) send(ch *amqp.Channel, m message) error {
	if p.sending != nil {
		return p.sending(ch, m)
	}
	return ch.Publish(p.exchange, "", false, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: m.body(bodyBytes)})
}

func (l *load) confirmed(m message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.published[m] = true
	l.confirms = append(l.confirms, time.Now())
}

// amqpCounter consumes a queue through one node after the other and counts. A publisher that published again leaves
// duplicates, which are none of the broker's.
type amqpCounter struct {
	t       *testing.T
	cancel  context.CancelFunc
	working sync.WaitGroup

	mu         sync.Mutex
	deliveries map[message]int // guarded by mu
}

func (c *cluster) startAMQPCounter(queue string) *amqpCounter {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	k := &amqpCounter{t: c.t, cancel: cancel, deliveries: map[message]int{}}
	k.working.Go(func() {
		for node := 0; ctx.Err() == nil; node++ {
			if conn, ch := c.dialAMQP(ctx, node); conn != nil {
				k.count(ctx, ch, queue)
				_ = conn.CloseDeadline(time.Now().Add(time.Second))
			}
		}
	})
	c.t.Cleanup(k.Stop)
	return k
}

func (k *amqpCounter) Stop() { k.cancel(); k.working.Wait() }

func (k *amqpCounter) count(ctx context.Context, ch *amqp.Channel, queue string) {
	if ch.Qos(1000, 0, false) != nil {
		return
	}
	deliveries, err := ch.Consume(queue, "", false, false, false, false, nil)
	if err != nil {
		return // the leader has gone
	}
	for {
		select {
		case d, ok := <-deliveries:
			if !ok {
				return
			}
			m, err := messageOf(d.Body)
			if err != nil {
				k.t.Error(err)
				return
			}
			k.mu.Lock()
			k.deliveries[m]++
			k.mu.Unlock()
			_ = d.Ack(false) // else it comes again
		case <-ctx.Done():
			return
		}
	}
}

// Expect waits until everything confirmed has been delivered and checks that nothing was that nobody published.
func (k *amqpCounter) Expect(published map[message]bool, within time.Duration) {
	k.t.Helper()
	await(k.t, within, "every confirmed message delivered", func() error {
		k.mu.Lock()
		defer k.mu.Unlock()
		missing := 0
		for m, confirmed := range published {
			if confirmed && k.deliveries[m] == 0 {
				missing++
			}
		}
		if missing > 0 {
			return fmt.Errorf("%d of %d are missing", missing, len(published))
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
	k.t.Logf("0 of %d messages lost, %d deliveries more than once", len(published), again)
}
