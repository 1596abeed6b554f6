package fsm

// argument finds an argument of a queue.
func (q *QueueInfo) argument(name string) *field {
	fields, _ := parseTable(q.Arguments, nil)
	return find(fields, name)
}

// Quorum reports whether the queue was declared with x-queue-type quorum.
func (q *QueueInfo) Quorum() bool {
	f := q.argument("x-queue-type")
	return f != nil && string(f.value) == "quorum"
}

// Prioritized reports whether the queue knows priorities: x-max-priority, or any queue declared as a quorum queue.
func (q *QueueInfo) Prioritized() bool {
	fields, _ := parseTable(q.Arguments, nil)
	return (&settings{arguments: fields}).rules().highest > 0
}

// SingleActiveConsumer reports whether only one of the queue's consumers receives at a time.
func (q *QueueInfo) SingleActiveConsumer() bool {
	f := q.argument("x-single-active-consumer")
	return f != nil && f.tag == 't' && f.value[0] != 0
}

// Expires reports whether the queue goes when it is not used for a time (x-expires).
func (q *QueueInfo) Expires() bool { return q.argument("x-expires") != nil }

// ConsumerTimeout returns the queue's x-consumer-timeout in ms, if it has one.
func (q *QueueInfo) ConsumerTimeout() (ms int64, ok bool) {
	f := q.argument("x-consumer-timeout")
	if f == nil {
		return 0, false
	}
	ms, ok = f.integer()
	return max(ms, 0), ok
}
