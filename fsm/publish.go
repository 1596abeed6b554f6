package fsm

// spareContents is how many contents are allocated together; one survivor keeps them all.
const spareContents = 32

// maxPropertyBytes bounds a message's properties.
const maxPropertyBytes = 1 << 20

// checkPublish finds the exchange of a publish, or says why it is refused. highest is the producer's highest
// sequence and known whether there is one.
func (s *state) checkPublish(p *Publish, highest uint64, known bool) (*exchange, Result) {
	v := s.vhosts[p.Vhost]
	if v == nil {
		return nil, noVhost(p.Vhost)
	}
	e := v.exchanges[p.Exchange]
	switch {
	case e == nil:
		return nil, noExchange(v, p.Exchange)
	case e.internal:
		return nil, refuse(AccessRefused, "cannot publish to internal exchange '%s' in vhost '%s'", p.Exchange, v.name)
	case len(p.RoutingKey) > MaxNameBytes:
		return nil, refuse(PreconditionFailed, "a routing key of %d bytes is longer than %d", len(p.RoutingKey), MaxNameBytes)
	case len(p.Producer) > MaxProducerBytes:
		return nil, refuse(PreconditionFailed, "a producer of %d bytes is longer than %d", len(p.Producer), MaxProducerBytes)
	case len(p.Properties) > maxPropertyBytes:
		return nil, refuse(ContentTooLarge, "properties of %d bytes are longer than %d", len(p.Properties), maxPropertyBytes)
	case known && tooOld(highest, p.Sequence):
		return nil, refuse(SequenceTooOld, "sequence %d lies more than %d below the highest, %d: whether it took effect is no longer known", p.Sequence, ProducerWindow, highest)
	}
	if mayHaveCopies(p.Properties) {
		if r := CheckProperties(p.Properties); r.Code != OK {
			return nil, r
		}
	}
	if p.Upload != 0 {
		u := s.upload(p.Session, p.Upload)
		if u == nil || u.received != u.total {
			return nil, refuse(PreconditionFailed, "the body parts of upload %d are not all there", p.Upload)
		}
	}
	return e, Result{}
}

// applyPublish routes one message. Its upload is dropped whatever the result (rule 7).
func (s *state) applyPublish(p *Publish) Result {
	if p.Upload != 0 {
		defer s.dropUpload(p.Session, p.Upload)
	}
	var known *producer
	var highest uint64
	if len(p.Producer) > 0 {
		if known = s.producers.byID[string(p.Producer)]; known != nil {
			highest = known.highest
			if routed, ok := known.outcome(p.Sequence); ok && !tooOld(highest, p.Sequence) {
				s.counters.duplicates++
				s.use(known)
				return Result{Duplicate: true, Routed: routed}
			}
		}
	}
	e, r := s.checkPublish(p, highest, known != nil)
	if r.Code != OK {
		return r
	}
	if s.repeats(e.window, p.Properties) {
		if len(p.Producer) > 0 {
			s.recordPublish(known, p.Producer, p.Sequence, 1)
		}
		return Result{Duplicate: true, Routed: 1}
	}
	routed, refused, longest := s.deliver(e, p)
	if r = (Result{Routed: routed}); refused == 0 {
		s.counters.published++
		if len(p.Producer) > 0 {
			s.recordPublish(known, p.Producer, p.Sequence, routed)
		}
	} else {
		r = queueFull(routed)
	}
	if longest != nil {
		r.Longest = Backlog{longest.number, longest.messages.bytes}
	}
	return r
}

// deliver appends the message to each queue that it reaches, that has not had it and that does not refuse it; they share
// one content. routed counts those that had it, too. The longest of them is the one with the most bytes. A message with a
// delay reaches the queue in which it waits.
func (s *state) deliver(e *exchange, p *Publish) (routed uint32, refused int, longest *queue) {
	if ms := delayOf(p.Properties); ms > 0 {
		return 1, 0, s.delay(e, p, ms)
	}
	position := s.position
	s.position++
	body := p.Body
	if p.Upload != 0 {
		body = s.upload(p.Session, p.Upload).body()
	}
	queues := s.routing.route(e, p.RoutingKey, p.Properties)
	routed = uint32(len(queues))
	if len(s.windows) > 0 {
		queues = s.deduplicate(e, queues, p.Properties, uint64(len(body)))
	}
	if len(queues) == 0 {
		return routed, 0, nil
	}
	c := s.content()
	*c = content{exchange: e.name, routingKey: p.RoutingKey, properties: p.Properties, body: body,
		id: [2]uint64{s.index, position}, transient: isTransient(p.Properties)}
	c.hash = c.digest()
	refused, longest = s.enqueue(queues, c)
	s.counters.routed += uint64(len(queues) - refused)
	return routed - uint32(refused), refused, longest
}

// enqueue appends a message to queues, which share its content, and returns how many of them refused it for want of room
// and which of the others has the most bytes.
func (s *state) enqueue(queues []*queue, c *content) (refused int, longest *queue) {
	ttl, _, limited := expirationOf(c.properties)
	if !limited {
		ttl = -1
	}
	priority, prior := priorityOf(c.properties)
	var kept *content // of a transient message, for the queues that keep everything (rule 9)
	for _, q := range queues {
		limited := q.rules.limited()
		if limited && !s.checked && !q.hasRoom(1, uint64(len(c.body))) {
			s.refuseFor(q, c)
			refused++
			continue
		}
		code := uint8(0)
		if prior && q.rules.highest > 0 {
			code = q.rules.code(priority)
		}
		if c.transient && q.keepAll {
			if kept == nil {
				kept = s.content()
				*kept = *c
				kept.transient = false
			}
			q.messages.appendIn(code, kept, s.expiry(q, ttl))
		} else {
			q.messages.appendIn(code, c, s.expiry(q, ttl))
		}
		s.taken += contentBytes + uint64(len(c.body)+len(c.properties))
		if longest == nil || q.messages.bytes > longest.messages.bytes {
			longest = q
		}
		s.touch(q)
		if limited {
			q.claimNext(q.messages.last)
			s.makeRoom(q, maxDropped)
		}
		if !q.grown {
			q.grown = true
			s.grown = append(s.grown, q.number)
		}
	}
	return refused, longest
}

func (s *state) content() *content {
	if len(s.spare) == 0 {
		s.spare = make([]content, spareContents)
	}
	c := &s.spare[0]
	s.spare = s.spare[1:]
	return c
}

func (s *state) applySettle(c *Settle) Result {
	q := s.queues[c.Queue]
	if q == nil {
		return Result{}
	}
	s.touch(q)
	var n uint64
	switch c.Kind {
	case Acknowledge:
		n = q.messages.removeRuns(c.Runs)
		s.counters.acknowledged += n
	case Reject:
		if q.rules.deadLetter {
			n = s.killRuns(q, c.Runs)
		} else {
			n = q.messages.removeRuns(c.Runs)
		}
		s.counters.rejected += n
	case Return:
		for _, r := range c.Runs {
			for at, ok := q.messages.next(r.From); ok && at <= r.To; at, ok = q.messages.next(at + 1) {
				q.messages.unclaim(at)
				if q.messages.raise(at); q.rules.deliveryLimit >= 0 && int64(q.messages.deliveries(at)) > q.rules.deliveryLimit {
					s.die(q, at, DeliveryLimit)
					s.counters.overDeliveryLimit++
				} else if wait := q.rules.retry.wait(int64(q.messages.deliveries(at))); wait > 0 {
					q.messages.postpone(at, max(s.clock, 1)+wait)
				}
				n++
			}
		}
		s.counters.returned += n
		s.makeRoom(q, maxDropped)
	case Unclaim:
		for _, r := range c.Runs {
			for at, ok := q.messages.next(r.From); ok && at <= r.To; at, ok = q.messages.next(at + 1) {
				if q.messages.unclaim(at) {
					n++
				}
			}
		}
		s.makeRoom(q, maxDropped)
	}
	return Result{Messages: n}
}

// applyTransaction checks every publish before the first takes effect (rule 8). Nothing in a transaction changes
// what the check depends on, except the producers' highest sequences and the uploads, which are followed.
func (s *state) applyTransaction(c *Transaction) Result {
	type uploadKey struct {
		session Session
		number  uint64
	}
	highest, used := map[string]uint64{}, map[uploadKey]bool{}
	size := 0
	for _, o := range c.Operations {
		p, ok := o.(*Publish)
		if !ok {
			continue
		}
		id := string(p.Producer)
		top, known := highest[id]
		if producer := s.producers.byID[id]; producer != nil && !known {
			top, known = producer.highest, true
		}
		key := uploadKey{p.Session, p.Upload}
		_, r := s.checkPublish(p, top, known && id != "")
		if size += len(p.Body); size > MaxTransactionBytes {
			r = refuse(PreconditionFailed, "a transaction holds more than %d bytes", MaxTransactionBytes)
		}
		if p.Upload != 0 && used[key] {
			r = refuse(PreconditionFailed, "upload %d is published twice", p.Upload)
		}
		if r.Code != OK {
			s.abandon(c)
			return r
		}
		used[key] = true
		highest[id] = max(top, p.Sequence)
	}
	if full := s.fullFor(c); full != nil {
		s.abandon(c)
		return refuse(QueueFull, "queue '%s' in vhost '%s' has no room for what the transaction publishes", full.name, full.vhost.name)
	}
	s.checked = true
	defer func() { s.checked = false }()
	r := Result{Parts: make([]Result, 0, len(c.Operations))}
	for _, o := range c.Operations {
		r.Parts = append(r.Parts, s.dispatch(o))
	}
	return r
}

// abandon forgets the uploads of a transaction that is refused.
func (s *state) abandon(c *Transaction) {
	for _, o := range c.Operations {
		if p, ok := o.(*Publish); ok && p.Upload != 0 {
			s.dropUpload(p.Session, p.Upload)
		}
	}
}
