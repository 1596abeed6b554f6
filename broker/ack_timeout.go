package broker

import (
	"time"

	"github.com/warrenmq/warren/fsm"
)

// ackTimeout is within which time deliveries of this queue must be settled, 0 for any: what the consumer says, else
// the queue, else the broker.
func (v *view) ackTimeout(own time.Duration) time.Duration {
	if own > 0 {
		return own
	}
	if ms, ok := v.leadership.broker.machine.ConsumerTimeout(v.queue.Number); ok {
		return time.Duration(min(ms, maxAckTimeout.Milliseconds())) * time.Millisecond
	}
	return v.leadership.broker.config.ConsumerTimeout
}

// age is how long the leadership has lasted, by the monotonic clock.
func (l *leadership) age() time.Duration { return time.Since(l.began) }

// expireDeliveries returns what was delivered and not settled in time, on all channels. It costs the channels, and
// what is too old on them.
func (l *leadership) expireDeliveries() {
	if !l.timed.Load() {
		return
	}
	now := l.age()
	for _, s := range l.snapshot() {
		for _, ch := range s.list() {
			ch.expire(now)
		}
	}
}

// expire returns the deliveries that their consumers had for too long, and cancels those consumers. Deliveries are
// outstanding in the order in which they were made, so looking ends at the first that no consumer has had too long.
func (ch *Channel) expire(now time.Duration) {
	var late takings
	ch.mu.Lock()
	if ch.shortest == 0 || ch.closed {
		ch.mu.Unlock()
		return
	}
	var tags []uint64
	for e := range ch.unacked.all {
		if e.consumer == nil || e.consumer.timeout == 0 {
			continue
		}
		if now-e.since < ch.shortest {
			break
		}
		if now-e.since >= e.consumer.timeout {
			tags = append(tags, e.tag)
		}
	}
	for _, tag := range tags {
		ch.unacked.take(tag, tag, late.add)
	}
	late.release()
	ch.mu.Unlock()
	for e := range late.all {
		if c := e.consumer; ch.drop(c) {
			ch.session.leave(c)
			ch.session.receiver.Cancelled(Cancellation{Channel: ch.ID, ConsumerTag: c.tag, Cause: AckTimeout, Timeout: c.timeout})
		}
	}
	for _, t := range late.list {
		ch.session.lane.submitSettle(t.view, fsm.Return, nil, t.sequences()...)
	}
}
