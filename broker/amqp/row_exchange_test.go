package amqp_test

import (
	"testing"

	"github.com/warrenmq/warren/broker/amqp/amqptest"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// table makes arguments.
func table(t testing.TB, m amqp091.Map) amqp091.Table { t.Helper(); return amqptest.Table(t, m) }

// missingExchange checks that there is no such exchange; the channel survives.
func missingExchange(ch *amqptest.Channel, x string) {
	ch.T.Helper()
	ch.Refused(&amqp091.ExchangeDeclare{Exchange: x, Passive: true}, amqp091.NotFound, "no exchange '"+x+"' in vhost '/'")
}

func existingExchange(ch *amqptest.Channel, x string) {
	ch.T.Helper()
	ch.Call(&amqp091.ExchangeDeclare{Exchange: x, Passive: true})
}

func TestRow76Predeclared(t *testing.T) {
	_, ch := begin(t)
	for x, kind := range map[string]string{"amq.direct": "direct", "amq.fanout": "fanout", "amq.topic": "topic", "amq.headers": "headers", "amq.match": "headers"} {
		existingExchange(ch, x)
		ch.Call(&amqp091.ExchangeDeclare{Exchange: x, Type: kind, Durable: true})
	}
	ch.Call(&amqp091.ExchangeDeclare{Exchange: "amq.rabbitmq.trace", Type: "topic", Durable: true, Internal: true})
	ch.Refused(&amqp091.ExchangeDeclare{Exchange: "amq.direct", Type: "direct"}, amqp091.PreconditionFailed,
		"inequivalent arg 'durable' for exchange 'amq.direct' in vhost '/': received 'false' but current is 'true'")
}

func TestRow77DefaultExchange(t *testing.T) {
	_, ch := begin(t)
	q, x := ch.Queue(name(t, "q")), ch.Exchange(name(t, "x"), "direct")
	for _, m := range []amqp091.Method{&amqp091.ExchangeDeclare{Type: "direct", Durable: true}, &amqp091.ExchangeDelete{}, &amqp091.QueueBind{Queue: q, RoutingKey: "k"},
		&amqp091.QueueUnbind{Queue: q, RoutingKey: q}, &amqp091.ExchangeBind{Destination: x}, &amqp091.ExchangeBind{Source: x},
		&amqp091.ExchangeUnbind{Destination: x}, &amqp091.ExchangeUnbind{Source: x}} {
		ch.Refused(m, amqp091.AccessRefused, "operation not permitted on the default exchange")
	}
}

func TestRow78ReservedNames(t *testing.T) {
	_, ch := begin(t)
	ch.Refused(&amqp091.ExchangeDeclare{Exchange: "amq.new", Type: "direct"}, amqp091.AccessRefused, "exchange name 'amq.new' contains reserved prefix 'amq.*'")
	missingExchange(ch, "amq.missing")
}

func TestRow79UnknownType(t *testing.T) {
	t.Parallel()
	for kind, text := range map[string]string{"x-nonsense": "unknown exchange type 'x-nonsense'", "Direct": "unknown exchange type 'Direct'", "": "invalid exchange type ''"} {
		dial(t).Channel(1).Fatal(&amqp091.ExchangeDeclare{Exchange: name(t, "x"), Type: kind}, amqp091.CommandInvalid, text)
	}
}

func TestRow80Inequivalent(t *testing.T) {
	_, ch := begin(t)
	x := name(t, "x")
	base := amqp091.ExchangeDeclare{Exchange: x, Type: "direct", Durable: true}
	ch.Call(&base)
	for argument, part := range map[string]struct {
		change            func(*amqp091.ExchangeDeclare)
		received, current string
	}{
		"type":        {func(m *amqp091.ExchangeDeclare) { m.Type = "fanout" }, "'fanout'", "'direct'"},
		"durable":     {func(m *amqp091.ExchangeDeclare) { m.Durable = false }, "'false'", "'true'"},
		"auto_delete": {func(m *amqp091.ExchangeDeclare) { m.AutoDelete = true }, "'true'", "'false'"},
		"internal":    {func(m *amqp091.ExchangeDeclare) { m.Internal = true }, "'true'", "'false'"},
	} {
		m := base
		part.change(&m)
		ch.Refused(&m, amqp091.PreconditionFailed, "inequivalent arg '"+argument+"' for exchange '"+x+"' in vhost '/': received "+part.received+" but current is "+part.current)
	}
	ch.Call(&base)
}

func TestRow81AlternateExchangeDiffers(t *testing.T) {
	_, ch := begin(t)
	x := name(t, "x")
	declare := func(arguments amqp091.Map) amqp091.Method {
		return &amqp091.ExchangeDeclare{Exchange: x, Type: "direct", Arguments: table(t, arguments)}
	}
	ch.Call(declare(amqp091.Map{"alternate-exchange": "ae", "unknown": int32(1)}))
	ch.Call(declare(amqp091.Map{"alternate-exchange": "ae", "unknown": "else", "other": true}))
	ch.Call(declare(amqp091.Map{"alternate-exchange": "ae"}))
	text := "inequivalent arg 'alternate-exchange' for exchange '" + x + "' in vhost '/': received "
	ch.Refused(declare(nil), amqp091.PreconditionFailed, text+"none but current is the value 'ae' of type 'longstr'")
	ch.Refused(declare(amqp091.Map{"alternate-exchange": "other"}), amqp091.PreconditionFailed,
		text+"'other' but current is 'ae'")
	y := name(t, "y")
	ch.Call(&amqp091.ExchangeDeclare{Exchange: y, Type: "direct"})
	ch.Refused(&amqp091.ExchangeDeclare{Exchange: y, Type: "direct", Arguments: table(t, amqp091.Map{"alternate-exchange": "ae"})}, amqp091.PreconditionFailed,
		"inequivalent arg 'alternate-exchange' for exchange '"+y+"' in vhost '/': received the value 'ae' of type 'longstr' but current is none")
}

func TestRow82AlternateExchangeType(t *testing.T) {
	_, ch := begin(t)
	x := name(t, "x")
	ch.Refused(&amqp091.ExchangeDeclare{Exchange: x, Type: "direct", Arguments: table(t, amqp091.Map{"alternate-exchange": int32(1)})}, amqp091.PreconditionFailed,
		"invalid type 'signedint' for arg 'alternate-exchange' in exchange '"+x+"' in vhost '/'")
	missingExchange(ch, x)
}

func TestRow83PassiveIgnoresTheRest(t *testing.T) {
	_, ch := begin(t)
	x := ch.Exchange(name(t, "x"), "direct")
	ch.Call(&amqp091.ExchangeDeclare{Exchange: x, Type: "no such type", Passive: true, AutoDelete: true, Internal: true, Arguments: table(t, amqp091.Map{"alternate-exchange": "z"})})
}

func TestRow84DeleteExchange(t *testing.T) {
	_, ch := begin(t)
	ch.Call(&amqp091.ExchangeDelete{Exchange: name(t, "none")})
	for _, x := range []string{"amq.direct", "amq.none"} {
		ch.Refused(&amqp091.ExchangeDelete{Exchange: x}, amqp091.AccessRefused, "deletion of system exchange '"+x+"' in vhost '/' not allowed")
	}
	x := ch.Exchange(name(t, "x"), "direct")
	ch.Call(&amqp091.ExchangeDelete{Exchange: x})
	missingExchange(ch, x)
}

func TestRow85IfUnused(t *testing.T) {
	_, ch := begin(t)
	x, y, q := ch.Exchange(name(t, "x"), "direct"), ch.Exchange(name(t, "y"), "direct"), ch.Queue(name(t, "q"))
	ch.Bind(q, x, "k", nil)
	ch.Refused(&amqp091.ExchangeDelete{Exchange: x, IfUnused: true}, amqp091.PreconditionFailed, "exchange '"+x+"' in vhost '/' in use")
	ch.Call(&amqp091.QueueUnbind{Queue: q, Exchange: x, RoutingKey: "k"})
	ch.BindExchange(y, x, "k")
	ch.Refused(&amqp091.ExchangeDelete{Exchange: x, IfUnused: true}, amqp091.PreconditionFailed, "exchange '"+x+"' in vhost '/' in use")
	ch.Call(&amqp091.ExchangeDelete{Exchange: y, IfUnused: true}) // it is a destination only
	ch.Call(&amqp091.ExchangeDelete{Exchange: x, IfUnused: true})
	missingExchange(ch, y)
}

func TestRow86AutoDeleteExchange(t *testing.T) {
	_, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	declare := func(x string) string {
		ch.Call(&amqp091.ExchangeDeclare{Exchange: x, Type: "direct", AutoDelete: true})
		return x
	}
	// by unbind, of the last one
	x := declare(name(t, "unbind"))
	ch.Bind(q, x, "a", nil)
	ch.Bind(q, x, "b", nil)
	ch.Call(&amqp091.QueueUnbind{Queue: q, Exchange: x, RoutingKey: "a"})
	existingExchange(ch, x)
	ch.Call(&amqp091.QueueUnbind{Queue: q, Exchange: x, RoutingKey: "b"})
	missingExchange(ch, x)
	// by the end of an exchange binding, and in a chain
	first, second := declare(name(t, "first")), declare(name(t, "second"))
	ch.BindExchange(second, first, "k")
	ch.Bind(q, second, "k", nil)
	ch.Call(&amqp091.QueueUnbind{Queue: q, Exchange: second, RoutingKey: "k"})
	missingExchange(ch, second)
	missingExchange(ch, first)
	x = declare(name(t, "e2e"))
	y := ch.Exchange(name(t, "y"), "direct")
	ch.BindExchange(y, x, "k")
	ch.Call(&amqp091.ExchangeUnbind{Destination: y, Source: x, RoutingKey: "k"})
	missingExchange(ch, x)
	existingExchange(ch, y)
	// by the end of a queue
	x = declare(name(t, "queue"))
	ch.Bind(q, x, "a", nil)
	ch.Bind(q, x, "b", nil)
	ch.Call(&amqp091.QueueDelete{Queue: q})
	missingExchange(ch, x)
}

func TestRow87AutoDeleteExchangeNeverBound(t *testing.T) {
	_, ch := begin(t)
	x, y, q := name(t, "x"), ch.Exchange(name(t, "y"), "direct"), ch.Queue(name(t, "q"))
	ch.Call(&amqp091.ExchangeDeclare{Exchange: x, Type: "direct", AutoDelete: true})
	ch.BindExchange(x, y, "k") // as a destination it does not count
	ch.Call(&amqp091.ExchangeUnbind{Destination: x, Source: y, RoutingKey: "k"})
	ch.Call(&amqp091.QueueUnbind{Queue: q, Exchange: x, RoutingKey: "k"})
	ch.Call(&amqp091.QueueDelete{Queue: q})
	existingExchange(ch, x)
}

func TestRow88ExchangeBindings(t *testing.T) {
	_, ch := begin(t)
	x, y, q := ch.Exchange(name(t, "x"), "direct"), ch.Exchange(name(t, "y"), "fanout"), ch.Queue(name(t, "q"))
	ch.BindExchange(y, x, "k")
	ch.BindExchange(y, x, "k")
	ch.Bind(q, y, "", nil)
	ch.Confirm()
	ch.Put(x, "k", "m")
	ch.Settled(1, 1)
	ch.ExpectDepth(q, 1)
	for range 2 {
		ch.Send(&amqp091.ExchangeUnbind{Destination: y, Source: x, RoutingKey: "k"})
		if e := ch.Next(); e.Method.ID() != amqp091.MakeMethodID(40, 51) {
			t.Fatalf("unbind was answered with %s", amqptest.Describe(e.Method))
		}
	}
	ch.Put(x, "k", "m")
	ch.Settled(2, 2)
	ch.ExpectDepth(q, 1)
	none := name(t, "none")
	ch.Refused(&amqp091.ExchangeBind{Destination: none, Source: x}, amqp091.NotFound, "no exchange '"+none+"' in vhost '/'")
	ch.Refused(&amqp091.ExchangeBind{Destination: none, Source: none + "2"}, amqp091.NotFound, "no exchange '"+none+"2' in vhost '/'")
	ch.Call(&amqp091.ExchangeUnbind{Destination: none, Source: none + "2"})
	// no-wait says nothing
	ch.Send(&amqp091.ExchangeBind{Destination: y, Source: x, RoutingKey: "k", NoWait: true}, &amqp091.ExchangeUnbind{Destination: y, Source: x, RoutingKey: "k", NoWait: true})
	ch.Quiet()
}

func TestRow89LineBreaksInNames(t *testing.T) {
	_, ch := begin(t)
	plain, broken := name(t, "xy"), name(t, "x\r\ny")
	ch.Exchange(broken, "direct")
	existingExchange(ch, plain)
	if got := ch.Queue(broken); got != plain {
		t.Fatalf("declare-ok says %q", got)
	}
	ch.Look(plain)
	ch.Bind(broken, broken, "k", nil)
	ch.Put(plain, "k", "m")
	ch.ExpectDepth(plain, 1)
}
