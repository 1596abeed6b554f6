package amqp_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/warrenmq/warren/broker/amqp/amqptest"
	"github.com/warrenmq/warren/protocol/amqp091"
)

const locked = "cannot obtain exclusive access to locked queue 'NAME' in vhost '/'. It could be originally declared on another connection or the exclusive property value does not match that of the original declaration."

func lockedText(q string) string { return strings.Replace(locked, "NAME", q, 1) }

var generated = regexp.MustCompile(`^amq\.gen-[A-Za-z0-9_-]{22}$`)

func TestRow91ServerNamed(t *testing.T) {
	_, ch := begin(t)
	q := ch.Queue("")
	if !generated.MatchString(q) {
		t.Fatalf("the name is %q", q)
	}
	if other := ch.Queue(""); other == q {
		t.Fatal("the same name twice")
	}
	q = ch.Declare(&amqp091.QueueDeclare{Exclusive: true}).Queue
	ch.Call(&amqp091.QueueBind{Exchange: "amq.direct", RoutingKey: q})
	ch.Put("amq.direct", q, "a")
	ch.Put("", q, "b")
	ch.ExpectDepth(q, 2)
	if d := ch.MustGet(""); d.Text() != "a" {
		t.Fatalf("got %q", d.Text())
	}
	if ok := ch.Call(&amqp091.QueuePurge{}).(*amqp091.QueuePurgeOk); ok.MessageCount != 1 {
		t.Fatalf("%d purged", ok.MessageCount)
	}
	ch.Call(&amqp091.QueueUnbind{Exchange: "amq.direct", RoutingKey: q})
	ch.Consume("", "")
	ch.Put("amq.direct", q, "lost")
	ch.Put("", q, "c")
	ch.ExpectBodies("c")
	ch.Call(&amqp091.QueueDelete{})
	ch.Pass(&amqp091.ChannelFlow{Active: true})
	if ch.Exists(q) {
		t.Fatal("the shortcut deleted another queue")
	}
}

func TestRow92NoShortcut(t *testing.T) {
	_, ch := begin(t)
	for _, m := range []amqp091.Method{&amqp091.QueueBind{Exchange: "amq.direct"}, &amqp091.QueueUnbind{Exchange: "amq.direct"}, &amqp091.QueuePurge{}, &amqp091.QueueDelete{},
		&amqp091.BasicConsume{}, &amqp091.BasicGet{}} {
		ch.Refused(m, amqp091.NotFound, "no previously declared queue")
	}
}

func TestRow93PassiveEmptyName(t *testing.T) {
	_, ch := begin(t)
	ch.Queue(name(t, "q"))
	ch.Refused(&amqp091.QueueDeclare{Passive: true}, amqp091.NotFound, "no queue '' in vhost '/'")
}

func TestRow94PassiveMissing(t *testing.T) {
	_, ch := begin(t)
	q := name(t, "none")
	ch.Refused(&amqp091.QueueDeclare{Queue: q, Passive: true}, amqp091.NotFound, "no queue '"+q+"' in vhost '/'")
	ch.Refused(&amqp091.QueueDeclare{Queue: q, Passive: true, NoWait: true}, amqp091.NotFound, "no queue '"+q+"' in vhost '/'")
}

func TestRow95ReservedQueueNames(t *testing.T) {
	_, ch := begin(t)
	ch.Refused(&amqp091.QueueDeclare{Queue: "amq.mine"}, amqp091.AccessRefused, "queue name 'amq.mine' contains reserved prefix 'amq.*'")
	q := ch.Declare(&amqp091.QueueDeclare{Durable: true}).Queue
	ch.Look(q)
	ch.Refused(&amqp091.QueueDeclare{Queue: q, Durable: true}, amqp091.AccessRefused, "queue name '"+q+"' contains reserved prefix 'amq.*'")
}

func TestRow96Counts(t *testing.T) {
	c, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	c.Fill(q, "a", "b", "c")
	held := c.Channel(2)
	held.MustGet(q)
	if ok := ch.Queue(q); ok != q {
		t.Fatal(ok)
	}
	if ok := ch.Declare(&amqp091.QueueDeclare{Queue: q, Durable: true}); ok.MessageCount != 2 || ok.ConsumerCount != 0 {
		t.Fatalf("%+v", ok)
	}
	held.Qos(1, false)
	held.Consume(q, "one")
	c.Channel(3).ConsumeWith(&amqp091.BasicConsume{Queue: q, NoAck: true})
	ch.ExpectDepth(q, 0)
	if ok := ch.Look(q); ok.ConsumerCount != 2 {
		t.Fatalf("%+v", ok)
	}
}

func TestRow97NoWait(t *testing.T) {
	_, ch := begin(t)
	q := name(t, "q")
	ch.Send(&amqp091.QueueDeclare{Queue: q, NoWait: true}, &amqp091.QueueBind{Exchange: "amq.direct", NoWait: true}, &amqp091.QueuePurge{NoWait: true})
	ch.Quiet()
	ch.Look(q)
	x := name(t, "x")
	ch.Send(&amqp091.ExchangeDeclare{Exchange: x, Type: "direct", NoWait: true}, &amqp091.BasicConsume{Queue: q, ConsumerTag: "t", NoWait: true},
		&amqp091.BasicCancel{ConsumerTag: "t", NoWait: true}, &amqp091.ExchangeDelete{Exchange: x, NoWait: true}, &amqp091.QueueDelete{Queue: q, NoWait: true})
	ch.Quiet()
	if ch.Exists(q) {
		t.Fatal("the queue is still there")
	}
}

func TestRow98Inequivalent(t *testing.T) {
	_, ch := begin(t)
	q := name(t, "q")
	base := amqp091.QueueDeclare{Queue: q, Durable: true, Arguments: table(t, amqp091.Map{"x-max-length": int32(7), "x-dead-letter-exchange": "dlx"})}
	ch.Declare(&base)
	text := func(argument, received, current string) string {
		return "inequivalent arg '" + argument + "' for queue '" + q + "' in vhost '/': received " + received + " but current is " + current
	}
	m := base
	m.Durable = false
	ch.Refused(&m, amqp091.PreconditionFailed, text("durable", "'false'", "'true'"))
	m = base
	m.AutoDelete = true
	ch.Refused(&m, amqp091.PreconditionFailed, text("auto_delete", "'true'", "'false'"))
	m = base
	m.Arguments = table(t, amqp091.Map{"x-max-length": int32(8), "x-dead-letter-exchange": "dlx"})
	ch.Refused(&m, amqp091.PreconditionFailed, text("x-max-length", "'8'", "'7'"))
	m.Arguments = table(t, amqp091.Map{"x-dead-letter-exchange": "dlx"})
	ch.Refused(&m, amqp091.PreconditionFailed, text("x-max-length", "none", "the value '7' of type 'signedint'"))
	m.Arguments = table(t, amqp091.Map{"x-max-length": int32(7), "x-dead-letter-exchange": "other"})
	ch.Refused(&m, amqp091.PreconditionFailed, text("x-dead-letter-exchange", "'other'", "'dlx'"))
	m.Arguments = table(t, amqp091.Map{"x-max-length": int32(7), "x-dead-letter-exchange": "dlx", "x-message-ttl": int64(5)})
	ch.Refused(&m, amqp091.PreconditionFailed, text("x-message-ttl", "the value '5' of type 'long'", "none"))
	ch.Declare(&base)
}

func TestRow99ExclusiveDiffers(t *testing.T) {
	_, ch := begin(t)
	q, e := ch.Queue(name(t, "q")), name(t, "e")
	ch.Refused(&amqp091.QueueDeclare{Queue: q, Durable: true, Exclusive: true}, amqp091.ResourceLocked, lockedText(q))
	ch.Declare(&amqp091.QueueDeclare{Queue: e, Exclusive: true})
	ch.Refused(&amqp091.QueueDeclare{Queue: e}, amqp091.ResourceLocked, lockedText(e))
	ch.Declare(&amqp091.QueueDeclare{Queue: e, Exclusive: true})
}

func TestRow100IntegerWidths(t *testing.T) {
	_, ch := begin(t)
	q := name(t, "q")
	for _, seven := range []any{int32(7), int64(7), int8(7), uint8(7), int16(7), uint16(7), uint32(7)} {
		ch.Declare(&amqp091.QueueDeclare{Queue: q, Arguments: table(t, amqp091.Map{"x-max-length": seven})})
	}
}

func TestRow101DefaultType(t *testing.T) {
	_, ch := begin(t)
	k, k2, q := name(t, "K"), name(t, "K2"), name(t, "Q")
	classic := table(t, amqp091.Map{"x-queue-type": "classic"})
	ch.Declare(&amqp091.QueueDeclare{Queue: k, Durable: true})
	ch.Declare(&amqp091.QueueDeclare{Queue: k, Durable: true, Arguments: classic})
	ch.Declare(&amqp091.QueueDeclare{Queue: k2, Durable: true, Arguments: classic})
	ch.Declare(&amqp091.QueueDeclare{Queue: k2, Durable: true})
	ch.Declare(amqptest.Quorum(q))
	ch.Refused(&amqp091.QueueDeclare{Queue: q, Durable: true}, amqp091.PreconditionFailed,
		"inequivalent arg 'x-queue-type' for queue '"+q+"' in vhost '/': received none but current is the value 'quorum' of type 'longstr'")
	ch.Refused(&amqp091.QueueDeclare{Queue: q, Durable: true, Arguments: classic}, amqp091.PreconditionFailed,
		"inequivalent arg 'x-queue-type' for queue '"+q+"' in vhost '/': received 'classic' but current is 'quorum'")
	// Every combination of flags is one of the default type's.
	for i := range 8 {
		ch.Declare(&amqp091.QueueDeclare{Queue: name(t, string(rune('a'+i))), Durable: i&1 > 0, Exclusive: i&2 > 0, AutoDelete: i&4 > 0, Arguments: classic})
	}
}

func TestRow102ExclusiveToAnother(t *testing.T) {
	c, ch := begin(t)
	q := name(t, "q")
	ch.Declare(&amqp091.QueueDeclare{Queue: q, Exclusive: true})
	other := dial(t).Channel(1)
	for _, m := range []amqp091.Method{&amqp091.QueueDeclare{Queue: q, Exclusive: true}, &amqp091.QueueDeclare{Queue: q}, &amqp091.QueueDeclare{Queue: q, Passive: true},
		&amqp091.BasicConsume{Queue: q}, &amqp091.BasicGet{Queue: q}, &amqp091.QueuePurge{Queue: q}, &amqp091.QueueDelete{Queue: q}, &amqp091.QueueBind{Queue: q, Exchange: "amq.direct"}} {
		other.Refused(m, amqp091.ResourceLocked, lockedText(q))
	}
	other.Call(&amqp091.QueueUnbind{Queue: q, Exchange: "amq.direct"}) // not refused
	c.Channel(2).Look(q)                                               // another channel of the owner is no stranger
}

func TestRow103PublishToExclusive(t *testing.T) {
	_, ch := begin(t)
	q := name(t, "q")
	ch.Declare(&amqp091.QueueDeclare{Queue: q, Exclusive: true})
	ch.Bind(q, "amq.direct", q, nil)
	other := dial(t).Channel(1)
	other.Confirm()
	other.PutMandatory("", q, "a")
	other.PutMandatory("amq.direct", q, "b")
	if returned := other.Settled(1, 2); len(returned) > 0 {
		t.Fatal("returned")
	}
	if got := ch.Drain(q); len(got) != 2 {
		t.Fatal(got)
	}
}

func TestRow104ExclusiveIsNotDurable(t *testing.T) {
	_, ch := begin(t)
	q := name(t, "q")
	ch.Declare(&amqp091.QueueDeclare{Queue: q, Exclusive: true, Durable: true})
	ch.Declare(&amqp091.QueueDeclare{Queue: q, Exclusive: true})
	ch.Declare(&amqp091.QueueDeclare{Queue: q, Exclusive: true, Durable: true})
}

func TestRow105ExclusiveAfterDrop(t *testing.T) {
	_, ch := begin(t)
	q := name(t, "q")
	c := dial(t)
	c.Channel(1).Declare(&amqp091.QueueDeclare{Queue: q, Exclusive: true})
	c.Cut()
	ch.ExpectGone(q)
	ch.Queue(q)
}

func TestRow106AutoDeleteQueue(t *testing.T) {
	_, ch := begin(t)
	auto := func(suffix string) string {
		return ch.Declare(&amqp091.QueueDeclare{Queue: name(t, suffix), AutoDelete: true}).Queue
	}
	unused, got, cancelled, cut, left := auto("unused"), auto("got"), auto("cancelled"), auto("cut"), auto("left")
	ch.Get(got, true)
	ch.Consume(cancelled, "a")
	ch.Consume(cancelled, "b")
	ch.Call(&amqp091.BasicCancel{ConsumerTag: "a"})
	ch.Look(cancelled)
	ch.Call(&amqp091.BasicCancel{ConsumerTag: "b"})
	ch.ExpectGone(cancelled)
	c := dial(t)
	c.Channel(1).Consume(cut, "")
	c.Cut()
	ch.ExpectGone(cut)
	c = dial(t)
	in := c.Channel(1)
	in.Consume(left, "")
	in.Leave()
	ch.ExpectGone(left)
	ch.Look(unused)
	ch.Look(got)
}

func TestRow107BindMissing(t *testing.T) {
	_, ch := begin(t)
	q, none := ch.Queue(name(t, "q")), name(t, "none")
	ch.Refused(&amqp091.QueueBind{Queue: q, Exchange: none}, amqp091.NotFound, "no exchange '"+none+"' in vhost '/'")
	ch.Refused(&amqp091.QueueBind{Queue: none, Exchange: "amq.direct"}, amqp091.NotFound, "no queue '"+none+"' in vhost '/'")
	ch.Refused(&amqp091.QueueBind{Queue: none, Exchange: none}, amqp091.NotFound, "no exchange '"+none+"' in vhost '/'")
}

func TestRow108BindTwice(t *testing.T) {
	_, ch := begin(t)
	q, x, none := ch.Queue(name(t, "q")), ch.Exchange(name(t, "x"), "direct"), name(t, "none")
	ch.Bind(q, x, "k", nil)
	ch.Bind(q, x, "k", nil)
	ch.Put(x, "k", "m")
	ch.ExpectDepth(q, 1)
	for range 2 {
		ch.Call(&amqp091.QueueUnbind{Queue: q, Exchange: x, RoutingKey: "k"})
	}
	ch.Put(x, "k", "lost")
	ch.Call(&amqp091.QueueUnbind{Queue: none, Exchange: x, RoutingKey: "k"})
	ch.Call(&amqp091.QueueUnbind{Queue: q, Exchange: none, RoutingKey: "k"})
	ch.Call(&amqp091.QueueUnbind{Queue: none, Exchange: none, RoutingKey: "k"})
	if got := ch.Drain(q); len(got) != 1 {
		t.Fatal(got)
	}
}

func TestRow109EmptyQueueAndKey(t *testing.T) {
	_, ch := begin(t)
	q, x := ch.Queue(name(t, "q")), ch.Exchange(name(t, "x"), "direct")
	ch.Bind("", x, "", nil)
	ch.Put(x, q, "by name")
	ch.ExpectDepth(q, 1)
	ch.Call(&amqp091.QueueUnbind{Exchange: x})
	ch.Put(x, q, "lost")
	ch.Bind(q, x, "", nil) // with a queue's name the empty key is itself
	ch.Put(x, q, "lost")
	ch.Put(x, "", "by empty key")
	ch.ExpectDepth(q, 2)
	if got := ch.Drain(q); strings.Join(got, ",") != "by name,by empty key" {
		t.Fatal(got)
	}
}

func TestRow110Purge(t *testing.T) {
	c, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	c.Fill(q, "a", "b", "c")
	held := ch.MustGet(q)
	if ok := ch.Call(&amqp091.QueuePurge{Queue: q}).(*amqp091.QueuePurgeOk); ok.MessageCount != 2 {
		t.Fatalf("%d purged", ok.MessageCount)
	}
	ch.Nack(held.Tag, false, true)
	ch.ExpectDepth(q, 1)
	none := name(t, "none")
	ch.Refused(&amqp091.QueuePurge{Queue: none}, amqp091.NotFound, "no queue '"+none+"' in vhost '/'")
}

func TestRow111DeleteMissing(t *testing.T) {
	_, ch := begin(t)
	if ok := ch.Call(&amqp091.QueueDelete{Queue: name(t, "none"), IfUnused: true, IfEmpty: true}).(*amqp091.QueueDeleteOk); ok.MessageCount != 0 {
		t.Fatalf("%+v", ok)
	}
}

func TestRow112IfUnusedIfEmpty(t *testing.T) {
	c, ch := begin(t)
	for _, m := range []*amqp091.QueueDeclare{{Queue: name(t, "K")}, amqptest.Quorum(name(t, "Q"))} {
		q := ch.Declare(m).Queue
		consumer := c.Channel(2)
		consumer.Consume(q, "t")
		inUse, notEmpty := "queue '"+q+"' in vhost '/' in use", "queue '"+q+"' in vhost '/' not empty"
		ch.Refused(&amqp091.QueueDelete{Queue: q, IfUnused: true}, amqp091.PreconditionFailed, inUse)
		consumer.Leave()
		ch.ExpectConsumers(q, 0)
		c.Fill(q, "a")
		ch.Refused(&amqp091.QueueDelete{Queue: q, IfEmpty: true}, amqp091.PreconditionFailed, notEmpty)
		ch.Qos(1, false)
		consumer.Reopen()
		consumer.Qos(1, false)
		c.Fill(q, "b")
		consumer.Consume(q, "t")
		consumer.Deliver()
		ch.Refused(&amqp091.QueueDelete{Queue: q, IfEmpty: true, IfUnused: true}, amqp091.PreconditionFailed, "")
		consumer.Leave()
		ch.ExpectConsumers(q, 0)
		ch.Call(&amqp091.QueueDelete{Queue: q, IfUnused: true})
	}
}

func TestRow113DeleteQueue(t *testing.T) {
	c, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	c.Fill(q, "a", "b", "c")
	old := amqptest.DialWith(t, address(t), amqptest.Options{Capabilities: amqptest.Nothing}).Channel(1)
	old.Qos(1, false)
	old.Consume(q, "old")
	old.Deliver()
	ch.Qos(1, false)
	ch.Consume(q, "new")
	ch.Deliver()
	if ok := ch.Call(&amqp091.QueueDelete{Queue: q}).(*amqp091.QueueDeleteOk); ok.MessageCount != 1 {
		t.Fatalf("delete-ok says %d", ok.MessageCount)
	}
	if m := ch.Expect(amqp091.BasicCancelID).Method.(*amqp091.BasicCancel); m.ConsumerTag != "new" || !m.NoWait { // after delete-ok
		t.Fatalf("%+v", m)
	}
	old.Quiet()
	if ok := old.Call(&amqp091.BasicCancel{ConsumerTag: "old"}).(*amqp091.BasicCancelOk); ok.ConsumerTag != "old" {
		t.Fatalf("%+v", ok)
	}
}

func TestRow114AckAfterDelete(t *testing.T) {
	c, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	c.Fill(q, "a", "b", "c")
	a, b, d := ch.MustGet(q), ch.MustGet(q), ch.MustGet(q)
	c.Channel(2).Call(&amqp091.QueueDelete{Queue: q})
	ch.Ack(a.Tag, false)
	ch.Nack(b.Tag, false, true)
	ch.Send(&amqp091.BasicReject{DeliveryTag: d.Tag, Requeue: true})
	ch.Quiet()
	ch.Queue(q)
	ch.ExpectDepth(q, 0)
}

func TestRow115LongNames(t *testing.T) {
	_, ch := begin(t)
	long := func(s string) string {
		return s + strings.Repeat("ä", (255-len(s))/2) + strings.Repeat("x", (255-len(s))%2)
	}
	q, x, key, tag := long(name(t, "q")), long(name(t, "x")), long("k"), long("t")
	ch.Queue(q)
	ch.Exchange(x, "topic")
	ch.Bind(q, x, key, nil)
	if got := ch.Consume(q, tag); got != tag {
		t.Fatalf("tag %q", got)
	}
	ch.Put(x, key, "m")
	if d := ch.Deliver(); d.Exchange != x || d.Key != key || d.Consumer != tag {
		t.Fatalf("%+v", d.Method)
	}
	ch.Call(&amqp091.BasicCancel{ConsumerTag: tag})
	quorum := amqptest.Quorum(long(name(t, "Q")))
	if got := ch.Declare(quorum).Queue; got != quorum.Queue {
		t.Fatalf("queue %q", got)
	}
}

func TestRow116QuorumRefusals(t *testing.T) {
	_, ch := begin(t)
	q := name(t, "q")
	for property, change := range map[string]func(*amqp091.QueueDeclare){
		"non-durable": func(m *amqp091.QueueDeclare) { m.Durable = false }, "exclusive-owner": func(m *amqp091.QueueDeclare) { m.Exclusive = true },
		"auto-delete": func(m *amqp091.QueueDeclare) { m.AutoDelete = true }} {
		m := amqptest.Quorum(q)
		change(m)
		ch.Refused(m, amqp091.PreconditionFailed, "invalid property '"+property+"' for queue '"+q+"' in vhost '/'")
	}
	ch.Refused(amqptest.Quorum(""), amqp091.PreconditionFailed, "Cannot declare a server-named queue for type rabbit_quorum_queue")
}
