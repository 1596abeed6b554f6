package fsm

import (
	"bytes"
	"cmp"
	"slices"
)

// kill ends the live messages that f says, and says how many.
func (q *modelQueue) kill(why Reason, f func(*modelMessage) bool) uint64 {
	return q.removeIf(func(x *modelMessage) bool {
		if !f(x) {
			return false
		}
		if q.dead {
			dead := *x
			dead.why, dead.claimed = why, false
			at, _ := slices.BinarySearchFunc(q.dying, x.Sequence, func(y modelMessage, s uint64) int { return cmp.Compare(y.Sequence, s) })
			q.dying = slices.Insert(q.dying, at, dead)
		}
		return true
	})
}

func (m *model) expire(c *Expire) Result {
	q := m.numbered(c.Queue)
	if q == nil {
		return Result{}
	}
	n := q.kill(Expired, func(x *modelMessage) bool { return inRuns(c.Runs, x.Sequence) && x.ExpiredAt(m.clock) && !x.claimed })
	m.counters.expired += n
	return Result{Messages: n}
}

func (m *model) deadLetter(c *DeadLetter) Result {
	if c.Message.Upload != 0 {
		defer m.dropUpload(modelUpload{c.Message.Session, c.Message.Upload})
	}
	q := m.numbered(c.Queue)
	if q == nil {
		return Result{}
	}
	at := slices.IndexFunc(q.dying, func(x modelMessage) bool { return x.Sequence == c.Sequence })
	if at < 0 {
		return Result{}
	}
	body := c.Message.Body
	if key := (modelUpload{c.Message.Session, c.Message.Upload}); c.Message.Upload != 0 {
		parts, there := m.uploads[key]
		if !there || m.totals[key] != uint64(len(parts)) {
			return Result{Code: PreconditionFailed}
		}
		body = bytes.Clone(parts)
	}
	x := q.dying[at]
	if c.Deaths == 0 { // the command's headers say nothing
		x.history = nil
	}
	history := slices.DeleteFunc(slices.Clone(x.history), func(d modelDeath) bool { return d == modelDeath{q.name, x.why} })
	history = slices.Insert(history, 0, modelDeath{q.name, x.why})
	reached := map[*modelQueue]bool{}
	if e := m.exchange(q.vhost, "amq.fanout"); e != nil && q.dead {
		m.route(e, &c.Message, map[*modelExchange]bool{}, reached)
	}
	for to := range reached {
		for _, d := range history {
			if d.why == Rejected {
				break
			}
			if d.queue == to.name {
				delete(reached, to)
			}
		}
	}
	for to := range reached {
		if q.keep && to != q && !to.hasRoom(1, len(body)) {
			return Result{Code: QueueFull}
		}
	}
	if len(reached) == 0 && q.keep {
		return Result{Code: NotFound}
	}
	if len(reached) == 0 {
		m.counters.deadUnrouted++
		m.position++
	} else {
		d := newDeath(&queue{name: q.name, rules: queueRules{deadLetter: true}}, x.why, c, m.clock) // the codec; row tests look at it
		m.checked = q.keep
		m.enqueue(reached, "amq.fanout", c.Message.RoutingKey, StripBCC(d.properties), body, history, uint8(len(history)))
		m.checked = false
		if len(reached) > 0 {
			m.counters.deadLettered++
		} else {
			m.counters.deadUnrouted++
		}
		m.counters.routed += uint64(len(reached))
	}
	q.dying = slices.Delete(q.dying, at, at+1)
	return Result{Routed: uint32(len(reached))}
}
