// Package client is Warren's Go client. A Connection finds the leader among the servers it knows, follows it when
// leadership moves, and restores its channels, consumers and topology. Each publish carries the connection's producer
// id and a sequence number and is published again after a loss, in order, until it is confirmed: it takes effect once.
//
// All methods may be called from any goroutine.
package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/warrenmq/warren/protocol/native"
)

// controlChannel carries what belongs to no user's channel.
const controlChannel = 1

// maxChannels bounds the open channels of a connection; maxServers the addresses it remembers.
const (
	maxChannels = 2_047
	maxServers  = 64
)

// Connection is a lasting connection to a cluster, over one network connection at a time.
type Connection struct {
	o        options
	producer []byte
	ctx      context.Context // ends with Close
	cancel   context.CancelCauseFunc
	wg       sync.WaitGroup // the supervisor

	mu       sync.Mutex // guards all below
	closed   bool
	link     *link // the one that lives, restored or not; nil between two
	ready    *link // link once it is restored: nil while there is none to send on
	epoch    uint64
	lastRID  uint64 // even ones are calls', odd ones publishes'
	calls    map[uint64]*call
	settling map[uint64]*settlement
	pub      window
	channels map[uint32]*Channel
	dirty    []*Channel // with settlements to be sent
	topology topology
	cluster  string
	servers  []string // configured, then learned
	hint     string   // who is said to lead
	lastErr  error
	blocked  string        // why the broker holds publishes up; "" when it does not
	changed  chan struct{} // closed and replaced when ready changes
}

// Dial returns a connection once the leader is found, restored by itself from then on until Close. It tries the
// servers (host:port) and the members they tell of until ctx ends; a refused login or vhost ends it at once.
func Dial(ctx context.Context, servers []string, opts ...Option) (*Connection, error) {
	if len(servers) == 0 {
		return nil, errors.New("dial: no servers given")
	}
	c := &Connection{o: defaults(), calls: map[uint64]*call{}, settling: map[uint64]*settlement{},
		channels: map[uint32]*Channel{}, servers: slices.Clone(servers), changed: make(chan struct{}), lastRID: 16}
	for _, opt := range opts {
		opt(&c.o)
	}
	if c.o.deduplicate {
		c.producer = make([]byte, 16)
		rand.Read(c.producer)
	}
	c.pub.room = make(chan struct{})
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	l, err := c.find(ctx, true)
	if err != nil {
		c.cancel(ErrClosed)
		return nil, err
	}
	c.wg.Add(1)
	go c.run(l)
	if err := c.waitReady(ctx); err != nil {
		c.shut(err)
		return nil, err
	}
	return c, nil
}

func (c *Connection) waitReady(ctx context.Context) error {
	for {
		c.mu.Lock()
		ready, closed, changed := c.ready, c.closed, c.changed
		c.mu.Unlock()
		if closed {
			return ErrClosed
		}
		if ready != nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return c.gaveUp(ctx)
		}
	}
}

func (c *Connection) gaveUp(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lastErr != nil {
		return fmt.Errorf("%w: %w (last: %w)", ErrNoLeader, ctx.Err(), c.lastErr)
	}
	return fmt.Errorf("%w: %w", ErrNoLeader, ctx.Err())
}

// run is the supervisor: it looks after one link after the other.
func (c *Connection) run(l *link) {
	defer c.wg.Done()
	short := 0 // links in a row that did not last
	for {
		start := time.Now()
		c.serve(l)
		if c.ctx.Err() != nil {
			return
		}
		c.o.log.Warn("connection lost", "server", l.addr, "error", l.cause)
		if short++; time.Since(start) > time.Second {
			short = 0
		}
		if short > 1 { // the first retry is immediate
			select {
			case <-time.After(min(c.o.backoffMin<<min(short-2, 10), c.o.backoffMax, soonPause)):
			case <-c.ctx.Done():
				return
			}
		}
		var err error
		if l, err = c.find(c.ctx, false); err != nil {
			return
		}
		c.o.log.Info("connected to the leader", "server", l.addr, "node", l.welcome.NodeID)
	}
}

// serve runs a link until it fails or the connection is closed.
func (c *Connection) serve(l *link) {
	c.mu.Lock()
	c.epoch++
	l.epoch = c.epoch
	c.link = l
	c.blocked = l.blocked
	c.mu.Unlock()
	l.wg.Add(2)
	go c.read(l)
	go c.write(l)
	interval := time.Duration(l.welcome.Heartbeat) * time.Second
	if interval == 0 {
		interval = math.MaxInt64
	}
	tick := time.NewTicker(max(interval/4, 1))
	defer tick.Stop()
	restored := c.restore(l)
	for alive := true; alive; {
		select {
		case <-l.dead:
			alive = false
		case <-c.ctx.Done():
			l.fail(ErrClosed)
		case err := <-restored:
			restored = nil
			if err != nil {
				l.fail(err)
				break
			}
			c.begin(l)
		case now := <-tick.C:
			if now.UnixNano()-l.lastRead.Load() > int64(2*interval) {
				l.fail(fmt.Errorf("nothing heard from %s for %v", l.addr, 2*interval))
			} else if now.UnixNano()-l.lastSent.Load() >= int64(interval/2) {
				c.mu.Lock()
				l.out = native.Append(l.out, &native.Heartbeat{})
				c.mu.Unlock()
				l.signal()
			}
		}
	}
	l.wg.Wait()
	c.lost(l)
}

// begin sends what waited, older before newer, and lets new requests go out by themselves.
func (c *Connection) begin(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range sortedCalls(c.calls) {
		k.sent = true
		l.out = append(l.out, k.frame...)
	}
	c.pub.resend(l)
	c.ready = l
	c.lastErr = nil
	close(c.changed)
	c.changed = make(chan struct{})
	l.signal()
}

// lost settles what cannot be sent again and keeps the rest for the next link.
func (c *Connection) lost(l *link) {
	c.mu.Lock()
	c.link, c.ready = nil, nil
	c.blocked = ""
	c.lastErr = l.cause
	for rid, k := range c.calls {
		if k.internal || k.once && k.sent {
			delete(c.calls, rid)
			k.finish(nil, fmt.Errorf("%w: %w", ErrOutcomeUnknown, l.cause))
		}
	}
	for rid, s := range c.settling {
		delete(c.settling, rid)
		s.done(fmt.Errorf("%w: %w", ErrOutcomeUnknown, l.cause))
	}
	c.dirty = nil
	c.pub.wakeWaiters()
	var consumers []*Consumer
	for _, ch := range c.channels {
		ch.dropSettlements()
		for _, consumer := range ch.consumers {
			consumers = append(consumers, consumer)
		}
	}
	if !c.o.deduplicate {
		c.pub.failSent(fmt.Errorf("%w: %w", ErrOutcomeUnknown, l.cause))
	}
	c.mu.Unlock()
	for _, consumer := range consumers {
		consumer.dropStale()
	}
}

// Close waits for the confirms of what was published and the answers to what was acknowledged until ctx ends, closes the connection and waits for its
// goroutines. What is unconfirmed then fails with ErrClosed.
func (c *Connection) Close(ctx context.Context) error {
	err := c.pub.drain(ctx, c)
	c.shut(ErrClosed)
	return err
}

func (c *Connection) shut(cause error) {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel(cause)
	c.wg.Wait()
	c.mu.Lock()
	var consumers []*Consumer
	for _, ch := range c.channels {
		for _, consumer := range ch.consumers {
			consumers = append(consumers, consumer)
		}
	}
	c.channels = map[uint32]*Channel{}
	for rid, k := range c.calls {
		delete(c.calls, rid)
		k.finish(nil, ErrClosed)
	}
	c.pub.failAll(ErrClosed)
	c.mu.Unlock()
	for _, consumer := range consumers {
		consumer.end(ErrClosed)
	}
}

// Leader returns the address in use, or "" while there is none.
func (c *Connection) Leader() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ready == nil {
		return ""
	}
	return c.ready.addr
}

// Blocked returns why the broker holds publishes up (it is short of memory or disk), "" when it does not. Publish and
// PublishAsync wait meanwhile; consuming goes on.
func (c *Connection) Blocked() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.blocked
}

func (c *Connection) flow(l *link, f *native.Flow) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link != l {
		return
	}
	if c.blocked = ""; f.Blocked {
		c.blocked = cmp.Or(f.Reason, "the broker gives no reason")
		c.o.log.Warn("the broker holds publishes up", "reason", c.blocked)
	}
	c.pub.wakeWaiters()
}

// find looks for the leader, round after round, until ctx ends. On the first connection a refusal is final.
func (c *Connection) find(ctx context.Context, first bool) (*link, error) {
	start, wait := time.Now(), c.o.backoffMin
	for {
		l, err := c.round(ctx)
		if l != nil {
			return l, nil
		}
		var refused *Error
		if first && errors.As(err, &refused) {
			return nil, err
		}
		c.mu.Lock()
		c.lastErr = err
		c.mu.Unlock()
		pause, soon := wait, time.Second
		if f := new(follower); errors.As(err, &f) {
			soon = electing
		}
		if time.Since(start) < soon {
			pause = min(pause, soonPause)
		}
		pause += time.Duration(float64(pause) * c.o.jitter * (2*mathrand.Float64() - 1))
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, c.gaveUp(ctx)
		}
		wait = min(2*wait, c.o.backoffMax)
	}
}

// electing is for how long nodes that answer are asked often who leads: an election must not be followed by the rest
// of a long wait. soonPause is how long the wait is then.
const (
	electing  = 10 * time.Second
	soonPause = 100 * time.Millisecond
)

// settleDown is how long a round goes on after a node has answered that it does not lead.
const settleDown = 150 * time.Millisecond

// round asks all known servers at once which of them leads, those it hears of on the way included.
func (c *Connection) round(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithCancel(ctx)
	type answer struct {
		l   *link
		err error
	}
	answers := make(chan answer)
	asked := map[string]bool{}
	ask := func(addr string) {
		if addr == "" || asked[addr] || len(asked) >= maxServers {
			return
		}
		asked[addr] = true
		go func() {
			l, err := open(ctx, &c.o, addr)
			answers <- answer{l, err}
		}()
	}
	c.mu.Lock()
	known := append([]string{c.hint}, c.servers...)
	c.mu.Unlock()
	for _, addr := range known {
		ask(addr)
	}
	var found *link
	var lastErr error
	var over <-chan time.Time
	for got := 0; got < len(asked); {
		select {
		case <-over:
			cancel()
			over = nil
		case a := <-answers:
			got++
			var f *follower
			switch {
			case a.l != nil && (found != nil || !c.accept(a.l)):
				a.l.conn.Close()
				if found == nil {
					lastErr = fmt.Errorf("%s belongs to another cluster", a.l.addr)
				}
			case a.l != nil:
				found = a.l
				cancel()
			case errors.As(a.err, &f):
				lastErr = a.err
				if found == nil {
					c.learn(f)
					ask(f.leader)
					if over == nil {
						over = time.After(settleDown)
					}
				}
			case lastErr == nil || ctx.Err() == nil && !errors.As(lastErr, &f): // a node's answer tells more than a failed dial
				lastErr = a.err
			}
		}
	}
	cancel()
	return found, lastErr
}

// accept takes a leader's welcome in; false when it leads another cluster than the one this connection began with.
func (c *Connection) accept(l *link) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cluster != "" && l.welcome.ClusterID != "" && c.cluster != l.welcome.ClusterID {
		return false
	}
	if l.welcome.ClusterID != "" {
		c.cluster = l.welcome.ClusterID
	}
	c.remember(l.welcome.Members)
	c.hint = ""
	return true
}

func (c *Connection) learn(f *follower) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hint = f.leader
	c.remember(f.members)
}

func (c *Connection) remember(members []string) {
	for _, m := range members {
		if m != "" && !slices.Contains(c.servers, m) && len(c.servers) < maxServers {
			c.servers = append(c.servers, m)
		}
	}
}
