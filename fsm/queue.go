package fsm

import (
	"bytes"
	"slices"
	"strings"
)

// insertQueue adds a queue whose fields, messages included, are complete, derived ones excepted.
func (s *state) insertQueue(q *queue) {
	fields, _ := parseTable(q.arguments, nil)
	if f := find(fields, "x-queue-type"); f != nil {
		q.keepAll = string(f.value) == "quorum"
	}
	q.policies = q.vhost.govern(q.governed())
	s.setRules(q)
	q.window = s.insertWindow(q.number, (&settings{arguments: fields}).deduplication())
	if q.hidden() {
		s.hide(q)
	} else if q.messages.firstDue() != 0 {
		s.timed[q.number] = q
	}
	if q.messages.dying.count > 0 {
		s.dying[q.number] = q
	}
	if !q.hidden() {
		q.vhost.queues[q.name] = q
	}
	s.queues[q.number] = q
	q.inAll = s.byNumber.PushBack(q)
	s.drop.addQueue(q)
	if q.exclusive {
		s.session(q.owner).queues[q.number] = q
	}
	q.fixed = q.fixedDigest()
	s.account(q)
}

// checkPutQueue returns the queue that exists, or a refusal.
func (s *state) checkPutQueue(c *PutQueue) (*vhost, *queue, Result) {
	v := s.vhosts[c.Vhost]
	if v == nil {
		return nil, nil, noVhost(c.Vhost)
	}
	if strings.HasPrefix(c.Name, "amq.") && !strings.HasPrefix(c.Name, "amq.gen-") {
		return v, nil, refuse(AccessRefused, "queue name '%s' contains reserved prefix 'amq.*'", c.Name)
	}
	if r := checkNames(c.Arguments, c.Name); r.Code != OK {
		return v, nil, r
	}
	if c.Name == "" {
		return v, nil, refuse(PreconditionFailed, "a queue needs a name")
	}
	received, _ := parseTable(c.Arguments, nil)
	q := v.queues[c.Name]
	if q == nil {
		if r := checkQueueArguments(c, v, received); r.Code != OK {
			return v, nil, r
		}
		return v, nil, queueLimit(v, c.Name)
	}
	if q.exclusive != c.Exclusive || q.exclusive && q.owner != c.Owner {
		return v, q, locked(v, c.Name)
	}
	if !q.exclusive && q.durable != c.Durable {
		return v, q, inequivalent("durable", "queue", c.Name, v, quoted(c.Durable), quoted(q.durable))
	}
	if q.autoDelete != c.AutoDelete {
		return v, q, inequivalent("auto_delete", "queue", c.Name, v, quoted(c.AutoDelete), quoted(q.autoDelete))
	}
	current, _ := parseTable(q.arguments, nil)
	if name := differs(received, current); name != "" {
		is, was := describeBoth(find(received, name), find(current, name))
		return v, q, inequivalent(name, "queue", c.Name, v, is, was)
	}
	return v, q, Result{}
}

func (s *state) applyPutQueue(c *PutQueue) Result {
	v, q, r := s.checkPutQueue(c)
	if r.Code != OK {
		return r
	}
	if q != nil {
		if q.rules.expires > 0 && !q.keepAll {
			s.renew(q)
		}
		return Result{Queue: q.number, Messages: q.messages.count}
	}
	q = &queue{number: s.nextNumber(), vhost: v, name: strings.Clone(c.Name), durable: c.Durable && !c.Exclusive,
		exclusive: c.Exclusive, autoDelete: c.AutoDelete, arguments: bytes.Clone(c.Arguments), unusedSince: s.clock}
	if c.Exclusive {
		q.owner = c.Owner
	}
	s.insertQueue(q)
	return Result{Queue: q.number, Created: true}
}

// deleteQueue removes a queue with its bindings and messages. Its time follows the bindings only.
func (s *state) deleteQueue(q *queue) {
	q.gone = true
	if q.hidden() {
		q.vhost.delayed = nil
		s.counters.delayedDiscarded += q.messages.count
	} else {
		delete(q.vhost.queues, q.name)
		s.counters.discarded += q.messages.count
		s.counters.deadUnrouted += q.messages.dying.count
	}
	delete(s.queues, q.number)
	delete(s.expiring, q.number)
	delete(s.timed, q.number)
	delete(s.dying, q.number)
	delete(s.refusing, q.number)
	delete(s.overfull, q.number)
	s.byNumber.Remove(q.inAll)
	s.drop.removeQueue(q)
	if q.exclusive {
		delete(s.session(q.owner).queues, q.number)
		s.forget(q.owner)
	}
	for len(q.into) > 0 {
		s.deleteBinding(q.into[len(q.into)-1])
	}
	s.removeWindow(q.window)
	s.sum -= q.hash
	count, size := s.sumsOf(q)
	*count -= q.counted
	*size -= q.countedBytes
	s.memory.remove(q.held)
	q.messages = messages{}
	s.deleted = append(s.deleted, q.number)
}

func (s *state) applyDeleteQueue(c *DeleteQueue) Result {
	v := s.vhosts[c.Vhost]
	if v == nil {
		return noVhost(c.Vhost)
	}
	q := v.queues[c.Name]
	if q == nil || c.Number != 0 && q.number != c.Number {
		return Result{}
	}
	if q.exclusive && q.owner != c.Session {
		return locked(v, c.Name)
	}
	ready := q.messages.readyOutside(c.Held)
	if c.IfEmpty && ready > 0 {
		return refuse(PreconditionFailed, "queue '%s' in vhost '%s' not empty", c.Name, v.name)
	}
	s.deleteQueue(q)
	return Result{Messages: ready}
}

func (s *state) applyPurge(c *Purge) Result {
	q := s.queues[c.Queue]
	if q == nil {
		return refuse(NotFound, "no queue with number %d: it was deleted", c.Queue)
	}
	s.touch(q)
	n := q.messages.removeExcept(q.messages.withClaimed(c.Held))
	s.counters.discarded += n
	return Result{Messages: n}
}

func (s *state) applyMark(c *Mark) Result {
	if q := s.queues[c.Queue]; q != nil && c.Upto > q.mark {
		q.mark = c.Upto
		s.touch(q)
	}
	return Result{}
}

// sortedQueues returns the queues of a map ascending by number.
func sortedQueues[K comparable](m map[K]*queue) []*queue {
	list := make([]*queue, 0, len(m))
	for _, q := range m {
		list = append(list, q)
	}
	slices.SortFunc(list, func(a, b *queue) int {
		if a.number < b.number {
			return -1
		}
		return 1
	})
	return list
}
