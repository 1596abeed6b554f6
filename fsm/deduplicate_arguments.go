package fsm

import "fmt"

// deduplicationArguments are what both exchanges and queues know of deduplication.
var deduplicationArguments = []queueArgument{
	{"x-deduplication-header", classic | quorum, nameOfHeader},
	{"x-deduplication-window", classic | quorum, beside("x-deduplication-header", integerIn(0, maxPeriod))},
	{"x-deduplication-size", classic | quorum, beside("x-deduplication-header", integerIn(1, maxDeduplicationSize))},
}

// nameOfHeader allows what can be the name of a header.
func nameOfHeader(f *field, all []field) string {
	if f.tag == 'S' && (len(f.value) == 0 || len(f.value) > MaxNameBytes) {
		return fmt.Sprintf(`"a header's name has 1 to %d bytes, this has %d"`, MaxNameBytes, len(f.value))
	}
	return anyText(f, all)
}

// beside makes a check refuse an argument without another.
func beside(other string, check func(*field, []field) string) func(*field, []field) string {
	return func(f *field, all []field) string {
		if find(all, other) == nil {
			return fmt.Sprintf(`"it means nothing without %s"`, other)
		}
		return check(f, all)
	}
}

// checkExchangeDeduplication validates a new exchange's arguments.
func checkExchangeDeduplication(c *PutExchange, v *vhost, fields []field) Result {
	for i := range deduplicationArguments {
		a := &deduplicationArguments[i]
		if f := find(fields, a.name); f != nil {
			if reason := a.wrong(f, fields); reason != "" {
				return refuse(PreconditionFailed, "invalid arg '%s' for exchange '%s' in vhost '%s': %s", a.name, c.Name, v.name, reason)
			}
		}
	}
	return Result{}
}
