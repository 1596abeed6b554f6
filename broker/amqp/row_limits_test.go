package amqp_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/warrenmq/warren/broker/amqp/amqptest"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// kinds of queue: as it comes, and declared as a quorum queue.
var kinds = map[string]amqp091.Map{"K": {}, "Q": {"x-queue-type": "quorum"}}

// with adds arguments.
func with(some, more amqp091.Map) amqp091.Map {
	all := amqp091.Map{}
	for _, m := range []amqp091.Map{some, more} {
		for k, v := range m {
			all[k] = v
		}
	}
	return all
}

// put publishes bodies and returns the numbers of those that were refused. Confirms must be on, and n published before.
func put(ch *amqptest.Channel, n uint64, exchange, key string, bodies ...string) (refused []uint64) {
	ch.T.Helper()
	var b []byte
	for _, body := range bodies {
		b = ch.Message(b, &amqp091.BasicPublish{Exchange: []byte(exchange), RoutingKey: []byte(key), Mandatory: true}, nil, []byte(body))
	}
	ch.Raw(b)
	refused, others := ch.Outcomes(n+1, n+uint64(len(bodies)))
	if len(others) > 0 {
		ch.T.Fatalf("%+v came with the confirms", others[0])
	}
	return refused
}

func TestRow204DropHead(t *testing.T) {
	_, ch := begin(t)
	ch.Confirm()
	published := uint64(0)
	for suffix, arguments := range kinds {
		for _, overflow := range []amqp091.Map{{}, {"x-overflow": "drop-head"}} {
			q := declared(ch, fmt.Sprint(suffix, len(overflow)), with(with(arguments, overflow), amqp091.Map{"x-max-length": int32(3)}))
			if refused := put(ch, published, "", q, "1", "2", "3", "4", "5"); len(refused) > 0 {
				t.Fatalf("%v were refused", refused)
			}
			published += 5
			ch.ExpectDepth(q, 3)
			if got := ch.Drain(q); !slices.Equal(got, []string{"3", "4", "5"}) {
				t.Fatalf("kept %v", got)
			}
		}
	}
	q, dead := declared(ch, "dead", amqp091.Map{"x-max-length": int32(1), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": name(t, "letters")}), ch.Queue(name(t, "letters"))
	put(ch, published, "", q, "old", "new")
	d := await(ch, dead)
	if d.Text() != "old" {
		t.Fatalf("%q died", d.Text())
	}
	expectDeaths(ch, d, amqp091.Map{"count": int64(1), "reason": "maxlen", "queue": q, "exchange": "", "routing-keys": []any{q}})

	// With no room at all a message lives if a consumer takes it at once.
	none := declared(ch, "none", amqp091.Map{"x-max-length": int32(0)})
	put(ch, published+2, "", none, "nobody")
	ch.ExpectDepth(none, 0)
	other := dial(t).Channel(1)
	other.Qos(2, false)
	other.Consume(none, "c")
	put(ch, published+3, "", none, "a", "b")
	other.ExpectBodies("a", "b")
	put(ch, published+5, "", none, "without credit")
	ch.ExpectDepth(none, 0)
	other.Quiet()
}

func TestRow205BytesOfBodies(t *testing.T) {
	_, ch := begin(t)
	ch.Confirm()
	published := uint64(0)
	for suffix, arguments := range kinds {
		q := declared(ch, suffix, with(arguments, amqp091.Map{"x-max-length-bytes": int32(10)}))
		for _, body := range []string{"aaaa", "bbbb", "cc", "d"} {
			ch.PutWith("", q, body, amqp091.Properties{Headers: amqp091.Map{"h": strings.Repeat("x", 100)}})
			ch.Settled(published+1, published+1)
			published++
		}
		if got := ch.Drain(q); !slices.Equal(got, []string{"bbbb", "cc", "d"}) {
			t.Fatalf("kept %v", got)
		}
		put(ch, published, "", q, "small", "larger than all")
		published += 2
		ch.ExpectDepth(q, 0)
		refusing := declared(ch, suffix+"r", with(arguments, amqp091.Map{"x-max-length-bytes": int32(10), "x-overflow": "reject-publish"}))
		refused := put(ch, published, "", refusing, "123456", "12345", "larger than all", "1234", "1")
		if want := []uint64{published + 2, published + 3, published + 5}; !slices.Equal(refused, want) {
			t.Fatalf("%v were refused, want %v", refused, want)
		}
		published += 5
	}
}

func TestRow206HeldAreNotCounted(t *testing.T) {
	c, ch := begin(t)
	ch.Confirm()
	published := uint64(0)
	for suffix, arguments := range kinds {
		q := declared(ch, suffix, with(arguments, amqp091.Map{"x-max-length": int32(2), "x-overflow": "reject-publish"}))
		if refused := put(ch, published, "", q, "1", "2", "3"); !slices.Equal(refused, []uint64{published + 3}) {
			t.Fatalf("%v were refused", refused)
		}
		other := c.Channel(2)
		other.Qos(1, false)
		other.Consume(q, "c")
		first := other.ExpectBodies("1")[0]
		got := ch.MustGet(q)
		if got.Text() != "2" {
			t.Fatalf("got %q", got.Text())
		}
		ch.ExpectDepth(q, 0)
		if refused := put(ch, published+3, "", q, "4", "5", "6"); !slices.Equal(refused, []uint64{published + 6}) {
			t.Fatalf("%v were refused", refused)
		}
		// What returns may be too much, and is kept: only publishes are refused.
		ch.Nack(got.Tag, false, true)
		ch.ExpectDepth(q, 3)
		if refused := put(ch, published+6, "", q, "7"); len(refused) != 1 {
			t.Fatal("a publish was taken beyond the limit")
		}
		other.Ack(first.Tag, false)
		other.ExpectBodies("2")
		ch.ExpectDepth(q, 2)
		other.Leave()
		ch.ExpectDepth(q, 3)
		published += 7

		// A queue that drops does so when messages return, the oldest first.
		drops := declared(ch, suffix+"d", with(arguments, amqp091.Map{"x-max-length": int32(2)}))
		put(ch, published, "", drops, "1", "2")
		held := ch.MustGet(drops)
		put(ch, published+2, "", drops, "3", "4", "5")
		published += 5
		if n := ch.Look(drops).MessageCount; n != 2 {
			t.Fatalf("%d are ready", n)
		}
		ch.Nack(held.Tag, false, true)
		ch.ExpectDepth(drops, 2)
		if got := ch.Drain(drops); !slices.Equal(got, []string{"4", "5"}) {
			t.Fatalf("kept %v", got)
		}
	}
}

func TestRow207RejectPublish(t *testing.T) {
	c, ch := begin(t)
	ch.Confirm()
	published := uint64(0)
	for suffix, arguments := range kinds {
		q := declared(ch, suffix, with(arguments, amqp091.Map{"x-max-length": int32(3), "x-overflow": "reject-publish"}))
		if refused := put(ch, published, "", q, "1", "2", "3", "4", "5"); !slices.Equal(refused, []uint64{published + 4, published + 5}) {
			t.Fatalf("%v were refused", refused)
		}
		published += 5

		// The other queues that a message leads to have it.
		e, free := ch.Exchange(name(t, suffix+"e"), "fanout"), ch.Queue(name(t, suffix+"free"))
		ch.Bind(q, e, "", nil)
		ch.Bind(free, e, "", nil)
		if refused := put(ch, published, e, "", "6"); len(refused) != 1 {
			t.Fatal("it was acknowledged")
		}
		published++
		ch.ExpectDepth(free, 1)

		// Without confirms it is dropped, and in a transaction nothing is published.
		silent := c.Channel(uint16(published)) // each time another
		silent.Put("", q, "7")
		silent.Quiet()
		silent.Call(&amqp091.TxSelect{})
		silent.Put("", free, "8")
		silent.Put("", q, "9")
		silent.Refused(&amqp091.TxCommit{}, amqp091.PreconditionFailed, fmt.Sprintf("partial tx completion: nothing was published: QUEUE_FULL - queue '%s' in vhost '/' has no room for what the transaction publishes", q))
		ch.ExpectDepth(free, 1)

		if got := ch.Drain(q); !slices.Equal(got, []string{"1", "2", "3"}) {
			t.Fatalf("kept %v", got)
		}
		if refused := put(ch, published, "", q, "10"); len(refused) > 0 {
			t.Fatal("it was refused though there is room")
		}
		published++
	}
}

func TestRow208RejectPublishDeadLetters(t *testing.T) {
	_, ch := begin(t)
	ch.Confirm()
	dead := ch.Queue(name(t, "dead"))
	q := declared(ch, "K", amqp091.Map{"x-max-length": int32(1), "x-overflow": "reject-publish-dlx", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead})
	if refused := put(ch, 0, "", q, "1", "2"); !slices.Equal(refused, []uint64{2}) {
		t.Fatalf("%v were refused", refused)
	}
	d := await(ch, dead)
	if d.Text() != "2" {
		t.Fatalf("%q died", d.Text())
	}
	expectDeaths(ch, d, amqp091.Map{"count": int64(1), "reason": "maxlen", "queue": q, "exchange": "", "routing-keys": []any{q}})
	ch.ExpectDepth(q, 1)
	// As in RabbitMQ, a quorum queue drops instead.
	quorum := declared(ch, "Q", amqp091.Map{"x-queue-type": "quorum", "x-max-length": int32(1), "x-overflow": "reject-publish-dlx"})
	if refused := put(ch, 2, "", quorum, "1", "2"); len(refused) > 0 {
		t.Fatalf("%v were refused", refused)
	}
	if got := ch.Drain(quorum); !reflect.DeepEqual(got, []string{"2"}) {
		t.Fatalf("kept %v", got)
	}
}

func TestRow147OneQueueRefuses(t *testing.T) {
	_, ch := begin(t)
	ch.Confirm()
	x := ch.Exchange(name(t, "x"), "fanout")
	full, free := declared(ch, "full", amqp091.Map{"x-max-length": int32(1), "x-overflow": "reject-publish"}), declared(ch, "free", nil)
	for _, q := range []string{full, free} {
		ch.Call(&amqp091.QueuePurge{Queue: q})
		ch.Bind(q, x, "", nil)
	}
	if refused := put(ch, 0, x, "", "1", "2", "3"); !slices.Equal(refused, []uint64{2, 3}) { // once each
		t.Fatalf("%v were refused", refused)
	}
	ch.ExpectDepth(full, 1)
	ch.ExpectDepth(free, 3)
	ch.Quiet()
}

func TestRow158RefusedInTransaction(t *testing.T) {
	c, ch := begin(t)
	full, free := declared(ch, "full", amqp091.Map{"x-max-length": int32(1), "x-overflow": "reject-publish"}), declared(ch, "free", nil)
	for _, q := range []string{full, free} {
		ch.Call(&amqp091.QueuePurge{Queue: q})
	}
	c.Fill(free, "held")
	ch.Call(&amqp091.TxSelect{})
	ch.Ack(ch.MustGet(free).Tag, false)
	ch.Put("", free, "1")
	ch.Put("", full, "2")
	ch.Put("", full, "3")
	ch.Refused(&amqp091.TxCommit{}, amqp091.PreconditionFailed, "partial tx completion: nothing was published: QUEUE_FULL - queue '"+full+"' in vhost '/' has no room for what the transaction publishes")
	ch.ExpectDepth(full, 0)
	ch.ExpectDepth(free, 1) // neither published nor acknowledged
}
