package amqp_test

import (
	"testing"

	"github.com/warrenmq/warren/protocol/amqp091"
)

const tooLate = int64(315360000001) // ms

// argument is a declare's argument and why it is refused.
type argument struct {
	key    string
	value  any
	reason string
}

// TestRow117BadArguments: each bad value of the list of arguments.
func TestRow117BadArguments(t *testing.T) {
	_, ch := begin(t)
	q := name(t, "q")
	for _, a := range []argument{
		{"x-message-ttl", int32(-1), "{value_negative,-1}"},
		{"x-message-ttl", tooLate, "{value_too_large,315360000001}"},
		{"x-message-ttl", "10", `"expected integer, got longstr"`},
		{"x-expires", int32(-1), "{value_negative,-1}"},
		{"x-expires", tooLate, "{value_too_large,315360000001}"},
		{"x-expires", true, `"expected integer, got bool"`},
		{"x-max-length", int32(-1), "{value_negative,-1}"},
		{"x-max-length", "5", `"expected integer, got longstr"`},
		{"x-max-length-bytes", int64(-5), "{value_negative,-5}"},
		{"x-overflow", "drop", "invalid_overflow"},
		{"x-single-active-consumer", "true", "{unacceptable_type,longstr}"},
		{"x-max-priority", int32(256), "{max_value_exceeded,256}"},
		{"x-max-priority", int32(-1), "{value_negative,-1}"},
		{"x-queue-mode", "foo", `"unsupported queue mode 'foo'"`},
		{"x-queue-version", int32(3), `"unsupported queue version '3'"`},
		{"x-queue-leader-locator", "nowhere", "invalid_queue_locator_arg"},
		{"x-queue-type", "foo", `"unsupported queue type 'foo'"`},
		{"x-queue-type", "stream", `"unsupported queue type 'stream'"`},
		{"x-queue-type", int32(1), "{unacceptable_type,signedint}"},
	} {
		ch.Refused(&amqp091.QueueDeclare{Queue: q, Durable: true, Arguments: table(t, amqp091.Map{a.key: a.value})}, amqp091.PreconditionFailed,
			"invalid arg '"+a.key+"' for queue '"+q+"' in vhost '/': "+a.reason)
	}
	ch.Refused(&amqp091.QueueDeclare{Queue: q, Arguments: table(t, amqp091.Map{"x-dead-letter-exchange": int32(1)})}, amqp091.PreconditionFailed,
		"invalid type 'signedint' for arg 'x-dead-letter-exchange' in queue '"+q+"' in vhost '/'")
	for _, a := range []argument{
		{"x-quorum-initial-group-size", int32(0), "{value_zero,0}"},
		{"x-dead-letter-strategy", "maybe", "invalid_dlx_strategy"},
		{"x-max-length", int32(-1), "{value_negative,-1}"},
		{"x-overflow", "drop", "invalid_overflow"},
	} {
		ch.Refused(&amqp091.QueueDeclare{Queue: q, Durable: true, Arguments: table(t, amqp091.Map{"x-queue-type": "quorum", a.key: a.value})}, amqp091.PreconditionFailed,
			"invalid arg '"+a.key+"' for queue '"+q+"' in vhost '/': "+a.reason)
	}
	if ch.Exists(q) {
		t.Fatal("a refused declare made the queue")
	}
}

// TestRow117GoodArguments: each good value is one.
func TestRow117GoodArguments(t *testing.T) {
	_, ch := begin(t)
	for i, a := range []amqp091.Map{
		{"x-message-ttl": int64(315360000000)}, {"x-expires": int32(60000)}, {"x-max-length": int32(0)}, {"x-max-length-bytes": int64(1) << 40},
		{"x-overflow": "drop-head"}, {"x-overflow": "reject-publish"}, {"x-overflow": "reject-publish-dlx"}, {"x-dead-letter-exchange": "none", "x-dead-letter-routing-key": "k"},
		{"x-single-active-consumer": true}, {"x-max-priority": int32(0)}, {"x-max-priority": uint8(255)}, {"x-queue-mode": "lazy"}, {"x-queue-version": int32(2)},
		{"x-queue-master-locator": "min-masters"}, {"x-queue-leader-locator": "balanced"}, {"x-queue-type": "classic", "x-max-priority": int32(5)},
		{"x-queue-type": "quorum", "x-delivery-limit": int32(-5)}, {"x-queue-type": "quorum", "x-quorum-initial-group-size": int32(3)},
		{"x-queue-type": "quorum", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish", "x-dead-letter-exchange": "none"},
		{"x-queue-type": "quorum", "x-max-in-memory-length": int32(1), "x-max-in-memory-bytes": int32(1)},
	} {
		m := &amqp091.QueueDeclare{Queue: name(t, string(rune('a'+i))), Durable: true, Arguments: table(t, a)}
		ch.Declare(m)
		ch.Declare(m)
	}
}

func TestRow118ForeignToQuorum(t *testing.T) {
	_, ch := begin(t)
	q := name(t, "q")
	for key, value := range map[string]any{"x-max-priority": int32(5), "x-queue-mode": "lazy", "x-max-age": "1h", "x-queue-version": int32(2), "x-queue-master-locator": "min-masters"} {
		ch.Refused(&amqp091.QueueDeclare{Queue: q, Durable: true, Arguments: table(t, amqp091.Map{"x-queue-type": "quorum", key: value})}, amqp091.PreconditionFailed,
			"invalid arg '"+key+"' for queue '"+q+"' in vhost '/' of queue type rabbit_quorum_queue")
	}
}

// TestRow119ForeignToClassic: with an explicit type; without one every combination is allowed.
func TestRow119ForeignToClassic(t *testing.T) {
	_, ch := begin(t)
	q := name(t, "q")
	for key, value := range map[string]any{"x-delivery-limit": int32(5), "x-dead-letter-strategy": "at-most-once", "x-quorum-initial-group-size": int32(3), "x-max-age": "1h"} {
		ch.Refused(&amqp091.QueueDeclare{Queue: q, Durable: true, Arguments: table(t, amqp091.Map{"x-queue-type": "classic", key: value})}, amqp091.PreconditionFailed,
			"invalid arg '"+key+"' for queue '"+q+"' in vhost '/' of queue type rabbit_classic_queue")
	}
	if *against == "" {
		ch.Declare(&amqp091.QueueDeclare{Queue: q, Durable: true, Arguments: table(t, amqp091.Map{"x-delivery-limit": int32(5), "x-max-priority": int32(5)})})
	}
}

func TestRow120RoutingKeyWithoutExchange(t *testing.T) {
	_, ch := begin(t)
	for _, m := range []*amqp091.QueueDeclare{{Queue: name(t, "K"), Arguments: table(t, amqp091.Map{"x-dead-letter-routing-key": "k"})},
		{Queue: name(t, "Q"), Durable: true, Arguments: table(t, amqp091.Map{"x-dead-letter-routing-key": "k", "x-queue-type": "quorum"})}} {
		ch.Refused(m, amqp091.PreconditionFailed, "invalid arg 'x-dead-letter-routing-key' for queue '"+m.Queue+"' in vhost '/': routing_key_but_no_dlx_defined")
	}
}

func TestRow121UnknownArgument(t *testing.T) {
	_, ch := begin(t)
	for _, q := range []*amqp091.QueueDeclare{{Queue: name(t, "K"), Arguments: table(t, amqp091.Map{"x-made-up": "v", "foo": amqp091.Map{"a": nil}})},
		{Queue: name(t, "Q"), Durable: true, Arguments: table(t, amqp091.Map{"x-made-up": "v", "x-queue-type": "quorum"})}} {
		ch.Declare(q)
	}
	ch.Declare(&amqp091.QueueDeclare{Queue: name(t, "K"), Arguments: table(t, amqp091.Map{"x-made-up": int32(1)})}) // not compared
}

func TestRow122TimeLimits(t *testing.T) {
	_, ch := begin(t)
	q := name(t, "q")
	declare := func(key string, value any) amqp091.Method {
		return &amqp091.QueueDeclare{Queue: q, Arguments: table(t, amqp091.Map{key: value})}
	}
	ch.Refused(declare("x-expires", int32(0)), amqp091.PreconditionFailed, "invalid arg 'x-expires' for queue '"+q+"' in vhost '/': {value_zero,0}")
	for _, key := range []string{"x-expires", "x-message-ttl"} {
		ch.Refused(declare(key, tooLate), amqp091.PreconditionFailed, "invalid arg '"+key+"' for queue '"+q+"' in vhost '/': {value_too_large,315360000001}")
	}
	ch.Call(declare("x-message-ttl", int32(0)))
	ch.Declare(&amqp091.QueueDeclare{Queue: name(t, "ten years"), Arguments: table(t, amqp091.Map{"x-expires": tooLate - 1, "x-message-ttl": tooLate - 1})})
}
