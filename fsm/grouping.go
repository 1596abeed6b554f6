package fsm

import "crypto/sha256"

// GroupByRoutingKey is the value of x-group-key that makes groups of the messages with the same routing key; any other
// is the name of a header.
const GroupByRoutingKey = "routing-key"

// Grouping says which messages of a queue belong together (x-group-key).
type Grouping struct{ by deduplication }

// Group stands for a group of a queue.
type Group [2]uint64

// Grouping returns the queue's; ok is false without one.
func (q *QueueInfo) Grouping() (g Grouping, ok bool) {
	f := q.argument("x-group-key")
	if f == nil || f.tag != 'S' || len(f.value) == 0 {
		return g, false
	}
	g.by.header = string(f.value)
	return g, true
}

// Of returns the group of a message; ok is false when it belongs to none, since it does not have the header. Values are
// the same as for deduplication.
func (g Grouping) Of(m *Message) (group Group, ok bool) {
	if g.by.header == GroupByRoutingKey {
		sum := sha256.Sum256([]byte(m.RoutingKey))
		return Group{big.Uint64(sum[:]), big.Uint64(sum[8:])}, true
	}
	k, ok := g.by.keyOf(m.Properties)
	return Group(k), ok
}
