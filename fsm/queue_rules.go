package fsm

// queueRules are what a queue does with its messages beyond keeping them. They follow from its arguments.
type queueRules struct {
	ttl             int64 // ms that a message lives; -1: for ever
	deliveryLimit   int64 // returns after which a message dies at the next; -1: none
	deadLetter      bool  // messages that die go to an exchange
	deadExchange    string
	deadKey         string
	overrideDeadKey bool // they go with deadKey rather than their own keys
	keepDead        bool // they stay until they reach a queue
}

func rulesOf(fields []field) queueRules {
	r := queueRules{ttl: -1, deliveryLimit: -1}
	if f := find(fields, "x-message-ttl"); f != nil {
		r.ttl, _ = f.integer()
	}
	if f := find(fields, "x-delivery-limit"); f != nil {
		if limit, ok := f.integer(); ok && limit >= 0 {
			r.deliveryLimit = limit
		}
	}
	if f := find(fields, "x-dead-letter-exchange"); f != nil {
		r.deadLetter, r.deadExchange = true, string(f.value)
	}
	if f := find(fields, "x-dead-letter-routing-key"); f != nil {
		r.overrideDeadKey, r.deadKey = true, string(f.value)
	}
	// As in RabbitMQ, a queue that drops from its head when it is full cannot keep what died either.
	strategy, overflow := find(fields, "x-dead-letter-strategy"), find(fields, "x-overflow")
	r.keepDead = r.deadLetter && strategy != nil && string(strategy.value) == "at-least-once" &&
		overflow != nil && string(overflow.value) == "reject-publish"
	return r
}
