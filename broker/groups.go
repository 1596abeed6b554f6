package broker

import (
	"container/heap"
	"slices"
	"time"

	"github.com/warrenmq/warren/fsm"
)

// groups hands a queue's messages out by groups (x-group-key): as long as somebody holds a message of a group, the next
// ones go to the same, in order; when nobody does, to whoever's turn it is. A message that must wait for somebody is set
// aside, so that other groups go on. The view's mu guards it.
type groups struct {
	view     *view
	grouping fsm.Grouping
	named    map[fsm.Group]*group // those with messages that are handed out or set aside
	held     map[uint64]*group    // of each sequence that is handed out
	free     groupHeap            // groups with messages set aside that nobody holds
	waiting  map[holder]*groupHeap
	aside    int // messages set aside
}

// holder is who holds messages: a *consumer, or the *Channel of a get.
type holder any

// group is the messages with one value. A message without any is a group by itself, without a name.
type group struct {
	name      fsm.Group
	named     bool
	holder    holder     // nil while held is 0
	held      int        // messages handed out and not settled in the truth
	returning int        // of these, on their way back: nothing more is handed out before they are there
	aside     []uint64   // ascending
	in        *groupHeap // which of groups it is in; nil while nothing is aside or something is on its way back
	place     int        // in that
}

func newGroups(v *view) *groups {
	grouping, ok := v.queue.Grouping()
	if !ok {
		return nil
	}
	return &groups{view: v, grouping: grouping, named: map[fsm.Group]*group{}, held: map[uint64]*group{}, waiting: map[holder]*groupHeap{}}
}

// takeGrouped removes the first message that may be handed out from the view, and says to whom: the consumer whose turn
// it is, or who holds the message's group. ok is false when there is none. The caller holds mu.
func (v *view) takeGrouped(turn *consumer) (m fsm.Message, to *consumer, ok bool) {
	gs := v.groups
	g, m := gs.next(func(h holder) bool {
		c, ok := h.(*consumer)
		return ok && (!v.single || v.active == c) && c.ready()
	})
	if g == nil {
		return m, nil, false
	}
	to = turn
	if g.holder != nil {
		to = g.holder.(*consumer)
	}
	gs.handOut(g, to, m.Sequence)
	return m, to, true
}

// takeForGet removes the first message that a get on a channel may have from the view. The caller holds mu.
func (v *view) takeForGet(ch *Channel) (m fsm.Message, ok bool) {
	gs := v.groups
	if gs == nil {
		return v.take()
	}
	g, m := gs.next(func(h holder) bool { return h == holder(ch) })
	if g != nil {
		gs.handOut(g, ch, m.Sequence)
	}
	return m, g != nil
}

// next removes the first message from the view whose group nobody holds, or somebody who can take it; g is nil when there
// is none. What it passes over is set aside.
func (gs *groups) next(can func(holder) bool) (g *group, m fsm.Message) {
	v := gs.view
	if v.frozen > 0 || v.damage != nil && time.Now().Before(v.again) {
		return nil, m
	}
	v.damage = nil
	gs.takeReturned()
	for v.damage == nil {
		if g = gs.first(can); g != nil {
			if gs.takeAside(g, &m) {
				return g, m
			}
			continue
		}
		if gs.aside >= maxAside {
			break
		}
		var ok bool
		if m, ok = v.take(); !ok {
			break
		}
		g = gs.of(&m)
		if len(g.aside) == 0 && g.returning == 0 && (g.holder == nil || can(g.holder)) {
			return g, m
		}
		gs.setAside(g, m.Sequence)
	}
	return nil, m
}

// first returns the group whose message set aside is the oldest of those that can be handed out; nil without any.
func (gs *groups) first(can func(holder) bool) (g *group) {
	if len(gs.free.groups) > 0 {
		g = gs.free.groups[0]
	}
	for h, waiting := range gs.waiting {
		if oldest := waiting.groups[0]; (g == nil || oldest.aside[0] < g.aside[0]) && can(h) {
			g = oldest
		}
	}
	return g
}

// of returns the group of a message.
func (gs *groups) of(m *fsm.Message) *group {
	name, named := gs.grouping.Of(m)
	if !named {
		return &group{}
	}
	g := gs.named[name]
	if g == nil {
		g = &group{name: name, named: true}
		gs.named[name] = g
	}
	return g
}

// setAside keeps a message until it can be handed out.
func (gs *groups) setAside(g *group, sequence uint64) {
	at, there := slices.BinarySearch(g.aside, sequence)
	if there {
		return
	}
	g.aside = slices.Insert(g.aside, at, sequence)
	gs.aside++
	gs.put(g)
}

// takeAside removes a group's first message that was set aside; ok is false when it is gone, or cannot be read now.
func (gs *groups) takeAside(g *group, m *fsm.Message) (ok bool) {
	v := gs.view
	read, live, err := v.leadership.broker.machine.Get(v.queue.Number, g.aside[0])
	if err != nil {
		v.damaged(err)
		return false
	}
	if g.aside = g.aside[1:]; len(g.aside) == 0 {
		g.aside = nil
	}
	gs.aside--
	gs.put(g)
	if !live || v.isExpired(&read, true) {
		return false
	}
	*m = read
	return true
}

// takeReturned sets aside what is back in the queue.
func (gs *groups) takeReturned() {
	v := gs.view
	for len(v.returned) > 0 {
		m, live, err := v.leadership.broker.machine.Get(v.queue.Number, v.returned[0])
		if err != nil {
			v.damaged(err)
			return
		}
		sequence := heap.Pop(&v.returned).(uint64)
		if live {
			gs.setAside(gs.of(&m), sequence)
		}
	}
}

// handOut notes who gets a message.
func (gs *groups) handOut(g *group, to holder, sequence uint64) {
	g.holder = to
	g.held++
	gs.held[sequence] = g
	if g.named {
		gs.named[g.name] = g
	}
	gs.put(g)
}

// returning notes that so many more times (by 1, or -1) messages are on their way back: they come before what lies behind
// them.
func (v *view) returning(kind fsm.SettleKind, sequences []uint64, by int) {
	if v.groups == nil || kind != fsm.Return {
		return
	}
	v.mu.Lock()
	for _, sequence := range sequences {
		if g := v.groups.held[sequence]; g != nil {
			g.returning += by
			v.groups.put(g)
		}
	}
	v.mu.Unlock()
}

// settled notes that a message is not held any more; one that returned is looked at with the next.
func (gs *groups) settled(sequence uint64, kind fsm.SettleKind) {
	if kind == fsm.Return { // whatever its priority: it is set aside by its number
		heap.Push(&gs.view.returned, sequence)
	}
	g := gs.held[sequence]
	if g == nil {
		return
	}
	delete(gs.held, sequence)
	if g.held--; g.held == 0 {
		g.holder = nil
	}
	if kind == fsm.Return && g.returning > 0 {
		g.returning--
	}
	gs.put(g)
}

// put puts a group where it belongs now.
func (gs *groups) put(g *group) {
	var in *groupHeap
	switch {
	case len(g.aside) == 0 || g.returning > 0:
	case g.holder == nil:
		in = &gs.free
	default:
		if in = gs.waiting[g.holder]; in == nil {
			in = &groupHeap{holder: g.holder}
			gs.waiting[g.holder] = in
		}
	}
	switch was := g.in; {
	case was == in && in != nil:
		heap.Fix(in, g.place)
	case was != in:
		if was != nil {
			heap.Remove(was, g.place)
			if len(was.groups) == 0 && was.holder != nil {
				delete(gs.waiting, was.holder)
			}
		}
		if in != nil {
			heap.Push(in, g)
		}
		g.in = in
	}
	if g.named && g.held == 0 && len(g.aside) == 0 {
		delete(gs.named, g.name)
	}
}

// groupHeap is groups with messages set aside, the one with the oldest first.
type groupHeap struct {
	groups []*group
	holder holder // nil: of none
}

func (h *groupHeap) Len() int           { return len(h.groups) }
func (h *groupHeap) Less(i, j int) bool { return h.groups[i].aside[0] < h.groups[j].aside[0] }
func (h *groupHeap) Swap(i, j int) {
	h.groups[i], h.groups[j] = h.groups[j], h.groups[i]
	h.groups[i].place, h.groups[j].place = i, j
}
func (h *groupHeap) Push(x any) {
	g := x.(*group)
	g.place = len(h.groups)
	h.groups = append(h.groups, g)
}
func (h *groupHeap) Pop() any {
	last := len(h.groups) - 1
	g := h.groups[last]
	h.groups[last] = nil
	h.groups = h.groups[:last]
	return g
}
