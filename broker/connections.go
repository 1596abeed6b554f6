package broker

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/warrenmq/warren/fsm"
)

// Name identifies the connection among all of this cluster's.
func (s *Session) Name() string { return fmt.Sprintf("%d-%d", s.ID.Term, s.ID.Number) }

// Label is how operators know the connection: from where to where.
func (c *Client) Label() string { return c.Peer + " -> " + c.Local }

// The states of a connection.
const (
	StateRunning  = "running"
	StateBlocking = "blocking" // publishes would be held up
	StateBlocked  = "blocked"  // a publish is held up
	StateFlow     = "flow"     // its publishes make queues grow and are slowed, for the node is nearly short of memory or disk
	StateClosing  = "closing"
)

// ConnectionRow describes a connection.
type ConnectionRow struct {
	Name, Vhost string
	Client      Client
	State       string
	Channels    int
	Connected   int64 // Unix ms
}

func (s *Session) row() ConnectionRow {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := StateRunning
	switch {
	case s.closed:
		state = StateClosing
	case s.holding.Load() > 0:
		state = StateBlocked
	case s.leadership.broker.flow.blocked.Load():
		state = StateBlocking
	case s.leadership.broker.flow.pacing.slows(s.lane.share):
		state = StateFlow
	}
	return ConnectionRow{Name: s.Name(), Vhost: s.Vhost.Name, Client: s.Client, State: state, Channels: len(s.channels), Connected: s.Connected.UnixMilli()}
}

// Connections lists the connections of all vhosts.
func (s *Session) Connections(filter string) []ConnectionRow {
	return s.leadership.connections(func(c *Client) bool { return contains(c.Name, filter) || contains(c.Peer, filter) })
}

// Connections lists the connections of the whole cluster. It fails with NotLeader or NoLeader when this node does not
// serve.
func (b *Broker) Connections() ([]ConnectionRow, error) {
	l := b.serving()
	if l == nil {
		return nil, b.refusal()
	}
	return l.connections(func(*Client) bool { return true }), nil
}

func (l *leadership) connections(wanted func(*Client) bool) []ConnectionRow {
	var rows []ConnectionRow
	for _, s := range l.snapshot() {
		if !s.operator && wanted(&s.Client) {
			rows = append(rows, s.row())
		}
	}
	return rows
}

// CloseSession ends a connection for an operator: its front end tells the client the reason and closes it. The name is
// a Session's Name, or a Client's Label. It fails with NotFound, and with NotLeader or NoLeader when this node does not serve.
func (b *Broker) CloseSession(name, reason string) error {
	l := b.serving()
	if l == nil {
		return b.refusal()
	}
	if l.endSessions(reason, func(s *Session) bool { return s.Name() == name || s.Client.Label() == name }) == 0 {
		return errorf(fsm.NotFound, "NOT_FOUND - no connection '%s'", name)
	}
	return nil
}

// endSessions ends the sessions that are meant and returns how many.
func (l *leadership) endSessions(reason string, meant func(*Session) bool) (n int) {
	for _, s := range l.snapshot() {
		if !s.operator && meant(s) {
			l.broker.log.Info("a connection is closed", "connection", s.Name(), "peer", s.Client.Peer, "reason", reason)
			s.end(reason)
			n++
		}
	}
	return n
}

// Mode is what a channel's front end does with publishes, for lists.
type Mode struct {
	Confirm, Transactional bool
}

// SetMode is told by the front end.
func (ch *Channel) SetMode(m Mode) {
	ch.mu.Lock()
	ch.mode = m
	ch.mu.Unlock()
}

// ChannelRow describes a channel.
type ChannelRow struct {
	Session   string // its Name
	Client    Client
	Vhost     string
	Number    uint32
	Consumers int
	Prefetch  uint32 // of consumers to come
	Limit     uint32 // of the whole channel; 0: none
	Unacked   int
	Held      int // settled in a transaction that is not committed
	Mode
}

// Channels lists the channels of the whole cluster by connection and number. It fails with NotLeader or NoLeader when
// this node does not serve.
func (b *Broker) Channels() ([]ChannelRow, error) {
	l := b.serving()
	if l == nil {
		return nil, b.refusal()
	}
	var rows []ChannelRow
	for _, s := range l.snapshot() {
		if s.operator {
			continue
		}
		from := len(rows)
		for _, ch := range s.list() {
			ch.mu.Lock()
			held := 0
			for h := range ch.held {
				held += h.n
			}
			rows = append(rows, ChannelRow{Session: s.Name(), Client: s.Client, Vhost: s.Vhost.Name, Number: ch.ID, Consumers: len(ch.consumers),
				Prefetch: ch.prefetch, Limit: ch.limit, Unacked: ch.unacked.n, Held: held, Mode: ch.mode})
			ch.mu.Unlock()
		}
		slices.SortFunc(rows[from:], func(a, b ChannelRow) int { return cmp.Compare(a.Number, b.Number) })
	}
	return rows, nil
}

// ConsumerRow describes a consumer.
type ConsumerRow struct {
	Queue, Tag, Session string
	Vhost               string
	Client              Client
	Channel             uint32
	AutoAck, Exclusive  bool
	Active              bool // it receives: false for those that wait behind a single active consumer
	Priority            int64
	Prefetch, Unacked   uint32
	Timeout             time.Duration
	Arguments           []byte
}

// Consumers lists the consumers of the session's vhost by queue and tag.
func (s *Session) Consumers(filter string) []ConsumerRow {
	return s.leadership.consumers(func(other *Session, c *consumer) bool {
		return other.Vhost.Number == s.Vhost.Number && (contains(c.tag, filter) || contains(c.view.queue.Name, filter))
	})
}

// Consumers lists the consumers of the whole cluster by queue and tag. It fails with NotLeader or NoLeader when this
// node does not serve.
func (b *Broker) Consumers() ([]ConsumerRow, error) {
	l := b.serving()
	if l == nil {
		return nil, b.refusal()
	}
	return l.consumers(func(*Session, *consumer) bool { return true }), nil
}

func (l *leadership) consumers(wanted func(*Session, *consumer) bool) []ConsumerRow {
	var rows []ConsumerRow
	var of []*consumer
	for _, s := range l.snapshot() {
		for _, ch := range s.list() {
			ch.mu.Lock()
			for _, c := range ch.consumers {
				if wanted(s, c) {
					rows = append(rows, ConsumerRow{Queue: c.view.queue.Name, Tag: c.tag, Session: s.Name(), Vhost: s.Vhost.Name, Client: s.Client,
						Channel: ch.ID, AutoAck: c.autoAck, Exclusive: c.exclusive, Priority: c.priority, Prefetch: c.prefetch, Unacked: c.unacked,
						Timeout: c.timeout, Arguments: c.arguments})
					of = append(of, c)
				}
			}
			ch.mu.Unlock()
		}
	}
	for i, c := range of { // the view's lock comes before the channel's
		rows[i].Active = c.view.isActive(c)
	}
	slices.SortFunc(rows, func(a, b ConsumerRow) int {
		return cmp.Or(cmp.Compare(a.Vhost, b.Vhost), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Tag, b.Tag), cmp.Compare(a.Session, b.Session))
	})
	return rows
}

// snapshot returns the sessions by number.
func (l *leadership) snapshot() []*Session {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]*Session, 0, len(l.sessions))
	for _, n := range sortedKeys(l.sessions) {
		list = append(list, l.sessions[n])
	}
	return list
}
