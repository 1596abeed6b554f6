package amqp_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/warrenmq/warren/protocol/amqp091"
)

// TestRow216DeadLettersOverFailovers: the leader dies while the dead letters of a queue are on their way. Each is in the
// other queue once, or where it died, from where the next leader takes it.
func TestRow216DeadLettersOverFailovers(t *testing.T) {
	const messages = 2000
	c := startTrio(t, nil)
	leader := c.leader()
	conn, ch := c.dial(leader)
	dead := ch.Queue("dead")
	q := ch.Declare(&amqp091.QueueDeclare{Queue: "q", Durable: true, Arguments: table(t, amqp091.Map{"x-queue-type": "quorum", "x-dead-letter-exchange": "",
		"x-dead-letter-routing-key": dead, "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"})}).Queue
	var want []string
	for i := range messages {
		want = append(want, fmt.Sprint(i))
	}
	conn.Fill(q, want...)
	var last uint64
	for range messages {
		last = ch.MustGet(q).Tag
	}
	ch.Nack(last, true, false)
	for ch.Look(dead).MessageCount == 0 { // the first has come
	}
	c.kill(leader)
	conn.ExpectEnd()
	_, again := c.dial(c.leaderOf(c.others(leader)...))
	again.ExpectDepth(dead, messages-again.Look(q).MessageCount) // what is ready in q was not rejected in the log
	got := append(again.Drain(dead), again.Drain(q)...)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("%d messages are there, of %d, or not each once", len(got), messages)
	}
}

// TestRow217WithDropHead: a queue that drops its head cannot keep what died.
func TestRow217WithDropHead(t *testing.T) {
	_, ch := begin(t)
	x, marks := name(t, "nowhere"), declared(ch, "marks", nil)
	q := declared(ch, "q", amqp091.Map{"x-queue-type": "quorum", "x-dead-letter-exchange": x, "x-dead-letter-strategy": "at-least-once", "x-overflow": "drop-head"})
	ch.Put("", q, "gone")
	reject(ch, q)
	marker := declared(ch, "marker", amqp091.Map{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": marks})
	ch.Put("", marker, "marker")
	reject(ch, marker)
	await(ch, marks) // behind the other
	ch.Exchange(x, "fanout")
	defer func() { ch.Call(&amqp091.ExchangeDelete{Exchange: x}) }()
	dead := declared(ch, "dead", nil)
	ch.Bind(dead, x, "", nil)
	for range 20 {
		ch.ExpectDepth(dead, 0)
	}
}
