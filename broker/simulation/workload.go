package simulation

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/warrenmq/warren/client"
)

// The topology of a run: three queues, and an exchange that reaches all of them.
var queues = []string{"q1", "q2", "q3"}

const fan = "fan"

// Workload is the clients of a run.
type Workload struct {
	cluster *Cluster
	history *History

	producing context.Context // ends when nobody is to publish any more
	consuming context.Context // ends when nobody is to consume any more
	calm      context.Context // ends when consumers are to keep nothing back and stay
	patience  context.Context // ends when confirms that are still missing will not come any more

	publishers sync.WaitGroup
	consumers  sync.WaitGroup
}

// agent is one client's connection and what the history must know of it.
type agent struct {
	name string
	conn *client.Connection
	ch   *client.Channel
	rand *rand.Rand

	mu     sync.Mutex
	opened map[string]time.Time // when each server was last dialled; guarded by mu
}

// connect dials until it succeeds or the context ends.
func (w *Workload) connect(ctx context.Context, name string, r *rand.Rand, opts ...client.Option) *agent {
	a := &agent{name: name, rand: r, opened: map[string]time.Time{}}
	attachment := w.cluster.Net.Attach(name)
	dial := func(ctx context.Context, address string) (net.Conn, error) {
		c, err := attachment.Dial(ctx, address)
		if err == nil {
			a.mu.Lock()
			a.opened[address] = time.Now()
			a.mu.Unlock()
		}
		return c, err
	}
	opts = append([]client.Option{client.WithDialer(dial), client.WithName(name), client.WithLogger(w.cluster.Log.With("host", name))}, opts...)
	for ctx.Err() == nil {
		conn, err := client.Dial(ctx, w.cluster.Addresses(), opts...)
		if err != nil {
			if ctx.Err() == nil {
				pause(ctx, 50*time.Millisecond)
			}
			continue
		}
		if a.ch, err = conn.Channel(ctx); err == nil {
			a.conn = conn
			return a
		}
		_ = conn.Close(ctx)
		pause(ctx, 50*time.Millisecond)
	}
	return nil
}

// openedAt returns when the connection in use was opened, zero if there is none.
func (a *agent) openedAt() time.Time {
	address := a.conn.Leader()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.opened[address]
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// Declare makes the topology.
func (w *Workload) Declare(ctx context.Context) error {
	a := w.connect(ctx, "c0", rand.New(rand.NewPCG(0, 0)))
	if a == nil {
		return fmt.Errorf("no leader to declare the topology on: %w", ctx.Err())
	}
	defer a.conn.Close(ctx)
	if err := a.ch.DeclareExchange(ctx, client.Exchange{Name: fan, Kind: "fanout", Durable: true}); err != nil {
		return err
	}
	for _, q := range queues {
		if _, err := a.ch.DeclareQueue(ctx, client.Queue{Name: q, Durable: true}); err != nil {
			return err
		}
		if err := a.ch.Bind(ctx, fan, q, "", nil); err != nil {
			return err
		}
	}
	return nil
}

// body pads an id; most bodies are small, some large, few travel in parts.
func body(r *rand.Rand, id string) []byte {
	size := r.IntN(200)
	switch n := r.IntN(1000); {
	case n < 2:
		size = 1<<20 + r.IntN(1<<19)
	case n < 50:
		size = r.IntN(20 << 10)
	}
	b := fmt.Appendf(nil, "%s|%d|", id, size)
	return append(b, bytes.Repeat([]byte{'x'}, size)...)
}

// idOf takes a body apart again; "" when it is not what was sent.
func idOf(b []byte) string {
	id, rest, _ := bytes.Cut(b, []byte("|"))
	_, padding, _ := bytes.Cut(rest, []byte("|"))
	if want := fmt.Appendf(nil, "%s|%d|", id, len(padding)); !bytes.HasPrefix(b, want) {
		return ""
	}
	return string(id)
}

// Publish runs one publisher until producing ends and everything it published is confirmed.
func (w *Workload) Publish(name string, r *rand.Rand) {
	w.publishers.Go(func() {
		a := w.connect(w.producing, name, r, client.WithPublishWindow(5+r.IntN(60), 4<<20))
		if a == nil {
			return
		}
		var confirms sync.WaitGroup
		for n := 1; w.producing.Err() == nil; n++ {
			if r.IntN(15) == 0 {
				w.commit(a, fmt.Sprintf("t%s-%d", name, n))
			}
			exchange, key, to := "", queues[r.IntN(len(queues))], []string(nil)
			if to = []string{key}; r.IntN(4) == 0 {
				exchange, key, to = fan, "", queues
			}
			id := w.history.Publishing(name, n, to...)
			f, err := a.ch.PublishAsync(w.patience, exchange, key, client.Message{Body: body(r, id), MessageID: id})
			if w.patience.Err() != nil {
				break
			}
			if err != nil {
				w.history.Violation("%s could not publish %s: %v", name, id, err)
				break
			}
			confirms.Go(func() {
				c, err := f.Wait(w.patience)
				if w.patience.Err() != nil {
					return
				}
				if err != nil {
					w.history.Violation("publish %s failed: %v", id, err)
					return
				}
				w.history.Confirmed(id, c.Routed)
			})
			if r.IntN(3) > 0 {
				pause(w.producing, time.Duration(r.IntN(150))*time.Millisecond)
			}
		}
		confirms.Wait()
		_ = a.conn.Close(w.patience)
	})
}

// commit publishes a few messages in a transaction.
func (w *Workload) commit(a *agent, name string) {
	tx := a.ch.Tx()
	var ids []string
	for i := range 2 + a.rand.IntN(3) {
		queue := queues[a.rand.IntN(len(queues))]
		id := w.history.Publishing(name, i+1, queue)
		ids = append(ids, id)
		tx.Publish("", queue, client.Message{Body: body(a.rand, id), MessageID: id})
	}
	w.history.Transaction(name, [2]string{}, ids...)
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+a.rand.IntN(10_000))*time.Millisecond)
	defer cancel()
	if _, err := tx.Commit(ctx); err == nil {
		w.history.Committed(name)
	}
}

// Consume runs one consumer of a queue, over one connection after the other, until consuming ends.
func (w *Workload) Consume(name, queue string, r *rand.Rand) {
	w.consumers.Go(func() {
		for life := 1; w.consuming.Err() == nil; life++ {
			a := w.connect(w.consuming, fmt.Sprintf("%s-%d", name, life), r)
			if a == nil {
				return
			}
			w.live(a, queue)
			if r.IntN(2) == 0 {
				w.cluster.Net.Reset(a.name)
			}
			_ = a.conn.Close(w.patience)
		}
	})
}

// live consumes over one client connection for a while.
func (w *Workload) live(a *agent, queue string) {
	ctx, cancel := context.WithCancel(w.consuming)
	defer cancel()
	if w.calm.Err() == nil {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(200+a.rand.IntN(8000))*time.Millisecond)
		defer cancel()
		defer context.AfterFunc(w.calm, cancel)()
	}
	if a.ch.Qos(ctx, uint32(1+a.rand.IntN(40)), false) != nil {
		return
	}
	consumer, err := a.ch.Consume(ctx, queue, client.ConsumeOptions{})
	if err != nil {
		return
	}
	var settling sync.WaitGroup
	defer settling.Wait()
	for {
		select {
		case d, ok := <-consumer.Deliveries():
			if !ok {
				if err := consumer.Err(); err != nil {
					w.history.Violation("consumer %s of %s was ended: %v", a.name, queue, err)
				}
				return
			}
			id := w.took(a, d)
			how, number := a.rand.IntN(100), a.rand.IntN(1<<30)
			settling.Go(func() { w.settle(ctx, a, d, id, how, number) })
		case <-ctx.Done():
			return
		}
	}
}

// took notes a delivery at the moment it was taken.
func (w *Workload) took(a *agent, d *client.Delivery) string {
	id := idOf(d.Body)
	if id != d.MessageID {
		w.history.Violation("queue %s delivered a body that was not sent: message id %q, %d bytes", d.Queue, d.MessageID, len(d.Body))
	}
	w.history.Delivered(a.name, d.Queue, d.MessageID, d.Redelivered, a.openedAt())
	return d.MessageID
}

// settle does one of several things with a delivery.
func (w *Workload) settle(ctx context.Context, a *agent, d *client.Delivery, id string, how, number int) {
	if w.calm.Err() != nil {
		how = 0
	}
	switch {
	case how < 75:
		if d.Ack(ctx) == nil {
			w.history.Acked(d.Queue, id)
		}
	case how < 80:
		if d.Reject(ctx) == nil {
			w.history.Acked(d.Queue, id)
		}
	case how < 84: // kept until the connection goes
	case how < 88:
		to := queues[slices.Index(queues, d.Queue)%len(queues)]
		name := fmt.Sprintf("f%s-%d-%d", a.name, d.DeliveryTag, number)
		w.history.Publishing(name, 1, to)
		forward := name + ".1"
		w.history.Transaction(name, [2]string{d.Queue, id}, forward)
		tx := a.ch.Tx()
		tx.Publish("", to, client.Message{Body: fmt.Appendf(nil, "%s|0|", forward), MessageID: forward})
		tx.Ack(d)
		if _, err := tx.Commit(ctx); err == nil {
			w.history.Committed(name)
		}
	default:
		_ = d.Nack(ctx, true)
	}
}

// Get runs one client that takes single messages, until consuming ends.
func (w *Workload) Get(name string, r *rand.Rand) {
	w.consumers.Go(func() {
		a := w.connect(w.consuming, name, r)
		if a == nil {
			return
		}
		for w.consuming.Err() == nil {
			pause(w.consuming, time.Duration(r.IntN(200))*time.Millisecond)
			ctx, cancel := context.WithTimeout(w.consuming, 5*time.Second)
			d, err := a.ch.Get(ctx, queues[r.IntN(len(queues))], false)
			if err == nil && d != nil {
				id := w.took(a, d)
				if d.Ack(ctx) == nil {
					w.history.Acked(d.Queue, id)
				}
			}
			cancel()
		}
		_ = a.conn.Close(w.patience)
	})
}
