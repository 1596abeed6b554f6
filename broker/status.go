package broker

import (
	"context"
	"fmt"
	"time"

	"github.com/warrenmq/warren/protocol/native"
)

// statusTimeout is how long a member may take to report.
const statusTimeout = 2 * time.Second

// Status returns what this node knows of the cluster. Members that do not report are unreachable; that is no error.
func (b *Broker) Status(ctx context.Context) (native.ClusterStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	at := b.node.Leadership()
	s := native.ClusterStatus{ClusterID: b.node.ClusterID(), NodeID: b.node.Self().NodeID, Leader: at.Leader.NodeID, Term: at.Term}
	for _, m := range b.node.Status(ctx) {
		state := native.StateNonvoter
		switch {
		case !m.Reachable:
			state = native.StateUnreachable
		case m.Leader:
			state = native.StateLeader
		case m.Voter:
			state = native.StateFollower
		}
		row := native.MemberStatus{ID: m.NodeID, State: state, Native: m.Clients.Native, AMQP: m.Clients.AMQP, HTTP: m.Clients.HTTP,
			Raft: m.Raft, Gossip: m.Gossip, Version: m.Version}
		if m.Reachable {
			row.AppliedIndex, row.CommitIndex, row.StateHashIndex = m.AppliedIndex, m.CommitIndex, m.HashIndex
			row.StateHash = fmt.Sprintf("%016x", m.StateHash)
			row.Alarm, row.Short, row.DiskFree, row.MinDiskFree = m.Alarm, m.Short, m.DiskFree, m.MinDiskFree
		}
		s.Members = append(s.Members, row)
	}
	return s, nil
}
