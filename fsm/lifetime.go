package fsm

import "slices"

// maxBoots bounds the boot ids that are remembered; the ones recorded longest ago go.
const maxBoots = 256

// messagesLookedAt is how many messages DropTransient looks at for each thing it may delete.
const messagesLookedAt = 64

func (s *state) applyClientGone(c *ClientGone) Result {
	gone := s.sessions[c.Session]
	if gone == nil {
		return Result{}
	}
	s.dropUploads(c.Session, gone)
	for _, q := range sortedQueues(gone.queues) {
		s.deleteQueue(q)
	}
	return Result{}
}

func (s *state) dropUploads(id Session, c *session) {
	for number := range c.uploads {
		s.dropUpload(id, number)
	}
}

// applyLeaderStarted begins a leadership (rules 7, 11, 12).
func (s *state) applyLeaderStarted(c *LeaderStarted) Result {
	s.leader = string([]byte(c.Leader))
	s.cursor = dropCursor{}
	for id, session := range s.sessions {
		s.dropUploads(id, session)
	}
	for _, q := range s.queues {
		q.suspicion = min(q.mark, q.messages.last)
		q.mark = q.suspicion
		if q.inUse {
			q.inUse, q.unusedSince = false, s.clock
		}
		s.touch(q)
	}
	s.recordBoots(c.Boots)
	return Result{}
}

func (s *state) recordBoots(boots []MemberBoot) {
	for _, b := range boots {
		b.Server = string([]byte(b.Server))
		s.boots = slices.DeleteFunc(s.boots, func(old MemberBoot) bool { return old.Server == b.Server })
		s.boots = append(s.boots, b)
	}
	if extra := len(s.boots) - maxBoots; extra > 0 {
		s.boots = slices.Delete(s.boots, 0, extra)
	}
}

func (s *state) applyDropExclusive(c *DropExclusive, term uint64) Result {
	earlier := make(map[uint64]*queue)
	for id, session := range s.sessions {
		if id.Term < term {
			for number, q := range session.queues {
				earlier[number] = q
			}
		}
	}
	list := sortedQueues(earlier)
	n := min(len(list), int(c.Limit))
	for _, q := range list[:n] {
		s.deleteQueue(q)
	}
	return Result{Messages: uint64(len(list) - n)}
}

// applyDropTransient deletes non-durable queues, then non-durable exchanges, then transient messages, looking at a
// bounded number of them. Result.Messages is at least 1 until nothing transient remains.
func (s *state) applyDropTransient(c *DropTransient) Result {
	limit := int(c.Limit)
	var transient []*queue
	var exchanges []*exchange
	for _, q := range sortedQueues(s.queues) {
		if !q.durable {
			transient = append(transient, q)
		}
	}
	for _, v := range s.vhosts {
		for _, e := range v.exchanges {
			if !e.durable {
				exchanges = append(exchanges, e)
			}
		}
	}
	slices.SortFunc(exchanges, func(a, b *exchange) int {
		if a.number < b.number {
			return -1
		}
		return 1
	})
	for len(transient) > 0 && limit > 0 {
		s.deleteQueue(transient[0])
		transient, limit = transient[1:], limit-1
	}
	for len(exchanges) > 0 && limit > 0 {
		s.deleteExchange(exchanges[0])
		exchanges, limit = exchanges[1:], limit-1
	}
	remain := uint64(len(transient) + len(exchanges))
	if remain > 0 || limit <= 0 {
		return Result{Messages: max(remain, 1)}
	}
	if !s.dropTransientMessages(limit) {
		return Result{Messages: 1}
	}
	return Result{}
}

// dropTransientMessages goes on from the cursor and reports whether it came to the end.
func (s *state) dropTransientMessages(limit int) bool {
	look := limit * messagesLookedAt
	for _, q := range sortedQueues(s.queues) {
		if q.number < s.cursor.queue || q.keepAll {
			continue
		}
		if q.number > s.cursor.queue {
			s.cursor = dropCursor{queue: q.number}
		}
		for at, ok := q.messages.next(s.cursor.sequence); ok; at, ok = q.messages.next(s.cursor.sequence) {
			if limit == 0 || look == 0 {
				return false
			}
			look--
			s.cursor.sequence = at + 1
			if q.messages.transient(at) {
				q.messages.remove(at)
				s.touch(q)
				limit--
			}
		}
	}
	return true
}

func (s *state) applyConsumerPresence(c *ConsumerPresence) Result {
	q := s.queues[c.Queue]
	if q == nil {
		return Result{}
	}
	s.touch(q)
	if c.Present {
		q.hadConsumer, q.inUse, q.unusedSince = true, true, 0
		return Result{}
	}
	if q.inUse {
		q.inUse, q.unusedSince = false, s.clock
	}
	if q.autoDelete && q.hadConsumer {
		s.deleteQueue(q)
	}
	return Result{}
}

func (s *state) applyDeleteUnused(c *DeleteUnused) Result {
	q := s.queues[c.Queue]
	if q == nil || q.inUse || q.unusedSince > c.Since {
		return Result{}
	}
	n := q.messages.count
	s.deleteQueue(q)
	return Result{Messages: n}
}
