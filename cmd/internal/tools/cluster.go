package tools

import (
	"context"
	"fmt"

	"github.com/warrenmq/warren/client"
	"github.com/warrenmq/warren/protocol/native"
)

type cluster struct {
	Status clusterStatus `cmd:"" help:"Who is a member, who leads, how far each node is."`
}

type clusterStatus struct {
	target
	JSON bool `name:"json" help:"What GET /v1/cluster answers, instead of a table."`
}

// Run shows the cluster.
func (s *clusterStatus) Run(ctx context.Context, std Streams) error {
	return s.with(ctx, func(ctx context.Context, conn *client.Connection) error {
		status, err := conn.ClusterStatus(ctx)
		if err != nil {
			return err
		}
		if s.JSON {
			return printJSON(std.Out, status)
		}
		leader := status.Leader
		if leader == "" {
			leader = "nobody"
		}
		fmt.Fprintf(std.Out, "cluster %s: %s leads in term %d\n\n", status.ClusterID, leader, status.Term)
		t := newTable(std.Out, "NODE", "STATE", "NATIVE", "APPLIED", "LAG", "STATE HASH", "VERSION")
		for _, m := range status.Members {
			if m.State == native.StateUnreachable {
				t.row(m.ID, m.State, m.Native, "-", "-", "-", m.Version)
				continue
			}
			t.row(m.ID, m.State, m.Native, m.AppliedIndex, lag(status, m), fmt.Sprintf("%s @%d", m.StateHash, m.StateHashIndex), m.Version)
		}
		return t.flush()
	})
}

// lag is how many committed entries a member has yet to apply, as far as the members' reports tell.
func lag(s native.ClusterStatus, m native.MemberStatus) uint64 {
	committed := m.AppliedIndex
	for _, other := range s.Members {
		committed = max(committed, other.CommitIndex)
	}
	return committed - m.AppliedIndex
}
