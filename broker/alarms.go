package broker

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/warrenmq/warren/cluster"
)

// streamAlarms carries what a follower is short of to the leader, again and again.
const streamAlarms cluster.StreamKind = 20

const (
	alarmInterval = time.Second
	// alarmTimeout is how long a follower may be silent before what it said counts no more: the majority goes on without it.
	alarmTimeout = 3 * alarmInterval
	alarmRetry   = 500 * time.Millisecond
	maxReason    = 1024 // bytes
)

// alarms is what this node and, on the leader, the others are short of. Every node writes what the leader lets in, so
// the leader must not fill up the others' disks or memory. Safe for concurrent use.
type alarms struct {
	node string // this one's id; set by Attach

	mu      sync.Mutex
	mine    strain            // guarded by mu
	changed chan struct{}     // closed and replaced when mine changes; guarded by mu
	others  map[string]report // by server, of members that are connected; guarded by mu
}

// report is what a follower says of itself.
type report struct {
	node   string
	strain strain
	conn   net.Conn // the newest one counts
}

func newAlarms() *alarms { return &alarms{changed: make(chan struct{}), others: map[string]report{}} }

// Alarm returns why this node itself takes no publishes, "" when it does, and of what it is short, in RabbitMQ's words.
// Flow and ShortOf are about all nodes on the leader.
func (b *Broker) Alarm() (reason, short string) {
	own := b.alarms.own()
	return own.reason, own.short
}

func (a *alarms) own() strain {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mine
}

func (a *alarms) setOwn(s strain) {
	a.mu.Lock()
	defer a.mu.Unlock()
	told := a.mine.reason != s.reason || a.mine.near != s.near || s.near && s.left != a.mine.left
	a.mine = s
	if told {
		close(a.changed)
		a.changed = make(chan struct{})
	}
}

// next returns what is to be told now, and a channel that is closed at a change that should be told at once.
func (a *alarms) next() (strain, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mine, a.changed
}

func (a *alarms) note(server string, r report) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.others[server] = r
}

func (a *alarms) forget(server string, c net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.others[server].conn == c {
		delete(a.others, server)
	}
}

// reports returns those of the servers.
func (a *alarms) reports(servers []string) (list []report) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for server, r := range a.others {
		if slices.Contains(servers, server) {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(x, y report) int { return strings.Compare(x.node, y.node) })
	return list
}

// allAlarms puts this node's strain and, on the leader, those of the other voters together.
func (b *Broker) allAlarms(own strain) strain {
	l := own
	memory, disk := strings.Contains(own.short, "memory"), strings.Contains(own.short, "disk")
	var reasons []string
	if own.reason != "" {
		reasons = append(reasons, onNode(b.alarms.node, own.reason))
	}
	if b.current.Load() != nil {
		for _, r := range b.alarms.reports(b.node.Voters()) {
			s := r.strain
			if s.near && (!l.near || s.left < l.left) {
				l.near, l.left = true, s.left
			}
			if s.reason != "" {
				reasons = append(reasons, onNode(r.node, s.reason))
				memory, disk = memory || strings.Contains(s.short, "memory"), disk || strings.Contains(s.short, "disk")
			}
		}
	}
	l.reason, l.short = strings.Join(reasons, "; "), shortOf(memory, disk)
	return l
}

func onNode(node, reason string) string { return fmt.Sprintf("node '%s': %s", node, reason) }

// tellAlarms tells whoever leads what this node is short of, until the context ends.
func (b *Broker) tellAlarms(ctx context.Context) {
	for ctx.Err() == nil {
		change := b.node.LeadershipChanged()
		at := b.node.Leadership()
		var again <-chan time.Time
		if !at.Local && at.Server != "" {
			if err := b.tellAlarmsTo(ctx, at.Server, change); err != nil {
				b.log.Debug("the leader cannot be told what this node is short of", "error", err)
				again = time.After(alarmRetry)
			}
		}
		select {
		case <-change:
		case <-again:
		case <-ctx.Done():
		}
	}
}

// tellAlarmsTo returns when the leadership changes.
func (b *Broker) tellAlarmsTo(ctx context.Context, leader string, change <-chan struct{}) error {
	dialing, cancel := context.WithTimeout(ctx, alarmTimeout)
	c, err := b.node.DialStream(dialing, leader, streamAlarms)
	cancel()
	if err != nil {
		return err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	tick := time.NewTicker(alarmInterval)
	defer tick.Stop()
	for {
		s, told := b.alarms.next()
		_ = c.SetWriteDeadline(time.Now().Add(alarmTimeout))
		if _, err := c.Write(s.encode()); err != nil {
			return err
		}
		select {
		case <-told:
		case <-tick.C:
		case <-change:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// hearAlarms takes in what a follower says.
func (b *Broker) hearAlarms(from cluster.Member, c net.Conn) {
	defer c.Close()
	defer b.alarms.forget(from.Server, c)
	for {
		_ = c.SetReadDeadline(time.Now().Add(alarmTimeout))
		s, err := readStrain(c)
		if err != nil {
			return
		}
		b.alarms.note(from.Server, report{from.NodeID, s, c})
	}
}

// A strain on its way: flags 1 · bytes left 8 · length of the reason 2 · reason.
const (
	strainHead  = 11
	flagNear    = 1
	flagMemory  = 2 // short of
	flagOfDisk  = 4
	strainFlags = flagNear | flagMemory | flagOfDisk
)

func (l *strain) encode() []byte {
	reason := l.reason[:min(len(l.reason), maxReason)]
	b := make([]byte, strainHead, strainHead+len(reason))
	for flag, set := range map[byte]bool{flagNear: l.near, flagMemory: strings.Contains(l.short, "memory"), flagOfDisk: strings.Contains(l.short, "disk")} {
		if set {
			b[0] |= flag
		}
	}
	binary.BigEndian.PutUint64(b[1:], l.left)
	binary.BigEndian.PutUint16(b[9:], uint16(len(reason)))
	return append(b, reason...)
}

var errStrain = errors.New("no report of what a node is short of")

func readStrain(r io.Reader) (l strain, err error) {
	var head [strainHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return l, err
	}
	flags, length := head[0], binary.BigEndian.Uint16(head[9:])
	if flags&^strainFlags != 0 || length > maxReason {
		return l, errStrain
	}
	reason := make([]byte, length)
	if _, err := io.ReadFull(r, reason); err != nil {
		return l, err
	}
	return strain{reason: string(reason), short: shortOf(flags&flagMemory != 0, flags&flagOfDisk != 0), near: flags&flagNear != 0,
		left: binary.BigEndian.Uint64(head[1:])}, nil
}
