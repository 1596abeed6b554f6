package cluster

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// configuration is Raft's latest, without waiting.
func (n *Node) configuration() []raft.Server {
	f := n.raft.GetConfiguration()
	if f.Error() != nil {
		return nil
	}
	return f.Configuration().Servers
}

func (n *Node) isMember(server string) bool {
	return slices.ContainsFunc(n.configuration(), func(s raft.Server) bool { return string(s.ID) == server })
}

func (n *Node) isVoter(server string) bool {
	return slices.ContainsFunc(n.configuration(), func(s raft.Server) bool {
		return string(s.ID) == server && s.Suffrage == raft.Voter
	})
}

// Voters returns the Raft server ids of the voters.
func (n *Node) Voters() []string {
	var out []string
	for _, s := range n.configuration() {
		if s.Suffrage == raft.Voter {
			out = append(out, string(s.ID))
		}
	}
	return out
}

// Members returns the servers of Raft's latest configuration with gossip's addresses, sorted by node id.
func (n *Node) Members() []Member {
	leader := n.Leadership().Server
	var out []Member
	for _, s := range n.configuration() {
		m := n.member(string(s.ID))
		m.Voter, m.Leader = s.Suffrage == raft.Voter, m.Server == leader
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b Member) int { return cmp.Or(cmp.Compare(a.NodeID, b.NodeID), cmp.Compare(a.Server, b.Server)) })
	return out
}

// member is a server as far as it is known.
func (n *Node) member(server string) Member {
	if server == n.server {
		return n.Self()
	}
	if m, ok := n.book.find(server); ok {
		return m
	}
	return Member{NodeID: nodeIDOf(server), Server: server, ClusterID: n.ClusterID()}
}

// Self returns this node as others see it.
func (n *Node) Self() Member {
	v := n.identity.get()
	m := n.fixed
	m.ClusterID, m.Boots, m.Empty = v.ClusterID, v.Boots, n.isEmpty()
	return m
}

// isEmpty reports whether this node has no Raft state yet.
func (n *Node) isEmpty() bool {
	if n.empty.Load() && n.raft != nil && n.raft.LastIndex() > 0 {
		n.empty.Store(false)
	}
	return n.empty.Load()
}

// ClusterID returns the id of the cluster this node belongs to, "" before it was formed or joined.
func (n *Node) ClusterID() string { return n.identity.get().ClusterID }

// MemberStatus is a member's own report, or why there is none.
type MemberStatus struct {
	Member
	Reachable    bool
	AppliedIndex uint64
	CommitIndex  uint64
	LastIndex    uint64
	StateHash    uint64
	HashIndex    uint64
	Quarantined  string // why this node may not vote, "" when it may
	Resources
}

// report is this node's answer to a status request.
func (n *Node) report() reply {
	l := n.Leadership()
	r := reply{Member: toWire(n.Self()), Voter: n.isVoter(n.server), Leader: l.Local, Term: n.raft.CurrentTerm(),
		AppliedIndex: n.machine.applied.Load(), CommitIndex: n.raft.CommitIndex(), LastIndex: n.raft.LastIndex(),
		Quarantined: n.identity.get().Quarantined, KnowsLeader: l.Server != "", Heard: n.transport.heardTerm.Load() > 0 || l.Local}
	r.LastTerm, _ = strconv.ParseUint(n.raft.Stats()["last_log_term"], 10, 64)
	if n.config.Report != nil {
		s := n.config.Report()
		r.AppliedIndex, r.StateHash, r.HashIndex = s.AppliedIndex, s.StateHash, s.HashIndex
		r.Resources = wireResources{Alarm: s.Alarm, Short: s.Short, DiskFree: s.DiskFree, MinDiskFree: s.MinDiskFree}
	}
	return r
}

// Status asks every member for its report, all at once, and waits for no one longer than the context.
func (n *Node) Status(ctx context.Context) []MemberStatus {
	members := n.Members()
	out := make([]MemberStatus, len(members))
	var wg sync.WaitGroup
	for i, m := range members {
		out[i].Member = m
		wg.Go(func() {
			r, err := n.report(), error(nil)
			if m.Server != n.server {
				r, err = n.ask(ctx, m.Server, request{Op: opStatus})
			}
			if err != nil {
				return
			}
			s := &out[i]
			s.Reachable, s.Quarantined = true, r.Quarantined
			s.AppliedIndex, s.CommitIndex, s.LastIndex, s.StateHash, s.HashIndex = r.AppliedIndex, r.CommitIndex, r.LastIndex, r.StateHash, r.HashIndex
			s.Version, s.Commands = r.Member.Version, r.Member.Commands
			s.Resources = Resources{r.Resources.Alarm, r.Resources.Short, r.Resources.DiskFree, r.Resources.MinDiskFree}
		})
	}
	wg.Wait()
	return out
}

// Stats are figures for metrics.
type Stats struct {
	State                        string // leader, follower, candidate, shutdown
	Term, CommitIndex, LastIndex uint64
	LogBytes                     int64
	SnapshotIndex                uint64
	SnapshotAge, SnapshotTook    time.Duration
	Snapshots                    uint64 // taken by this process
	LastContact                  time.Duration
	Elections, Syncs             uint64
	SyncSeconds                  float64
}

// Stats returns current figures.
func (n *Node) Stats() Stats {
	s := Stats{State: lower(n.raft.State()), Term: n.raft.CurrentTerm(), CommitIndex: n.raft.CommitIndex(), LastIndex: n.raft.LastIndex(),
		LogBytes: n.stores.logBytes(), Elections: n.elections.Load(), Syncs: n.syncs.Load(), SyncSeconds: time.Duration(n.syncTime.Load()).Seconds()}
	n.snap.mu.Lock()
	s.SnapshotIndex, s.SnapshotTook, s.Snapshots = n.snap.index, n.snap.took, n.snap.taken
	if !n.snap.at.IsZero() {
		s.SnapshotAge = time.Since(n.snap.at)
	}
	n.snap.mu.Unlock()
	if at := n.raft.LastContact(); s.State != "leader" && !at.IsZero() {
		s.LastContact = time.Since(at)
	}
	return s
}

func lower(s raft.RaftState) string {
	switch s {
	case raft.Leader:
		return "leader"
	case raft.Candidate:
		return "candidate"
	case raft.Follower:
		return "follower"
	}
	return "shutdown"
}
