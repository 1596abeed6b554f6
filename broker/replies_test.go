package broker

import (
	"strings"
	"testing"

	"github.com/warrenmq/warren/fsm"
)

// TestRow225To229DirectReplies goes there and back, and to nobody.
func TestRow225To229DirectReplies(t *testing.T) {
	a := startAlone(t, Config{})
	asks, answers := a.connect(), a.connect()
	ch := asks.channel(1)
	started := ""
	address, err := ch.ConsumeReplies("r", func(tag string) { started = tag })
	check(t, err)
	if started != "r" || !strings.HasPrefix(address, "amq.rabbitmq.reply-to.") || len(address) < 40 || ch.ReplyAddress() != address {
		t.Fatalf("started %q at %q", started, address)
	}
	_, err = ch.ConsumeReplies("", func(string) { t.Error("a second one began") })
	refused(t, err, fsm.PreconditionFailed, "PRECONDITION_FAILED - reply consumer already set")
	_, err = ch.ConsumeReplies("r", nil)
	refused(t, err, fsm.NotAllowed, "reuse consumer tag 'r'")
	if n := answers.send(address, "pong"); n != 1 {
		t.Fatalf("the reply reached %d", n)
	}
	d := asks.next("r", "pong")
	if d.Tag != 1 || d.Message.Exchange != "" || d.Message.RoutingKey != address || d.Redelivered {
		t.Fatalf("%+v", d)
	}
	refused(t, ch.SettleTag(fsm.Acknowledge, 1, false), fsm.PreconditionFailed, "unknown delivery tag 1")

	for _, name := range []string{address, ReplyQueue} {
		state, err := answers.session.DeclareQueue(within(t), Queue{Name: name})
		if err != nil || state != (QueueState{Name: name, Consumers: 1}) || !answers.session.ReplyAlive(name) {
			t.Fatalf("%s: %+v %v", name, state, err)
		}
	}
	err = answers.session.Bind(within(t), Binding{Destination: address, Source: "amq.direct"})
	refused(t, err, fsm.AccessRefused, "ACCESS_REFUSED - cannot bind or unbind to a volatile (direct reply-to) queue")

	answersChannel := answers.channel(1)
	r := answers.commit(answersChannel, Operation{Publication: Publication{RoutingKey: address, Body: []byte("in a transaction")}},
		Operation{Publication: Publication{RoutingKey: "nowhere"}})
	if r.Parts[0].Routed != 1 || r.Parts[1].Routed != 0 {
		t.Fatalf("%+v", r)
	}
	asks.next("r", "in a transaction")

	asks.mu.Lock()
	asks.full = true
	asks.mu.Unlock()
	if n := answers.send(address, "too much"); n != 0 {
		t.Fatal("a client that reads nothing got one more")
	}
	check(t, ch.Cancel(within(t), "r"))
	if answers.send(address, "late") != 0 || answers.session.ReplyAlive(address) || ch.ReplyAddress() != "" {
		t.Fatal("a cancelled reply consumer is there")
	}
	_, err = answers.session.QueueExists(within(t), address)
	refused(t, err, fsm.NotFound, "no queue '"+address+"'")
	next, err := ch.ConsumeReplies("", func(string) {})
	check(t, err)
	ch.Close()
	if next == address || answers.session.ReplyAlive(next) {
		t.Fatal("a closed channel takes replies")
	}
	if n := len(asks.session.leadership.replies.channels); n != 0 {
		t.Fatalf("%d addresses are left", n)
	}
}
