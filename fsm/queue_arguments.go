package fsm

import (
	"fmt"
	"slices"
	"strings"
)

const maxPeriod = 315_360_000_000 // ten years in ms

// queueArgument is an argument of queue.declare that means something; all others are kept and passed over.
type queueArgument struct {
	name  string
	types queueTypes // that know it
	wrong func(value *field, all []field) (reason string)
}

// queueTypes are values of x-queue-type. A queue declared without has all of Warren's: each argument is allowed
// beside each other.
type queueTypes uint8

const (
	classic queueTypes = 1 << iota
	quorum
	stream // not served
)

// queueArguments are in the order in which RabbitMQ looks at them.
var queueArguments = append([]queueArgument{
	{"x-queue-type", classic | quorum, oneOf(`"unsupported queue type '%s'"`, "classic", "quorum")},
	{"x-expires", classic | quorum, integerIn(1, maxPeriod)},
	{"x-message-ttl", classic | quorum, integerIn(0, maxPeriod)},
	{"x-dead-letter-exchange", classic | quorum, anyText},
	{"x-dead-letter-routing-key", classic | quorum, textBeside("x-dead-letter-exchange", "routing_key_but_no_dlx_defined")},
	{"x-dead-letter-strategy", quorum, oneOf("invalid_dlx_strategy", "at-most-once", "at-least-once")},
	{"x-max-length", classic | quorum, integerIn(0, unlimited)},
	{"x-max-length-bytes", classic | quorum, integerIn(0, unlimited)},
	{"x-max-in-memory-length", quorum, integerIn(0, unlimited)},
	{"x-max-in-memory-bytes", quorum, integerIn(0, unlimited)},
	{"x-max-priority", classic, maxPriority},
	{"x-overflow", classic | quorum, oneOf("invalid_overflow", "drop-head", "reject-publish", "reject-publish-dlx")},
	{"x-queue-mode", classic, oneOf(`"unsupported queue mode '%s'"`, "default", "lazy")},
	{"x-queue-version", classic, queueVersion},
	{"x-single-active-consumer", classic | quorum, boolean},
	{"x-queue-master-locator", classic, anyText},
	{"x-queue-leader-locator", classic | quorum, oneOf("invalid_queue_locator_arg", "client-local", "balanced", "random", "least-leaders")},
	{"x-quorum-initial-group-size", quorum, integerIn(1, unlimited)},
	{"x-delivery-limit", quorum, anything},
	{"x-consumer-timeout", quorum, integerIn(0, unlimited)},
	{"x-consumer-disconnected-timeout", quorum, integerIn(0, unlimited)},
	{"x-delayed-retry-type", quorum, oneOf("invalid_delayed_retry_type", "disabled", "all", "failed", "returned")},
	{"x-delayed-retry-min", quorum, integerIn(0, unlimited)},
	{"x-delayed-retry-max", quorum, integerIn(0, unlimited)},
	{"x-delayed-retry-multiplier", quorum, integerIn(1, maxRetryMultiplier)},
	{"x-max-age", stream, anything},
	{"x-stream-max-segment-size-bytes", stream, anything},
	{"x-stream-filter-size-bytes", stream, anything},
	{"x-group-key", classic | quorum, groupKey},
}, deduplicationArguments...)

// typesIn returns the types that the arguments of a queue allow.
func typesIn(fields []field) queueTypes {
	if f := find(fields, "x-queue-type"); f != nil && f.tag == 'S' {
		switch string(f.value) {
		case "classic":
			return classic
		case "quorum":
			return quorum
		}
	}
	return classic | quorum
}

// checkQueueArguments validates the declaration of a new queue.
func checkQueueArguments(c *PutQueue, v *vhost, fields []field) Result {
	invalid := func(kind, name, format string, more ...any) Result {
		return refuse(PreconditionFailed, "invalid %s '%s' for queue '%s' in vhost '%s'"+format, append([]any{kind, name, c.Name, v.name}, more...)...)
	}
	types, called := typesIn(fields), "classic"
	if types == quorum {
		called = "quorum"
		if strings.HasPrefix(c.Name, "amq.gen-") {
			return refuse(PreconditionFailed, "Cannot declare a server-named queue for type rabbit_quorum_queue")
		}
	}
	if f := find(fields, "x-dead-letter-exchange"); f != nil && f.tag != 'S' {
		return refuse(PreconditionFailed, "invalid type '%s' for arg '%s' in queue '%s' in vhost '%s'", tagNames[f.tag], f.name, c.Name, v.name)
	}
	if f := find(fields, "x-queue-type"); f != nil {
		if reason := queueArguments[0].wrong(f, fields); reason != "" {
			return invalid("arg", f.name, ": %s", reason)
		}
	}
	for i := range queueArguments {
		if a := &queueArguments[i]; a.types&types == 0 && find(fields, a.name) != nil {
			return invalid("arg", a.name, " of queue type rabbit_%s_queue", called)
		}
	}
	for i := range queueArguments {
		a := &queueArguments[i]
		if f := find(fields, a.name); f != nil {
			if reason := a.wrong(f, fields); reason != "" {
				return invalid("arg", a.name, ": %s", reason)
			}
		}
	}
	switch {
	case types != quorum:
	case c.AutoDelete:
		return invalid("property", "auto-delete", "")
	case c.Exclusive:
		return invalid("property", "exclusive-owner", "")
	case !c.Durable:
		return invalid("property", "non-durable", "")
	}
	return Result{}
}

// differs returns the name of the first argument in which a declaration is not equivalent to the queue that exists,
// or "". Arguments that are foreign to the queue's type are not compared, and no type is the type classic.
func differs(received, current []field) string {
	types := typesIn(current)
	for i := range queueArguments {
		a := &queueArguments[i]
		if a.types&types == 0 {
			continue
		}
		x, y := find(received, a.name), find(current, a.name)
		if a.name == "x-queue-type" && isClassic(x) && isClassic(y) {
			continue
		}
		if !same(x, y) {
			return a.name
		}
	}
	return ""
}

func isClassic(f *field) bool { return f == nil || f.tag == 'S' && string(f.value) == "classic" }

// What follows are RabbitMQ's reasons against a value, "" for none.

func unacceptable(f *field) string { return fmt.Sprintf("{unacceptable_type,%s}", tagNames[f.tag]) }

func anything(*field, []field) string { return "" }

func anyText(f *field, _ []field) string {
	if f.tag != 'S' {
		return unacceptable(f)
	}
	return ""
}

func boolean(f *field, _ []field) string {
	if f.tag != 't' {
		return unacceptable(f)
	}
	return ""
}

// oneOf allows some texts. A reason with %s shows the text.
func oneOf(reason string, texts ...string) func(*field, []field) string {
	return func(f *field, _ []field) string {
		switch {
		case f.tag != 'S':
			return unacceptable(f)
		case slices.Contains(texts, string(f.value)):
			return ""
		case strings.Contains(reason, "%s"):
			return fmt.Sprintf(reason, f.value)
		}
		return reason
	}
}

// textBeside allows any text when another argument is there.
func textBeside(other, reason string) func(*field, []field) string {
	return func(f *field, all []field) string {
		if f.tag == 'S' && find(all, other) == nil {
			return reason
		}
		return anyText(f, all)
	}
}

// groupKey refuses groups beside a limit, since what waits for its group's consumer is neither ready nor held, and beside
// retries, which would leave their place to the messages behind them.
func groupKey(f *field, all []field) string {
	for _, other := range []string{"x-max-length", "x-max-length-bytes", "x-delayed-retry-min"} {
		if find(all, other) != nil {
			return "a queue with groups cannot have " + other
		}
	}
	return nameOfHeader(f, all)
}

const unlimited = 1<<63 - 1

func integerIn(low, high int64) func(*field, []field) string {
	return func(f *field, _ []field) string {
		x, ok := f.integer()
		switch {
		case !ok:
			return fmt.Sprintf(`"expected integer, got %s"`, tagNames[f.tag])
		case x < 0:
			return fmt.Sprintf("{value_negative,%d}", x)
		case x < low:
			return "{value_zero,0}"
		case x > high:
			return fmt.Sprintf("{value_too_large,%d}", x)
		}
		return ""
	}
}

func maxPriority(f *field, all []field) string {
	if x, ok := f.integer(); ok && x > 255 {
		return fmt.Sprintf("{max_value_exceeded,%d}", x)
	}
	return integerIn(0, 255)(f, all)
}

func queueVersion(f *field, all []field) string {
	if x, ok := f.integer(); ok && x >= 0 && x != 1 && x != 2 {
		return fmt.Sprintf(`"unsupported queue version '%d'"`, x)
	}
	return integerIn(0, 2)(f, all)
}
