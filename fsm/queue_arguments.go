package fsm

import (
	"fmt"
	"slices"
)

const maxPeriod = 315_360_000_000 // ten years in ms

// queueArgument is an argument of queue.declare that means something; all others are kept and passed over.
type queueArgument struct {
	name            string
	integer         bool
	low, high       int64
	texts           []string // allowed values; nil: any
	bad             string   // reason for another text
	classic, quorum bool
}

const unlimited = 1<<63 - 1

var queueArguments = []queueArgument{
	{name: "x-queue-type", texts: []string{"classic", "quorum"}, bad: `"unsupported queue type '%s'"`, classic: true, quorum: true},
	{name: "x-message-ttl", integer: true, high: maxPeriod, classic: true, quorum: true},
	{name: "x-expires", integer: true, low: 1, high: maxPeriod, classic: true, quorum: true},
	{name: "x-max-length", integer: true, high: unlimited, classic: true, quorum: true},
	{name: "x-max-length-bytes", integer: true, high: unlimited, classic: true, quorum: true},
	{name: "x-overflow", texts: []string{"drop-head", "reject-publish", "reject-publish-dlx"}, bad: "invalid_overflow", classic: true, quorum: true},
	{name: "x-dead-letter-exchange", classic: true, quorum: true},
	{name: "x-dead-letter-routing-key", classic: true, quorum: true},
	{name: "x-dead-letter-strategy", texts: []string{"at-most-once", "at-least-once"}, bad: "invalid_dlx_strategy", quorum: true},
	{name: "x-single-active-consumer", classic: true, quorum: true},
	{name: "x-delivery-limit", quorum: true},
	{name: "x-max-priority", integer: true, high: 255, classic: true},
	{name: "x-queue-mode", texts: []string{"default", "lazy"}, bad: `"unsupported queue mode '%s'"`, classic: true},
	{name: "x-queue-version", integer: true, low: 1, high: 2, classic: true},
	{name: "x-queue-master-locator", classic: true},
	{name: "x-queue-leader-locator", texts: []string{"client-local", "balanced", "random", "least-leaders"}, bad: "invalid_queue_locator_arg", classic: true, quorum: true},
	{name: "x-quorum-initial-group-size", integer: true, low: 1, high: unlimited, quorum: true},
	{name: "x-max-in-memory-length", integer: true, high: unlimited, quorum: true},
	{name: "x-max-in-memory-bytes", integer: true, high: unlimited, quorum: true},
	{name: "x-consumer-timeout", integer: true, high: unlimited, quorum: true},
	{name: "x-consumer-disconnected-timeout", integer: true, high: unlimited, quorum: true},
}

// checkQueueArguments validates the declaration of a new queue.
func checkQueueArguments(c *PutQueue, v *vhost, fields []field) Result {
	quorum := false
	if f := find(fields, "x-queue-type"); f != nil {
		quorum = f.tag == 'S' && string(f.value) == "quorum"
	}
	for i := range queueArguments {
		a := &queueArguments[i]
		f := find(fields, a.name)
		if f == nil {
			continue
		}
		if quorum && !a.quorum || !quorum && !a.classic {
			kind := "classic"
			if quorum {
				kind = "quorum"
			}
			return refuse(PreconditionFailed, "invalid arg '%s' for queue '%s' in vhost '%s' of queue type rabbit_%s_queue", a.name, c.Name, v.name, kind)
		}
		if a.name == "x-dead-letter-exchange" && f.tag != 'S' {
			return refuse(PreconditionFailed, "invalid type '%s' for arg 'x-dead-letter-exchange' in queue '%s' in vhost '%s'", tagNames[f.tag], c.Name, v.name)
		}
		reason := a.wrong(f)
		if a.name == "x-dead-letter-routing-key" && find(fields, "x-dead-letter-exchange") == nil {
			reason = "routing_key_but_no_dlx_defined"
		}
		if reason != "" {
			return refuse(PreconditionFailed, "invalid arg '%s' for queue '%s' in vhost '%s': %s", a.name, c.Name, v.name, reason)
		}
	}
	if !quorum {
		return Result{}
	}
	for property, wrong := range [...]bool{!c.Durable, c.Exclusive, c.AutoDelete} {
		if wrong {
			return refuse(PreconditionFailed, "invalid property '%s' for queue '%s' in vhost '%s'",
				[...]string{"non-durable", "exclusive-owner", "auto-delete"}[property], c.Name, v.name)
		}
	}
	return Result{}
}

// wrong returns RabbitMQ's reason against a value, or "".
func (a *queueArgument) wrong(f *field) string {
	if a.integer {
		x, ok := f.integer()
		switch {
		case !ok:
			return fmt.Sprintf(`"expected integer, got %s"`, tagNames[f.tag])
		case a.name == "x-queue-version" && (x < a.low || x > a.high):
			return fmt.Sprintf(`"unsupported queue version '%d'"`, x)
		case x < 0:
			return fmt.Sprintf("{value_negative,%d}", x)
		case x < a.low:
			return "{value_zero,0}"
		case x > a.high && a.high == 255:
			return fmt.Sprintf("{max_value_exceeded,%d}", x)
		case x > a.high:
			return fmt.Sprintf("{value_too_large,%d}", x)
		}
		return ""
	}
	switch a.name {
	case "x-delivery-limit":
		return ""
	case "x-single-active-consumer":
		if f.tag != 't' {
			return fmt.Sprintf("{unacceptable_type,%s}", tagNames[f.tag])
		}
		return ""
	}
	if f.tag != 'S' {
		return fmt.Sprintf("{unacceptable_type,%s}", tagNames[f.tag])
	}
	if a.texts != nil && !slices.Contains(a.texts, string(f.value)) {
		if a.bad[0] == '"' {
			return fmt.Sprintf(a.bad, f.value)
		}
		return a.bad
	}
	return ""
}
