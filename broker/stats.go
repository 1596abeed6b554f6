package broker

import (
	"sync/atomic"
	"time"

	"github.com/warrenmq/warren/fsm"
)

// Stats are the broker's figures since this process started, for metrics. Gauges are of this moment.
type Stats struct {
	Connections, Channels, Consumers, Views int64
	Blocked                                 bool // publishes are held up

	Publishes, Confirms, Returned         uint64 // messages submitted, confirmed, returned as unroutable
	Deliveries, Redeliveries, Acks, Nacks uint64
	Entries, Commands, EntryBytes         uint64 // log entries cut by the proposer
	Refused                               uint64 // requests answered with an error
	ConnectionsOpened, ConnectionsRefused uint64
	Commit                                Histogram // entry handed to Raft → applied here, seconds
	Apply                                 Histogram // one log entry applied to the state machine, on any node, seconds
	Wait                                  Histogram // command submitted → its entry handed to Raft, seconds
}

// Histogram is a snapshot of a latency distribution: Counts[i] observations were at most Bounds[i] seconds and above
// the bound before; the last count has no upper bound.
type Histogram struct {
	Bounds []float64
	Counts []uint64
	Sum    float64
}

// latencyBounds are the buckets of every latency histogram, in seconds.
var latencyBounds = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}

// latency counts durations into latencyBounds. Safe for concurrent use; the zero value is ready.
type latency struct {
	counts [16]atomic.Uint64
	nanos  atomic.Int64
}

func (l *latency) observe(d time.Duration) {
	s, i := d.Seconds(), 0
	for i < len(latencyBounds) && s > latencyBounds[i] {
		i++
	}
	l.counts[i].Add(1)
	l.nanos.Add(int64(d))
}

func (l *latency) snapshot() Histogram {
	h := Histogram{Bounds: latencyBounds, Counts: make([]uint64, len(l.counts)), Sum: time.Duration(l.nanos.Load()).Seconds()}
	for i := range l.counts {
		h.Counts[i] = l.counts[i].Load()
	}
	return h
}

// counters are the live form of Stats.
type counters struct {
	connections, channels, consumers                                              atomic.Int64
	publishes, confirms, returned, deliveries, redeliveries, acks, nacks          atomic.Uint64
	entries, commands, entryBytes, refused, connectionsOpened, connectionsRefused atomic.Uint64
	commit, wait, apply                                                           latency
}

// settled counts deliveries that a client ended.
func (c *counters) settled(kind fsm.SettleKind, n int) {
	if kind == fsm.Acknowledge {
		c.acks.Add(uint64(n))
	} else {
		c.nacks.Add(uint64(n))
	}
}

// Stats returns the broker's figures.
func (b *Broker) Stats() Stats {
	c := &b.stats
	s := Stats{
		Connections: c.connections.Load(), Channels: c.channels.Load(), Consumers: c.consumers.Load(),
		Publishes: c.publishes.Load(), Confirms: c.confirms.Load(), Returned: c.returned.Load(),
		Deliveries: c.deliveries.Load(), Redeliveries: c.redeliveries.Load(), Acks: c.acks.Load(), Nacks: c.nacks.Load(),
		Entries: c.entries.Load(), Commands: c.commands.Load(), EntryBytes: c.entryBytes.Load(), Refused: c.refused.Load(),
		ConnectionsOpened: c.connectionsOpened.Load(), ConnectionsRefused: c.connectionsRefused.Load(),
		Commit: c.commit.snapshot(), Wait: c.wait.snapshot(), Apply: c.apply.snapshot(),
	}
	s.Blocked = b.flow.blocked.Load()
	if l := b.current.Load(); l != nil {
		l.mu.Lock()
		s.Views = int64(len(l.views))
		l.mu.Unlock()
	}
	return s
}

// ObserveApply counts how long the state machine took for a log entry.
func (b *Broker) ObserveApply(took time.Duration) { b.stats.apply.observe(took) }

// Refused counts a request that was answered with an error.
func (b *Broker) Refused() { b.stats.refused.Add(1) }

// Returned counts a message that was returned as unroutable.
func (b *Broker) Returned() { b.stats.returned.Add(1) }

// Rejected counts a connection that was not let in.
func (b *Broker) Rejected() { b.stats.connectionsRefused.Add(1) }
