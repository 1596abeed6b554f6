package broker

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/warrenmq/warren/fsm"
)

// consumer is one subscription of a channel to a queue.
type consumer struct {
	tag       string
	channel   *Channel
	view      *view
	autoAck   bool
	exclusive bool
	priority  int64
	timeout   time.Duration // within which its deliveries must be settled; 0: none
	arguments []byte
	prefetch  uint32      // 0: no bound
	unacked   uint32      // guarded by the channel's mu
	cancelled bool        // guarded by the channel's mu
	parked    atomic.Bool // it was found to take nothing, and what changes that has not come; written with the channel's mu held
}

// ready reports whether the consumer can take another message now. If not it is parked: passed over, at no cost, until
// it may again.
func (c *consumer) ready() bool {
	if c.parked.Load() {
		return false
	}
	ch := c.channel
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ready := !c.cancelled && !ch.closed && c.credit() && ch.session.receiver.Writable()
	c.parked.Store(!ready)
	return ready
}

// credit reports whether the prefetch counts allow another delivery. One that needs no acknowledgement uses up nothing,
// but waits with the others while the channel's limit is reached. The caller holds the channel's mu.
func (c *consumer) credit() bool {
	ch := c.channel
	return (c.autoAck || c.prefetch == 0 || c.unacked < c.prefetch) && (ch.limit == 0 || uint32(ch.used) < ch.limit)
}

// unpark has the consumer looked at again. The caller holds the channel's mu.
func (c *consumer) unpark() {
	c.parked.Store(false)
	c.view.wake()
}

// use takes credit for a delivery. The caller holds the channel's mu.
func (c *consumer) use() {
	c.unacked++
	c.channel.used++
}

// release gives the credit of a delivery back, to the other consumers too when the channel's was used up. The caller
// holds the channel's mu.
func (c *consumer) release() {
	ch := c.channel
	c.unacked--
	ch.used--
	c.unpark()
	if ch.limit > 0 && uint32(ch.used) == ch.limit-1 {
		ch.unpark()
	}
}

// unpark has all consumers looked at again. The caller holds mu.
func (ch *Channel) unpark() {
	for _, c := range ch.consumers {
		c.unpark()
	}
}

// idle reports whether the consumer holds nothing.
func (c *consumer) idle() bool {
	c.channel.mu.Lock()
	defer c.channel.mu.Unlock()
	return c.unacked == 0
}

// join makes a consumer of the queue. It waits for the commands that must come first: the queue's first consumer is
// one (rule 12), and so is the delivery mark (rule 11). started is called before the first delivery.
func (v *view) join(ctx context.Context, c *consumer, started func()) error {
	v.mu.Lock()
	for v.deleting != nil {
		deleting := v.deleting
		v.mu.Unlock()
		select {
		case <-deleting:
		case <-ctx.Done():
			return ctx.Err()
		}
		v.mu.Lock()
	}
	if v.closed {
		v.mu.Unlock()
		return v.notFound()
	}
	if v.exclusive != nil || c.exclusive && (v.single || v.turns.n+v.joining > 0) {
		v.mu.Unlock()
		return errorf(fsm.AccessRefused, "ACCESS_REFUSED - queue '%s' in vhost '%s' in exclusive use", v.queue.Name, v.queue.Vhost)
	}
	if c.exclusive {
		v.exclusive = c
	}
	come := v.expect(c)
	v.joining++
	if !v.present {
		v.present = true
		v.announce(true)
	}
	v.reserve(v.cursor)
	v.mu.Unlock()

	// The lane keeps its order: when an empty command is applied, those before it are.
	_, err := v.leadership.system.call(ctx, fsm.MemberBoots{})
	v.mu.Lock()
	v.joining--
	come()
	if err == nil && v.closed {
		err = v.notFound()
	}
	if err != nil {
		v.balance()
		v.left(c)
		v.mu.Unlock()
		return err
	}
	v.expireUnwanted()
	v.turns.add(c)
	started()
	if !v.running {
		v.running = true
		v.leadership.start(v.dispatch)
	}
	v.mu.Unlock()
	v.leadership.broker.stats.consumers.Add(1)
	v.wake()
	return nil
}

// leave ends a consumer's deliveries; what it holds stays held. When an auto-delete queue goes with it, it returns the
// position of the system lane to wait for, else 0.
func (v *view) leave(c *consumer) (gone uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.turns.remove(c) {
		return 0
	}
	if v.active == c {
		v.active = nil
		v.wake() // another one's turn
	}
	v.balance()
	v.leadership.broker.stats.consumers.Add(-1)
	if v.left(c) && v.queue.AutoDelete {
		gone = v.leadership.system.position()
	}
	return gone
}

// left follows up on a consumer that went or did not come, and reports whether it was the last. The caller holds mu.
func (v *view) left(c *consumer) bool {
	if v.exclusive == c {
		v.exclusive = nil
	}
	last := v.present && !v.closed && v.turns.n+v.joining == 0
	if last {
		v.present = false
		v.announce(false)
	}
	return last
}

// announce tells the state about the first and the last consumer; the system lane keeps the order. The caller holds mu.
func (v *view) announce(present bool) {
	c := fsm.ConsumerPresence{Queue: v.queue.Number, Present: present}
	_ = v.leadership.system.submit(context.Background(), false, submission{command: c, size: fsm.Size(c)})
}

func (v *view) notFound() error {
	return errorf(fsm.NotFound, "NOT_FOUND - no queue '%s' in vhost '%s'", v.queue.Name, v.queue.Vhost)
}
