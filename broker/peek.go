package broker

import (
	"context"
	"math"
	"time"

	"github.com/warrenmq/warren/fsm"
)

// Bounds of one look at a queue.
const (
	maxPeeked    = 1000     // messages of an answer
	maxPeekBytes = 16 << 20 // of an answer
	maxLooks     = 100_000  // messages that one step reads for a filter
	maxLookBytes = 64 << 20 // and bytes of their bodies, about
	peekOverhead = 256      // bytes that a message of an answer counts beside its texts
)

// Peek asks for messages of a queue, which it leaves as they are.
type Peek struct {
	Queue    string
	Filter   Filter
	From     uint64 // a sequence; 0: the first message
	Skip     uint64 // messages from there on that match and are left out
	Limit    uint32 // at most so many; 0, or more than the broker gives at once: as many as it gives
	Truncate uint32 // bytes of each body that are wanted
	Room     int    // bytes that the answer may have, about; a message alone may have more
}

// MessageState says where a message of a queue is.
type MessageState uint8

// The states of a message, numbered as in the native protocol.
const (
	Ready    MessageState = iota // waits for a consumer
	HeldBack                     // a client has it and has not settled it, or its settling is on its way
	Dying                        // waits for its dead letter
	Deferred                     // is not deliverable yet
)

func (s MessageState) String() string {
	return [...]string{"ready", "held", "dying", "deferred"}[s]
}

// Holder is who has a message.
type Holder struct {
	Connection  string // a Session's Name
	Client      Client
	Channel     uint32
	ConsumerTag string // "" for a get
	Since       int64  // Unix ms
}

// PeekedMessage is a message as it is in its queue. Its slices must not be changed.
type PeekedMessage struct {
	fsm.Kept      // Body as far as it was asked for
	BodyBytes int // of the whole body
	State     MessageState
	Holder    *Holder // nil when nobody holds it, or whoever does is settling it
}

// Died returns how often the message died, as its x-death header says.
func (m *PeekedMessage) Died() uint32 { return deaths(m.Properties) }

// Peeked answers a Peek.
type Peeked struct {
	Messages []PeekedMessage
	Skipped  uint64 // of Peek.Skip
	Next     uint64 // the sequence to go on from; 0 when the queue has no more
}

// Peek reads messages of a queue, dying ones included, without changing anything. One that no queue has any more was
// there when it was asked for. It sees all that any client was told before. With a filter it may end before the limit,
// even with no message, when Next is not 0: it looks at a bounded number of messages.
func (s *Session) Peek(ctx context.Context, p Peek) (*Peeked, error) {
	if err := p.Filter.check(); err != nil {
		return nil, err
	}
	if err := s.readable(ctx); err != nil {
		return nil, err
	}
	info, err := s.queue(p.Queue)
	if err != nil {
		return nil, err
	}
	r := peeking{p: p, limit: maxPeeked, room: maxPeekBytes, out: &Peeked{Next: max(p.From, 1)}}
	if p.Limit > 0 && p.Limit < maxPeeked {
		r.limit = int(p.Limit)
	}
	if p.Room > 0 {
		r.room = min(p.Room, maxPeekBytes)
	}
	machine := s.leadership.broker.machine
	if p.Filter.empty() && p.Skip > 0 {
		r.out.Next, r.out.Skipped = machine.SkipKept(info.Number, r.out.Next, p.Skip)
	}
	count := readAheadCount
	if p.Filter.empty() {
		count = min(count, r.limit)
	}
	for looks, bytes := 0, 0; looks < maxLooks && bytes < maxLookBytes; {
		kept, next, err := machine.ReadKept(info.Number, r.out.Next, math.MaxUint64, count, readAheadBytes)
		if err != nil {
			return nil, errorf(fsm.InternalError, "INTERNAL_ERROR - queue '%s' in vhost '%s' is damaged: %v", info.Name, info.Vhost, err)
		}
		for i := range kept {
			looks, bytes = looks+1, bytes+len(kept[i].Body)
			if !r.take(&kept[i]) {
				s.leadership.findHolders(info.Number, r.out.Messages)
				return r.out, nil
			}
		}
		if r.out.Next = next; next == 0 || ctx.Err() != nil {
			break
		}
	}
	s.leadership.findHolders(info.Number, r.out.Messages)
	return r.out, ctx.Err()
}

// peeking is a Peek under way.
type peeking struct {
	p           Peek
	limit, room int
	out         *Peeked
}

// take adds a message if it is meant; false when the answer is full.
func (r *peeking) take(m *fsm.Kept) bool {
	if !r.p.Filter.matches(&m.Message) {
		return true
	}
	if r.out.Skipped < r.p.Skip {
		r.out.Skipped++
		return true
	}
	out := PeekedMessage{Kept: *m, BodyBytes: len(m.Body)}
	out.Body = m.Body[:min(len(m.Body), int(r.p.Truncate))]
	out.Properties = fsm.StripBCC(m.Properties)
	r.room -= peekOverhead + len(out.Exchange) + len(out.RoutingKey) + len(out.Properties) + len(out.Body)
	if r.out.Next = m.Sequence; r.room < 0 && len(r.out.Messages) > 0 {
		return false
	}
	switch {
	case m.Dying:
		out.State = Dying
	case m.Deferred:
		out.State = Deferred
	}
	r.out.Messages = append(r.out.Messages, out)
	r.out.Next = m.Sequence + 1
	return len(r.out.Messages) < r.limit && r.room > 0
}

// findHolders fills in which messages of a queue are held, and by whom. It costs the view's lock shortly and, when one is
// held, a look at all that is unacknowledged.
func (l *leadership) findHolders(number uint64, messages []PeekedMessage) {
	v := l.existingView(number)
	if v == nil {
		return
	}
	held := map[uint64]*PeekedMessage{}
	v.mu.Lock()
	for i := range messages {
		if m := &messages[i]; !m.Dying && v.held.has(m.Sequence) {
			m.State = HeldBack
			held[m.Sequence] = m
		}
	}
	v.mu.Unlock()
	if len(held) == 0 {
		return
	}
	now, age := time.Now(), l.age()
	for _, s := range l.snapshot() {
		for _, ch := range s.list() {
			note := func(e entry) {
				if m := held[e.sequence]; e.view == v && m != nil {
					m.Holder = &Holder{Connection: s.Name(), Client: s.Client, Channel: ch.ID, Since: now.Add(e.since - age).UnixMilli()}
					if e.consumer != nil {
						m.Holder.ConsumerTag = e.consumer.tag
					}
				}
			}
			ch.mu.Lock()
			for e := range ch.unacked.all {
				note(e)
			}
			for h := range ch.held {
				for e := range h.all {
					note(e)
				}
			}
			ch.mu.Unlock()
		}
	}
}
