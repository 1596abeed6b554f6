package fsm

import "container/list"

// state is everything that the log entries up to one index have made, and the indexes to find it. Only fields that
// are commented as derived or scratch are not replicated: all others are part of the state hash and of snapshots.
// It belongs to the machine's lock.
type state struct {
	index, term uint64       // of the last applied entry
	clock       int64        // batch clock, Unix ms; never goes back (rule 14)
	cluster     string       // cluster id, "" before FoundCluster
	leader      string       // of the last LeaderStarted
	boots       []MemberBoot // in the order in which they were recorded, each server once, at most maxBoots
	lastNumber  uint64       // the last number given to a vhost, an exchange or a queue; never reused (rule 2)
	lastStamp   uint64       // the last stamp given to a producer
	cursor      dropCursor   // where DropTransient goes on
	counters    counters

	producers producers
	windows   map[uint64]*window // of exchanges and queues that let a message through once, by their numbers

	// derived indexes
	vhosts       map[uint64]*vhost
	vhostNames   map[string]*vhost
	queues       map[uint64]*queue
	byNumber     numbered // the queues
	drop         droppable
	expiring     map[uint64]*queue         // that go when they are not used
	timed        map[uint64]*queue         // with messages that expire
	dying        map[uint64]*queue         // with messages whose dead letters are to be routed
	userLimits   map[string]resourceLimits // of those that have any
	refusing     map[uint64]*queue         // that refuse messages when they are full
	overfull     map[uint64]*queue         // with more ready messages than they may have
	sessions     map[Session]*session
	uploads      int    // unfinished uploads
	uploadBytes  uint64 // received by them
	aging        agingWindows
	remembered   uint64 // values in all windows
	exchanges    rows[exchange]
	bindings     rows[binding]
	messages     uint64  // live messages of all queues that clients know, as of the last entry
	bytes        uint64  // their bodies
	waiting      uint64  // delayed messages, as of the last entry
	waitingBytes uint64  // their bodies
	memory       weights // of all queues
	taken        uint64  // bytes of contents that queues have got since the state is in this process

	sum uint64 // of the hashes of vhosts, exchanges, queues, bindings, producers, windows, uploads and policies

	// scratch of the entry that is applied
	position uint64      // publishes seen so far
	spare    []content   // contents of a publish come from here
	touched  []*queue    // their hashes are out of date
	stale    []*producer // likewise
	grown    []uint64
	deleted  []uint64
	died     []uint64
	suspect  *Audit
	overran  bool     // a queue has become overfull
	limited  []uint64 // queues that have other limits
	checked  bool     // there is room for what is published: it was looked at before
	rerouted bool     // exchanges came or went
	routing  routing
	publish  Publish // decoded command, used again by the next
	settle   Settle
}

// counters count since the state began.
type counters struct {
	published, routed, duplicates, acknowledged, rejected, returned uint64
	expired, deadLettered, deadUnrouted, overDeliveryLimit          uint64
	died                                                            uint64 // messages that waited for a dead letter
	discarded                                                       uint64 // messages purged, or gone with their queue or with the whole cluster's start
	moved                                                           uint64 // messages that operators moved
	deduplicated                                                    uint64 // messages that an exchange or a queue had had before
	delayed, released, releasedUnrouted, delayedDiscarded           uint64
	droppedMaxLength                                                uint64 // messages that died for room
	refusedMaxLength                                                uint64 // copies of messages that a full queue did not take
}

// all returns the counters in the order in which snapshots keep them: new ones go to the end.
func (n *counters) all() []*uint64 {
	return []*uint64{&n.published, &n.routed, &n.duplicates, &n.acknowledged, &n.rejected, &n.returned,
		&n.expired, &n.deadLettered, &n.deadUnrouted, &n.overDeliveryLimit, &n.died, &n.discarded, &n.moved,
		&n.deduplicated, &n.delayed, &n.released, &n.releasedUnrouted, &n.delayedDiscarded, &n.droppedMaxLength, &n.refusedMaxLength}
}

// dropCursor is how far DropTransient has looked for transient messages since the last LeaderStarted: all queues
// below queue, and in that queue all sequences below sequence.
type dropCursor struct{ queue, sequence uint64 }

// vhost is a virtual host.
type vhost struct {
	number uint64
	name   string

	exchanges map[string]*exchange
	queues    map[string]*queue
	bindings  map[bindingKey]*binding
	delayed   *queue            // in which delayed messages wait; nil before the first
	waiting   map[string]uint64 // of them, by the name of their exchange
	hash      uint64            // its part of state.sum, waiting excepted

	policies, operatorPolicies policies
	limits                     resourceLimits
}

// exchange is an exchange. The default exchange has the name "" and no bindings: it routes by queue name.
type exchange struct {
	number     uint64
	vhost      *vhost
	name       string
	kind       string // direct, fanout, topic, headers, x-delayed-message
	durable    bool
	autoDelete bool
	internal   bool
	arguments  []byte

	// derived
	routes    string // kind, or the kind that an x-delayed-message exchange is otherwise
	policies  *governing
	alternate string      // the exchange for what matches nothing, "" without
	from      bindingList // bindings of which it is the source
	into      bindingList // bindings of which it is the destination
	direct    map[string]*bindingList
	topic     *topicNode    // root, nil unless a topic exchange with bindings
	visited   uint64        // scratch: the last routing that came by
	transient *list.Element // its place in state.drop, unless durable
	row       int           // its place in state.exchanges
	window    *window       // nil unless it deduplicates
	gone      bool
	hash      uint64 // its part of state.sum
}

// queue is a queue with its messages.
type queue struct {
	number      uint64
	vhost       *vhost
	name        string
	durable     bool // never when exclusive
	exclusive   bool
	autoDelete  bool
	arguments   []byte
	owner       Session // of an exclusive queue
	mark        uint64  // deliveries may go up to it in this term (rule 11)
	suspicion   uint64  // messages up to it may have been delivered in an earlier term
	hadConsumer bool
	inUse       bool
	unusedSince int64  // batch clock; 0 while in use
	awaited     uint64 // messages that are claimed as they come (see Claim)
	messages    messages

	// derived
	policies     *governing
	rules        queueRules
	window       *window // nil unless it deduplicates
	keepAll      bool    // x-queue-type quorum: the delivery mode is ignored (rule 9)
	into         bindingList
	fixed        uint64 // hash of what never changes
	hash         uint64 // its part of state.sum
	counted      uint64 // its part of state.messages and state.bytes
	countedBytes uint64
	held         weights       // what state.memory counts of it
	inAll        *list.Element // its places in state.byNumber
	inTransient  *list.Element // and in state.drop
	inExclusive  *list.Element
	visited      uint64 // scratch: the last routing that reached it
	touched      bool   // it is in state.touched
	grown        bool   // it is in state.grown
	died         bool   // it is in state.died
	gone         bool
}

// bindingKey is a binding's identity; the numbers are of its ends.
type bindingKey struct {
	source, destination uint64
	key, arguments      string
}

// binding leads from an exchange to a queue or to an exchange.
type binding struct {
	source    *exchange
	queue     *queue    // one of these two
	exchange  *exchange // is set
	key       string
	arguments []byte

	// derived
	criteria *criteria  // of a headers exchange
	node     *topicNode // of a topic exchange
	at       [listKinds]int
	row      int    // its place in state.bindings
	hash     uint64 // its part of state.sum
}

// session is what belongs to a client connection; one without anything is forgotten.
type session struct {
	queues  map[uint64]*queue // exclusive
	uploads map[uint64]*upload
}

// newState returns a state without a single object.
func newState() *state {
	return &state{
		vhosts:     make(map[uint64]*vhost),
		vhostNames: make(map[string]*vhost),
		queues:     make(map[uint64]*queue),
		expiring:   make(map[uint64]*queue),
		timed:      make(map[uint64]*queue),
		dying:      make(map[uint64]*queue),
		refusing:   make(map[uint64]*queue),
		overfull:   make(map[uint64]*queue),
		sessions:   make(map[Session]*session),
		windows:    make(map[uint64]*window),
		userLimits: make(map[string]resourceLimits),
		producers:  producers{byID: make(map[string]*producer)},
	}
}

// genesis returns the state before the first entry.
func genesis() *state {
	s := newState()
	s.createVhost("/")
	return s
}

// nextNumber gives a number that no object had before.
func (s *state) nextNumber() uint64 {
	s.lastNumber++
	return s.lastNumber
}

// session returns what belongs to a session, made if absent.
func (s *state) session(id Session) *session {
	c := s.sessions[id]
	if c == nil {
		c = &session{queues: make(map[uint64]*queue), uploads: make(map[uint64]*upload)}
		s.sessions[id] = c
	}
	return c
}

// forget drops a session that has nothing left.
func (s *state) forget(id Session) {
	if c := s.sessions[id]; c != nil && len(c.queues) == 0 && len(c.uploads) == 0 {
		delete(s.sessions, id)
	}
}

// touch notes that the queue's hash is out of date until the end of the entry.
func (s *state) touch(q *queue) {
	if !q.touched {
		q.touched = true
		s.touched = append(s.touched, q)
	}
}

// settleUp brings the sums up to date at the end of an entry.
func (s *state) settleUp() {
	for _, q := range s.touched {
		q.touched = false
		if !q.gone {
			s.account(q)
		}
	}
	clear(s.touched)
	s.touched = s.touched[:0]
	for _, p := range s.stale {
		p.stale = false
		if !p.gone {
			s.sum += p.digest() - p.hash
			p.hash = p.digest()
		}
	}
	clear(s.stale)
	s.stale = s.stale[:0]
}

// sumsOf returns where the messages of a queue and their bytes are counted.
func (s *state) sumsOf(q *queue) (messages, bytes *uint64) {
	if q.hidden() {
		return &s.waiting, &s.waitingBytes
	}
	return &s.messages, &s.bytes
}

// account replaces a queue's part of the sums by what it is now.
func (s *state) account(q *queue) {
	hash := q.digest()
	s.sum += hash - q.hash
	count, size := s.sumsOf(q)
	*count += q.messages.count - q.counted
	*size += q.messages.bytes - q.countedBytes
	q.hash, q.counted, q.countedBytes = hash, q.messages.count, q.messages.bytes
	s.weigh(q)
}
