package broker

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/warrenmq/warren/fsm"
)

// Client says who a session is for.
type Client struct {
	Name     string // as the client calls itself
	Peer     string // its address
	User     string
	Protocol string
}

// Session is one client connection on the serving leader. It ends with the leadership that accepted it. Safe for
// concurrent use; calls that take a context block until the state machine has applied what they ask for.
type Session struct {
	ID        fsm.Session
	Client    Client
	Vhost     fsm.VhostInfo
	Connected time.Time

	leadership *leadership
	receiver   Receiver
	lane       *lane
	ended      chan struct{} // closed when the leadership is over or Close was called

	mu       sync.Mutex
	closed   bool                // guarded by mu
	channels map[uint32]*Channel // guarded by mu
	owns     bool                // has exclusive queues or uploads; guarded by mu
}

// Open starts a session in a vhost. It fails with NotLeader or NoLeader when this node does not serve.
func (b *Broker) Open(client Client, vhost string, r Receiver) (*Session, error) {
	l := b.serving()
	if l == nil {
		return nil, b.refusal()
	}
	info, ok := b.machine.Vhost(vhost)
	if !ok {
		return nil, errorf(fsm.NotAllowed, "NOT_ALLOWED - vhost '%s' not found", vhost)
	}
	s := &Session{Client: client, Vhost: info, Connected: time.Now(), leadership: l, receiver: r,
		lane: l.proposer.newLane(), ended: make(chan struct{}), channels: map[uint32]*Channel{}}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, b.refusal()
	}
	if len(l.sessions) >= maxSessions {
		return nil, errorf(Overloaded, "OVERLOADED - this node serves at most %d connections", maxSessions)
	}
	l.last++
	s.ID = fsm.Session{Term: l.term, Number: l.last}
	l.sessions[s.ID.Number] = s
	b.stats.connections.Add(1)
	b.stats.connectionsOpened.Add(1)
	return s, nil
}

// Ended is closed when the session is over: its leadership ended, or Close was called.
func (s *Session) Ended() <-chan struct{} { return s.ended }

func (s *Session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		close(s.ended)
	}
}

// Close ends the session: its channels close, what they hold returns, and its exclusive queues and uploads go.
func (s *Session) Close() {
	s.mu.Lock()
	channels := slices.Collect(maps.Values(s.channels))
	owns := s.owns
	s.mu.Unlock()
	for _, ch := range channels {
		ch.Close()
	}
	if owns {
		c := fsm.ClientGone{Session: s.ID}
		_ = s.lane.submit(context.Background(), false, submission{command: c, size: fsm.Size(c)}) // fails only when the term is over: then the next one does it
	}
	s.end()
	l := s.leadership
	l.mu.Lock()
	if l.sessions[s.ID.Number] == s {
		delete(l.sessions, s.ID.Number)
	}
	l.mu.Unlock()
	l.broker.stats.connections.Add(-1)
}

// Channel opens a channel.
func (s *Session) Channel(id uint32) (*Channel, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, s.leadership.broker.refusal()
	case s.channels[id] != nil:
		return nil, errorf(fsm.CommandInvalid, "CHANNEL_ERROR - channel %d is open already", id)
	case len(s.channels) >= maxChannels:
		return nil, errorf(fsm.NotAllowed, "NOT_ALLOWED - a connection has at most %d channels", maxChannels)
	}
	ch := &Channel{ID: id, session: s, consumers: map[string]*consumer{}}
	s.channels[id] = ch
	s.leadership.broker.stats.channels.Add(1)
	return ch, nil
}

func (s *Session) forget(ch *Channel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.channels[ch.ID] == ch {
		delete(s.channels, ch.ID)
		s.leadership.broker.stats.channels.Add(-1)
	}
}

// Drained tells the broker that the receiver is writable again.
func (s *Session) Drained() {
	s.mu.Lock()
	channels := slices.Collect(maps.Values(s.channels))
	s.mu.Unlock()
	for _, ch := range channels {
		ch.mu.Lock()
		for _, c := range ch.consumers {
			c.view.wake()
		}
		ch.mu.Unlock()
	}
}

// Settled waits until everything the session has submitted so far is applied.
func (s *Session) Settled(ctx context.Context) error { return s.lane.settle(ctx) }

// verify makes sure that this node still leads and that the state holds all that any client has been told (rule 10).
func (l *leadership) verify(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	if err := l.broker.node.VerifyLeader(ctx); err != nil {
		return errorf(NoLeader, "NO_LEADER - this node could not confirm that it leads: %v", err)
	}
	return nil
}

// queue finds a queue that the session may use.
func (s *Session) queue(name string) (fsm.QueueInfo, error) {
	q, ok := s.leadership.broker.machine.Queue(s.Vhost.Number, name)
	if !ok {
		return q, errorf(fsm.NotFound, "NOT_FOUND - no queue '%s' in vhost '%s'", name, s.Vhost.Name)
	}
	if q.Exclusive && q.Owner != s.ID {
		return q, errorf(fsm.ResourceLocked, "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '%s' in vhost '%s'", name, s.Vhost.Name)
	}
	return q, nil
}

// Publication is one publish of a session.
type Publication struct {
	Exchange, RoutingKey string
	Properties, Body     []byte
	Upload               uint64
	Producer             []byte
	Sequence             uint64
	Token                uint64 // returned to the Completer
}

// Publish submits messages, in order; done hears of each. It blocks while the session has too much in flight. The
// slices must not change until done was called.
func (s *Session) Publish(ctx context.Context, messages []Publication, done Completer) error {
	if err := s.leadership.broker.flow.wait(ctx, s.ended); err != nil {
		return err
	}
	subs := make([]submission, len(messages))
	for i := range messages {
		m, sub := &messages[i], &subs[i]
		sub.publish = fsm.Publish{Vhost: s.Vhost.Number, Exchange: m.Exchange, RoutingKey: m.RoutingKey, Properties: m.Properties,
			Body: m.Body, Upload: m.Upload, Session: s.ID, Producer: m.Producer, Sequence: m.Sequence}
		sub.size = fsm.Size(&sub.publish)
		sub.done, sub.token = done, m.Token
	}
	s.leadership.broker.stats.publishes.Add(uint64(len(messages)))
	return s.lane.submit(ctx, true, subs...)
}

// BodyPart submits a piece of a large body; done hears of it.
func (s *Session) BodyPart(ctx context.Context, upload, offset, total uint64, bytes []byte, token uint64, done Completer) error {
	if err := s.leadership.broker.flow.wait(ctx, s.ended); err != nil {
		return err
	}
	s.own()
	c := &fsm.BodyPart{Session: s.ID, Upload: upload, Offset: offset, Total: total, Bytes: bytes}
	return s.lane.submit(ctx, true, submission{command: c, size: fsm.Size(c), done: done, token: token})
}

func (s *Session) own() {
	s.mu.Lock()
	s.owns = true
	s.mu.Unlock()
}

// Operation is one of a transaction: a publish, or the end of deliveries.
type Operation struct {
	Publication
	Settle bool
	Kind   fsm.SettleKind
	Ranges []Range
}

// Commit applies operations at one index, all or none (rule 8). The result has a part for each operation.
func (ch *Channel) Commit(ctx context.Context, operations []Operation) (fsm.Result, error) {
	s := ch.session
	if slices.ContainsFunc(operations, func(o Operation) bool { return !o.Settle }) {
		if err := s.leadership.broker.flow.wait(ctx, s.ended); err != nil {
			return fsm.Result{}, err
		}
	}
	t := &fsm.Transaction{}
	var settled []taken
	var kinds []fsm.SettleKind
	first := make([]int, len(operations)) // of the command of each operation
	for i := range operations {
		o := &operations[i]
		first[i] = len(t.Operations)
		if !o.Settle {
			t.Operations = append(t.Operations, &fsm.Publish{Vhost: s.Vhost.Number, Exchange: o.Exchange, RoutingKey: o.RoutingKey,
				Properties: o.Properties, Body: o.Body, Upload: o.Upload, Session: s.ID})
			continue
		}
		parts, err := ch.takeUnacked(o.Ranges)
		settled = append(settled, parts...)
		if err != nil {
			ch.restore(settled)
			return fsm.Result{}, err
		}
		for _, p := range parts {
			kinds = append(kinds, o.Kind)
			t.Operations = append(t.Operations, &fsm.Settle{Queue: p.view.queue.Number, Kind: o.Kind, Runs: toRuns(slices.Clone(p.sequences))})
		}
	}
	if len(t.Operations) > fsm.MaxTransactionOperations {
		ch.restore(settled)
		return fsm.Result{}, errorf(fsm.PreconditionFailed, "PRECONDITION_FAILED - a transaction has at most %d operations", fsm.MaxTransactionOperations)
	}
	size := fsm.Size(t)
	if size > fsm.MaxTransactionBytes {
		ch.restore(settled)
		return fsm.Result{}, errorf(fsm.PreconditionFailed, "PRECONDITION_FAILED - a transaction has at most %d bytes", fsm.MaxTransactionBytes)
	}
	r, err := s.lane.callSubmission(ctx, submission{command: t, size: size})
	if err != nil {
		ch.restore(settled)
		return r, err
	}
	for i, p := range settled {
		p.view.settled(kinds[i], p.sequences)
		p.view.wake()
	}
	parts := make([]fsm.Result, len(operations))
	for i := range operations {
		if first[i] < len(r.Parts) {
			parts[i] = r.Parts[first[i]]
		}
	}
	r.Parts = parts
	return r, nil
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

func contains(name, filter string) bool { return filter == "" || strings.Contains(name, filter) }
