package broker

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warrenmq/warren/fsm"
)

// leadership is everything that lives for one term in which this node leads: the proposer, the views and the
// sessions. Any change of term ends it and closes every client connection (rule 1).
type leadership struct {
	broker   *Broker
	term     uint64
	began    time.Time
	proposer *proposer
	system   *lane // commands of the broker itself
	ready    atomic.Bool
	context  context.Context // ends with the leadership
	cancel   context.CancelFunc
	failed   chan struct{} // closed by fail when an entry's outcome is unknown
	failOnce sync.Once
	work     sync.WaitGroup // the proposer's and the views' goroutines

	mu       sync.Mutex
	closed   bool                // guarded by mu
	views    map[uint64]*view    // by queue number; guarded by mu
	sessions map[uint64]*Session // by number; guarded by mu
	last     uint64              // session number; guarded by mu

	uploads atomic.Uint64 // large bodies that the leadership itself moves
	died    chan struct{} // capacity 1: messages died whose dead letters are to be routed
	overran chan struct{} // capacity 1: a queue has more messages than its limits let it have
	replies replies
	timed   atomic.Bool // some consumer had an acknowledgement timeout
}

// lastNumbers remembers the last batch number of a term, for a leadership that starts again within it, and the last
// session number likewise.
type lastNumbers struct {
	mu                   sync.Mutex
	term, batch, session uint64 // guarded by mu
}

func (n *lastNumbers) get(term uint64) (batch, session uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.term == term {
		return n.batch, n.session
	}
	return 0, 0
}

func (n *lastNumbers) set(term, batch, session uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.term, n.batch, n.session = term, batch, session
}

func newLeadership(b *Broker, term uint64) *leadership {
	l := &leadership{broker: b, term: term, began: time.Now(), failed: make(chan struct{}), died: make(chan struct{}, 1), overran: make(chan struct{}, 1), views: map[uint64]*view{}, sessions: map[uint64]*Session{}}
	l.context, l.cancel = context.WithCancel(context.Background())
	batch, session := b.lastNumbers.get(term)
	l.last = session
	l.proposer = newProposer(l, batch, &b.stats)
	l.system = l.proposer.newLane()
	l.system.share = nil
	return l
}

// run starts the leadership and keeps house until it is closed.
func (l *leadership) run() {
	l.work.Go(l.proposer.run)
	l.work.Go(l.proposer.finish)
	defer l.work.Wait()
	if err := l.begin(l.context); err != nil {
		if l.context.Err() == nil {
			l.broker.log.Error("the leadership could not start; it is given up", "term", l.term, "error", err)
			l.fail(err)
		}
		return
	}
	l.ready.Store(true)
	l.broker.log.Info("serving clients", "term", l.term)
	l.broker.announce()
	l.start(func() { l.expireMessages(l.context) })
	l.start(func() { l.routeDeadLetters(l.context) })
	l.start(func() { l.releaseDelayed(l.context) })
	l.start(func() { l.trimQueues(l.context) })
	l.upkeep(l.context)
}

// begin brings the state into this term: nobody is served before it is done (rules 11 to 14).
func (l *leadership) begin(ctx context.Context) error {
	b := l.broker
	b.clock.start(b.machine.Clock())
	// The first entry of the term: once it is applied, so is everything that earlier leaders committed.
	if _, err := l.system.call(ctx, fsm.MemberBoots{}); err != nil {
		return fmt.Errorf("apply the term's first entry: %w", err)
	}
	boots, cold, err := l.decideCold(ctx)
	if err != nil {
		return err
	}
	if cold {
		if ahead := b.clock.startCold(b.machine.Clock()); ahead > time.Minute {
			b.log.Error("the stored clock is ahead of the wall clock; timed features run on the stored one until it is caught up", "ahead", ahead)
		}
	} else {
		b.clock.start(b.machine.Clock())
	}
	if id := b.node.ClusterID(); b.machine.ClusterID() == "" && id != "" {
		if _, err := l.system.call(ctx, fsm.FoundCluster{ID: id}); err != nil {
			return fmt.Errorf("write the cluster id: %w", err)
		}
	}
	if _, err := l.system.call(ctx, fsm.LeaderStarted{Leader: b.node.Self().Server, Cold: cold, Boots: boots}); err != nil {
		return fmt.Errorf("begin the term: %w", err)
	}
	if err := l.repeat(ctx, fsm.DropExclusive{Limit: dropStep}); err != nil {
		return fmt.Errorf("drop exclusive queues: %w", err)
	}
	if cold {
		if err := l.repeat(ctx, fsm.DropTransient{Limit: dropStep}); err != nil {
			return fmt.Errorf("drop transient objects: %w", err)
		}
	}
	return nil
}

// repeat applies a command that works in bounded steps until nothing remains.
func (l *leadership) repeat(ctx context.Context, c fsm.Command) error {
	for {
		r, err := l.system.call(ctx, c)
		if err != nil || r.Messages == 0 {
			return err
		}
	}
}

// decideCold says whether the whole cluster was down (rule 13): of a majority of voters, this node included, no boot
// id is recorded in the state. It waits until it knows a majority's.
func (l *leadership) decideCold(ctx context.Context) (boots []fsm.MemberBoot, cold bool, err error) {
	tick := time.NewTicker(bootsRetry)
	defer tick.Stop()
	for {
		boots = l.knownBoots()
		known := map[string]bool{}
		for _, m := range boots {
			known[m.Server] = true
		}
		voters, seen := l.broker.node.Voters(), 0
		for _, v := range voters {
			if known[v] {
				seen++
			}
		}
		if known[l.broker.node.Self().Server] && seen > len(voters)/2 {
			return boots, !l.anyRecorded(boots), nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
	}
}

// knownBoots returns the boot ids that this node has seen, sorted by server.
func (l *leadership) knownBoots() []fsm.MemberBoot {
	seen := l.broker.node.Boots()
	boots := make([]fsm.MemberBoot, 0, len(seen))
	for _, server := range sortedKeys(seen) {
		boots = append(boots, fsm.MemberBoot{Server: server, Boot: seen[server]})
	}
	return boots
}

func (l *leadership) anyRecorded(boots []fsm.MemberBoot) bool {
	for _, recorded := range l.broker.machine.Boots() {
		for _, b := range boots {
			if b.Server == recorded.Server && bytes.Equal(b.Boot[:], recorded.Boot[:]) {
				return true
			}
		}
	}
	return false
}

// fail ends a leadership whose log is no longer certain; the broker closes it.
func (l *leadership) fail(err error) {
	l.failOnce.Do(func() {
		l.broker.log.Warn("an entry's outcome is unknown; clients are sent away", "term", l.term, "error", err)
		close(l.failed)
	})
}

// close ends the leadership: every session is closed, everything waiting is answered.
func (l *leadership) close() {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return
	}
	l.closed = true
	views, sessions := slices.Collect(maps.Values(l.views)), slices.Collect(maps.Values(l.sessions))
	session := l.last
	l.mu.Unlock()
	l.ready.Store(false)
	l.cancel()
	l.proposer.close()
	l.proposer.mu.Lock()
	number := l.proposer.number
	l.proposer.mu.Unlock()
	l.broker.lastNumbers.set(l.term, number, session)
	for _, s := range sessions {
		s.end("")
	}
	for _, v := range views {
		v.close(false)
	}
}

// start runs a goroutine that ends with the leadership; it does nothing when that is over.
func (l *leadership) start(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed { // then the proposer's goroutines run too, and nobody has stopped waiting
		l.work.Go(f)
	}
}

// view returns the view of a queue, made at first use; nil when the leadership is over.
func (l *leadership) view(number uint64) *view {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	v := l.views[number]
	if v == nil {
		if info, ok := l.broker.machine.QueueByNumber(number); ok {
			v = newView(l, info)
			l.views[number] = v
		}
	}
	return v
}

// existingView returns the view of a queue if there is one.
func (l *leadership) existingView(number uint64) *view {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.views[number]
}

// grew wakes the views of queues that got messages.
func (l *leadership) grew(numbers []uint64) {
	if len(numbers) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range numbers {
		if v := l.views[n]; v != nil {
			v.wake()
		}
	}
}

// deleted ends the views of queues that are gone; their consumers are told.
func (l *leadership) deleted(numbers []uint64) {
	for _, n := range numbers {
		l.mu.Lock()
		v := l.views[n]
		delete(l.views, n)
		l.mu.Unlock()
		if v != nil {
			v.close(true)
		}
	}
}
