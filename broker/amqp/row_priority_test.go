package amqp_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/warrenmq/warren/broker/amqp/amqptest"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// putPrior publishes bodies "priority/number", and -1 without a priority.
func putPrior(ch *amqptest.Channel, q string, priorities ...int) {
	ch.T.Helper()
	for i, priority := range priorities {
		p := amqp091.Properties{}
		if priority > 0 {
			p.Priority = uint8(priority)
		}
		ch.PutWith("", q, fmt.Sprintf("%d/%d", priority, i), p)
	}
	ch.ExpectDepth(q, uint32(len(priorities)))
}

func TestRow220MaxPriority(t *testing.T) {
	_, ch := begin(t)
	q := declared(ch, "q", amqp091.Map{"x-max-priority": int32(5)})
	putPrior(ch, q, -1, 9, 1, 5, -1, 3, 5, 1)
	first := ch.MustGet(q)
	if priority, _ := first.Properties.Byte(amqp091.PropertyPriority); first.Text() != "9/1" || priority != 9 {
		t.Fatalf("first came %q of priority %d", first.Text(), priority)
	}
	if got := ch.MustGet(q); got.Text() != "5/3" {
		t.Fatalf("then came %q", got.Text())
	}
	ch.Nack(first.Tag, false, true) // back in its place
	if got := ch.Drain(q); !slices.Equal(got, []string{"9/1", "5/6", "3/5", "1/2", "1/7", "-1/0", "-1/4"}) {
		t.Fatalf("the order is %q", got)
	}

	// What comes in later goes ahead of what waits.
	ch.Qos(1, false)
	putPrior(ch, q, 1, 1, 1)
	ch.Consume(q, "")
	d := ch.Deliver()
	ch.PutWith("", q, "urgent", amqp091.Properties{Priority: 4})
	ch.ExpectDepth(q, 3)
	ch.Ack(d.Tag, false)
	if d = ch.Deliver(); d.Text() != "urgent" {
		t.Fatalf("then came %q", d.Text())
	}
	ch.Leave()
	ch.Reopen()

	// 0 is off, and so is no argument at all.
	for suffix, arguments := range map[string]amqp091.Map{"off": {"x-max-priority": int32(0)}, "none": {}} {
		plain := declared(ch, suffix, arguments)
		putPrior(ch, plain, 1, 9, 5)
		if got := ch.Drain(plain); !slices.Equal(got, []string{"1/0", "9/1", "5/2"}) {
			t.Fatalf("%s: the order is %q", suffix, got)
		}
	}
}

func TestRow221QuorumPriority(t *testing.T) {
	_, ch := begin(t)
	q := declared(ch, "q", amqp091.Map{"x-queue-type": "quorum"})
	putPrior(ch, q, -1, 4, 3, 5, 31, 200, 30, -1)
	if got := ch.Drain(q); !slices.Equal(got, []string{"31/4", "200/5", "30/6", "5/3", "-1/0", "4/1", "-1/7", "3/2"}) {
		t.Fatalf("the order is %q", got)
	}
}

func TestPrioritiesWithManyMessages(t *testing.T) {
	_, ch := begin(t)
	q := declared(ch, "q", amqp091.Map{"x-max-priority": int32(10)})
	r := rand.New(rand.NewPCG(1, 2))
	var list []int
	for range 3000 {
		list = append(list, 1+r.IntN(10))
	}
	putPrior(ch, q, list...)
	want := make([]string, 0, len(list))
	for level := 10; level > 0; level-- {
		for i, priority := range list {
			if priority == level {
				want = append(want, fmt.Sprintf("%d/%d", priority, i))
			}
		}
	}
	// Some are handed out and come back, to two consumers' channels.
	for range 700 {
		d := ch.MustGet(q)
		if r.IntN(2) == 0 {
			ch.Nack(d.Tag, false, true)
		}
	}
	ch.Nack(0, true, true)
	ch.ExpectDepth(q, uint32(len(list)))
	if got := ch.Drain(q); !slices.Equal(got, want) {
		t.Fatal("the order is not by priority, and by publishing in each")
	}
}
