package failover

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/warrenmq/warren/client"
	"github.com/warrenmq/warren/protocol/native"
)

// thrice is how often each message of TestEachPublishIsSentThreeTimes is published, besides what is published again
// since a connection was lost.
const thrice = 3

// TestEachPublishIsSentThreeTimes: leaders are killed while everybody publishes everything three times: over AMQP with a header, to an
// exchange and to a queue that deduplicate by it, and over Warren's own protocol with producer and sequence. Each message is
// once in its queue.
func TestEachPublishIsSentThreeTimes(t *testing.T) {
	kills := 2
	if *long {
		kills = 10
	}
	c := startCluster(t, 3)
	c.Declare("exchange", "native")
	ch := c.Channel()
	once := map[string]any{"x-deduplication-header": "id"}
	c.check(ch.DeclareExchange(t.Context(), client.Exchange{Name: "once", Kind: "fanout", Durable: true, Arguments: once}))
	c.check(ch.Bind(t.Context(), "once", "exchange", "", nil))
	_, err := ch.DeclareQueue(t.Context(), client.Queue{Name: "queue", Durable: true, Arguments: once})
	c.check(err)
	loads := map[string]*load{
		"exchange": c.startThriceLoad("once", "", 0, 300),
		"queue":    c.startThriceLoad("", "queue", 1, 300),
		"native":   c.startNativeThriceLoad("native", 2, 300),
	}
	all := func(more int) {
		t.Helper()
		for _, l := range loads {
			l.AwaitConfirms(more, 30*time.Second)
		}
	}
	all(300)
	for range kills {
		leader := c.Leader()
		leader.Kill()
		all(600)
		leader.Start()
		leader.Ready()
	}
	published := map[string]map[message]bool{}
	for queue, l := range loads {
		published[queue] = l.Stop()
	}
	duplicates := 0.0
	for _, name := range []string{"warren_cluster_deduplicated_total", "warren_cluster_duplicates_total"} {
		n, err := c.Leader().metric(name)
		c.check(err)
		t.Logf("%s %v", name, n)
		duplicates += n
	}
	total := 0
	for queue, messages := range published {
		c.ExpectKept(queue, messages)
		total += len(messages)
	}
	t.Logf("%d kills, %d messages in three queues, each published %d times or more; %v publishes were found to be duplicates", kills, total, thrice, duplicates)
	if duplicates < float64(total*(thrice-1))*0.9 {
		t.Errorf("%v duplicates of %d messages were counted", duplicates, total)
	}
	c.Agree()
}

// startThriceLoad is startAMQPLoad with each message published three times, its name in the header id.
func (c *cluster) startThriceLoad(exchange, key string, publisher uint32, perSecond float64) *load {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{t: c.t, cancel: cancel, published: map[message]bool{}}
	p := &amqpPublisher{load: l, cluster: c, exchange: exchange, number: publisher, perSecond: perSecond, began: time.Now(), times: thrice}
	p.sending = func(ch *amqp.Channel, m message) error {
		return ch.Publish(exchange, key, false, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: m.body(bodyBytes),
			Headers: amqp.Table{"id": fmt.Sprint(m.publisher, ".", m.number)}})
	}
	l.working.Go(func() { p.run(ctx) })
	c.t.Cleanup(func() { l.Abandon() })
	return l
}

// nativePublisher publishes over Warren's own protocol, in groups: each message three times, then the confirms of all.
type nativePublisher struct {
	*load
	cluster   *cluster
	queue     string
	number    uint32
	perSecond float64
	began     time.Time
	next      uint32    // message not published yet
	waiting   []message // in the order of publishing
}

// nativeGroup is how many messages are published before their confirms are read.
const nativeGroup = 100

func (c *cluster) startNativeThriceLoad(queue string, publisher uint32, perSecond float64) *load {
	c.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{t: c.t, cancel: cancel, published: map[message]bool{}}
	p := &nativePublisher{load: l, cluster: c, queue: queue, number: publisher, perSecond: perSecond, began: time.Now()}
	l.working.Go(func() { p.run(ctx) })
	c.t.Cleanup(func() { l.Abandon() })
	return l
}

func (p *nativePublisher) run(ctx context.Context) {
	last := time.Now()
	for node := 0; ctx.Err() == nil || len(p.waiting) > 0 && time.Since(last) < 30*time.Second && !p.given(); node++ {
		conn, err := net.DialTimeout("tcp", p.cluster.nodes[node%len(p.cluster.nodes)].addr.native, 5*time.Second)
		if err == nil {
			if p.publish(ctx, conn) {
				last = time.Now()
			}
			_ = conn.Close()
		}
		if ctx.Err() == nil {
			last = time.Now()
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-p.cluster.t.Context().Done():
			return
		}
	}
	if len(p.waiting) > 0 && !p.given() {
		p.t.Errorf("publisher %d: %d messages are not confirmed", p.number, len(p.waiting))
	}
}

// publish publishes on a connection until that ends or there is nothing more to do, and reports whether anything was confirmed.
func (p *nativePublisher) publish(ctx context.Context, conn net.Conn) (some bool) {
	reader := native.NewReader(conn, 1<<20)
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	out := native.Append(nil, &native.Hello{Head: native.Head{RID: 1}, Version: 1, ClientName: "thrice", Vhost: "/"})
	out = native.Append(out, &native.ChannelOpen{Head: native.Head{RID: 2, Channel: 1}})
	if _, err := conn.Write(out); err != nil || !p.answered(reader, 2, nil) {
		return false
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	rid := uint64(2)
	for {
		<-tick.C
		due := time.Since(p.began).Seconds() * p.perSecond
		for ctx.Err() == nil && float64(p.next) < due && len(p.waiting) < nativeGroup {
			m := message{p.number, p.next}
			p.next++
			p.waiting = append(p.waiting, m)
			p.mu.Lock()
			p.published[m] = false
			p.mu.Unlock()
		}
		if len(p.waiting) == 0 {
			if ctx.Err() != nil {
				return some
			}
			continue
		}
		out = out[:0]
		for _, m := range p.waiting {
			for range thrice {
				rid++
				out = native.Append(out, &native.Publish{Head: native.Head{RID: rid, Channel: 1}, RoutingKey: p.queue, Body: m.body(bodyBytes),
					Producer: []byte("thrice"), Sequence: uint64(m.number) + 1})
			}
		}
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		routed := 0
		if _, err := conn.Write(out); err != nil || !p.answered(reader, thrice*len(p.waiting), &routed) {
			return some
		}
		if routed != thrice*len(p.waiting) {
			p.t.Errorf("%d publishes reached %d queues", thrice*len(p.waiting), routed)
		}
		for _, m := range p.waiting {
			p.confirmed(m)
		}
		some, p.waiting = true, nil
	}
}

// answered reads so many responses, and reports whether all of them are good. routed sums what publishes reached.
func (p *nativePublisher) answered(reader *native.Reader, n int, routed *int) bool {
	for n > 0 {
		kind, payload, err := reader.Next()
		if err != nil {
			return false
		}
		if !kind.IsResponse() { // a request of the broker's
			continue
		}
		var r native.Reply
		if native.DecodeReply(kind, payload, &r) != nil || r.Code != native.OK {
			return false
		}
		n--
		var ok native.PublishOK
		if kind == ok.FrameType() {
			if err := native.Decode(payload, &ok); err != nil {
				p.t.Error(err)
				return false
			}
			*routed += int(ok.Routed)
		}
	}
	return true
}
