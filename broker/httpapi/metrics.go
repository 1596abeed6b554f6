package httpapi

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/cluster"
	"github.com/warrenmq/warren/fsm"
)

// newRegistry returns a registry of this node's figures and of the process.
func newRegistry(c Config) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(&figures{c}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// figures is a collector that calls each function of the Config once in a scrape, so that the metrics of one source
// fit together.
type figures struct{ Config }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("warren_"+name, help, labels, nil)
}

// metric is one figure of a source of type T.
type metric[T any] struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(*T) float64
}

func gauge[T any](name, help string, of func(*T) float64) metric[T] {
	return metric[T]{desc(name, help), prometheus.GaugeValue, of}
}

func counter[T any](name, help string, of func(*T) float64) metric[T] {
	return metric[T]{desc(name, help), prometheus.CounterValue, of}
}

func send[T any](ch chan<- prometheus.Metric, all []metric[T], source func() T) {
	if source == nil {
		return
	}
	v := source()
	for _, m := range all {
		ch <- prometheus.MustNewConstMetric(m.desc, m.kind, m.of(&v))
	}
}

func describe[T any](ch chan<- *prometheus.Desc, all []metric[T]) {
	for _, m := range all {
		ch <- m.desc
	}
}

type applied struct{ index, term uint64 }

// raftStates are the values of the label of warren_raft_state; exactly one of them is 1.
var raftStates = []string{"leader", "follower", "candidate", "shutdown"}

var (
	buildInfo = desc("build_info", "Always 1; the version is a label.", "version")
	raftState = desc("raft_state", "1 for the state this node is in, 0 for the others.", "state")
	commit    = desc("commit_seconds", "From handing an entry to Raft until it is committed and applied on this leader.")
	apply     = desc("apply_seconds", "Applying one committed entry to the state machine of this node, leader or not.")
	wait      = desc("propose_wait_seconds", "From submitting a command until its entry is handed to Raft.")

	ofApplied = []metric[applied]{
		gauge("raft_applied_index", "Index of the last entry applied here.", func(a *applied) float64 { return float64(a.index) }),
		gauge("raft_applied_term", "Term of the last entry applied here.", func(a *applied) float64 { return float64(a.term) }),
	}
	ofNode = []metric[cluster.Stats]{
		gauge("raft_term", "Current term.", func(s *cluster.Stats) float64 { return float64(s.Term) }),
		gauge("raft_commit_index", "Index of the last entry this node knows to be committed.", func(s *cluster.Stats) float64 { return float64(s.CommitIndex) }),
		gauge("raft_last_index", "Index of the last entry in this node's log.", func(s *cluster.Stats) float64 { return float64(s.LastIndex) }),
		gauge("raft_log_bytes", "Bytes of the log's segments on disk.", func(s *cluster.Stats) float64 { return float64(s.LogBytes) }),
		gauge("raft_last_contact_seconds", "Since this follower last heard from the leader; 0 on the leader.", func(s *cluster.Stats) float64 { return s.LastContact.Seconds() }),
		gauge("snapshot_index", "Index of the newest snapshot.", func(s *cluster.Stats) float64 { return float64(s.SnapshotIndex) }),
		gauge("snapshot_age_seconds", "Since the newest snapshot was taken.", func(s *cluster.Stats) float64 { return s.SnapshotAge.Seconds() }),
		gauge("snapshot_duration_seconds", "What the newest snapshot took to write.", func(s *cluster.Stats) float64 { return s.SnapshotTook.Seconds() }),
		counter("snapshots_total", "Snapshots that this process has taken.", func(s *cluster.Stats) float64 { return float64(s.Snapshots) }),
		counter("raft_elections_total", "Elections this node has seen.", func(s *cluster.Stats) float64 { return float64(s.Elections) }),
		counter("raft_log_syncs_total", "Syncs of the log.", func(s *cluster.Stats) float64 { return float64(s.Syncs) }),
		counter("raft_log_sync_seconds_total", "Time spent in syncs of the log.", func(s *cluster.Stats) float64 { return s.SyncSeconds }),
	}
	ofMachine = []metric[fsm.Totals]{
		gauge("vhosts", "Virtual hosts in the cluster.", func(t *fsm.Totals) float64 { return float64(t.Vhosts) }),
		gauge("exchanges", "Exchanges in the cluster.", func(t *fsm.Totals) float64 { return float64(t.Exchanges) }),
		gauge("queues", "Queues in the cluster.", func(t *fsm.Totals) float64 { return float64(t.Queues) }),
		gauge("bindings", "Bindings in the cluster.", func(t *fsm.Totals) float64 { return float64(t.Bindings) }),
		gauge("producers", "Producers remembered for deduplication.", func(t *fsm.Totals) float64 { return float64(t.Producers) }),
		gauge("queue_messages", "Messages in all queues, unacknowledged ones included.", func(t *fsm.Totals) float64 { return float64(t.Messages) }),
		gauge("queue_message_bytes", "Bytes of the messages in all queues.", func(t *fsm.Totals) float64 { return float64(t.MessageBytes) }),
		gauge("index_bytes", "Memory that the index of all messages takes on this node.", func(t *fsm.Totals) float64 { return float64(t.IndexBytes) }),
		gauge("index_paged_bytes", "Bytes of the index that are in files without names on this node's disk.", func(t *fsm.Totals) float64 { return float64(t.IndexPagedBytes) }),
		counter("cluster_published_total", "Messages published, counted in the replicated state.", func(t *fsm.Totals) float64 { return float64(t.Published) }),
		counter("cluster_routed_total", "Messages put into queues, once for each queue, counted in the replicated state.", func(t *fsm.Totals) float64 { return float64(t.Routed) }),
		counter("cluster_duplicates_total", "Publishes found to be repeated, counted in the replicated state.", func(t *fsm.Totals) float64 { return float64(t.Duplicates) }),
		counter("cluster_acknowledged_total", "Messages acknowledged, counted in the replicated state.", func(t *fsm.Totals) float64 { return float64(t.Acknowledged) }),
		counter("cluster_rejected_total", "Messages rejected, counted in the replicated state.", func(t *fsm.Totals) float64 { return float64(t.Rejected) }),
		counter("cluster_expired_total", "Messages whose time to live was over, counted in the replicated state.", func(t *fsm.Totals) float64 { return float64(t.Expired) }),
		counter("cluster_dead_lettered_total", "Messages that became dead letters in another queue, counted in the replicated state.", func(t *fsm.Totals) float64 { return float64(t.DeadLettered) }),
		counter("cluster_dead_unrouted_total", "Messages that died and whose dead letters reached no queue, counted in the replicated state.", func(t *fsm.Totals) float64 { return float64(t.DeadUnrouted) }),
		counter("cluster_over_delivery_limit_total", "Messages that died of too many deliveries, counted in the replicated state.", func(t *fsm.Totals) float64 { return float64(t.OverDeliveryLimit) }),
		counter("cluster_discarded_total", "Messages purged or gone with their queue, counted in the replicated state.", func(t *fsm.Totals) float64 { return float64(t.Discarded) }),
		counter("cluster_moved_total", "Messages that operators moved, counted in the replicated state.", func(t *fsm.Totals) float64 { return float64(t.Moved) }),
		gauge("deduplication_values", "Header values remembered for deduplication.", func(t *fsm.Totals) float64 { return float64(t.Remembered) }),
		counter("cluster_dropped_max_length_total", "Messages that died because their queue was full, counted in the replicated state.", func(t *fsm.Totals) float64 { return float64(t.DroppedMaxLength) }),
		counter("cluster_refused_max_length_total", "Copies of messages that a full queue refused, counted in the replicated state.", func(t *fsm.Totals) float64 { return float64(t.RefusedMaxLength) }),
		counter("cluster_deduplicated_total", "Messages that an exchange or a queue had had before and did not take, counted in the replicated state.", func(t *fsm.Totals) float64 { return float64(t.Deduplicated) }),
		gauge("delayed_messages", "Delayed messages that wait to be routed; they are in no queue.", func(t *fsm.Totals) float64 { return float64(t.Waiting) }),
		gauge("delayed_message_bytes", "Bytes of the delayed messages.", func(t *fsm.Totals) float64 { return float64(t.WaitingBytes) }),
		counter("cluster_delayed_total", "Messages that were to be delayed, counted in the replicated state.", func(t *fsm.Totals) float64 { return float64(t.Delayed) }),
		counter("cluster_delayed_released_total", "Delayed messages whose time came, counted in the replicated state.", func(t *fsm.Totals) float64 { return float64(t.Released) }),
		counter("cluster_delayed_unrouted_total", "Delayed messages that reached no queue when their time came, counted in the replicated state.", func(t *fsm.Totals) float64 { return float64(t.ReleasedUnrouted) }),
		counter("cluster_requeued_total", "Messages given back to their queues, counted in the replicated state.", func(t *fsm.Totals) float64 { return float64(t.Returned) }),
	}
	ofBroker = []metric[broker.Stats]{
		gauge("connections", "Client connections to this node.", func(s *broker.Stats) float64 { return float64(s.Connections) }),
		gauge("channels", "Channels on this node.", func(s *broker.Stats) float64 { return float64(s.Channels) }),
		gauge("consumers", "Consumers on this node.", func(s *broker.Stats) float64 { return float64(s.Consumers) }),
		gauge("queue_views", "Queues this leader delivers from.", func(s *broker.Stats) float64 { return float64(s.Views) }),
		gauge("publishers_blocked", "1 while publishes are held up because memory or disk is short.", func(s *broker.Stats) float64 {
			if s.Blocked {
				return 1
			}
			return 0
		}),
		counter("connections_opened_total", "Client connections let in.", func(s *broker.Stats) float64 { return float64(s.ConnectionsOpened) }),
		counter("connections_refused_total", "Client connections not let in.", func(s *broker.Stats) float64 { return float64(s.ConnectionsRefused) }),
		counter("requests_refused_total", "Requests answered with an error.", func(s *broker.Stats) float64 { return float64(s.Refused) }),
		counter("publishes_total", "Messages that clients of this node published.", func(s *broker.Stats) float64 { return float64(s.Publishes) }),
		counter("confirms_total", "Messages confirmed to clients of this node.", func(s *broker.Stats) float64 { return float64(s.Confirms) }),
		counter("unroutable_total", "Messages returned to their publishers as unroutable.", func(s *broker.Stats) float64 { return float64(s.Returned) }),
		counter("deliveries_total", "Messages delivered, redeliveries included.", func(s *broker.Stats) float64 { return float64(s.Deliveries) }),
		counter("redeliveries_total", "Messages delivered again.", func(s *broker.Stats) float64 { return float64(s.Redeliveries) }),
		counter("acks_total", "Messages acknowledged by clients of this node.", func(s *broker.Stats) float64 { return float64(s.Acks) }),
		counter("nacks_total", "Messages rejected or given back by clients of this node.", func(s *broker.Stats) float64 { return float64(s.Nacks) }),
		counter("entries_total", "Log entries proposed by this node.", func(s *broker.Stats) float64 { return float64(s.Entries) }),
		counter("commands_total", "Commands in those entries.", func(s *broker.Stats) float64 { return float64(s.Commands) }),
		counter("entry_bytes_total", "Bytes of those entries.", func(s *broker.Stats) float64 { return float64(s.EntryBytes) }),
	}
)

// Describe implements prometheus.Collector.
func (f *figures) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{buildInfo, raftState, commit, apply, wait} {
		ch <- d
	}
	describe(ch, ofApplied)
	describe(ch, ofNode)
	describe(ch, ofMachine)
	describe(ch, ofBroker)
}

// Collect implements prometheus.Collector.
func (f *figures) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(buildInfo, prometheus.GaugeValue, 1, f.Version)
	if f.Applied != nil {
		send(ch, ofApplied, func() applied {
			index, term := f.Applied()
			return applied{index, term}
		})
	}
	if f.Node != nil {
		s := f.Node()
		for _, state := range raftStates {
			is := 0.0
			if state == s.State {
				is = 1
			}
			ch <- prometheus.MustNewConstMetric(raftState, prometheus.GaugeValue, is, state)
		}
		send(ch, ofNode, func() cluster.Stats { return s })
	}
	send(ch, ofMachine, f.Machine)
	if f.Broker != nil {
		s := f.Broker()
		send(ch, ofBroker, func() broker.Stats { return s })
		ch <- histogram(commit, s.Commit)
		ch <- histogram(apply, s.Apply)
		ch <- histogram(wait, s.Wait)
	}
}

// histogram turns counts of single buckets into the running counts that Prometheus wants.
func histogram(d *prometheus.Desc, h broker.Histogram) prometheus.Metric {
	buckets := make(map[float64]uint64, len(h.Bounds))
	var n uint64
	for i, count := range h.Counts {
		n += count
		if i < len(h.Bounds) {
			buckets[h.Bounds[i]] = n
		}
	}
	return prometheus.MustNewConstHistogram(d, n, h.Sum, buckets)
}
