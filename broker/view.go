package broker

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/warrenmq/warren/fsm"
)

// view is one queue as the leader serves it: who consumes, what they hold, and where in the truth reading goes on.
// It is rebuilt from nothing in each term. Its lock may be held while a channel's is taken, never the other way round.
type view struct {
	leadership *leadership
	queue      fsm.QueueInfo // as it was when the view was made: only what never changes may be used
	single     bool          // only the active consumer receives (x-single-active-consumer)
	quorum     bool          // declared as x-queue-type quorum
	signal     chan struct{} // capacity 1: something may be deliverable

	mu        sync.Mutex
	closed    bool
	running   bool // dispatch's goroutine lives
	turns     turns
	active    *consumer // who receives, when single; nil until the next message
	joining   int       // consumers that wait for their first commands
	present   bool
	exclusive *consumer
	deleting  chan struct{} // closed when a delete that looked at the consumers has its result; nil without one
	frozen    int           // purges and deletes between their cut and their result: nothing is handed out (rule 3)

	reading
	levels       *readings     // of a queue with priorities; nil otherwise
	deferred     deferredHeap  // live again and not deliverable yet
	deferredMost int           // of them before those that are gone are dropped
	held         runSet        // handed out, and not settled in the truth yet
	groups       *groups       // nil unless messages go out by groups
	age          time.Duration // of the leadership when deliverSome began: one look at the clock for many deliveries

	unwanted uint64 // what lives for no time and is not above it expires: nobody was there for it

	claims *claiming // of a queue whose length is limited; nil otherwise

	mark   uint64    // sequences up to it may be handed out in this term (rule 11)
	asked  uint64    // the mark that is on its way
	damage error     // why the queue cannot be read
	again  time.Time // when that is tried again
}

func newView(l *leadership, q fsm.QueueInfo) *view {
	v := &view{leadership: l, queue: q, single: q.SingleActiveConsumer(), quorum: q.Quorum(), signal: make(chan struct{}, 1), reading: reading{cursor: q.FirstLive}, mark: q.Mark, asked: q.Mark, unwanted: q.Next - 1}
	if q.Limited {
		v.claims = &claiming{}
	}
	if q.Prioritized() {
		v.levels = &readings{}
	}
	v.groups = newGroups(v)
	return v
}

// wake lets dispatch look again. It never blocks.
func (v *view) wake() {
	select {
	case v.signal <- struct{}{}:
	default:
	}
}

// dispatch hands messages to consumers as long as there are any.
func (v *view) dispatch() {
	retry := time.NewTimer(time.Hour)
	defer retry.Stop()
	for {
		if v.leadership.broker.node.LeaseValid() {
			if !v.deliverAll() {
				return
			}
			if again := v.readAgain(); again > 0 {
				retry.Reset(again)
			}
		} else {
			retry.Reset(leaseRetry)
		}
		select {
		case <-v.signal:
		case <-retry.C:
		case <-v.leadership.context.Done():
			return
		}
	}
}

// deliverAll hands out what it can. It returns false, and dispatch ends, when nobody consumes any more.
func (v *view) deliverAll() bool {
	for {
		v.mu.Lock()
		if v.closed || v.turns.n == 0 {
			v.running = false
			v.balance()
			v.mu.Unlock()
			return false
		}
		if !v.deliverSome() {
			return true
		}
	}
}

// deliverSome hands out a number of messages at most, and reports whether there may be more to hand out. The caller
// holds mu, which is released.
func (v *view) deliverSome() (more bool) {
	v.age = v.leadership.age()
	var removed []uint64
	var m fsm.Message // one for all: it is on the heap
	if v.claims != nil {
		v.claim()
	}
	for range readAheadCount {
		c := v.pick()
		if c == nil {
			more = false
			break
		}
		turn := c
		if v.groups == nil {
			m, more = v.take()
		} else {
			m, c, more = v.takeGrouped(turn)
		}
		if !more {
			break
		}
		if c == turn {
			v.turns.served(c)
		}
		v.held.add(m.Sequence)
		if !c.channel.deliver(c, v, &m) { // closed or out of credit meanwhile: it was not handed out
			if v.claims != nil {
				v.held.remove(m.Sequence)
				v.notTaken(&m)
			} else {
				v.notHeld(m.Sequence, fsm.Return)
			}
			continue
		}
		if c.autoAck {
			removed = append(removed, m.Sequence)
		}
	}
	if v.claims != nil {
		v.balance()
	}
	v.mu.Unlock()
	if len(removed) > 0 {
		v.leadership.system.submitSettle(v, fsm.Acknowledge, nil, removed...)
	}
	return more
}

// handOut gives ready messages to the consumers that can take them, before a request looks at what is ready: consumers
// that wait come first. What a client publishes faster than that is left to dispatch.
func (v *view) handOut(ctx context.Context) error {
	for range maxHandOut {
		v.mu.Lock()
		if v.closed || v.turns.n == 0 || !v.leadership.broker.node.LeaseValid() {
			v.mu.Unlock()
			return nil
		}
		if v.deliverSome() {
			continue
		}
		v.mu.Lock()
		waiting := (v.hasRead() && v.asked > v.mark || v.claims != nil && len(v.claims.waiting) > 0) && v.pick() != nil
		v.mu.Unlock()
		if !waiting {
			return nil
		}
		// The mark, or a claim, is on its way in the log: behind it comes this.
		if _, err := v.leadership.system.call(ctx, fsm.MemberBoots{}); err != nil {
			return err
		}
	}
	return nil
}

// pick returns the next consumer that can take a message, nil when none can. The caller holds mu.
func (v *view) pick() *consumer {
	if v.frozen > 0 {
		return nil
	}
	if v.single {
		return v.pickActive()
	}
	return v.turns.pick()
}

// pickActive returns the active consumer if it can take a message. One of a higher priority takes its place as soon
// as it holds nothing any more, and until then nobody receives. The caller holds mu.
func (v *view) pickActive() *consumer {
	first := v.turns.first()
	if first == nil {
		return nil
	}
	if v.active == nil || first.priority > v.active.priority && v.active.idle() {
		v.active = first
	}
	if first.priority > v.active.priority || !v.active.ready() {
		return nil
	}
	return v.active
}

// take removes the first ready message from the view; ok is false when there is none that may be handed out now.
// The caller holds mu.
func (v *view) take() (m fsm.Message, ok bool) {
	if v.frozen > 0 || v.resting() {
		return m, false
	}
	if v.claims != nil {
		return v.claimedFront()
	}
	v.undefer()
	for {
		m, returned, ok := v.front()
		if !ok || !v.isExpired(&m, returned) && !v.isDeferred(&m) {
			return m, ok
		}
	}
}

// resting reports whether the queue could not be read and is left alone for a while. The caller holds mu.
func (v *view) resting() bool {
	if v.damage != nil && time.Now().Before(v.again) {
		return true
	}
	v.damage = nil
	return false
}

// notTaken has a claimed message back that was not handed out after all. The caller holds mu.
func (v *view) notTaken(m *fsm.Message) {
	v.claims.waiting = slices.Insert(v.claims.waiting, 0, claimed{Message: *m, granted: true})
}

func (v *view) damaged(err error) {
	v.damage, v.again = err, time.Now().Add(damageRetry)
	v.leadership.broker.log.Error("a queue cannot be read; it is not served until it can be, or is repaired from another node", "queue", v.queue.Name, "vhost", v.queue.Vhost, "error", err)
}

// readAgain returns for how long a queue that could not be read is left alone yet, or one whose messages are to be retried
// later; 0 when it can be read.
func (v *view) readAgain() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.damage == nil {
		return v.untilDeferred()
	}
	return max(time.Until(v.again), damageRetry/10)
}

// reserve asks for a higher mark when the sequence comes near it. The caller holds mu.
func (v *view) reserve(sequence uint64) {
	if sequence+markStep/2 <= v.mark || v.asked > v.mark {
		return
	}
	v.asked = sequence + markStep
	upto := v.asked
	c := fsm.Mark{Queue: v.queue.Number, Upto: upto}
	done := CompleterFunc(func(r fsm.Result) {
		v.mu.Lock()
		if r.Code == fsm.OK {
			v.mark = upto
		}
		v.mu.Unlock()
		v.wake()
	})
	_ = v.leadership.system.submit(context.Background(), false, submission{command: c, size: fsm.Size(c), done: done})
}

// settle sends the end of deliveries through a lane and, once it is applied, lets go of the messages, or has them
// back when they return. done, if any, hears of it afterwards.
func (v *view) settle(l *lane, kind fsm.SettleKind, sequences []uint64, done func(fsm.Result)) {
	v.returning(kind, sequences, 1)
	c := &fsm.Settle{Queue: v.queue.Number, Kind: kind, Runs: toRuns(sequences)}
	applied := CompleterFunc(func(r fsm.Result) {
		if r.Code == fsm.OK {
			v.settled(kind, sequences)
		}
		if done != nil {
			done(r)
		}
	})
	if err := l.submit(context.Background(), false, submission{command: c, size: fsm.Size(c), done: applied}); err != nil && done != nil {
		e := AsError(err)
		done(fsm.Result{Code: e.Code, Message: e.Message})
	}
}

func (v *view) settled(kind fsm.SettleKind, sequences []uint64) {
	v.mu.Lock()
	for _, q := range sequences {
		v.notHeld(q, kind)
	}
	if kind == fsm.Unclaim {
		v.released(sequences)
	}
	v.mu.Unlock()
	if kind == fsm.Return || kind == fsm.Unclaim || v.groups != nil {
		v.wake()
	}
}

// notHeld lets go of a message that was handed out, or has it back. The caller holds mu.
func (v *view) notHeld(sequence uint64, kind fsm.SettleKind) {
	v.held.remove(sequence)
	if v.groups != nil {
		v.groups.settled(sequence, kind)
	} else if kind == fsm.Return {
		v.putBack(sequence)
	}
}

// freeze is called when a command that removes ready messages is cut: it returns what consumers hold, and nothing is
// handed out until thaw.
func (v *view) freeze() []fsm.Run {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.frozen++
	v.readAfresh()
	return v.held.runs()
}

func (v *view) thaw() {
	v.mu.Lock()
	v.frozen--
	if !v.running || v.turns.n == 0 {
		v.balance()
	}
	v.mu.Unlock()
	v.wake()
}

// counts returns how many messages consumers hold and how many consumers there are.
func (v *view) counts() (held uint64, consumers int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return uint64(v.held.n), v.turns.n
}

// close ends the view; with gone its queue was deleted and its consumers are told.
func (v *view) close(gone bool) {
	v.mu.Lock()
	if v.closed {
		v.mu.Unlock()
		return
	}
	v.closed = true
	consumers := v.turns.all()
	v.turns, v.active = turns{}, nil
	v.mu.Unlock()
	v.wake()
	if gone {
		for _, c := range consumers {
			c.channel.cancelled(c)
		}
	}
}
