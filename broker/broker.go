// Package broker is what the leader does for clients: sessions, channels, consumers, the queue views that decide who
// gets which message, and the proposer that packs commands into log entries. It decides nothing about durability: a
// command counts when the state machine has applied it. The protocols' front ends stand on it (broker/native).
package broker

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warrenmq/warren/cluster"
	"github.com/warrenmq/warren/fsm"
)

// Node is what the broker needs of a Raft node; *cluster.Node is one.
type Node interface {
	Propose(entry []byte, done func(error))
	Leadership() cluster.Leadership
	LeadershipChanged() <-chan struct{}
	VerifyLeader(ctx context.Context) error
	LeaseValid() bool
	Barrier(ctx context.Context) error
	Self() cluster.Member
	ClusterID() string
	Members() []cluster.Member
	Status(ctx context.Context) []cluster.MemberStatus
	Boots() map[string][16]byte
	Voters() []string
	HandleStream(kind cluster.StreamKind, handler func(from cluster.Member, c net.Conn))
	DialStream(ctx context.Context, server string, kind cluster.StreamKind) (net.Conn, error)
	TransferLeadership(ctx context.Context) error
	Remove(ctx context.Context, nodeID string) error
	Stats() cluster.Stats
}

// Config configures a Broker. Zero values take the defaults of limits.go.
type Config struct {
	Logger *slog.Logger
	// AuditEvery is how often the leader states its state hash in the log; default 10 s.
	AuditEvery time.Duration
	// AbandonedAfter is how long an auto-delete queue whose consumers were lost with a leader waits for one to
	// return (rule 12); default 30 s.
	AbandonedAfter time.Duration
	Watermarks     Watermarks
	// MaxInFlight bounds the bytes of all connections' commands that are not applied yet; a connection that has none on
	// its way may always send one. Default 256 MiB.
	MaxInFlight int
	// ConsumerTimeout is how long a delivery may stay unacknowledged before it returns to its queue and its consumer
	// is cancelled; a consumer's own and its queue's x-consumer-timeout go before it. 0: for ever.
	ConsumerTimeout time.Duration
	// DefaultUser and DefaultPassword are the one user that Login knows; default guest, guest.
	DefaultUser, DefaultPassword string
	// LoopbackUsers may log in from this host only. Nil is guest; an empty list lets everybody in from anywhere.
	LoopbackUsers []string
}

// Broker serves clients while its node leads. Safe for concurrent use. It is the state machine's observer: make it,
// then the machine and the node, then call Run.
type Broker struct {
	config Config
	log    *slog.Logger
	clock  clock
	stats  counters
	flow   *flow
	alarms *alarms

	node    Node
	machine *fsm.Machine

	current     atomic.Pointer[leadership] // the leadership that serves or is about to; nil on a follower
	lastNumbers lastNumbers

	mu      sync.Mutex
	changed chan struct{} // closed and replaced whenever the broker starts or stops serving; guarded by mu

	suspects chan fsm.Audit // audits that this node's hash contradicts; the repairer reads it
}

// New returns a broker that serves nobody yet.
func New(c Config) *Broker {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.AuditEvery == 0 {
		c.AuditEvery = 10 * time.Second
	}
	if c.AbandonedAfter == 0 {
		c.AbandonedAfter = 30 * time.Second
	}
	if c.MaxInFlight <= 0 {
		c.MaxInFlight = defaultInFlight
	}
	if c.DefaultUser == "" && c.DefaultPassword == "" {
		c.DefaultUser, c.DefaultPassword = "guest", "guest"
	}
	if c.LoopbackUsers == nil {
		c.LoopbackUsers = []string{"guest"}
	}
	return &Broker{config: c, log: c.Logger, flow: newFlow(), alarms: newAlarms(), changed: make(chan struct{}), suspects: make(chan fsm.Audit, 1)}
}

// Attach gives the broker its node and machine. It is called once, before Run and before any front end starts.
func (b *Broker) Attach(node Node, machine *fsm.Machine) {
	b.node, b.machine = node, machine
	b.alarms.node = node.Self().NodeID
	node.HandleStream(streamExport, b.serveExport)
	node.HandleStream(streamHash, b.serveHash)
	node.HandleStream(streamAlarms, b.hearAlarms)
}

var errReplaced = errors.New("the state was replaced while this node led")

// Applied hears of each applied entry (fsm.Observer).
func (b *Broker) Applied(a fsm.Applied) {
	b.clock.applied()
	if a.Suspect != nil {
		select {
		case b.suspects <- *a.Suspect:
		default: // one repair at a time
		}
	}
	if l := b.current.Load(); l != nil {
		if a.Replaced { // entries may have taken effect without a result, and every view reads the state that was
			l.fail(errReplaced)
		}
		l.proposer.applied(a)
	}
}

// Run follows the node's leadership and serves while it leads. It returns when the context ends, after the last
// leadership has been closed.
func (b *Broker) Run(ctx context.Context) {
	var background sync.WaitGroup
	defer background.Wait()
	background.Go(func() { b.repairWhenWrong(ctx) })
	background.Go(func() { b.watchWatermarks(ctx) })
	background.Go(func() { b.tellAlarms(ctx) })
	for ctx.Err() == nil {
		change := b.node.LeadershipChanged()
		l := b.node.Leadership()
		if !l.Local {
			b.announce()
			select {
			case <-change:
			case <-ctx.Done():
			}
			continue
		}
		if !b.lead(ctx, l) {
			select { // the node may be handing leadership over
			case <-change:
			case <-time.After(leadAgain):
			case <-ctx.Done():
			}
		}
	}
}

// lead serves for one leadership until it ends; false when it ended by itself though the node may still lead.
func (b *Broker) lead(ctx context.Context, at cluster.Leadership) (whole bool) {
	l := newLeadership(b, at.Term)
	b.current.Store(l)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.run()
	}()
	whole = b.follow(ctx, at, l.failed)
	l.close()
	<-ended
	b.current.CompareAndSwap(l, nil)
	b.announce()
	return whole
}

// follow returns when the leadership is over (true), or failed is closed (false).
func (b *Broker) follow(ctx context.Context, at cluster.Leadership, failed <-chan struct{}) bool {
	for {
		change := b.node.LeadershipChanged()
		if now := b.node.Leadership(); !now.Local || now.Term != at.Term {
			return true
		}
		select {
		case <-change:
		case <-failed:
			return false
		case <-ctx.Done():
			return true
		}
	}
}

// announce tells those who wait on Changed.
func (b *Broker) announce() {
	b.mu.Lock()
	close(b.changed)
	b.changed = make(chan struct{})
	b.mu.Unlock()
}

// Changed returns a channel that is closed when the broker next starts or stops serving, or learns of another leader.
func (b *Broker) Changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

// Where says who serves, for redirects: the leader's client addresses (empty when unknown), its node id, the term and
// all members. Serving reports that it is this node, now.
type Where struct {
	Serving bool
	NodeID  string
	Leader  cluster.Addresses
	Term    uint64
	Members []cluster.Member
}

// Where returns who serves now.
func (b *Broker) Where() Where {
	at := b.node.Leadership()
	w := Where{Serving: b.serving() != nil, NodeID: at.Leader.NodeID, Leader: at.Leader.Clients, Term: at.Term, Members: b.node.Members()}
	if at.Local && !w.Serving { // it leads but is not ready: nobody to go to yet
		w.Leader = cluster.Addresses{}
	}
	return w
}

// HandOver gives leadership to another node if this one has it. What is on its way is applied first; what comes
// after is refused as not written, and its clients publish it to the next leader.
func (b *Broker) HandOver(ctx context.Context) error {
	if !b.node.Leadership().Local || len(b.node.Voters()) < 2 {
		return nil
	}
	if l := b.current.Load(); l != nil {
		l.proposer.pause(ctx)
		defer l.proposer.resume()
	}
	return b.node.TransferLeadership(ctx)
}

// Remove takes a member out of the cluster by node id, for good. Only the leader can.
func (b *Broker) Remove(ctx context.Context, nodeID string) error {
	if !b.node.Leadership().Local {
		return b.refusal()
	}
	return b.node.Remove(ctx, nodeID)
}

// Self returns this node and its cluster's id.
func (b *Broker) Self() (cluster.Member, string) { return b.node.Self(), b.node.ClusterID() }

// serving returns the leadership if it serves clients.
func (b *Broker) serving() *leadership {
	if l := b.current.Load(); l != nil && l.ready.Load() {
		return l
	}
	return nil
}

// Refusal is the error of a request on a node that does not serve: who does, or that nobody does now.
func (b *Broker) Refusal() error { return b.refusal() }

// refusal is the error of a request that this node cannot serve now.
func (b *Broker) refusal() *Error {
	if at := b.node.Leadership(); !at.Local && at.Server != "" {
		return errorf(NotLeader, "NOT_LEADER - node '%s' leads, at %s", at.Leader.NodeID, at.Leader.Clients.Native)
	}
	return errorf(NoLeader, "NO_LEADER - no node leads now; try again")
}

// Codes of Warren's own (native protocol page), beside the state machine's.
const (
	NotLeader      fsm.Code = 600
	NoLeader       fsm.Code = 601
	LeadershipLost fsm.Code = 602
	Overloaded     fsm.Code = 603
)

// Error is a refusal as a client sees it.
type Error struct {
	Code    fsm.Code
	Message string
}

func (e *Error) Error() string { return e.Message }

func errorf(code fsm.Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// resultError turns a refused result into an error, nil when it is OK.
func resultError(r fsm.Result) error {
	if r.Code == fsm.OK {
		return nil
	}
	return &Error{Code: r.Code, Message: r.Message}
}

// AsError returns err as a refusal; anything else becomes an internal error.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return errorf(fsm.InternalError, "INTERNAL_ERROR - %v", err)
}

// generatedName makes a name that nobody else has, in the shape of RabbitMQ's: 22 characters of base64.
func generatedName(prefix string) string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	return prefix + base64.RawURLEncoding.EncodeToString(random[:])
}
