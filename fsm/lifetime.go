package fsm

import (
	"cmp"
	"slices"
)

// maxBoots bounds the boot ids that are remembered; the ones recorded longest ago go.
const maxBoots = 256

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
	var unclaimed []*queue
	for _, q := range s.queues {
		q.suspicion = min(q.mark, q.messages.last)
		q.mark = q.suspicion
		if q.inUse {
			q.inUse, q.unusedSince = false, s.clock
		}
		q.awaited = 0
		if q.messages.claims.count > 0 {
			q.messages.unclaimAll()
			unclaimed = append(unclaimed, q)
		}
		s.touch(q)
	}
	slices.SortFunc(unclaimed, func(a, b *queue) int { return cmp.Compare(a.number, b.number) })
	for _, q := range unclaimed {
		s.makeRoom(q, maxDropped)
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

func (s *state) applyUseQueue(c *UseQueue) {
	if q := s.queues[c.Queue]; q != nil {
		s.renew(q)
	}
}

// renew begins the time without use of a queue that has no consumer anew.
func (s *state) renew(q *queue) {
	if !q.inUse && q.unusedSince != s.clock {
		q.unusedSince = s.clock
		s.touch(q)
	}
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
