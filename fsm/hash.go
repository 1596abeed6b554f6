package fsm

import "github.com/cespare/xxhash/v2"

// HashVersion numbers the definition of the state hash. A change of what it covers, or how, changes the number.
const HashVersion = 2

// hashesKept is how many (index, hash) pairs a machine remembers (rule 15).
const hashesKept = 1024

// Where the hash of an object begins: objects of different kinds with the same fields differ.
const (
	seedState      = 0x1f83d9abfb41bd6b
	seedVhost      = 0x9e3779b97f4a7c15
	seedExchange   = 0xbf58476d1ce4e5b9
	seedQueue      = 0x94d049bb133111eb
	seedBinding    = 0xd6e8feb86659fd93
	seedMessage    = 0xff51afd7ed558ccd
	seedProducer   = 0xc4ceb9fe1a85ec53
	seedOutcome    = 0xa0761d6478bd642f
	seedWindow     = 0x8ebc6af09c88c6e3
	seedRemembered = 0x589965cc75374cc3
	seedUpload     = 0xe7037ed1a0b428db
	seedWaiting    = 0xb5026f5aa96619e9
	seedPolicy     = 0x27bb2ee687b0b0fd
	seedUser       = 0x2127599bf4325c37
)

// mix folds a word into a hash; the order of words matters.
func mix(h, x uint64) uint64 {
	h = (h ^ x) * 0x9fb21c651e98df25
	h = (h ^ h>>32) * 0xd6e8feb86659fd93
	return h ^ h>>29
}

func mixBytes(h uint64, b []byte) uint64 { return mix(mix(h, uint64(len(b))), xxhash.Sum64(b)) }

func mixString(h uint64, s string) uint64 { return mix(mix(h, uint64(len(s))), xxhash.Sum64String(s)) }

func mixBools(h uint64, bits ...bool) uint64 {
	var x uint64
	for i, b := range bits {
		if b {
			x |= 1 << i
		}
	}
	return mix(h, x)
}

func (v *vhost) digest() uint64 { return v.limits.mix(mixString(mix(seedVhost, v.number), v.name)) }

func (e *exchange) digest() uint64 {
	h := mix(mix(seedExchange, e.number), e.vhost.number)
	h = mixString(mixString(h, e.name), e.kind)
	return mixBytes(mixBools(h, e.durable, e.autoDelete, e.internal), e.arguments)
}

func (b *binding) digest() uint64 {
	h := mix(mix(seedBinding, b.source.number), b.destination())
	return mixBytes(mixString(h, b.key), b.arguments)
}

// fixedDigest covers what never changes of a queue.
func (q *queue) fixedDigest() uint64 {
	h := mixString(mix(mix(seedQueue, q.number), q.vhost.number), q.name)
	h = mixBytes(mixBools(h, q.durable, q.exclusive, q.autoDelete), q.arguments)
	return mix(mix(h, q.owner.Term), q.owner.Number)
}

// digest costs the same however many messages there are.
func (q *queue) digest() uint64 {
	h := mixBools(q.fixed, q.hadConsumer, q.inUse)
	h = mix(mix(mix(h, q.mark), q.suspicion), uint64(q.unusedSince))
	if q.awaited != 0 {
		h = mix(h, q.awaited)
	}
	return mix(mix(mix(h, q.messages.last), q.messages.count), q.messages.sum)
}

// digest covers a message but for its sequence and delivery count, which its queue adds.
func (c *content) digest() uint64 {
	h := mixString(mixString(seedMessage, c.exchange), c.routingKey)
	h = mixBytes(mixBytes(h, c.properties), c.body)
	if c.deaths != 0 {
		h = mix(h, uint64(c.deaths))
	}
	return mix(mix(h, c.id[0]), c.id[1])
}

// hash returns the state hash: the sum over all objects, so that each can come and go alone, and what there is once.
func (s *state) hash() uint64 {
	h := mixString(mixString(mix(seedState, uint64(s.clock)), s.cluster), s.leader)
	for _, b := range s.boots {
		h = mixBytes(mixString(h, b.Server), b.Boot[:])
	}
	h = mix(mix(mix(mix(h, s.lastNumber), s.lastStamp), s.cursor.queue), s.cursor.sequence)
	for _, n := range s.counters.all() {
		h = mix(h, *n)
	}
	return h + s.sum
}

// hashRing remembers the last hashes. They are this node's own and no part of the state.
type hashRing struct {
	index, hash [hashesKept]uint64
}

func (r *hashRing) put(index, hash uint64) {
	at := index % hashesKept
	r.index[at], r.hash[at] = index, hash
}

func (r *hashRing) get(index uint64) (uint64, bool) {
	at := index % hashesKept
	return r.hash[at], index != 0 && r.index[at] == index
}
