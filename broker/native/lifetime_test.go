package native_test

import (
	"errors"
	"testing"
	"time"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/client"
)

// eventually tries until f is true.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	ctx, tick := within(t), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for !f() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: it did not happen", what)
		}
	}
}

func exists(t testing.TB, ch *client.Channel, queue string) bool {
	t.Helper()
	_, err := ch.DeclareQueue(within(t), client.Queue{Name: queue, Passive: true})
	if err != nil && !errors.Is(err, client.ErrNotFound) && !errors.Is(err, client.ErrResourceLocked) {
		t.Fatal(err)
	}
	return !errors.Is(err, client.ErrNotFound)
}

func TestAutoDeleteQueueGoesWithItsLastConsumer(t *testing.T) {
	node := start(t)
	_, ch := dial(t, node)
	_, watcher := dial(t, node)
	declare(t, ch, client.Queue{Name: "q", AutoDelete: true})
	one := must[*client.Consumer](t)(ch.Consume(within(t), "q", client.ConsumeOptions{}))
	two := must[*client.Consumer](t)(ch.Consume(within(t), "q", client.ConsumeOptions{}))
	ok(t, one.Cancel(within(t)))
	if !exists(t, watcher, "q") {
		t.Fatal("the queue went with its first consumer of two")
	}
	ok(t, two.Cancel(within(t)))
	eventually(t, "the queue goes", func() bool { return !exists(t, watcher, "q") })
}

func TestRule12AnAbandonedAutoDeleteQueueGoes(t *testing.T) {
	node := startWith(t, broker.Config{AbandonedAfter: 50 * time.Millisecond})
	conn, ch := dial(t, node)
	_, watcher := dial(t, node)
	declare(t, ch, client.Queue{Name: "left", AutoDelete: true})
	declare(t, watcher, client.Queue{Name: "kept", AutoDelete: true})
	declare(t, watcher, client.Queue{Name: "never used", AutoDelete: true})
	must[*client.Consumer](t)(ch.Consume(within(t), "left", client.ConsumeOptions{}))
	must[*client.Consumer](t)(watcher.Consume(within(t), "kept", client.ConsumeOptions{}))
	node.lead(false)
	_ = conn.Close(t.Context()) // nobody hears of it: there is no leader
	node.lead(true)
	eventually(t, "the queue goes", func() bool { return !exists(t, watcher, "left") })
	if !exists(t, watcher, "kept") || !exists(t, watcher, "never used") {
		t.Fatal("a queue went whose consumer came back, or that never had one")
	}
}

func TestRule12ExclusiveQueuesGoWithTheTerm(t *testing.T) {
	node := start(t)
	conn, ch := dial(t, node)
	_, watcher := dial(t, node)
	declare(t, ch, client.Queue{Name: "mine", Exclusive: true})
	node.lead(false)
	_ = conn.Close(t.Context())
	node.lead(true)
	// Until the broker has seen the change, the old term may answer; nobody new is served before the queue is gone.
	_, later := dial(t, node)
	eventually(t, "the queue goes", func() bool { return !exists(t, later, "mine") && !exists(t, watcher, "mine") })
}

func TestRule13TransientEndsOnlyWithTheWholeCluster(t *testing.T) {
	node := start(t)
	_, ch := dial(t, node)
	declare(t, ch, client.Queue{Name: "transient"})
	declare(t, ch, client.Queue{Name: "durable", Durable: true})
	must[client.Confirmation](t)(ch.Publish(within(t), "", "durable", client.Message{Body: []byte("kept")}))
	must[client.Confirmation](t)(ch.Publish(within(t), "", "durable", client.Message{Body: []byte("dropped"), Transient: true}))
	_, watcher := dial(t, node)
	node.lead(true) // the process lived on
	if !exists(t, watcher, "transient") {
		t.Fatal("a transient queue ended with a term")
	}
	node.lead(false)
	node.boot++ // every process of the cluster is another one
	node.lead(true)
	_, later := dial(t, node)
	eventually(t, "the queue is read", func() bool {
		q, err := later.DeclareQueue(within(t), client.Queue{Name: "durable", Passive: true})
		return err == nil && q.Messages == 1
	})
	if d := must[*client.Delivery](t)(later.Get(within(t), "durable", true)); d == nil || string(d.Body) != "kept" {
		t.Fatalf("after a cold start came %v", d)
	}
}
