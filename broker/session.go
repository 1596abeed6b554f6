package broker

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warrenmq/warren/fsm"
)

// Client says who a session is for.
type Client struct {
	Name      string // as the client calls itself
	Peer      string // its address, HOST:PORT
	Local     string // the address at which it came in
	User      string
	Protocol  string
	Mechanism string // of its login

	Properties []byte // what AMQP clients tell of themselves: a field table without its length prefix
	ChannelMax uint16 // what was agreed on; 0 where the protocol has none of it
	FrameMax   uint32
	Heartbeat  time.Duration
}

// Session is one client connection on the serving leader. It ends with the leadership that accepted it. Safe for
// concurrent use; calls that take a context block until the state machine has applied what they ask for.
type Session struct {
	ID        fsm.Session
	Client    Client
	Vhost     fsm.VhostInfo
	Connected time.Time

	leadership *leadership
	operator   bool // it is no connection: no list shows it
	receiver   Receiver
	lane       *lane
	ended      chan struct{} // closed when the leadership is over, Close was called or somebody else ended the session
	holding    atomic.Int32  // publishes that wait for a watermark
	exchanges  exchangeCache

	consuming atomic.Int64  // consumers of all channels
	moved     atomic.Uint64 // large bodies that were moved

	mu       sync.Mutex
	closed   bool                // guarded by mu
	reason   string              // why somebody else ended the session; guarded by mu
	channels map[uint32]*Channel // guarded by mu
	owns     bool                // has exclusive queues or uploads; guarded by mu
	departed uint64              // the system lane's position behind the last auto-delete queue that went with a consumer; guarded by mu
}

// Open starts a session in a vhost. It fails with NotLeader or NoLeader when this node does not serve.
func (b *Broker) Open(client Client, vhost string, r Receiver) (*Session, error) {
	return b.open(client, vhost, r, false)
}

func (b *Broker) open(client Client, vhost string, r Receiver, operator bool) (*Session, error) {
	l := b.serving()
	if l == nil {
		return nil, b.refusal()
	}
	s := &Session{Client: client, Connected: time.Now(), operator: operator, leadership: l, receiver: r,
		lane: l.proposer.newLane(), ended: make(chan struct{}), channels: map[uint32]*Channel{}}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, b.refusal()
	}
	var ok bool
	if s.Vhost, ok = b.machine.Vhost(vhost); !ok && !(operator && vhost == "") { // under mu: whoever deletes it ends the sessions that are there
		return nil, errorf(fsm.NotAllowed, "NOT_ALLOWED - vhost %s not found", vhost)
	}
	if len(l.sessions) >= maxSessions {
		return nil, errorf(Overloaded, "OVERLOADED - this node serves at most %d connections", maxSessions)
	}
	if err := l.admitConnection(s); err != nil {
		return nil, err
	}
	l.last++
	s.ID = fsm.Session{Term: l.term, Number: l.last}
	l.sessions[s.ID.Number] = s
	if !operator {
		b.stats.connections.Add(1)
		b.stats.connectionsOpened.Add(1)
	}
	return s, nil
}

// Ended is closed when the session is over: its leadership ended, an operator ended it, its vhost was deleted, or
// Close was called. Its front end then closes the connection and calls Close.
func (s *Session) Ended() <-chan struct{} { return s.ended }

// Reason says, once Ended is closed, why somebody else ended the session: what the operator gave, or that the vhost
// was deleted. It is "" when the leadership is over or Close was called.
func (s *Session) Reason() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reason
}

func (s *Session) end(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed, s.reason = true, reason
		close(s.ended)
	}
}

// Close ends the session: its channels close, what they hold returns, and its exclusive queues and uploads go.
func (s *Session) Close() {
	for _, ch := range s.list() {
		ch.Close()
	}
	s.lane.seal() // a request that is being served must not leave anything behind after ClientGone
	s.mu.Lock()
	owns := s.owns
	s.mu.Unlock()
	if owns {
		c := fsm.ClientGone{Session: s.ID}
		_ = s.lane.submit(context.Background(), false, submission{command: c, size: fsm.Size(c)}) // fails only when the term is over: then the next one does it
	}
	s.end("")
	l := s.leadership
	l.mu.Lock()
	if l.sessions[s.ID.Number] == s {
		delete(l.sessions, s.ID.Number)
	}
	l.mu.Unlock()
	if !s.operator {
		l.broker.stats.connections.Add(-1)
	}
}

// Channel opens a channel.
func (s *Session) Channel(id uint32) (*Channel, error) {
	if err := s.leadership.admitChannel(s.Client.User); err != nil {
		return nil, err
	}
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
	for _, ch := range s.list() {
		ch.mu.Lock()
		ch.unpark()
		ch.mu.Unlock()
	}
}

// list returns the session's channels.
func (s *Session) list() []*Channel {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.channels))
}

// leave takes a consumer out of its queue; Settled waits for an auto-delete queue that goes with it.
func (s *Session) leave(c *consumer) {
	if gone := c.view.leave(c); gone > 0 {
		s.mu.Lock()
		s.departed = max(s.departed, gone)
		s.mu.Unlock()
	}
}

// Settled waits until everything that the session has submitted so far is applied, and all that went with channels
// and consumers of it is gone. It may be called after Close.
func (s *Session) Settled(ctx context.Context) error {
	if err := s.lane.wait(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	departed := s.departed
	s.mu.Unlock()
	return s.leadership.system.waitFor(ctx, departed)
}

// handOut has a queue's consumers get what they can of what the session sent before.
func (s *Session) handOut(ctx context.Context, v *view) error {
	if err := s.lane.show(ctx); err != nil {
		return err
	}
	return v.handOut(ctx)
}

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
		return q, s.noQueue(name)
	}
	if q.Exclusive && q.Owner != s.ID {
		return q, errorf(fsm.ResourceLocked, "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '%s' in vhost '%s'. It could be originally declared on another connection or the exclusive property value does not match that of the original declaration.", name, s.Vhost.Name)
	}
	return q, nil
}

func (s *Session) noQueue(name string) error {
	return errorf(fsm.NotFound, "NOT_FOUND - no queue '%s' in vhost '%s'", name, s.Vhost.Name)
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

// submissions are lists on their way into lanes, which copy them.
var submissions = sync.Pool{New: func() any { return new([]submission) }}

// Publish submits messages, in order; done hears of each. It blocks while the session has too much in flight. The
// slices must not change until done was called. A message for a reply consumer (exchange "", its address as the key)
// goes straight to that, and done hears of it before Publish returns, on the caller's goroutine: routed to 1, or to 0
// when nobody is there. After an error nothing was submitted and done hears of nothing.
func (s *Session) Publish(ctx context.Context, messages []Publication, done Completer) error {
	if err := s.waitForFlow(ctx); err != nil {
		return err
	}
	return s.Submit(ctx, messages, done)
}

// Submit is Publish of messages that were let in already: it does not wait when publishes are held up.
func (s *Session) Submit(ctx context.Context, messages []Publication, done Completer) error {
	scratch := submissions.Get().(*[]submission)
	subs := append((*scratch)[:0], make([]submission, len(messages))...)
	defer func() {
		clear(subs)
		*scratch = subs
		submissions.Put(scratch)
	}()
	n := 0
	for i := range messages {
		m := &messages[i]
		if m.isReply() {
			continue
		}
		sub := &subs[n]
		n++
		sub.publish = fsm.Publish{Vhost: s.Vhost.Number, Exchange: m.Exchange, RoutingKey: m.RoutingKey, Properties: m.Properties,
			Body: m.Body, Upload: m.Upload, Session: s.ID, Producer: m.Producer, Sequence: m.Sequence}
		sub.size = fsm.Size(&sub.publish)
		sub.done, sub.token = done, m.Token
	}
	s.leadership.broker.stats.publishes.Add(uint64(len(messages)))
	if err := s.lane.submit(ctx, true, subs[:n]...); err != nil {
		return err
	}
	if n == len(messages) {
		return nil
	}
	for i := range messages {
		if m := &messages[i]; m.isReply() {
			done.Complete(m.Token, fsm.Result{Routed: s.leadership.reply(m)})
		}
	}
	return nil
}

// waitForFlow waits while publishes are held up, or this session's are slowed.
func (s *Session) waitForFlow(ctx context.Context) error {
	flow := s.leadership.broker.flow
	if flow.pacing.near.Load() {
		if err := flow.pacing.wait(ctx, s.lane.share, s.ended); err != nil {
			return err
		}
	}
	if !flow.blocked.Load() {
		return nil
	}
	s.holding.Add(1)
	defer s.holding.Add(-1)
	return flow.wait(ctx, s.ended)
}

// HeldUp reports whether Publish would wait now, because the node holds publishes up or slows this session's down. A
// front end then has the publish wait aside, so that what settles deliveries passes it.
func (s *Session) HeldUp() bool {
	flow := s.leadership.broker.flow
	return flow.blocked.Load() || flow.pacing.slows(s.lane.share)
}

// BodyPart submits a piece of a large body; done hears of it.
func (s *Session) BodyPart(ctx context.Context, upload, offset, total uint64, bytes []byte, token uint64, done Completer) error {
	if err := s.waitForFlow(ctx); err != nil {
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

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

func contains(name, filter string) bool { return filter == "" || strings.Contains(name, filter) }
