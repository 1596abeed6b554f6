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

// Expires reports whether a queue goes when it is not used for a time, by its arguments or a policy.
func (m *Machine) Expires(queue uint64) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	q := m.state.queues[queue]
	return q != nil && q.rules.expires > 0
}

// ConsumerTimeout returns within how many ms the queue's deliveries must be settled, by its arguments and policies; ok is
// false when they do not say.
func (m *Machine) ConsumerTimeout(queue uint64) (ms int64, ok bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	q := m.state.queues[queue]
	if q == nil {
		return 0, false
	}
	ms = q.settings().integer("x-consumer-timeout")
	return max(ms, 0), ms >= 0
}
