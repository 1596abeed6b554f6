package amqp_test

import (
	"strings"
	"testing"

	"github.com/warrenmq/warren/broker/amqp/amqptest"
	"github.com/warrenmq/warren/protocol/amqp091"
)

const replies = "amq.rabbitmq.reply-to"

func consumeReplies(ch *amqptest.Channel) {
	ch.T.Helper()
	ch.ConsumeWith(&amqp091.BasicConsume{Queue: replies, ConsumerTag: "r", NoAck: true})
}

func TestRow225ReplyConsumer(t *testing.T) {
	_, ch := begin(t)
	ch.Refused(&amqp091.BasicConsume{Queue: replies}, amqp091.PreconditionFailed, "reply consumer cannot acknowledge")
	consumeReplies(ch)
	ch.Refused(&amqp091.BasicConsume{Queue: replies, NoAck: true}, amqp091.PreconditionFailed, "reply consumer already set")
	consumeReplies(ch)
	ch.Call(&amqp091.BasicCancel{ConsumerTag: "r"})
	consumeReplies(ch)
}

func TestRow226ReplyToWithoutConsumer(t *testing.T) {
	_, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	ch.PutWith("", q, "m", amqp091.Properties{ReplyTo: replies})
	ch.ExpectClose(amqp091.PreconditionFailed, amqp091.BasicPublishID, "fast reply consumer does not exist")
}

// request publishes a request and returns what the responder sees of it.
func request(ch, responder *amqptest.Channel, q string) *amqptest.Delivery {
	ch.T.Helper()
	ch.PutWith("", q, "request", amqp091.Properties{ReplyTo: replies, CorrelationID: "c1"})
	responder.ExpectDepth(q, 1)
	return responder.MustGet(q)
}

func replyTo(d *amqptest.Delivery) string {
	to, _ := d.Properties.Value(amqp091.PropertyReplyTo)
	return string(to)
}

func TestRow227RequestAndReply(t *testing.T) {
	_, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	consumeReplies(ch)
	responder := dial(t).Channel(1)
	for range 3 {
		d := request(ch, responder, q)
		to := replyTo(d)
		if !strings.HasPrefix(to, replies+".") || len(to) < len(replies)+5 {
			t.Fatalf("reply-to is %q", to)
		}
		responder.PutWith("", to, "reply", amqp091.Properties{CorrelationID: "c1"})
		r := ch.Deliver()
		if id, _ := r.Properties.Value(amqp091.PropertyCorrelationID); r.Text() != "reply" || r.Consumer != "r" || r.Exchange != "" || r.Key != to || r.Redelivered || r.Tag == 0 || string(id) != "c1" {
			t.Fatalf("%+v %q", r.Method, r.Text())
		}
	}
	// In confirm mode the reply is confirmed, a mandatory one is not returned.
	responder.Confirm()
	d := request(ch, responder, q)
	responder.PutMandatory("", replyTo(d), "reply")
	returned := responder.Settled(1, 1)
	ch.ExpectBodies("reply")
	if len(returned) > 0 && *against == "" {
		t.Fatal("a reply that was delivered was returned")
	}
	// Another channel may have a consumer of its own, at another name.
	other := ch.Channel(2)
	consumeReplies(other)
	if a, b := replyTo(request(ch, responder, q)), replyTo(request(other, responder, q)); a == b {
		t.Fatal("two consumers have the same name")
	}
}

func TestRow228DeclareReplyName(t *testing.T) {
	_, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	requester := dial(t)
	in := requester.Channel(1)
	consumeReplies(in)
	responder := dial(t).Channel(1)
	to := replyTo(request(in, responder, q))
	for _, passive := range []bool{false, true} {
		for _, queue := range []string{to, replies} {
			if ok := responder.Declare(&amqp091.QueueDeclare{Queue: queue, Passive: passive}); ok.MessageCount != 0 || queue == to && ok.ConsumerCount != 1 || ok.Queue != queue {
				t.Fatalf("%+v", ok)
			}
		}
	}
	requester.Close()
	responder.Refused(&amqp091.QueueDeclare{Queue: to, Passive: true}, amqp091.NotFound, "no queue '"+to+"' in vhost '/'")
	responder.Refused(&amqp091.QueueDeclare{Queue: to}, amqp091.NotFound, "no queue '"+to+"' in vhost '/'")
}

func TestRow229ReplyToTheDead(t *testing.T) {
	_, responder := begin(t)
	q := responder.Queue(name(t, "q"))
	requester := dial(t)
	in := requester.Channel(1)
	consumeReplies(in)
	to := replyTo(request(in, responder, q))
	in.Leave()
	responder.Confirm()
	responder.PutMandatory("", to, "m")
	if e := responder.Expect(amqp091.BasicReturnID); e.Method.(*amqp091.BasicReturn).ReplyCode != 312 {
		t.Fatal(amqptest.Describe(e.Method))
	}
	responder.Settled(1, 1)
	responder.Put("", to, "dropped")
	responder.Settled(2, 2)
	in.Reopen()
	in.Quiet()
}

// TestRow227LargeReply: a body that a queue would get in parts comes in one piece.
func TestRow227LargeReply(t *testing.T) {
	_, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	consumeReplies(ch)
	responder := dial(t).Channel(1)
	to := replyTo(request(ch, responder, q))
	body := strings.Repeat("0123456789abcdef", 200_000)
	responder.Put("", to, body)
	if r := ch.Deliver(); r.Text() != body || r.Key != to {
		t.Fatalf("a reply of %d bytes came with %d", len(body), len(r.Text()))
	}
}
