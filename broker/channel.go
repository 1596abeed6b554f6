package broker

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/warrenmq/warren/fsm"
)

// Delivery is a message handed to a consumer or answered to a get. Its slices must not be changed.
type Delivery struct {
	Channel     uint32
	ConsumerTag string // empty for a get
	Tag         uint64
	Queue       string
	Quorum      bool // the queue was declared with x-queue-type quorum
	Redelivered bool
	Message     *fsm.Message
}

// Receiver is a client connection as the broker writes to it. All methods are called with locks of the broker held:
// they must return at once and never call back.
type Receiver interface {
	// Deliver writes a delivery. It does not keep the message, only what the message refers to. A direct reply's slices belong to its publisher: they are not kept.
	Deliver(d Delivery)
	// Writable reports whether the outgoing buffer has room; when it has room again the front end calls
	// Session.Drained.
	Writable() bool
	// Full reports whether so much waits to be written that even direct replies are dropped.
	Full() bool
	// Cancelled says that the broker ended a consumer. Nothing is delivered to it afterwards and its tag is free.
	Cancelled(c Cancellation)
}

// Cancellation is the end of a consumer that did not ask for it.
type Cancellation struct {
	Channel     uint32
	ConsumerTag string
	Cause       Cause
	Timeout     time.Duration // that was exceeded, with AckTimeout
}

// Cause says why the broker ended a consumer.
type Cause uint8

// The causes of a Cancellation.
const (
	QueueGone  Cause = iota + 1 // its queue was deleted
	AckTimeout                  // a delivery was not settled in time; it is back in its queue
)

// Channel is what both protocols' channels share: delivery tags, credit, consumers. Safe for concurrent use.
type Channel struct {
	ID      uint32
	session *Session

	mu        sync.Mutex
	closed    bool
	lastTag   uint64
	unacked   outstanding // bounded by prefetch, or by what the client asked for
	held      map[*Held]struct{}
	used      int // credit that consumers' deliveries use up: those of unacked and held, and those on their way back
	consumers map[string]*consumer
	replies   replyConsumer
	prefetch  uint32        // of consumers to come
	limit     uint32        // of the whole channel; 0: none
	shortest  time.Duration // acknowledgement timeout that any consumer has had; 0: none
	mode      Mode
}

// deliver gives a message to a consumer; false when the consumer is gone or has no credit. The caller holds the view's lock.
func (ch *Channel) deliver(c *consumer, v *view, m *fsm.Message) bool {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.closed || c.cancelled || !c.credit() { // another queue may have used up the channel's credit since it was picked
		return false
	}
	ch.lastTag++
	if !c.autoAck {
		u := unacked{view: v, consumer: c, sequence: m.Sequence, since: v.age}
		if c.timeout > 0 {
			u.since = ch.session.leadership.age()
		}
		ch.unacked.add(ch.lastTag, u)
		c.use()
	}
	stats := &ch.session.leadership.broker.stats
	stats.deliveries.Add(1)
	if m.Redelivered {
		stats.redeliveries.Add(1)
	}
	ch.session.receiver.Deliver(Delivery{Channel: ch.ID, ConsumerTag: c.tag, Tag: ch.lastTag, Queue: v.queue.Name, Quorum: v.quorum, Redelivered: m.Redelivered, Message: m})
	return true
}

// Qos bounds unacknowledged deliveries: of each consumer started from now on, or of the whole channel.
func (ch *Channel) Qos(count uint32, perChannel bool) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if !perChannel {
		ch.prefetch = count
		return
	}
	ch.limit = count
	ch.unpark()
}

// Consumer is what a channel asks for when it consumes.
type Consumer struct {
	Queue     string
	Tag       string // empty: one is made up
	AutoAck   bool
	Exclusive bool
	Priority  int64         // the highest that can take a message gets it
	Timeout   time.Duration // within which a delivery must be settled; 0: the queue's or the broker's
	Arguments []byte        // for lists only: a field table without its length prefix
}

// Consume starts a consumer. started is called with its tag before the first delivery. It blocks until the consumer is
// in place. A tag that the channel uses and too many consumers are NotAllowed, which in AMQP ends the connection.
func (ch *Channel) Consume(ctx context.Context, want Consumer, started func(tag string)) error {
	tag := want.Tag
	if tag == "" {
		tag = generatedName("amq.ctag-")
	}
	ch.mu.Lock()
	err := ch.admit(tag)
	ch.mu.Unlock()
	if err != nil {
		return err
	}
	info, err := ch.session.queue(want.Queue)
	if err != nil {
		return err
	}
	v := ch.session.leadership.view(info.Number)
	if v == nil {
		return ch.session.noQueue(want.Queue)
	}
	if err := ch.session.handOut(ctx, v); err != nil {
		return err
	}
	c := &consumer{tag: tag, channel: ch, view: v, autoAck: want.AutoAck, exclusive: want.Exclusive, priority: want.Priority,
		arguments: listed(want.Arguments), timeout: v.ackTimeout(want.Timeout)}
	ch.mu.Lock()
	if err = ch.admit(tag); err == nil {
		c.prefetch = ch.prefetch
		ch.put(c)
		if c.timeout > 0 && (ch.shortest == 0 || c.timeout < ch.shortest) {
			ch.shortest = c.timeout
			ch.session.leadership.timed.Store(true)
		}
	}
	ch.mu.Unlock()
	if err != nil {
		return err
	}
	if err := v.join(ctx, c, func() { started(tag) }); err != nil {
		ch.mu.Lock()
		ch.remove(c)
		ch.mu.Unlock()
		return err
	}
	ch.mu.Lock()
	gone := ch.closed
	ch.mu.Unlock()
	if gone { // closed while it joined: nobody else would take it out
		ch.session.leave(c)
	}
	return nil
}

// admit refuses a consumer that the channel cannot have. The caller holds mu.
func (ch *Channel) admit(tag string) error {
	switch {
	case ch.closed:
		return errorf(fsm.CommandInvalid, "CHANNEL_ERROR - channel %d is closed", ch.ID)
	case ch.consumers[tag] != nil || ch.replies.address != "" && ch.replies.tag == tag:
		return errorf(fsm.NotAllowed, "NOT_ALLOWED - attempt to reuse consumer tag '%s'", tag)
	case ch.session.consuming.Load() >= maxConsumers:
		return errorf(fsm.NotAllowed, "NOT_ALLOWED - reached maximum (%d) of consumers per connection", maxConsumers)
	}
	return nil
}

// put adds a consumer. The caller holds mu.
func (ch *Channel) put(c *consumer) {
	ch.consumers[c.tag] = c
	ch.session.consuming.Add(1)
}

// remove takes a consumer out if it is there. The caller holds mu.
func (ch *Channel) remove(c *consumer) {
	if ch.consumers[c.tag] == c {
		delete(ch.consumers, c.tag)
		ch.session.consuming.Add(-1)
	}
}

// listed are a consumer's arguments as far as lists show them.
func listed(arguments []byte) []byte {
	if len(arguments) > maxListedArguments {
		return nil
	}
	return bytes.Clone(arguments)
}

// Cancel ends a consumer, behind what the session published before; its unacknowledged deliveries stay with the channel.
// Nothing is delivered to it afterwards.
// When it was the last one of an auto-delete queue, Cancel waits until the queue is gone. An unknown tag is no error.
func (ch *Channel) Cancel(ctx context.Context, tag string) error {
	ch.mu.Lock()
	c := ch.consumers[tag]
	ch.mu.Unlock()
	if c != nil {
		if err := ch.session.handOut(ctx, c.view); err != nil {
			return err
		}
	}
	ch.mu.Lock()
	c = ch.consumers[tag]
	if c != nil {
		ch.remove(c)
		c.cancelled = true
	} else if ch.replies.tag == tag {
		ch.endReplies()
	}
	ch.mu.Unlock()
	if c == nil {
		return nil
	}
	return ch.session.leadership.system.waitFor(ctx, c.view.leave(c))
}

// cancelled takes a consumer out whose queue is gone and tells the client.
func (ch *Channel) cancelled(c *consumer) {
	known := ch.drop(c)
	ch.session.leadership.broker.stats.consumers.Add(-1)
	if known {
		ch.session.receiver.Cancelled(Cancellation{Channel: ch.ID, ConsumerTag: c.tag, Cause: QueueGone})
	}
}

// drop ends a consumer for the channel, and reports whether the client did not know that yet.
func (ch *Channel) drop(c *consumer) bool {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	known := ch.consumers[c.tag] == c && !ch.closed
	ch.remove(c)
	c.cancelled = true
	return known
}

// Get takes the first ready message of a queue; found is false when there is none. answer, if found, is called with
// the delivery before anything else can be done with it.
func (ch *Channel) Get(ctx context.Context, queue string, autoAck bool, answer func(*Delivery, uint64)) (found bool, err error) {
	s := ch.session
	if err := s.lane.show(ctx); err != nil {
		return false, err
	}
	info, err := s.queue(queue)
	if err != nil {
		return false, err
	}
	v := s.leadership.view(info.Number)
	if v == nil {
		return false, s.noQueue(queue)
	}
	if v.single && v.quorum {
		return false, errorf(fsm.ResourceLocked, "RESOURCE_LOCKED - cannot obtain access to locked queue '%s' in vhost '%s'. basic.get operations are not supported by quorum queues with single active consumer", queue, s.Vhost.Name)
	}
	if s.leadership.broker.machine.Expires(info.Number) {
		s.leadership.send(fsm.UseQueue{Queue: info.Number})
	}
	if err := s.leadership.verify(ctx); err != nil {
		return false, err
	}
	if err := v.handOut(ctx); err != nil { // who waited for a message comes first
		return false, err
	}
	v.mu.Lock()
	v.expireUnwanted()
	v.mu.Unlock()
	for {
		v.mu.Lock()
		m, ok, unsure, err := v.takeFor(ctx, ch)
		if err != nil {
			v.mu.Unlock()
			return false, err
		}
		if ok {
			v.held.add(m.Sequence)
			ch.mu.Lock()
			if ch.closed {
				ok = false
			} else {
				ch.lastTag++
				if !autoAck {
					ch.unacked.add(ch.lastTag, unacked{view: v, sequence: m.Sequence, since: s.leadership.age()})
				}
				ready := uint64(0)
				if now, there := s.leadership.broker.machine.QueueByNumber(info.Number); there {
					ready = now.Messages - min(now.Messages, max(uint64(v.held.n), now.Claimed))
				}
				s.leadership.broker.stats.deliveries.Add(1)
				answer(&Delivery{Channel: ch.ID, Tag: ch.lastTag, Queue: v.queue.Name, Quorum: v.quorum, Redelivered: m.Redelivered, Message: &m}, ready)
			}
			ch.mu.Unlock()
			v.mu.Unlock()
			switch {
			case !ok:
				s.lane.submitSettle(v, fsm.Return, nil, m.Sequence)
			case autoAck:
				s.lane.submitSettle(v, fsm.Acknowledge, nil, m.Sequence)
			}
			return ok, nil
		}
		waiting, damage := unsure || v.asked > v.mark || v.frozen > 0, v.damage
		v.mu.Unlock()
		if damage != nil {
			return false, errorf(fsm.InternalError, "INTERNAL_ERROR - queue '%s' in vhost '%s' is damaged: %v", v.queue.Name, v.queue.Vhost, damage)
		}
		if !waiting {
			return false, nil
		}
		// The mark, or what froze the queue, is on its way in the log: behind it comes this.
		if _, err := s.leadership.system.call(ctx, fsm.MemberBoots{}); err != nil {
			return false, err
		}
	}
}

// Close cancels the channel's consumers and returns what they hold. It does not wait for that to be applied:
// Session.Settled does.
func (ch *Channel) Close() {
	ch.mu.Lock()
	if ch.closed {
		ch.mu.Unlock()
		return
	}
	ch.closed = true
	consumers := ch.consumers
	ch.session.consuming.Add(-int64(len(consumers)))
	ch.consumers = map[string]*consumer{} // who joins just now finds the channel closed and leaves by itself
	ch.endReplies()
	var back takings
	for e := range ch.unacked.all {
		back.add(e)
	}
	for h := range ch.held { // of a transaction that was not committed
		h.owner = nil
		for e := range h.all {
			back.add(e)
		}
	}
	ch.unacked, ch.held = outstanding{}, nil
	ch.mu.Unlock()
	for _, c := range consumers {
		ch.session.leave(c)
	}
	for _, t := range back.list {
		ch.session.lane.submitSettle(t.view, fsm.Return, nil, t.sequences()...)
	}
	ch.session.forget(ch)
}
