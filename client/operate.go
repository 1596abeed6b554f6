package client

import (
	"context"
	"time"

	"github.com/warrenmq/warren/protocol/native"
)

// Filter says which messages of a queue are meant: those that have all the headers and the key. The zero value means all.
type Filter = native.Filter

// HeaderFilter asks for a header.
type HeaderFilter = native.HeaderFilter

// Peek says which messages to look at.
type Peek struct {
	Offset   uint64 // of the messages that match, how many to leave out
	Limit    uint64 // at most so many; 0: all
	Truncate uint32 // bytes of each body to show; 0: DefaultTruncate
	Filter   Filter
}

// DefaultTruncate is how many bytes of a body Peek shows when it is told nothing.
const DefaultTruncate = 64 << 10

// The states of a message in its queue.
const (
	StateReady    = "ready"
	StateHeld     = "held"     // a client has it and has not settled it, or its settling is on its way
	StateDying    = "dying"    // it waits for its dead letter
	StateDeferred = "deferred" // it is not deliverable yet
)

var states = map[uint8]string{native.MessageReady: StateReady, native.MessageHeld: StateHeld, native.MessageDying: StateDying,
	native.MessageDeferred: StateDeferred}

// Holder is who has a message.
type Holder struct {
	Connection  string // its id, as in lists
	ClientName  string
	Peer        string // address
	Channel     uint32
	ConsumerTag string // "" for a get
	Since       time.Time
}

// Peeked is a message as it lies in its queue. Its Body is as long as was asked for.
type Peeked struct {
	Message
	Sequence    uint64    // its number in the queue
	ID          [2]uint64 // unique in the cluster
	State       string    // StateReady and so on
	Reason      string    // why it died, when it is dying
	Holder      *Holder   // nil when nobody holds it, or whoever does is settling it
	Deliveries  uint32    // that came to nothing
	Redelivered bool      // its next delivery is marked as a second one
	Deaths      uint32    // how often it died, as its x-death header says
	Expires     time.Time // zero: never
	Level       uint8     // its priority in the queue
	Exchange    string
	RoutingKey  string
	BodyBytes   uint64 // of the whole body
	Cut         bool   // its properties are left out, since they do not fit into a frame
}

func newPeeked(r *native.PeekRow) (*Peeked, error) {
	m, err := message(r.Properties, r.Body)
	if err != nil {
		return nil, err
	}
	p := &Peeked{Message: m, Sequence: r.Sequence, ID: r.ID, State: states[r.State], Reason: r.Reason, Deliveries: r.Deliveries,
		Redelivered: r.Redeliver, Deaths: r.Deaths, Level: r.Priority, Exchange: r.Exchange, RoutingKey: r.RoutingKey, BodyBytes: r.BodyBytes, Cut: r.Cut}
	if r.Expires != 0 {
		p.Expires = time.UnixMilli(int64(r.Expires))
	}
	if r.Connection != "" {
		p.Holder = &Holder{Connection: r.Connection, ClientName: r.Client, Peer: r.Peer, Channel: r.Channel, ConsumerTag: r.Consumer,
			Since: time.UnixMilli(int64(r.Since))}
	}
	return p, nil
}

// Peek reads messages of a queue and leaves them as they are: it changes no order, count or flag. each is called with
// one after the other and ends it with an error, which Peek returns. What comes and goes meanwhile may be seen or not.
func (c *Connection) Peek(ctx context.Context, queue string, p Peek, each func(*Peeked) error) error {
	if p.Truncate == 0 {
		p.Truncate = DefaultTruncate
	}
	from, skip, left := uint64(0), p.Offset, p.Limit
	for {
		var ok native.PeekOK
		limit := uint32(min(left, 1000)) // 0: as many as the broker gives
		if err := c.do(ctx, &call{answer: &ok}, func(rid uint64) native.Frame {
			return &native.Peek{Head: native.Head{RID: rid, Channel: controlChannel}, Queue: queue, From: from, Skip: skip, Limit: limit,
				Truncate: p.Truncate, Filter: p.Filter}
		}); err != nil {
			return err
		}
		rows, err := native.DecodeRows[native.PeekRow](ok.Rows)
		if err != nil {
			return err
		}
		for i := range rows {
			m, err := newPeeked(&rows[i])
			if err != nil {
				return err
			}
			if err := each(m); err != nil {
				return err
			}
		}
		from, skip = ok.Next, skip-min(skip, ok.Skipped)
		if left -= min(left, uint64(len(rows))); from == 0 || p.Limit > 0 && left == 0 {
			return nil
		}
	}
}

// Move says which messages of a queue go where.
type Move struct {
	Queue  string
	Filter Filter
	Target uint8  // native.MoveToQueue and so on
	To     string // the queue, or the exchange
	Key    string // the routing key, to an exchange
	// Restore gives a dead letter the exchange and the routing key back that it had before it died first.
	Restore bool
	Limit   uint64 // at most so many are moved; 0: all that are in the queue when it begins
	DryRun  bool   // only count what would be moved
}

// Tally is what a move has done. Of the messages that match, those that are none of Moved, Held and Kept had gone.
type Tally struct {
	Matched uint64 // messages that the filter means
	Moved   uint64 // or that would be, in a dry run
	Held    uint64 // left where they are, since a client has them
	Kept    uint64 // left where they are, since they would have reached no queue
	Reason  string // of the first one kept
}

// Move moves messages out of a queue, or deletes them, step by step; each, if not nil, is told how far it is after each
// step. A message leaves its queue and is in the other in one log entry: wherever Move ends, each is in exactly one place.
// It goes on over changes of the leader; what a step that was cut off had moved already is then missing in the tally.
func (c *Connection) Move(ctx context.Context, m Move, each func(Tally)) (Tally, error) {
	var sum Tally
	from, upto := uint64(0), uint64(0)
	for {
		limit := m.Limit
		if limit > 0 {
			limit -= sum.Moved
		}
		var ok native.MoveOK
		if err := c.do(ctx, &call{answer: &ok}, func(rid uint64) native.Frame {
			return &native.Move{Head: native.Head{RID: rid, Channel: controlChannel}, Queue: m.Queue, Target: m.Target, To: m.To, RoutingKey: m.Key,
				Restore: m.Restore, Filter: m.Filter, From: from, Upto: upto, Limit: limit, DryRun: m.DryRun}
		}); err != nil {
			return sum, err
		}
		sum.Matched += ok.Matched
		sum.Moved += ok.Moved
		sum.Held += ok.Occupied
		if sum.Kept += ok.Kept; sum.Reason == "" {
			sum.Reason = ok.Reason
		}
		from, upto = ok.Next, ok.Upto
		if each != nil {
			each(sum)
		}
		if from == 0 || m.Limit > 0 && sum.Moved >= m.Limit {
			return sum, nil
		}
	}
}
