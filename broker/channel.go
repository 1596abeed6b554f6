package broker

import (
	"context"
	"sync"

	"github.com/warrenmq/warren/fsm"
)

// Delivery is a message handed to a consumer or answered to a get. Its slices must not be changed.
type Delivery struct {
	Channel     uint32
	ConsumerTag string // empty for a get
	Tag         uint64
	Queue       string
	Redelivered bool
	Message     *fsm.Message
}

// Receiver is a client connection as the broker writes to it. All methods are called with locks of the broker held:
// they must return at once and never call back.
type Receiver interface {
	Deliver(d *Delivery)
	// Writable reports whether the outgoing buffer has room; when it has room again the front end calls
	// Session.Drained.
	Writable() bool
	// Cancelled says that the broker ended a consumer because its queue is gone.
	Cancelled(channel uint32, tag string)
}

// Channel is what both protocols' channels share: delivery tags, credit, consumers. Safe for concurrent use.
type Channel struct {
	ID      uint32
	session *Session

	mu        sync.Mutex
	closed    bool
	lastTag   uint64
	unacked   outstanding // bounded by prefetch, or by what the client asked for
	consumers map[string]*consumer
	prefetch  uint32 // of consumers to come
	limit     uint32 // of the whole channel; 0: none
}

// Range is a range of delivery tags, both ends included.
type Range struct{ From, To uint64 }

// deliver gives a message to a consumer; false when the consumer is gone. The caller holds the view's lock.
func (ch *Channel) deliver(c *consumer, v *view, m *fsm.Message) bool {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.closed || c.cancelled {
		return false
	}
	ch.lastTag++
	if !c.autoAck {
		ch.unacked.add(ch.lastTag, unacked{view: v, consumer: c, sequence: m.Sequence})
		c.unacked++
	}
	stats := &ch.session.leadership.broker.stats
	stats.deliveries.Add(1)
	if m.Redelivered {
		stats.redeliveries.Add(1)
	}
	ch.session.receiver.Deliver(&Delivery{Channel: ch.ID, ConsumerTag: c.tag, Tag: ch.lastTag, Queue: v.queue.Name, Redelivered: m.Redelivered, Message: m})
	return true
}

// Qos bounds unacknowledged deliveries: of each consumer started from now on, or of the whole channel.
func (ch *Channel) Qos(count uint32, perChannel bool) {
	ch.mu.Lock()
	var views []*view
	if perChannel {
		ch.limit = count
		for _, c := range ch.consumers {
			views = append(views, c.view)
		}
	} else {
		ch.prefetch = count
	}
	ch.mu.Unlock()
	for _, v := range views {
		v.wake()
	}
}

// Consume starts a consumer and returns its tag; an empty one is made up. started is called with the tag before the
// first delivery. It blocks until the consumer is in place.
func (ch *Channel) Consume(ctx context.Context, queue, tag string, autoAck, exclusive bool, started func(tag string)) error {
	info, err := ch.session.queue(queue)
	if err != nil {
		return err
	}
	if tag == "" {
		tag = generatedName("amq.ctag-")
	}
	v := ch.session.leadership.view(info.Number)
	if v == nil {
		return errorf(fsm.NotFound, "NOT_FOUND - no queue '%s' in vhost '%s'", queue, ch.session.Vhost.Name)
	}
	c := &consumer{tag: tag, channel: ch, view: v, autoAck: autoAck, exclusive: exclusive}
	ch.mu.Lock()
	switch {
	case ch.closed:
		err = errorf(fsm.CommandInvalid, "CHANNEL_ERROR - channel %d is closed", ch.ID)
	case ch.consumers[tag] != nil:
		err = errorf(fsm.NotAllowed, "NOT_ALLOWED - attempt to reuse consumer tag '%s'", tag)
	case len(ch.consumers) >= maxConsumers:
		err = errorf(Overloaded, "OVERLOADED - a channel holds at most %d consumers", maxConsumers)
	default:
		c.prefetch = ch.prefetch
		ch.consumers[tag] = c
	}
	ch.mu.Unlock()
	if err != nil {
		return err
	}
	if err := v.join(ctx, c, func() { started(tag) }); err != nil {
		ch.mu.Lock()
		delete(ch.consumers, tag)
		ch.mu.Unlock()
		return err
	}
	ch.mu.Lock()
	gone := ch.closed
	ch.mu.Unlock()
	if gone { // closed while it joined: nobody else would take it out
		v.leave(c)
	}
	return nil
}

// Cancel ends a consumer; its unacknowledged deliveries stay with the channel. Nothing is delivered to it afterwards.
// An unknown tag is no error.
func (ch *Channel) Cancel(tag string) {
	ch.mu.Lock()
	c := ch.consumers[tag]
	delete(ch.consumers, tag)
	if c != nil {
		c.cancelled = true
	}
	ch.mu.Unlock()
	if c != nil {
		c.view.leave(c)
	}
}

// cancelled takes a consumer out whose queue is gone and tells the client.
func (ch *Channel) cancelled(c *consumer) {
	ch.mu.Lock()
	known := ch.consumers[c.tag] == c && !ch.closed
	delete(ch.consumers, c.tag)
	c.cancelled = true
	ch.mu.Unlock()
	ch.session.leadership.broker.stats.consumers.Add(-1)
	if known {
		ch.session.receiver.Cancelled(ch.ID, c.tag)
	}
}

// takeUnacked removes the deliveries in the ranges from the channel, by view.
func (ch *Channel) takeUnacked(ranges []Range) ([]taken, error) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	var out []taken
	parts := map[*view]int{} // index in out
	take := func(e entry) {
		if e.consumer != nil {
			e.consumer.unacked--
		}
		i, known := parts[e.view]
		if !known {
			i = len(out)
			parts[e.view] = i
			out = append(out, taken{view: e.view})
		}
		out[i].sequences = append(out[i].sequences, e.sequence)
		out[i].entries = append(out[i].entries, e)
	}
	for _, r := range ranges {
		if r.To < r.From || r.To > ch.lastTag || ch.unacked.take(r.From, r.To, take) == 0 {
			return out, errorf(fsm.PreconditionFailed, "PRECONDITION_FAILED - unknown delivery tag %d", r.To)
		}
	}
	return out, nil
}

// taken are the deliveries of one view that leave a channel.
type taken struct {
	view      *view
	sequences []uint64
	entries   []entry
}

// restore puts deliveries back that were taken for a transaction which failed. When the channel was closed meanwhile,
// they return to their queues, behind the transaction: it may still be applied.
func (ch *Channel) restore(parts []taken) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.closed {
		for _, t := range parts {
			t.view.settle(ch.session.lane, fsm.Return, t.sequences, nil)
		}
		return
	}
	var entries []entry
	for _, t := range parts {
		for _, e := range t.entries {
			if e.consumer != nil {
				e.consumer.unacked++
			}
		}
		entries = append(entries, t.entries...)
	}
	ch.unacked.putBack(entries)
}

// Settle acknowledges, rejects or returns deliveries. done is told once when all of it is applied, with the first
// failure if there is one; tags that are not outstanding are a precondition failure, and what else was named is
// settled all the same.
func (ch *Channel) Settle(kind fsm.SettleKind, ranges []Range, token uint64, done Completer) {
	parts, err := ch.takeUnacked(ranges)
	stats := &ch.session.leadership.broker.stats
	outcome := fsm.Result{}
	if err != nil {
		outcome = fsm.Result{Code: AsError(err).Code, Message: err.Error()}
	}
	if len(parts) == 0 {
		done.Complete(token, outcome)
		return
	}
	var mu sync.Mutex
	left := len(parts)
	for _, t := range parts {
		n := uint64(len(t.sequences))
		if kind == fsm.Acknowledge {
			stats.acks.Add(n)
		} else {
			stats.nacks.Add(n)
		}
		t.view.settle(ch.session.lane, kind, t.sequences, func(r fsm.Result) {
			mu.Lock()
			if r.Code != fsm.OK && outcome.Code == fsm.OK {
				outcome = r
			}
			left--
			last := left == 0
			mu.Unlock()
			if last {
				done.Complete(token, outcome)
			}
		})
		t.view.wake() // credit is free again
	}
}

// Get takes the first ready message of a queue; found is false when there is none. answer, if found, is called with
// the delivery before anything else can be done with it.
func (ch *Channel) Get(ctx context.Context, queue string, autoAck bool, answer func(*Delivery, uint64)) (found bool, err error) {
	s := ch.session
	info, err := s.queue(queue)
	if err != nil {
		return false, err
	}
	v := s.leadership.view(info.Number)
	if v == nil {
		return false, errorf(fsm.NotFound, "NOT_FOUND - no queue '%s' in vhost '%s'", queue, s.Vhost.Name)
	}
	if err := s.leadership.verify(ctx); err != nil {
		return false, err
	}
	for {
		v.mu.Lock()
		m, ok := v.take()
		if ok {
			v.held.add(m.Sequence)
			ch.mu.Lock()
			if ch.closed {
				ok = false
			} else {
				ch.lastTag++
				if !autoAck {
					ch.unacked.add(ch.lastTag, unacked{view: v, sequence: m.Sequence})
				}
				ready := uint64(0)
				if now, there := s.leadership.broker.machine.QueueByNumber(info.Number); there {
					ready = now.Messages - min(now.Messages, uint64(v.held.n))
				}
				s.leadership.broker.stats.deliveries.Add(1)
				answer(&Delivery{Channel: ch.ID, Tag: ch.lastTag, Queue: v.queue.Name, Redelivered: m.Redelivered, Message: &m}, ready)
			}
			ch.mu.Unlock()
			v.mu.Unlock()
			switch {
			case !ok:
				v.settle(s.lane, fsm.Return, []uint64{m.Sequence}, nil)
			case autoAck:
				v.settle(s.lane, fsm.Acknowledge, []uint64{m.Sequence}, nil)
			}
			return ok, nil
		}
		waiting, damage := v.asked > v.mark || v.frozen > 0, v.damage
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
	ch.consumers = map[string]*consumer{} // who joins just now finds the channel closed and leaves by itself
	held := map[*view][]uint64{}
	for e := range ch.unacked.all {
		held[e.view] = append(held[e.view], e.sequence)
	}
	ch.unacked = outstanding{}
	ch.mu.Unlock()
	for _, c := range consumers {
		c.view.leave(c)
	}
	for v, sequences := range held {
		v.settle(ch.session.lane, fsm.Return, sequences, nil)
	}
	ch.session.forget(ch)
}
