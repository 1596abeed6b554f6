package fsm

// The exchange types.
const (
	direct  = "direct"
	fanout  = "fanout"
	topic   = "topic"
	headers = "headers"
	delays  = "x-delayed-message" // routes as the type in its argument x-delayed-type does
)

// routing is the scratch of one message's way; nothing of it outlives the message.
type routing struct {
	round       uint64 // numbers messages; queues, exchanges and topic nodes visited carry it
	key         [1]string
	keys        []string // key, or with the copies'
	queues      []*queue
	exchanges   []*exchange // to visit
	step        uint64      // numbers words
	nodes, next []*topicNode
	headers     []field
	parsed      bool
}

// route returns the queues that a message reaches, each once. Each exchange on the way is asked for every key of the
// message: the one it was published with and those in its CC and BCC headers.
func (r *routing) route(e *exchange, key string, properties []byte) []*queue {
	r.round++
	r.key[0] = key
	r.keys = r.key[:]
	if mayHaveCopies(properties) {
		r.keys = appendCopies([]string{key}, properties)
	}
	r.queues, r.exchanges, r.parsed = r.queues[:0], r.exchanges[:0], false
	r.visit(e)
	for i := 0; i < len(r.exchanges); i++ {
		e := r.exchanges[i]
		if !r.follow(e, properties) && e.alternate != "" {
			r.visit(e.vhost.exchanges[e.alternate])
		}
	}
	return r.queues
}

func (r *routing) visit(e *exchange) {
	if e != nil && e.visited != r.round {
		e.visited = r.round
		r.exchanges = append(r.exchanges, e)
	}
}

func (r *routing) reach(q *queue) {
	if q.visited != r.round {
		q.visited = r.round
		r.queues = append(r.queues, q)
	}
}

func (r *routing) take(list bindingList) bool {
	for _, b := range list {
		r.takeOne(b)
	}
	return len(list) > 0
}

func (r *routing) takeOne(b *binding) {
	if b.queue != nil {
		r.reach(b.queue)
	} else {
		r.visit(b.exchange)
	}
}

// follow goes over an exchange's bindings and reports whether any matched.
func (r *routing) follow(e *exchange, properties []byte) (found bool) {
	switch {
	case e.name == "":
		for _, key := range r.keys {
			if q := e.vhost.queues[key]; q != nil {
				r.reach(q)
				found = true
			}
		}
	case e.routes == direct:
		for _, key := range r.keys {
			if list := e.direct[key]; list != nil {
				found = r.take(*list) || found
			}
		}
	case e.routes == fanout:
		found = r.take(e.from)
	case e.routes == topic && e.topic != nil:
		for _, key := range r.keys {
			for _, n := range r.match(e.topic, key) {
				if n.taken != r.round {
					n.taken = r.round
					found = r.take(n.bindings) || found
				}
			}
		}
	case e.routes == headers:
		if !r.parsed {
			r.headers, r.parsed = messageHeaders(properties, r.headers[:0]), true
		}
		for _, b := range e.from {
			if b.criteria.match(r.headers) {
				r.takeOne(b)
				found = true
			}
		}
	}
	return found
}
