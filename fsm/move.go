package fsm

// MaxMoved bounds the messages of one Move.
const MaxMoved = 1024

// Move takes live messages out of a queue, each in this entry into another queue or into those that an exchange leads it
// to: a message is never in both places, nor in none. None of them may be held by a consumer, nor handed out before this
// is applied (rule 3). What is no longer live, or has expired, is passed over, and what would reach no queue stays where
// it is. Result.Messages is how many moved; Result.Parts has a Result for each message, in order: Routed is how many
// queues it reached, and one that stays has the code of what is in its way.
type Move struct {
	Queue    uint64
	Messages []Moved // at most MaxMoved
}

// Moved is a message of a Move.
type Moved struct {
	Sequence uint64
	To       uint64 // number of the queue it goes to; 0: to where the exchange of Message routes it
	// Message is what it becomes there: Exchange, RoutingKey, Properties, and Body or Upload. Nothing else counts.
	Message Publish
}

// DeleteMessages removes the live messages in Runs. None of them may be held by a consumer (rule 3). Result.Messages is
// how many there were.
type DeleteMessages struct {
	Queue uint64
	Runs  []Run
}

func (Move) opcode() Opcode           { return OpMove }
func (DeleteMessages) opcode() Opcode { return OpDeleteMessages }

func (c Move) appendTo(b []byte) []byte {
	b = appendUint(appendUint(appendArray(b, 2), c.Queue), uint64(len(c.Messages)))
	for i := range c.Messages {
		m := &c.Messages[i]
		b = m.Message.encode(appendUint(appendUint(b, m.Sequence), m.To))
	}
	return b
}

func (c *Move) size() int {
	n := 0
	for i := range c.Messages {
		n += 32 + Size(&c.Messages[i].Message)
	}
	return n
}

func (d *decoder) decodeMove() *Move {
	d.want(2)
	c := &Move{Queue: d.uint()}
	n := d.uint()
	if n > MaxMoved || n*3 > uint64(len(d.b)) {
		d.fail()
		return c
	}
	c.Messages = make([]Moved, n)
	for i := range c.Messages {
		m := &c.Messages[i]
		m.Sequence, m.To = d.uint(), d.uint()
		d.decodePublish(&m.Message)
	}
	return c
}

func (c DeleteMessages) appendTo(b []byte) []byte {
	return appendRuns(appendUint(appendArray(b, 2), c.Queue), ascending(c.Runs))
}

func (s *state) applyMove(c *Move) Result {
	q := s.queues[c.Queue]
	r := Result{Parts: make([]Result, len(c.Messages))}
	if q == nil {
		r = refuse(NotFound, "no queue with number %d: it was deleted", c.Queue)
	} else {
		s.touch(q)
	}
	for i := range c.Messages {
		m := &c.Messages[i]
		if q != nil {
			if r.Parts[i] = s.move(q, m); r.Parts[i].Routed > 0 {
				r.Messages++
			}
		}
		if m.Message.Upload != 0 {
			s.dropUpload(m.Message.Session, m.Message.Upload)
		}
	}
	return r
}

// move moves one message.
func (s *state) move(q *queue, m *Moved) Result {
	p := &m.Message
	where, position, ok := q.messages.at(m.Sequence)
	if !ok || q.messages.claimed(m.Sequence) {
		return Result{}
	}
	if e := q.messages.chunks[where].expiresAt(position); e != 0 && max(e, -e) <= s.clock {
		return Result{}
	}
	body := p.Body
	if p.Upload != 0 {
		u := s.upload(p.Session, p.Upload)
		if u == nil || u.received != u.total {
			return refuse(PreconditionFailed, "the body parts of upload %d are not all there", p.Upload)
		}
		body = u.body()
	}
	queues, r := s.destination(q, m)
	if r.Code != OK {
		return r
	}
	if full := withoutRoom(queues, uint64(len(body)), q); full != nil {
		return refuse(QueueFull, "queue '%s' in vhost '%s' has no room for it", full.name, full.vhost.name)
	}
	q.messages.remove(m.Sequence)
	c := s.content()
	*c = content{exchange: p.Exchange, routingKey: p.RoutingKey, properties: p.Properties, body: body,
		id: [2]uint64{s.index, s.position}, transient: isTransient(p.Properties)}
	c.hash = c.digest()
	s.position++
	s.checked = true
	s.enqueue(queues, c)
	s.checked = false
	s.counters.moved++
	s.counters.routed += uint64(len(queues))
	return Result{Routed: uint32(len(queues))}
}

// destination returns the queues that a message goes to, at least one.
func (s *state) destination(q *queue, m *Moved) ([]*queue, Result) {
	if m.To != 0 {
		to := s.queues[m.To]
		switch {
		case to == nil || to.vhost != q.vhost:
			return nil, refuse(NotFound, "no queue with number %d: it was deleted", m.To)
		case to == q:
			return nil, refuse(PreconditionFailed, "queue '%s' in vhost '%s' is where the message is already", q.name, q.vhost.name)
		}
		return []*queue{to}, Result{}
	}
	e := q.vhost.exchanges[m.Message.Exchange]
	switch {
	case e == nil:
		return nil, noExchange(q.vhost, m.Message.Exchange)
	case e.internal:
		return nil, refuse(AccessRefused, "cannot publish to internal exchange '%s' in vhost '%s'", e.name, q.vhost.name)
	}
	queues := s.routing.route(e, m.Message.RoutingKey, m.Message.Properties)
	if len(queues) == 0 {
		return nil, refuse(NotFound, "no queue for key '%s' of exchange '%s' in vhost '%s'", m.Message.RoutingKey, e.name, q.vhost.name)
	}
	return queues, Result{}
}

func (s *state) applyDeleteMessages(c *DeleteMessages) Result {
	q := s.queues[c.Queue]
	if q == nil {
		return refuse(NotFound, "no queue with number %d: it was deleted", c.Queue)
	}
	s.touch(q)
	n := q.messages.removeRuns(q.messages.unclaimedIn(c.Runs))
	s.counters.discarded += n
	return Result{Messages: n}
}
