package fsm

import (
	"bytes"
	"slices"
	"strings"
)

// model is the machine in plain slices and maps: slow, and plain enough to be read as its specification.
type model struct {
	index, position uint64
	term            uint64
	clock           int64
	cluster, leader string
	number          uint64
	vhosts          []*modelVhost
	exchanges       []*modelExchange // ascending by number
	queues          []*modelQueue    // ascending by number
	bindings        []*modelBinding
	producers       map[string]*modelProducer
	uploads         map[modelUpload][]byte
	totals          map[modelUpload]uint64
	boots           []MemberBoot
	cursor          dropCursor
	counters        counters
	grown, deleted  map[uint64]bool
	checked         bool // there is room
	policies        []*modelPolicy
}

type modelVhost struct {
	number  uint64
	name    string
	delayed *modelQueue // nil before the first delayed message
	most    int         // queues; -1: any number
}

type modelExchange struct {
	number                        uint64
	vhost                         *modelVhost
	name, kind, routes, alternate string
	argued                        string // the alternate exchange of its arguments
	policy, operator              string
	durable, autoDelete, internal bool
	arguments                     []byte
	window                        modelWindow
}

type modelQueue struct {
	number                                  uint64
	vhost                                   *modelVhost
	name                                    string
	durable, exclusive, autoDelete, keepAll bool
	expires                                 int64 // -1: never
	retry                                   bool  // retry after 10, 20, 40, 70 ms
	policy, operator                        string
	arguments                               []byte
	owner                                   Session
	mark, suspicion, last                   uint64
	had, inUse                              bool
	since                                   int64
	ttl, limit                              int64 // -1: none
	length, bytes                           int64 // that may be ready; -1: no limit
	overflow                                string
	awaited                                 uint64
	dead                                    bool // dead letters go to amq.fanout
	keep                                    bool // until they reach a queue
	live, dying                             []modelMessage
	window                                  modelWindow
}

type modelMessage struct {
	Message
	transient bool
	why       Reason
	claimed   bool
	history   []modelDeath // newest first
}

type modelDeath struct {
	queue string
	why   Reason
}

type modelBinding struct {
	source    *modelExchange
	exchange  *modelExchange
	queue     *modelQueue
	key       string
	arguments []byte
}

type modelProducer struct {
	highest uint64
	seen    map[uint64]uint32
	used    int64
}

type modelUpload struct {
	session Session
	number  uint64
}

func newModel() *model {
	m := &model{producers: map[string]*modelProducer{}, uploads: map[modelUpload][]byte{}, totals: map[modelUpload]uint64{}}
	m.putVhost("/")
	return m
}

func (m *model) next() uint64 { m.number++; return m.number }

func (m *model) putVhost(name string) {
	v := &modelVhost{number: m.next(), name: name, most: -1}
	m.vhosts = append(m.vhosts, v)
	for _, e := range [][2]string{{"", "direct"}, {"amq.direct", "direct"}, {"amq.fanout", "fanout"}, {"amq.headers", "headers"},
		{"amq.match", "headers"}, {"amq.rabbitmq.trace", "topic"}, {"amq.topic", "topic"}} {
		m.exchanges = append(m.exchanges, &modelExchange{number: m.next(), vhost: v, name: e[0], kind: e[1], routes: e[1], durable: true, internal: strings.HasSuffix(e[0], "trace")})
	}
}

// only returns the one that fits, or nil.
func only[T any](list []*T, fits func(*T) bool) *T {
	if i := slices.IndexFunc(list, fits); i >= 0 {
		return list[i]
	}
	return nil
}

func (m *model) vhost(number uint64) *modelVhost {
	return only(m.vhosts, func(v *modelVhost) bool { return v.number == number })
}

func (m *model) exchange(v *modelVhost, name string) *modelExchange {
	return only(m.exchanges, func(e *modelExchange) bool { return e.vhost == v && e.name == name })
}

func (m *model) queue(v *modelVhost, name string) *modelQueue {
	return only(m.queues, func(q *modelQueue) bool { return q.vhost == v && q.name == name })
}

func (m *model) numbered(number uint64) *modelQueue {
	return only(m.queues, func(q *modelQueue) bool { return q.number == number })
}

func (m *model) without(b *modelBinding) {
	i := slices.Index(m.bindings, b)
	if i < 0 {
		return
	}
	m.bindings = slices.Delete(m.bindings, i, i+1)
	if b.source.autoDelete && !slices.ContainsFunc(m.bindings, func(o *modelBinding) bool { return o.source == b.source }) {
		m.removeExchange(b.source)
	}
}

func (m *model) removeExchange(e *modelExchange) {
	i := slices.Index(m.exchanges, e)
	if i < 0 {
		return
	}
	m.exchanges = slices.Delete(m.exchanges, i, i+1)
	for _, b := range slices.Clone(m.bindings) {
		if b.source == e || b.exchange == e {
			m.without(b)
		}
	}
}

func (m *model) removeQueue(q *modelQueue) {
	i := slices.Index(m.queues, q)
	m.queues = slices.Delete(m.queues, i, i+1)
	m.counters.discarded += uint64(len(q.live))
	m.counters.deadUnrouted += uint64(len(q.dying))
	m.deleted[q.number] = true
	for _, b := range slices.Clone(m.bindings) {
		if b.queue == q {
			m.without(b)
		}
	}
}

// refused says whether and how a publish is refused; highest overrides the producer's.
func (m *model) refused(p *Publish, highest uint64) Code {
	v := m.vhost(p.Vhost)
	if v == nil {
		return NotFound
	}
	e := m.exchange(v, p.Exchange)
	switch {
	case e == nil:
		return NotFound
	case e.internal:
		return AccessRefused
	case len(p.Producer) > 0 && highest >= ProducerWindow && p.Sequence < highest-ProducerWindow:
		return SequenceTooOld
	case bytes.Contains(p.Properties, table("CC", "text")):
		return PreconditionFailed
	}
	if p.Upload != 0 {
		key := modelUpload{p.Session, p.Upload}
		if body, ok := m.uploads[key]; !ok || uint64(len(body)) != m.totals[key] {
			return PreconditionFailed
		}
	}
	return OK
}

func (m *model) publish(p *Publish) Result {
	key := modelUpload{p.Session, p.Upload}
	upload := m.uploads[key]
	if p.Upload != 0 {
		defer m.dropUpload(key)
	}
	known := m.producers[string(p.Producer)]
	var highest uint64
	if known != nil {
		highest = known.highest
		old := highest >= ProducerWindow && p.Sequence < highest-ProducerWindow
		if routed, ok := known.seen[p.Sequence]; ok && !old {
			known.used = m.clock
			m.counters.duplicates++
			return Result{Duplicate: true, Routed: routed}
		}
	}
	if code := m.refused(p, highest); code != OK {
		return Result{Code: code}
	}
	e := m.exchange(m.vhost(p.Vhost), p.Exchange)
	if m.repeats(&e.window, p) {
		m.record(known, p, 1)
		return Result{Duplicate: true, Routed: 1}
	}
	reached := map[*modelQueue]bool{}
	body := p.Body
	if p.Upload != 0 {
		body = upload
	}
	if delay := modelDelay(p.Properties); delay > 0 {
		m.delay(m.vhost(p.Vhost), p, body, delay)
		m.remember(&e.window, p)
		m.counters.published++
		m.record(known, p, 1)
		return Result{Routed: 1}
	}
	m.route(e, p, map[*modelExchange]bool{}, reached)
	r := Result{Routed: uint32(len(reached))}
	for q := range reached {
		if m.repeats(&q.window, p) {
			delete(reached, q)
		} else if m.checked || q.hasRoom(1, len(body)) {
			m.remember(&q.window, p)
		}
	}
	fresh := uint32(len(reached))
	m.enqueue(reached, p.Exchange, p.RoutingKey, p.Properties, body, nil, 0)
	m.counters.routed += uint64(len(reached))
	if refused := fresh - uint32(len(reached)); refused > 0 {
		return Result{Code: QueueFull, Routed: r.Routed - refused}
	}
	if r.Routed > 0 {
		m.remember(&e.window, p)
	}
	m.counters.published++
	m.record(known, p, r.Routed)
	return r
}

// record notes that a producer's publish took effect.
func (m *model) record(known *modelProducer, p *Publish, routed uint32) {
	if len(p.Producer) == 0 {
		return
	}
	if known == nil {
		known = &modelProducer{seen: map[uint64]uint32{}}
		m.producers[string(p.Producer)] = known
	}
	known.seen[p.Sequence] = routed
	known.highest, known.used = max(known.highest, p.Sequence), m.clock
}

// enqueue takes those out of reached that refuse the message.
func (m *model) enqueue(reached map[*modelQueue]bool, exchange, key string, properties, body []byte, history []modelDeath, deaths uint8) {
	mode := byte(0)
	if _, d, ok := headersAndMode(properties); ok {
		mode = d
	}
	own, _, limited := expirationOf(properties)
	for q := range reached {
		ttl := q.ttl
		if limited && (ttl < 0 || own < ttl) {
			ttl = own
		}
		expires := int64(0)
		if now := max(m.clock, 1); ttl == 0 {
			expires = -now
		} else if ttl > 0 {
			expires = now + ttl
		}
		if !m.checked && !q.hasRoom(1, len(body)) {
			expires = 0
			delete(reached, q)
			m.counters.refusedMaxLength++
			if q.overflow != "reject-publish-dlx" || !q.dead {
				continue
			}
			m.counters.routed++
			m.counters.droppedMaxLength++
		}
		q.last++
		x := modelMessage{Message: Message{Sequence: q.last, Exchange: strings.Clone(exchange), RoutingKey: strings.Clone(key),
			Properties: bytes.Clone(properties), Body: bytes.Clone(body), ID: [2]uint64{m.index, m.position}, Expires: expires, Deaths: deaths},
			transient: mode != 2 && !q.keepAll, history: history}
		if !reached[q] {
			x.why = MaxLength
			q.dying = append(q.dying, x)
			continue
		}
		if limited := q.length >= 0 || q.bytes >= 0; limited && q.awaited > 0 {
			q.awaited--
			x.claimed = true
		}
		q.live = append(q.live, x)
		m.makeRoom(q)
		m.grown[q.number] = true
	}
	m.position++
}

func (m *model) dropUpload(key modelUpload) {
	delete(m.uploads, key)
	delete(m.totals, key)
}

func inRuns(runs []Run, sequence uint64) bool {
	return slices.ContainsFunc(runs, func(r Run) bool { return r.From <= sequence && sequence <= r.To })
}

// removeIf removes messages and says how many.
func (q *modelQueue) removeIf(f func(*modelMessage) bool) uint64 {
	before := len(q.live)
	q.live = slices.DeleteFunc(q.live, func(x modelMessage) bool { return f(&x) })
	return uint64(before - len(q.live))
}

func (m *model) settle(c *Settle) Result {
	q := m.numbered(c.Queue)
	if q == nil {
		return Result{}
	}
	var n uint64
	switch c.Kind {
	case Acknowledge:
		n = q.removeIf(func(x *modelMessage) bool { return inRuns(c.Runs, x.Sequence) })
		m.counters.acknowledged += n
	case Reject:
		n = q.kill(Rejected, func(x *modelMessage) bool { return inRuns(c.Runs, x.Sequence) })
		m.counters.rejected += n
	case Return:
		for i := range q.live {
			if inRuns(c.Runs, q.live[i].Sequence) {
				x := &q.live[i]
				x.claimed = false
				if x.DeliveryCount++; q.retry && (q.limit < 0 || int64(x.DeliveryCount) <= q.limit) {
					x.NotBefore = max(m.clock, 1) + min(int64(10)<<min(x.DeliveryCount-1, 10), 70)
				}
				n++
			}
		}
		m.counters.overDeliveryLimit += q.kill(DeliveryLimit, func(x *modelMessage) bool { return q.limit >= 0 && int64(x.DeliveryCount) > q.limit })
		m.counters.returned += n
		m.makeRoom(q)
	case Unclaim:
		for i := range q.live {
			if x := &q.live[i]; x.claimed && inRuns(c.Runs, x.Sequence) {
				x.claimed = false
				n++
			}
		}
		m.makeRoom(q)
	}
	return Result{Messages: n}
}

func (m *model) transaction(c *Transaction) Result {
	highest := map[string]uint64{}
	used := map[modelUpload]bool{}
	for id, p := range m.producers {
		highest[id] = p.highest
	}
	for _, o := range c.Operations {
		p, ok := o.(*Publish)
		if !ok {
			continue
		}
		code := m.refused(p, highest[string(p.Producer)])
		key := modelUpload{p.Session, p.Upload}
		if p.Upload != 0 && used[key] {
			code = PreconditionFailed
		}
		used[key] = true
		if code != OK {
			m.abandon(c)
			return Result{Code: code}
		}
		highest[string(p.Producer)] = max(highest[string(p.Producer)], p.Sequence)
	}
	if !m.roomFor(c) {
		m.abandon(c)
		return Result{Code: QueueFull}
	}
	m.checked = true
	defer func() { m.checked = false }()
	r := Result{}
	for _, o := range c.Operations {
		r.Parts = append(r.Parts, m.apply(o))
	}
	return r
}
