package amqp_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/warrenmq/warren/broker/amqp/amqptest"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// TestFiftyPublishersAtALimit: fifty connections publish at once into a queue with a limit from which three consume. At no
// look are there more ready messages than the limit, each publisher is told rightly what became of each of its messages,
// and what was taken is there once.
func TestFiftyPublishersAtALimit(t *testing.T) {
	const publishers, each, limit = 50, 60, 100
	for _, overflow := range []string{"reject-publish", "drop-head"} {
		t.Run(overflow, func(t *testing.T) {
			_, ch := begin(t)
			q := declared(ch, "q", amqp091.Map{"x-max-length": int32(limit), "x-overflow": overflow})
			look := func() uint32 {
				ready := ch.Look(q).MessageCount
				if ready > limit {
					t.Fatalf("%d messages are ready, the limit is %d", ready, limit)
				}
				return ready
			}
			seen := map[string]int{}
			var consumers []*amqptest.Channel
			for range 3 {
				c := dial(t).Channel(1)
				c.Qos(7, false)
				c.Consume(q, "c")
				consumers = append(consumers, c)
			}
			var all []*amqptest.Channel
			for p := range publishers {
				c := dial(t).Channel(1)
				c.Confirm()
				var b []byte
				for i := range each {
					b = c.Message(b, &amqp091.BasicPublish{RoutingKey: []byte(q), Mandatory: true}, nil, fmt.Appendf(nil, "%d/%d", p, i+1))
				}
				c.Raw(b)
				all = append(all, c)
				look()
			}
			take := func(patience time.Duration) (some bool) {
				for _, c := range consumers {
					if e := c.NextWithin(c.Number, patience); e != nil {
						seen[string(e.Body)]++
						c.Ack(e.Method.(*amqp091.BasicDeliver).DeliveryTag, false)
						some = true
					}
				}
				return some
			}
			for range 200 { // while the publishers are at it
				take(time.Millisecond)
				look()
			}
			taken := map[string]bool{}
			for p, c := range all {
				refused, others := c.Outcomes(1, each)
				if len(others) > 0 {
					t.Fatalf("publisher %d was told %s", p, amqptest.Describe(others[0].Method))
				}
				for i := range each {
					taken[fmt.Sprintf("%d/%d", p, i+1)] = true
				}
				for _, tag := range refused {
					delete(taken, fmt.Sprintf("%d/%d", p, tag))
				}
				look()
			}
			for look() > 0 || take(100*time.Millisecond) {
				take(time.Millisecond)
			}
			for body, times := range seen {
				if times != 1 || !taken[body] {
					t.Errorf("%s came %d times; its publisher was told that it was taken: %v", body, times, taken[body])
				}
			}
			switch overflow {
			case "reject-publish":
				if len(seen) != len(taken) || len(taken) == publishers*each {
					t.Errorf("%d messages were taken of %d, %d came", len(taken), publishers*each, len(seen))
				}
			default:
				if len(taken) != publishers*each || len(seen) == publishers*each {
					t.Errorf("%d of %d were taken, %d came", len(taken), publishers*each, len(seen))
				}
			}
		})
	}
}

// TestOrderAtALimit: what a consumer had and gave back is in its place for whoever comes next.
func TestOrderAtALimit(t *testing.T) {
	c, ch := begin(t)
	q := declared(ch, "q", amqp091.Map{"x-max-length": int32(1000)})
	ch.Call(&amqp091.QueuePurge{Queue: q})
	c.Fill(q, "a", "b", "c")
	for i := range 100 {
		other := c.Channel(uint16(2 + i%2))
		other.Qos(2, false)
		other.Consume(q, "c")
		other.ExpectBodies("a", "b")
		other.Nack(0, true, true) // and while they come again it goes
		other.Leave()
		d := ch.MustGet(q)
		if d.Text() != "a" {
			t.Fatalf("after %d times %q came first", i, d.Text())
		}
		ch.Nack(d.Tag, false, true)
		ch.ExpectDepth(q, 3)
	}
}
