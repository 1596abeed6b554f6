package fsm

import (
	"bytes"
	"slices"

	"pgregory.net/rapid"
)

func (m *model) move(c *Move) Result {
	defer func() {
		for i := range c.Messages {
			if p := &c.Messages[i].Message; p.Upload != 0 {
				m.dropUpload(modelUpload{p.Session, p.Upload})
			}
		}
	}()
	q := m.numbered(c.Queue)
	if q == nil {
		return Result{Code: NotFound}
	}
	r := Result{}
	for i := range c.Messages {
		part := m.moveOne(q, &c.Messages[i])
		if part.Routed > 0 {
			r.Messages++
		}
		if p := &c.Messages[i].Message; p.Upload != 0 {
			m.dropUpload(modelUpload{p.Session, p.Upload})
		}
		r.Parts = append(r.Parts, part)
	}
	return r
}

func (m *model) moveOne(q *modelQueue, c *Moved) Result {
	p := &c.Message
	at := slices.IndexFunc(q.live, func(x modelMessage) bool { return x.Sequence == c.Sequence })
	if at < 0 || q.live[at].ExpiredAt(m.clock) || q.live[at].claimed {
		return Result{}
	}
	body := p.Body
	if key := (modelUpload{p.Session, p.Upload}); p.Upload != 0 {
		have, ok := m.uploads[key]
		if !ok || m.totals[key] != uint64(len(have)) {
			return Result{Code: PreconditionFailed}
		}
		body = have
	}
	reached := map[*modelQueue]bool{}
	if c.To != 0 {
		to := m.numbered(c.To)
		switch {
		case to == nil || to.vhost != q.vhost:
			return Result{Code: NotFound}
		case to == q:
			return Result{Code: PreconditionFailed}
		}
		reached[to] = true
	} else {
		e := m.exchange(q.vhost, p.Exchange)
		if e == nil {
			return Result{Code: NotFound}
		}
		if e.internal {
			return Result{Code: AccessRefused}
		}
		if m.route(e, p, map[*modelExchange]bool{}, reached); len(reached) == 0 {
			return Result{Code: NotFound}
		}
	}
	for to := range reached {
		if to != q && !to.hasRoom(1, len(body)) {
			return Result{Code: QueueFull}
		}
	}
	q.live = slices.Delete(q.live, at, at+1)
	m.checked = true
	defer func() { m.checked = false }()
	m.enqueue(reached, p.Exchange, p.RoutingKey, p.Properties, body, nil, 0)
	m.counters.moved++
	m.counters.routed += uint64(len(reached))
	return Result{Routed: uint32(len(reached))}
}

func (m *model) deleteMessages(c *DeleteMessages) Result {
	q := m.numbered(c.Queue)
	if q == nil {
		return Result{Code: NotFound}
	}
	n := q.removeIf(func(x *modelMessage) bool { return inRuns(c.Runs, x.Sequence) && !x.claimed })
	m.counters.discarded += n
	return Result{Messages: n}
}

// move draws a move of what is there for the most part.
func (d drawer) move() *Move {
	c := &Move{Queue: d.queue()}
	q := d.m.numbered(c.Queue)
	sequence := uint64(0)
	for range rapid.IntRange(0, 4).Draw(d.T, "messages") {
		sequence += rapid.Uint64Range(0, 3).Draw(d.T, "sequence")
		moved := Moved{Sequence: sequence, Message: *d.publish()}
		moved.Message.Vhost, moved.Message.Producer, moved.Message.Sequence = 0, nil, 0
		if moved.Message.Upload == 0 {
			moved.Message.Session = Session{}
		}
		if d.bool("to queue") {
			moved.To = d.queue()
		}
		if q != nil && len(q.live) > 0 && d.bool("live") {
			x := rapid.SampledFrom(q.live).Draw(d.T, "live")
			moved.Sequence = x.Sequence
			if moved.Message.Upload == 0 {
				moved.Message.Properties, moved.Message.Body = x.Properties, x.Body
			}
		}
		c.Messages = append(c.Messages, moved)
	}
	return c
}

// checkKept compares what ReadKept and SkipKept say of a queue with the model's messages.
func (q *modelQueue) checkKept(t *rapid.T, machine *Machine) {
	var want []Kept
	for _, x := range q.live {
		want = append(want, Kept{Message: x.Message})
	}
	for _, x := range q.dying {
		want = append(want, Kept{Message: x.Message, Dying: true, Reason: x.why})
	}
	slices.SortFunc(want, func(a, b Kept) int { return int(a.Sequence) - int(b.Sequence) })
	for skip := range want {
		next, skipped := machine.SkipKept(q.number, 1, uint64(skip))
		got, _, err := machine.ReadKept(q.number, next, q.last, 1, 1)
		if err != nil || skipped != uint64(skip) || len(got) != 1 || got[0].Sequence != want[skip].Sequence {
			t.Fatalf("behind %d messages of queue %d: %d skipped, %+v, %v", skip, q.number, skipped, got, err)
		}
	}
	var got []Kept
	for from := uint64(1); from != 0; {
		page, next, err := machine.ReadKept(q.number, from, q.last, 3, 100)
		if err != nil || next != 0 && (next <= from || len(page) == 0) {
			t.Fatalf("%d messages, next %d, %v", len(page), next, err)
		}
		got, from = append(got, page...), next
	}
	if len(got) != len(want) {
		t.Fatalf("queue %d keeps %d messages, the model %d", q.number, len(got), len(want))
	}
	for i := range got {
		g, w := &got[i], &want[i]
		if g.Sequence != w.Sequence || g.Dying != w.Dying || g.Reason != w.Reason || g.DeliveryCount != w.DeliveryCount || g.Exchange != w.Exchange ||
			g.RoutingKey != w.RoutingKey || !bytes.Equal(g.Properties, w.Properties) || !bytes.Equal(g.Body, w.Body) || g.ID != w.ID || g.Expires != w.Expires {
			t.Fatalf("message %d of queue %d\n got %+v\nwant %+v", g.Sequence, q.number, g, w)
		}
	}
}
