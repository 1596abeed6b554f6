package fsm

import (
	"bytes"
	"strings"
)

// The lists that a binding is in.
const (
	listFrom = iota // of its source
	listInto        // of its destination
	listSlot        // of its source's routing structure: direct by key, topic node
	listKinds
)

// bindingList is a list in which each binding knows its place, so that one leaves in constant time. Its order means
// nothing.
type bindingList []*binding

func (l *bindingList) add(b *binding, kind int) {
	b.at[kind] = len(*l)
	*l = append(*l, b)
}

func (l *bindingList) remove(b *binding, kind int) {
	old := *l
	last := old[len(old)-1]
	old[b.at[kind]] = last
	last.at[kind] = b.at[kind]
	old[len(old)-1] = nil
	*l = old[:len(old)-1]
}

func (b *binding) destination() uint64 {
	if b.queue != nil {
		return b.queue.number
	}
	return b.exchange.number
}

func (b *binding) identity() bindingKey {
	return bindingKey{source: b.source.number, destination: b.destination(), key: b.key, arguments: string(b.arguments)}
}

func (b *binding) intoList() *bindingList {
	if b.queue != nil {
		return &b.queue.into
	}
	return &b.exchange.into
}

// insertBinding adds a binding whose fields are complete, derived ones excepted.
func (s *state) insertBinding(b *binding) {
	e := b.source
	e.vhost.bindings[b.identity()] = b
	e.from.add(b, listFrom)
	b.intoList().add(b, listInto)
	switch e.routes {
	case direct:
		if e.direct == nil {
			e.direct = make(map[string]*bindingList)
		}
		list := e.direct[b.key]
		if list == nil {
			list = new(bindingList)
			e.direct[b.key] = list
		}
		list.add(b, listSlot)
	case topic:
		if e.topic == nil {
			e.topic = new(topicNode)
		}
		b.node = e.topic.place(b.key)
		b.node.bindings.add(b, listSlot)
	case headers:
		b.criteria, _ = parseCriteria(b.arguments)
	}
	b.row = s.bindings.add(b)
	b.hash = b.digest()
	s.sum += b.hash
}

// deleteBinding removes a binding, and its source if that is auto-delete and this was its last one.
func (s *state) deleteBinding(b *binding) {
	s.removeBinding(b)
	if b.source.abandoned() {
		s.deleteExchange(b.source)
	}
}

func (s *state) removeBinding(b *binding) {
	e := b.source
	delete(e.vhost.bindings, b.identity())
	e.from.remove(b, listFrom)
	b.intoList().remove(b, listInto)
	switch e.routes {
	case direct:
		list := e.direct[b.key]
		list.remove(b, listSlot)
		if len(*list) == 0 {
			delete(e.direct, b.key)
		}
	case topic:
		b.node.bindings.remove(b, listSlot)
		b.node.prune()
	}
	if moved := s.bindings.remove(b.row); moved != nil {
		moved.row = b.row
	}
	s.sum -= b.hash
}

// replyTo begins the names of queues that are none: direct reply-to is the front end's.
const replyTo = "amq.rabbitmq.reply-to"

// ends finds the two ends of a binding; the exchanges come first, as in RabbitMQ.
func (s *state) ends(c *PutBinding) (b *binding, refused Result) {
	v := s.vhosts[c.Vhost]
	if v == nil {
		return nil, noVhost(c.Vhost)
	}
	if c.Source == "" || c.Kind == ToExchange && c.Destination == "" {
		return nil, onDefaultExchange()
	}
	if c.Kind == ToQueue && strings.HasPrefix(c.Destination, replyTo) {
		return nil, refuse(AccessRefused, "cannot bind or unbind to a volatile (direct reply-to) queue")
	}
	b = &binding{source: v.exchanges[c.Source], key: c.Key, arguments: sortedTable(c.Arguments)}
	if b.source == nil {
		return nil, noExchange(v, c.Source)
	}
	if c.Kind == ToExchange {
		if b.exchange = v.exchanges[c.Destination]; b.exchange == nil {
			return nil, noExchange(v, c.Destination)
		}
	} else if b.queue = v.queues[c.Destination]; b.queue == nil {
		return nil, noQueue(v, c.Destination)
	}
	return b, Result{}
}

func (s *state) applyPutBinding(c *PutBinding) Result {
	b, r := s.ends(c)
	if r.Code != OK {
		return r
	}
	if b.queue != nil && b.queue.exclusive && b.queue.owner != c.Session {
		return locked(b.queue.vhost, b.queue.name)
	}
	if r := checkNames(c.Arguments, c.Key); r.Code != OK {
		return r
	}
	if b.source.routes == headers {
		if _, r := parseCriteria(c.Arguments); r.Code != OK {
			return r
		}
	}
	if b.source.vhost.bindings[b.identity()] != nil {
		return Result{}
	}
	b.key, b.arguments = strings.Clone(c.Key), bytes.Clone(b.arguments)
	s.insertBinding(b)
	return Result{Created: true}
}

func (s *state) applyDeleteBinding(c *DeleteBinding) Result {
	b, r := s.ends((*PutBinding)(c))
	if r.Code == NotFound {
		return Result{}
	}
	if r.Code == OK {
		existing := b.source.vhost.bindings[b.identity()]
		if existing == nil {
			return Result{}
		}
		if q := existing.queue; q != nil && q.exclusive && q.owner != c.Session {
			return locked(q.vhost, q.name)
		}
		s.deleteBinding(existing)
	}
	return r
}
