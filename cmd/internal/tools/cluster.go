package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/warrenmq/warren/client"
	"github.com/warrenmq/warren/protocol/native"
)

type cluster struct {
	Status clusterStatus `cmd:"" help:"Who is a member, who leads, how far each node is."`
	Remove clusterRemove `cmd:"" help:"Take a dead node out of the cluster for good, so that it no longer counts towards the majority."`
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
		if err := t.flush(); err != nil {
			return err
		}
		for _, m := range status.Members {
			if m.Alarm != "" {
				fmt.Fprintf(std.Out, "\npublishes are held up: node '%s': %s (%d MiB are free)\n", m.ID, m.Alarm, m.DiskFree>>20)
			}
		}
		return nil
	})
}

type clusterRemove struct {
	target
	Node string `arg:"" help:"Id of the node."`
}

// Run asks the leader, over HTTP, to remove a node.
func (r *clusterRemove) Run(ctx context.Context, std Streams) error {
	return r.with(ctx, func(ctx context.Context, conn *client.Connection) error {
		status, err := conn.ClusterStatus(ctx)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(status.Members, func(m native.MemberStatus) bool { return m.ID == status.Leader })
		if i < 0 || status.Members[i].HTTP == "" {
			return errors.New("the leader's HTTP address is not known: start it with --http-addr")
		}
		address := "http://" + status.Members[i].HTTP + "/v1/cluster/members/" + url.PathEscape(r.Node)
		request, err := http.NewRequestWithContext(ctx, http.MethodDelete, address, nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusNoContent {
			var refused struct{ Message string }
			if err := json.NewDecoder(answer.Body).Decode(&refused); err != nil || refused.Message == "" {
				refused.Message = answer.Status
			}
			return errors.New(refused.Message)
		}
		fmt.Fprintf(std.Out, "node %s is removed\n", r.Node)
		return nil
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
