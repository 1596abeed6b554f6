package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

const (
	membershipTick = 250 * time.Millisecond
	changeLimit    = 5 * time.Second // for one change of the configuration
)

// wake makes the membership loop look again.
func (n *Node) wake() {
	select {
	case n.woken <- struct{}{}:
	default:
	}
}

// keepMembership follows gossip: it keeps the book, tells the others of this node, forms the cluster, and on the leader
// takes new nodes in.
func (n *Node) keepMembership() {
	tick := time.NewTicker(membershipTick)
	defer tick.Stop()
	changed := n.discovery.Changed()
	told, waiting := n.Self(), ""
	for {
		n.book.gossip(n.discovery.Members())
		if now := n.Self(); now != told {
			if err := n.discovery.Update(now); err != nil {
				n.log.Debug("telling the others of this node failed", "error", err)
			} else {
				told = now
			}
		}
		if n.empty.Load() {
			if err := n.maybeBootstrap(); err != nil {
				n.log.Error("cannot form the cluster", "error", err)
			}
			waiting = n.tellWaiting(waiting)
		}
		if n.Leadership().Local {
			n.takeIn()
		}
		select {
		case _, open := <-changed:
			if !open {
				changed = nil
			}
		case <-n.woken:
		case <-tick.C:
		case <-n.ctx.Done():
			return
		}
	}
}

// takeIn makes one step for each node that waits: new → non-voter → (the server it replaces goes) → voter.
func (n *Node) takeIn() {
	for _, m := range n.book.present() {
		if n.ctx.Err() != nil {
			return
		}
		switch server := n.find(m.Server); {
		case m.Server == n.server:
		case server == nil:
			if n.waits(m) {
				n.log.Info("taking a new node in", "node", m.NodeID, "raft", m.Raft)
				n.change("take in "+m.NodeID, func() raft.Future {
					return n.raft.AddNonvoter(raft.ServerID(m.Server), raft.ServerAddress(m.Server), 0, changeLimit)
				})
			}
		case server.Suffrage == raft.Nonvoter:
			n.promote(m)
		}
	}
}

// waits asks a node that gossip calls empty whether it still is, and makes it belong to this cluster. A node that was
// removed is not empty and does not come back by itself.
func (n *Node) waits(m Member) bool {
	if !m.Empty || m.ClusterID != "" && m.ClusterID != n.ClusterID() {
		return false
	}
	ctx, cancel := context.WithTimeout(n.ctx, time.Second)
	defer cancel()
	r, err := n.ask(ctx, m.Server, request{Op: opStatus})
	return err == nil && r.Member.Empty
}

func (n *Node) find(server string) *raft.Server {
	for _, s := range n.configuration() {
		if string(s.ID) == server {
			return &s
		}
	}
	return nil
}

// promote makes a non-voter a voter once it has caught up; AddVoter itself would not wait for that. The server whose
// node id it took over goes first, so that no majority ever needs one node more.
func (n *Node) promote(m Member) {
	commit := n.raft.CommitIndex()
	ctx, cancel := context.WithTimeout(n.ctx, time.Second)
	defer cancel()
	r, err := n.ask(ctx, m.Server, request{Op: opStatus})
	if err != nil || r.LastIndex < commit || r.CommitIndex+1024 < commit || r.Quarantined != "" {
		return
	}
	for _, s := range n.configuration() {
		if string(s.ID) == m.Server || nodeIDOf(string(s.ID)) != m.NodeID {
			continue
		}
		if string(s.ID) == n.server || n.book.isAlive(string(s.ID)) && n.reachable(ctx, string(s.ID)) {
			n.log.Error("two running nodes have the same node id: give one of them another", "node", m.NodeID)
			return
		}
		n.log.Info("removing a server that was replaced", "node", m.NodeID, "server", s.ID)
		if !n.change("remove the replaced "+m.NodeID, func() raft.Future { return n.raft.RemoveServer(s.ID, 0, changeLimit) }) {
			return
		}
	}
	if n.change("make "+m.NodeID+" a voter", func() raft.Future {
		return n.raft.AddVoter(raft.ServerID(m.Server), raft.ServerAddress(m.Server), 0, changeLimit)
	}) {
		n.log.Info("a node has caught up and votes", "node", m.NodeID)
	}
}

func (n *Node) reachable(ctx context.Context, server string) bool {
	_, err := n.ask(ctx, server, request{Op: opStatus})
	return err == nil
}

func (n *Node) change(what string, call func() raft.Future) bool {
	ctx, cancel := context.WithTimeout(n.ctx, changeLimit)
	defer cancel()
	if err := n.wait(ctx, call); err != nil {
		n.log.Warn("could not "+what, "error", err)
		return false
	}
	return true
}

// Remove takes a member out of the cluster by node id. Leader only.
func (n *Node) Remove(ctx context.Context, nodeID string) error {
	if !n.Leadership().Local {
		return fmt.Errorf("remove %s: %w", nodeID, ErrNotWritten)
	}
	found := false
	for _, s := range n.configuration() {
		if nodeIDOf(string(s.ID)) != nodeID {
			continue
		}
		found = true
		if string(s.ID) == n.server {
			return fmt.Errorf("remove %s: it leads; hand leadership over first, then remove it through the new leader", nodeID)
		}
		if err := n.wait(ctx, func() raft.Future { return n.raft.RemoveServer(s.ID, 0, changeLimit) }); err != nil {
			return fmt.Errorf("remove %s: %w", nodeID, err)
		}
		n.log.Warn("a node was removed from the cluster on command", "node", nodeID, "server", s.ID)
	}
	if !found {
		return fmt.Errorf("remove %s: no such member", nodeID)
	}
	return nil
}
