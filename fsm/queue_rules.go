package fsm

// queueRules are what a queue does with its messages beyond keeping them.
type queueRules struct {
	priorities
	ttl             int64 // ms that a message lives; -1: for ever
	deliveryLimit   int64 // returns after which a message dies at the next; -1: none
	deadLetter      bool  // messages that die go to an exchange
	deadExchange    string
	deadKey         string
	overrideDeadKey bool // they go with deadKey rather than their own keys
	keepDead        bool // they stay until they reach a queue
	limits
	retry retry
}

// settings are what a queue was declared with.
type settings struct {
	arguments []field
}

// text returns a setting that is a text; ok is false without it.
func (s *settings) text(argument string) (value string, ok bool) {
	f := find(s.arguments, argument)
	if f == nil || f.tag != 'S' {
		return "", false
	}
	return string(f.value), true
}

// integer returns a setting that is a number not below 0, or -1.
func (s *settings) integer(argument string) int64 {
	if f := find(s.arguments, argument); f != nil {
		if x, ok := f.integer(); ok && x >= 0 {
			return x
		}
	}
	return -1
}

func (s *settings) rules() (r queueRules) {
	kind, _ := s.text("x-queue-type")
	quorum := kind == "quorum"
	if highest := s.integer("x-max-priority"); highest > 0 {
		r.priorities = priorities{highest: uint8(min(highest, 255))}
	} else if quorum {
		r.priorities = quorumPriorities
	}
	r.limits = s.limits(quorum)
	r.ttl = s.integer("x-message-ttl")
	r.deliveryLimit = s.integer("x-delivery-limit")
	r.retry = s.retry()
	r.deadExchange, r.deadLetter = s.text("x-dead-letter-exchange")
	r.deadKey, r.overrideDeadKey = s.text("x-dead-letter-routing-key")
	// As in RabbitMQ, a queue that drops from its head when it is full cannot keep what died either.
	strategy, _ := s.text("x-dead-letter-strategy")
	overflow, _ := s.text("x-overflow")
	r.keepDead = r.deadLetter && strategy == "at-least-once" && overflow == "reject-publish"
	return r
}
