package broker

import (
	"container/heap"
	"context"

	"github.com/warrenmq/warren/fsm"
)

// claiming is what a view does more when its queue's length is limited (rule 3): the truth must know what consumers hold,
// for only the others are ready ones that it counts and drops. So a message is claimed in the log before it is handed
// out. Two things hide the way through the log: consumers that wait have the next messages claimed as they come, and what
// lies there is claimed for as many as can take it at once. No more is claimed than the consumers have credit for, and
// what they turn out not to take is released. Guarded by the view's mu.
type claiming struct {
	waiting   []claimed // for consumers, in the order in which they get them
	awaited   int       // messages that are claimed as they come and have not been seen yet
	reducing  bool      // fewer are to be awaited, which is on its way
	flying    int       // claims on their way
	joining   int       // messages that consumers about to come can take
	releasing runSet    // what is on its way back
}

// claimed is a message that is claimed, or about to be.
type claimed struct {
	fsm.Message
	returned bool // it was handed out before
	granted  bool
}

// Bounds of claiming.
const (
	claimWindow     = 1024 // messages claimed for consumers that take any number
	maxClaimsFlying = 3    // commands of a view that claim what lies there
)

// capacity returns how many messages the consumers can take now, up to claimWindow. The caller holds mu.
func (v *view) capacity() (n int) {
	n = v.claims.joining
	switch {
	case v.closed || v.frozen > 0:
		return 0
	case v.single:
		if c := v.pickActive(); c != nil {
			n += c.room()
		}
		return n
	}
	for i := range v.turns.levels {
		for _, c := range v.turns.levels[i].consumers {
			if n += c.room(); n >= claimWindow {
				return claimWindow
			}
		}
	}
	return n
}

// expect has the next messages claimed for a consumer that is about to come, so that it gets them from the moment at which
// it is told that it consumes. The function that it returns is called when the consumer is there, or does not come. The
// caller holds mu, also of that call.
func (v *view) expect(c *consumer) (come func()) {
	if v.claims == nil || v.single && v.turns.n+v.joining > 0 {
		return func() {}
	}
	k := v.claims
	n := min(c.room(), claimWindow)
	k.joining += n
	if more := k.joining - k.awaited; more > 0 && !k.reducing {
		k.awaited += more
		v.submitClaim(&fsm.Claim{Queue: v.queue.Number, More: uint64(more)}, nil)
	}
	return func() { k.joining -= n }
}

// room returns how many messages the consumer can take now, up to claimWindow.
func (c *consumer) room() int {
	if !c.ready() {
		return 0
	}
	ch := c.channel
	ch.mu.Lock()
	defer ch.mu.Unlock()
	n := uint32(claimWindow)
	if !c.autoAck && c.prefetch > 0 {
		n = min(n, c.prefetch-min(c.prefetch, c.unacked))
	}
	if ch.limit > 0 {
		n = min(n, ch.limit-min(ch.limit, uint32(ch.used)))
	}
	return int(n)
}

// claim has what the consumers can take claimed. The caller holds mu.
func (v *view) claim() {
	k := v.claims
	v.undefer()
	capacity := v.capacity()
	var asked, back []uint64
	// What is being released comes again, before what lies behind it.
	for len(k.waiting) < capacity && k.flying < maxClaimsFlying && k.releasing.n == 0 && !v.resting() {
		m, returned, ok := v.front()
		if !ok {
			break
		}
		switch {
		case m.Claimed:
			k.awaited--
			if v.isExpired(&m, returned) {
				back = append(back, m.Sequence)
				continue
			}
		case v.isExpired(&m, returned), v.isDeferred(&m):
			continue
		default:
			asked = append(asked, m.Sequence)
		}
		k.waiting = append(k.waiting, claimed{Message: m, returned: returned, granted: m.Claimed})
	}
	v.release(back)
	v.ask(asked)
	drained := v.isDrained() && v.damage == nil && k.flying < maxClaimsFlying
	if more := capacity - len(k.waiting) - k.awaited; drained && !k.reducing && more > 0 && (k.awaited == 0 || 2*more >= capacity) {
		k.awaited += more
		v.submitClaim(&fsm.Claim{Queue: v.queue.Number, More: uint64(more)}, nil)
	}
}

// ask claims what lies in the queue. The caller holds mu.
func (v *view) ask(sequences []uint64) {
	if len(sequences) == 0 {
		return
	}
	v.claims.flying++
	c := &fsm.Claim{Queue: v.queue.Number, Runs: toRuns(sequences)}
	v.submitClaim(c, func(r fsm.Result) {
		v.claims.flying--
		if int(r.Messages) < len(sequences) { // some are gone
			sequences = v.leadership.broker.machine.Claimed(v.queue.Number, sequences)
		}
		v.grant(toRuns(sequences), c.Runs)
	})
}

// grant settles what became of the messages that were asked for. The caller holds mu.
func (v *view) grant(granted, asked []fsm.Run) {
	waiting := v.claims.waiting[:0]
	for i := range v.claims.waiting {
		m := v.claims.waiting[i]
		if covers(asked, m.Sequence) && !m.granted {
			if m.granted = covers(granted, m.Sequence); !m.granted {
				continue
			}
		}
		waiting = append(waiting, m)
	}
	clear(v.claims.waiting[len(waiting):])
	v.claims.waiting = waiting
}

// submitClaim sends a command into the log; applied, if any, is called with mu held.
func (v *view) submitClaim(c *fsm.Claim, applied func(fsm.Result)) {
	done := CompleterFunc(func(r fsm.Result) {
		v.mu.Lock()
		if r.Code == fsm.OK && applied != nil {
			applied(r)
		}
		if !v.running || v.turns.n == 0 {
			v.balance()
		}
		v.mu.Unlock()
		v.wake()
	})
	_ = v.leadership.system.submit(context.Background(), false, submission{command: c, size: fsm.Size(c), done: done})
}

// claimedFront removes the first message that is claimed for a consumer; ok is false when there is none, or it is not yet
// certain what the first one is. The caller holds mu.
func (v *view) claimedFront() (m fsm.Message, ok bool) {
	k := v.claims
	for len(k.waiting) > 0 && k.waiting[0].granted {
		first := k.waiting[0]
		k.waiting[0] = claimed{}
		k.waiting = k.waiting[1:]
		if first.Expires > 0 && first.ExpiredAt(v.leadership.broker.clock.now()) {
			v.release([]uint64{first.Sequence})
			continue
		}
		return first.Message, true
	}
	return m, false
}

// balance gives up what the consumers cannot take after all. The caller holds mu.
func (v *view) balance() {
	k := v.claims
	if k == nil || len(k.waiting)+k.awaited <= 0 || v.frozen > 0 || v.closed {
		return
	}
	capacity := v.capacity()
	var back []uint64
	for i := len(k.waiting) - 1; i >= 0 && len(k.waiting) > capacity; i-- {
		if m := &k.waiting[i]; m.granted {
			back = append(back, m.Sequence)
			k.waiting = append(k.waiting[:i], k.waiting[i+1:]...)
		}
	}
	v.release(back)
	if less := len(k.waiting) + k.awaited - capacity; less > 0 && k.awaited > 0 && !k.reducing {
		k.reducing = true
		v.submitClaim(&fsm.Claim{Queue: v.queue.Number, Less: uint64(min(less, k.awaited))}, func(r fsm.Result) {
			k.reducing = false
			k.awaited -= int(r.Messages)
			v.releaseUnseen()
		})
	}
}

// releaseUnseen releases what was claimed as it came, has not been seen, and finds no consumer any more. The caller holds
// mu.
func (v *view) releaseUnseen() {
	k := v.claims
	if len(k.waiting)+k.awaited <= v.capacity() {
		return
	}
	known := map[uint64]bool{}
	for i := range k.waiting {
		known[k.waiting[i].Sequence] = true
	}
	var unseen []uint64
	for _, r := range v.leadership.broker.machine.ClaimedRuns(v.queue.Number) {
		for sequence := r.From; sequence <= r.To; sequence++ {
			if !known[sequence] && !v.held.has(sequence) && !k.releasing.has(sequence) {
				unseen = append(unseen, sequence)
			}
		}
	}
	k.awaited -= min(k.awaited, len(unseen))
	v.release(unseen)
}

// release makes claimed messages ready ones again. The caller holds mu.
func (v *view) release(sequences []uint64) {
	if len(sequences) == 0 {
		return
	}
	for _, sequence := range sequences {
		v.claims.releasing.add(sequence)
	}
	v.leadership.system.submitSettle(v, fsm.Unclaim, nil, sequences...)
}

// released has messages back. What lies before the cursor would not be read again. The caller holds mu.
func (v *view) released(sequences []uint64) {
	v.readAfresh() // what was read says of them that they are claimed
	for _, sequence := range sequences {
		v.claims.releasing.remove(sequence)
		if r := v.readingFor(sequence); sequence < r.cursor {
			heap.Push(&r.returned, sequence)
		}
	}
}

// takeFor takes the first ready message for a get; unsure says that there may be one soon. The caller holds mu, which may be
// released meanwhile.
func (v *view) takeFor(ctx context.Context, ch *Channel) (m fsm.Message, ok, unsure bool, err error) {
	if v.claims != nil {
		return v.takeAside(ctx)
	}
	m, ok = v.takeForGet(ch)
	return m, ok, false, nil
}

// takeAside claims the first message that is there for nobody yet, for a get; ok is false when there is none now, and
// unsure says that there may be one soon. The caller holds mu, which is released meanwhile.
func (v *view) takeAside(ctx context.Context) (m fsm.Message, ok, unsure bool, err error) {
	k := v.claims
	v.undefer()
	for {
		var returned bool
		if v.frozen > 0 || k.releasing.n > 0 || v.turns.n == 0 && len(k.waiting) > 0 { // what comes back lies before the rest
			return m, false, true, nil
		}
		if v.resting() {
			return m, false, false, nil
		}
		if m, returned, ok = v.front(); !ok {
			return m, false, len(k.waiting)+k.releasing.n > 0 || k.reducing, nil
		}
		switch {
		case m.Claimed: // for a consumer
			k.awaited--
			k.waiting = append(k.waiting, claimed{Message: m, returned: returned, granted: true})
			if !v.running {
				v.balance()
			}
			continue
		case v.isExpired(&m, returned), v.isDeferred(&m):
			continue
		}
		if ok, err = v.claimAside(ctx, m.Sequence); ok || err != nil {
			return m, ok, false, err
		}
	}
}

// claimAside claims a message and reports whether it was still there. The caller holds mu, which is released meanwhile.
func (v *view) claimAside(ctx context.Context, sequence uint64) (ok bool, err error) {
	var gone bool // the caller; guarded by mu
	done := make(chan bool, 1)
	v.submitClaim(&fsm.Claim{Queue: v.queue.Number, Runs: []fsm.Run{{From: sequence, To: sequence}}}, func(r fsm.Result) {
		if r.Messages == 1 && gone {
			v.release([]uint64{sequence})
		}
		done <- r.Messages == 1
	})
	v.mu.Unlock()
	defer v.mu.Lock()
	select {
	case ok = <-done:
		return ok, nil
	case <-v.leadership.context.Done():
		return false, errorf(NotLeader, "NOT_LEADER - this node no longer leads")
	case <-ctx.Done():
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	select {
	case ok = <-done:
		return ok, nil
	default:
		gone = true
		return false, ctx.Err()
	}
}

// covers reports whether ascending runs cover a sequence.
func covers(runs []fsm.Run, sequence uint64) bool {
	low, high := 0, len(runs)
	for low < high {
		if middle := (low + high) / 2; runs[middle].To < sequence {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low < len(runs) && runs[low].From <= sequence
}
