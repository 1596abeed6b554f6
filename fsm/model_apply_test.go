package fsm

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// apply applies a command that does not break a bound.
func (m *model) apply(c Command) Result {
	switch c := c.(type) {
	case *PutVhost:
		if only(m.vhosts, func(v *modelVhost) bool { return v.name == c.Name }) != nil {
			return Result{}
		}
		m.putVhost(c.Name)
		return Result{Created: true}
	case *DeleteVhost:
		v := only(m.vhosts, func(v *modelVhost) bool { return v.name == c.Name })
		if v == nil {
			return Result{Code: NotFound}
		}
		for _, q := range slices.Clone(m.queues) {
			if q.vhost == v {
				m.removeQueue(q)
			}
		}
		if v.delayed != nil {
			m.deleted[v.delayed.number] = true
			m.counters.delayedDiscarded += uint64(len(v.delayed.live))
		}
		for _, e := range slices.Clone(m.exchanges) {
			if e.vhost == v {
				m.removeExchange(e)
			}
		}
		m.policies = slices.DeleteFunc(m.policies, func(p *modelPolicy) bool { return p.vhost == v })
		m.vhosts = slices.DeleteFunc(m.vhosts, func(x *modelVhost) bool { return x == v })
	case *PutExchange:
		return m.putExchange(c)
	case *DeleteExchange:
		v := m.vhost(c.Vhost)
		switch {
		case v == nil:
			return Result{Code: NotFound}
		case c.Name == "" || strings.HasPrefix(c.Name, "amq."):
			return Result{Code: AccessRefused}
		}
		e := m.exchange(v, c.Name)
		if e == nil {
			return Result{}
		}
		if c.IfUnused && slices.ContainsFunc(m.bindings, func(b *modelBinding) bool { return b.source == e }) {
			return Result{Code: PreconditionFailed}
		}
		m.removeExchange(e)
	case *PutQueue:
		return m.putQueue(c)
	case *DeleteQueue:
		v := m.vhost(c.Vhost)
		if v == nil {
			return Result{Code: NotFound}
		}
		q := m.queue(v, c.Name)
		if q == nil || c.Number != 0 && c.Number != q.number {
			return Result{}
		}
		if q.exclusive && q.owner != c.Session {
			return Result{Code: ResourceLocked}
		}
		ready := uint64(0)
		for _, x := range q.live {
			if !inRuns(c.Held, x.Sequence) && !x.claimed {
				ready++
			}
		}
		if c.IfEmpty && ready > 0 {
			return Result{Code: PreconditionFailed}
		}
		m.removeQueue(q)
		return Result{Messages: ready}
	case *PutBinding:
		b, code := m.ends(c)
		if code != OK {
			return Result{Code: code}
		}
		if b.queue != nil && b.queue.exclusive && b.queue.owner != c.Session {
			return Result{Code: ResourceLocked}
		}
		if b.source.routes == headers && bytes.Contains(c.Arguments, []byte("neither")) {
			return Result{Code: PreconditionFailed}
		}
		if m.binding(b) != nil {
			return Result{}
		}
		m.bindings = append(m.bindings, b)
		return Result{Created: true}
	case *DeleteBinding:
		b, code := m.ends((*PutBinding)(c))
		if code == NotFound {
			return Result{}
		} else if code != OK {
			return Result{Code: code}
		}
		if b = m.binding(b); b != nil {
			if b.queue != nil && b.queue.exclusive && b.queue.owner != c.Session {
				return Result{Code: ResourceLocked}
			}
			m.without(b)
		}
	case *Purge:
		q := m.numbered(c.Queue)
		if q == nil {
			return Result{Code: NotFound}
		}
		n := q.removeIf(func(x *modelMessage) bool { return !inRuns(c.Held, x.Sequence) && !x.claimed })
		m.counters.discarded += n
		return Result{Messages: n}
	case *Publish:
		return m.publish(c)
	case *Settle:
		return m.settle(c)
	case *Transaction:
		return m.transaction(c)
	case *PutLimit:
		v := m.vhost(c.Vhost)
		switch {
		case c.Vhost != 0 && v == nil:
			return Result{Code: NotFound}
		case c.Name != "max-connections" && (c.Name == "max-queues") != (c.Vhost != 0):
			return Result{Code: PreconditionFailed}
		case c.Name == "max-queues":
			v.most = int(max(c.Value, -1))
		}
		return Result{}
	case *PutPolicy:
		return m.putPolicy(c)
	case *DeletePolicy:
		return m.deletePolicy(c)
	default:
		return m.applyLife(c)
	}
	return Result{}
}

func (m *model) putExchange(c *PutExchange) Result {
	v := m.vhost(c.Vhost)
	switch {
	case v == nil:
		return Result{Code: NotFound}
	case !slices.Contains([]string{direct, fanout, topic, headers, delays}, c.Type):
		return Result{Code: CommandInvalid}
	case c.Name == "":
		return Result{Code: AccessRefused}
	}
	alternate, inner := "", ""
	fields, _ := parseTable(c.Arguments, nil)
	for _, f := range fields {
		switch f.name {
		case "x-delayed-type":
			inner = string(f.value)
		case "alternate-exchange":
			alternate = string(f.value)
		}
	}
	window := newModelWindow(withoutInner(c.Arguments))
	if e := m.exchange(v, c.Name); e != nil {
		if e.kind != c.Type || e.durable != c.Durable || e.autoDelete != c.AutoDelete || e.internal != c.Internal || e.argued != alternate || c.Type == delays && e.routes != inner ||
			(window.on || e.window.on) && !bytes.Equal(withoutInner(e.arguments), withoutInner(c.Arguments)) {
			return Result{Code: PreconditionFailed}
		}
		return Result{}
	}
	if strings.HasPrefix(c.Name, "amq.") {
		return Result{Code: AccessRefused}
	}
	routes := c.Type
	if routes == delays {
		switch routes = inner; {
		case inner == "" || inner == delays:
			return Result{Code: PreconditionFailed}
		case !slices.Contains([]string{direct, fanout, topic, headers}, inner):
			return Result{Code: CommandInvalid}
		}
	}
	e := &modelExchange{number: m.next(), vhost: v, name: c.Name, kind: c.Type, routes: routes, argued: alternate, durable: c.Durable,
		autoDelete: c.AutoDelete, internal: c.Internal, arguments: c.Arguments, window: window}
	m.exchanges = append(m.exchanges, e)
	m.obeyExchange(e)
	return Result{Created: true}
}

// plain drops what says nothing.
func plain(arguments []byte) []byte {
	if bytes.Equal(arguments, table("x-queue-type", "classic")) {
		return nil
	}
	return arguments
}

func (m *model) putQueue(c *PutQueue) Result {
	v := m.vhost(c.Vhost)
	if v == nil {
		return Result{Code: NotFound}
	}
	quorum := bytes.Contains(c.Arguments, []byte("quorum"))
	if q := m.queue(v, c.Name); q != nil {
		switch {
		case q.exclusive != c.Exclusive || q.exclusive && q.owner != c.Owner:
			return Result{Code: ResourceLocked}
		case !q.exclusive && q.durable != c.Durable || q.autoDelete != c.AutoDelete || !bytes.Equal(plain(q.arguments), plain(c.Arguments)):
			return Result{Code: PreconditionFailed}
		}
		if q.expires > 0 && !q.keepAll && !q.inUse {
			q.since = m.clock
		}
		return Result{Queue: q.number, Messages: uint64(len(q.live))}
	}
	if quorum && (!c.Durable || c.Exclusive || c.AutoDelete) {
		return Result{Code: PreconditionFailed}
	}
	if v.most >= 0 {
		have := 0
		for _, q := range m.queues {
			if q.vhost == v {
				have++
			}
		}
		if have >= v.most {
			return Result{Code: PreconditionFailed}
		}
	}
	q := &modelQueue{number: m.next(), vhost: v, name: c.Name, durable: c.Durable && !c.Exclusive, exclusive: c.Exclusive, autoDelete: c.AutoDelete,
		keepAll: quorum, retry: bytes.Contains(c.Arguments, []byte("retry")),
		arguments: c.Arguments, since: m.clock, window: newModelWindow(c.Arguments)}
	q.limits(c.Arguments)
	m.obeyQueue(q)
	if c.Exclusive {
		q.owner = c.Owner
	}
	m.queues = append(m.queues, q)
	return Result{Queue: q.number, Created: true}
}

// modelSorted sorts a table whose values are strings or void.
func modelSorted(arguments []byte) []byte {
	fields, _ := parseTable(arguments, nil)
	slices.SortFunc(fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	var pairs []any
	for _, f := range fields {
		if pairs = append(pairs, f.name, string(f.value)); f.tag == 'V' {
			pairs[len(pairs)-1] = nil
		}
	}
	return table(pairs...)
}

func (m *model) ends(c *PutBinding) (*modelBinding, Code) {
	v := m.vhost(c.Vhost)
	if v == nil {
		return nil, NotFound
	}
	if c.Source == "" || c.Kind == ToExchange && c.Destination == "" {
		return nil, AccessRefused
	}
	b := &modelBinding{source: m.exchange(v, c.Source), key: c.Key, arguments: modelSorted(c.Arguments)}
	if c.Kind == ToExchange {
		b.exchange = m.exchange(v, c.Destination)
	} else {
		b.queue = m.queue(v, c.Destination)
	}
	if b.source == nil || b.queue == nil && b.exchange == nil {
		return nil, NotFound
	}
	return b, OK
}

func (m *model) binding(b *modelBinding) *modelBinding {
	return only(m.bindings, func(o *modelBinding) bool {
		return o.source == b.source && o.exchange == b.exchange && o.queue == b.queue && o.key == b.key && bytes.Equal(o.arguments, b.arguments)
	})
}

func (m *model) applyLife(c Command) Result {
	switch c := c.(type) {
	case *ClientGone:
		for _, q := range slices.Clone(m.queues) {
			if q.exclusive && q.owner == c.Session {
				m.removeQueue(q)
			}
		}
		for key := range m.uploads {
			if key.session == c.Session {
				m.dropUpload(key)
			}
		}
	case *LeaderStarted:
		m.leader, m.cursor = c.Leader, dropCursor{}
		clear(m.uploads)
		clear(m.totals)
		for _, q := range m.queues {
			q.suspicion = min(q.mark, q.last)
			q.mark = q.suspicion
			if q.inUse {
				q.inUse, q.since = false, m.clock
			}
			q.awaited = 0
			for i := range q.live {
				q.live[i].claimed = false
			}
			m.makeRoom(q)
		}
		m.recordBoots(c.Boots)
	case *MemberBoots:
		m.recordBoots(c.Boots)
	case *DropExclusive:
		var earlier []*modelQueue
		for _, q := range m.queues {
			if q.exclusive && q.owner.Term < m.term {
				earlier = append(earlier, q)
			}
		}
		slices.SortStableFunc(earlier, func(a, b *modelQueue) int { return cmp.Compare(a.owner.Term, b.owner.Term) })
		n := min(len(earlier), int(c.Limit))
		for _, q := range earlier[:n] {
			m.removeQueue(q)
		}
		return Result{Messages: uint64(len(earlier) - n)}
	case *DropTransient:
		return m.dropTransient(int(c.Limit))
	case *ConsumerPresence:
		q := m.numbered(c.Queue)
		switch {
		case q == nil:
		case c.Present:
			q.had, q.inUse, q.since = true, true, 0
		default:
			if q.inUse {
				q.inUse, q.since = false, m.clock
			}
			if q.autoDelete && q.had {
				m.removeQueue(q)
			}
		}
	case *DeleteUnused:
		if q := m.numbered(c.Queue); q != nil && !q.inUse && q.since <= c.Since {
			m.removeQueue(q)
			return Result{Messages: uint64(len(q.live))}
		}
	case *Expire:
		return m.expire(c)
	case *DeadLetter:
		return m.deadLetter(c)
	case *Claim:
		return m.claim(c)
	case *Trim:
		return Result{} // nothing is ever left to it
	case *Move:
		return m.move(c)
	case *DeleteMessages:
		return m.deleteMessages(c)
	case *Release:
		return m.release(c)
	case *UseQueue:
		if q := m.numbered(c.Queue); q != nil && !q.inUse {
			q.since = m.clock
		}
	case *BodyPart:
		key := modelUpload{c.Session, c.Upload}
		have, there := m.uploads[key]
		if c.Upload == 0 || len(c.Bytes) == 0 || c.Offset != uint64(len(have)) || there && m.totals[key] != c.Total || c.Offset+uint64(len(c.Bytes)) > c.Total {
			m.dropUpload(key)
			return Result{Code: PreconditionFailed}
		}
		m.uploads[key], m.totals[key] = append(bytes.Clone(have), c.Bytes...), c.Total
	case *DropUpload:
		m.dropUpload(modelUpload{c.Session, c.Upload})
	case *Mark:
		if q := m.numbered(c.Queue); q != nil {
			q.mark = max(q.mark, c.Upto)
		}
	case *FoundCluster:
		if m.cluster == "" {
			m.cluster = c.ID
		}
	}
	return Result{}
}

func (m *model) recordBoots(boots []MemberBoot) {
	for _, b := range boots {
		m.boots = append(slices.DeleteFunc(m.boots, func(o MemberBoot) bool { return o.Server == b.Server }), b)
	}
}

func (m *model) dropTransient(limit int) Result {
	for limit > 0 {
		q := only(m.queues, func(q *modelQueue) bool { return !q.durable })
		if q == nil {
			break
		}
		m.removeQueue(q)
		limit--
	}
	for limit > 0 {
		e := only(m.exchanges, func(e *modelExchange) bool { return !e.durable })
		if e == nil {
			break
		}
		m.removeExchange(e)
		limit--
	}
	remain := 0
	for _, q := range m.queues {
		if !q.durable {
			remain++
		}
	}
	for _, e := range m.exchanges {
		if !e.durable {
			remain++
		}
	}
	if remain > 0 || limit == 0 {
		return Result{Messages: uint64(max(remain, 1))}
	}
	looks := limit * dropLooks
	for _, q := range m.queues {
		if q.number < m.cursor.queue {
			continue
		}
		if looks == 0 {
			return Result{Messages: 1}
		}
		looks--
		if q.number > m.cursor.queue {
			m.cursor = dropCursor{queue: q.number}
		}
		if q.keepAll {
			continue
		}
		for _, x := range slices.Clone(q.live) {
			if x.Sequence < m.cursor.sequence {
				continue
			}
			if limit == 0 || looks == 0 {
				return Result{Messages: 1}
			}
			looks--
			m.cursor.sequence = x.Sequence + 1
			if x.transient {
				q.removeIf(func(y *modelMessage) bool { return y.Sequence == x.Sequence })
				m.counters.discarded++
				limit--
			}
		}
	}
	return Result{}
}
