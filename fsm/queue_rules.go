package fsm

import "strings"

// queueRules are what a queue does with its messages beyond keeping them.
type queueRules struct {
	priorities
	ttl             int64 // ms that a message lives; -1: for ever
	expires         int64 // ms without use after which the queue goes; -1: never
	deliveryLimit   int64 // returns after which a message dies at the next; -1: none
	deadLetter      bool  // messages that die go to an exchange
	deadExchange    string
	deadKey         string
	overrideDeadKey bool // they go with deadKey rather than their own keys
	keepDead        bool // they stay until they reach a queue
	limits
	retry retry
}

// settings are what a queue or an exchange was declared with, and what the policies in force say.
type settings struct {
	arguments []field
	policy    []field
}

// ofPolicy finds what the policies say about an argument.
func (s *settings) ofPolicy(argument string) *field {
	if len(s.policy) == 0 {
		return nil
	}
	return find(s.policy, strings.TrimPrefix(argument, "x-"))
}

// text returns a setting that is a text; ok is false without it. The argument goes before the policy, but for the
// overflow of a quorum queue.
func (s *settings) text(argument string) (value string, ok bool) {
	first, second := find(s.arguments, argument), s.ofPolicy(argument)
	if argument == "x-overflow" && typesIn(s.arguments) == quorum {
		first, second = second, first
	}
	for _, f := range [...]*field{first, second} {
		if f != nil && f.tag == 'S' {
			return string(f.value), true
		}
	}
	return "", false
}

// integer returns a setting that is a number not below 0, or -1. The smaller of argument and policy counts.
func (s *settings) integer(argument string) int64 {
	least := int64(-1)
	for _, f := range [...]*field{find(s.arguments, argument), s.ofPolicy(argument)} {
		if f == nil {
			continue
		}
		if x, ok := f.integer(); ok && x >= 0 && (least < 0 || x < least) {
			least = x
		}
	}
	return least
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
	r.expires = s.integer("x-expires")
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
