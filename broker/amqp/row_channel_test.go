package amqp_test

import (
	"fmt"
	"testing"

	"github.com/warrenmq/warren/broker/amqp/amqptest"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// withContent is a method's frame and what belongs behind it.
func withContent(m amqp091.Method, channel uint16) []byte {
	b := m.AppendFrame(nil, channel)
	if m.ID().HasContent() {
		b = amqp091.AppendContent(b, channel, nil, []byte("x"), 0)
	}
	return b
}

func TestRow65UnopenedChannel(t *testing.T) {
	t.Parallel()
	each(t, map[string]amqp091.Method{"declare": &amqp091.QueueDeclare{Queue: "q"}, "close": &amqp091.ChannelClose{ReplyCode: 200},
		"publish": &amqp091.BasicPublish{RoutingKey: []byte("q")}, "ack": &amqp091.BasicAck{DeliveryTag: 1}}, func(t *testing.T, m amqp091.Method) {
		c := dial(t)
		c.Raw(withContent(m, 3))
		c.ExpectClose(amqp091.ChannelError, m.ID(), "expected 'channel.open'")
	})
}

func TestRow66SecondOpen(t *testing.T) {
	_, ch := begin(t)
	ch.Fatal(&amqp091.ChannelOpen{}, amqp091.ChannelError, "second 'channel.open' seen")
	// Also while a close of the server's waits for its answer.
	ch = dial(t).Channel(1)
	missing := &amqp091.QueueDeclare{Queue: name(t, "none"), Passive: true}
	ch.Send(missing)
	ch.ReceiveClose(amqp091.NotFound, missing.ID(), "")
	ch.Fatal(&amqp091.ChannelOpen{}, amqp091.ChannelError, "second 'channel.open' seen")
}

func TestRow67ChannelMax(t *testing.T) {
	t.Parallel()
	c := amqptest.DialWith(t, address(t), amqptest.Options{ChannelMax: 2})
	c.Channel(65535)
	ch := c.Channel(100)
	ch.Leave()
	c.Channel(7)
	c.Send(8, &amqp091.ChannelOpen{})
	c.ExpectClose(amqp091.NotAllowed, 0, "number of channels opened (2) has reached the negotiated channel_max (2)")
}

func TestRow68CloseAndReopen(t *testing.T) {
	_, ch := begin(t)
	for range 20 {
		ch.Leave()
		ch.Reopen()
	}
	ch.Send(&amqp091.ChannelClose{ReplyCode: 200}, &amqp091.ChannelOpen{}) // without waiting
	ch.Expect(amqp091.ChannelCloseOkID)
	ch.Expect(amqp091.ChannelOpenOkID)
	ch.Quiet()
}

func TestRow69IgnoredUntilCloseOk(t *testing.T) {
	c, ch := begin(t)
	other := c.Channel(2)
	missing := &amqp091.QueueDeclare{Queue: name(t, "none"), Passive: true}
	q := name(t, "q")
	ch.Send(missing, &amqp091.QueueDeclare{Queue: q})
	ch.Put("", q, "lost")
	ch.Send(&amqp091.QueueDeclareOk{}, missing)
	ch.ReceiveClose(amqp091.NotFound, missing.ID(), "no queue '"+missing.Queue+"' in vhost '/'")
	ch.Send(&amqp091.QueueDeclare{Queue: q}, &amqp091.BasicAck{DeliveryTag: 77})
	ch.Put("", q, "lost")
	other.Quiet()
	ch.Send(&amqp091.ChannelCloseOk{})
	ch.Reopen()
	if ch.Exists(q) {
		t.Fatal("a method after the error took effect")
	}
}

func TestRow70CrossingCloses(t *testing.T) {
	_, ch := begin(t)
	missing := &amqp091.QueueDeclare{Queue: name(t, "none"), Passive: true}
	ch.Send(missing)
	ch.ReceiveClose(amqp091.NotFound, missing.ID(), "")
	ch.Send(&amqp091.ChannelClose{ReplyCode: 200}) // as if it had crossed
	ch.Expect(amqp091.ChannelCloseOkID)
	ch.Send(&amqp091.ChannelCloseOk{})
	ch.Reopen()
	ch.Quiet()
}

func TestRow71ReopenedChannelIsNew(t *testing.T) {
	c, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	ch.Confirm()
	ch.Qos(1, false)
	ch.Put("", q, "a")
	ch.Settled(1, 1)
	if d := ch.MustGet(q); d.Tag != 1 {
		t.Fatalf("tag %d", d.Tag)
	}
	for _, again := range []func(){
		func() { ch.Leave(); ch.Reopen() },
		func() { ch.Refused(&amqp091.BasicGet{Queue: name(t, "none")}, amqp091.NotFound, "") },
	} {
		again()
		c.Fill(q, "b", "c")
		ch.Put("", q, "unconfirmed")
		ch.ExpectDepth(q, 4)
		ch.Consume(q, "t") // without a limit now
		for i, d := range []*amqptest.Delivery{ch.Deliver(), ch.Deliver(), ch.Deliver(), ch.Deliver()} {
			if d.Tag != uint64(i+1) {
				t.Fatalf("delivery %d has tag %d", i+1, d.Tag)
			}
		}
		ch.Refused(&amqp091.TxCommit{}, amqp091.PreconditionFailed, "channel is not transactional")
		ch.Call(&amqp091.TxSelect{}) // confirm mode would refuse it
		ch.Call(&amqp091.QueuePurge{Queue: q})
		ch.Call(&amqp091.TxRollback{})
		ch.Leave()
		ch.Reopen()
		ch.Confirm()
		ch.Put("", q, "a")
		ch.Settled(1, 1)
		ch.MustGet(q)
	}
}

func TestRow72Flow(t *testing.T) {
	_, ch := begin(t)
	if ok := ch.Call(&amqp091.ChannelFlow{Active: true}).(*amqp091.ChannelFlowOk); !ok.Active {
		t.Fatal("flow-ok says not active")
	}
	ch.Fatal(&amqp091.ChannelFlow{}, amqp091.NotImplemented, "active=false")
}

func TestRow73AccessRequest(t *testing.T) {
	_, ch := begin(t)
	if ok := ch.Call(&amqp091.AccessRequest{Realm: "/data"}).(*amqp091.AccessRequestOk); ok.Ticket != 1 {
		t.Fatalf("ticket %d", ok.Ticket)
	}
}

func TestRow74ServerMethods(t *testing.T) {
	t.Parallel()
	for _, m := range []amqp091.Method{&amqp091.ChannelCloseOk{}, &amqp091.QueueDeclareOk{}, &amqp091.BasicDeliver{}, &amqp091.BasicCancelOk{ConsumerTag: "t"},
		&amqp091.ChannelFlowOk{}, &amqp091.ChannelOpenOk{}, &amqp091.ConfirmSelectOk{}, &amqp091.BasicReturn{}, &amqp091.ConnectionStart{}, &amqp091.TxCommitOk{}} {
		t.Run(m.ID().String(), func(t *testing.T) {
			t.Parallel()
			c := dial(t)
			c.Channel(1)
			c.Raw(withContent(m, 1))
			c.ExpectClose(amqp091.CommandInvalid, m.ID(), "unimplemented method")
		})
	}
}

func TestRow75Pipelined(t *testing.T) {
	_, ch := begin(t)
	var all []amqp091.Method
	for i := range 20 {
		q := fmt.Sprintf("%s.%d", name(t, "q"), i)
		all = append(all, &amqp091.QueueDeclare{Queue: q}, &amqp091.BasicQos{PrefetchCount: 3}, &amqp091.QueueBind{Queue: q, Exchange: "amq.direct", RoutingKey: q},
			&amqp091.ExchangeDeclare{Exchange: q, Type: "topic", AutoDelete: true}, &amqp091.ChannelFlow{Active: true}, &amqp091.BasicConsume{Queue: q, ConsumerTag: q},
			&amqp091.BasicCancel{ConsumerTag: q}, &amqp091.BasicRecover{Requeue: true}, &amqp091.QueueDelete{Queue: q}, &amqp091.ExchangeDelete{Exchange: q}, &amqp091.AccessRequest{})
	}
	ch.Send(all...)
	for i, m := range all {
		if e := ch.Next(); e.Method.ID() != m.ID()+1 {
			t.Fatalf("answer %d is %s, to %s", i, amqptest.Describe(e.Method), m.ID())
		}
	}
}
