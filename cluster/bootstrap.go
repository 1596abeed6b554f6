package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/raft"
)

// othersToJoin is the join list without this node's own gossip address.
func (n *Node) othersToJoin() []string {
	return slices.DeleteFunc(slices.Clone(n.config.Join), func(a string) bool {
		return a == "" || a == n.fixed.Gossip || a == n.config.GossipAddr || a == n.config.GossipAdvertise
	})
}

// maybeBootstrap forms the cluster if it is this node's part (rule 23): everybody expected is here, nobody belongs to a
// cluster, and this node has the smallest id. It happens once ever; the founders are written down first, so that a
// crash in between leads to the same cluster.
func (n *Node) maybeBootstrap() error {
	v := n.identity.get()
	if len(v.Founders) == 0 {
		founders := n.founders()
		if founders == nil {
			return nil
		}
		err := n.identity.change(func(v *identityRecord) {
			if v.ClusterID == "" { // else another cluster has just taken this node in
				v.ClusterID, v.Founders = randomHex(8), founders
			}
		})
		if err != nil {
			return err
		}
		if v = n.identity.get(); len(v.Founders) == 0 {
			return nil
		}
		n.log.Info("forming a new cluster", "cluster", v.ClusterID, "voters", founders)
	}
	var c raft.Configuration
	for _, s := range v.Founders {
		c.Servers = append(c.Servers, raft.Server{ID: raft.ServerID(s), Address: raft.ServerAddress(s)})
	}
	if err := n.raft.BootstrapCluster(c).Error(); err != nil && !errors.Is(err, raft.ErrCantBootstrap) {
		return fmt.Errorf("form the cluster: %w", err)
	}
	n.empty.Store(false)
	n.poke()
	return nil
}

// tellWaiting says who is here while this node waits for others, whenever that is not what was told before. It returns
// what is told now.
func (n *Node) tellWaiting(told string) string {
	if !n.empty.Load() || n.ClusterID() != "" {
		return told
	}
	var here []string
	for _, m := range n.book.present() {
		here = append(here, m.NodeID)
	}
	now := strings.Join(here, " ")
	if now != told && now != "" { // nobody, not even this node, is here when it leaves
		n.log.Info("waiting for other nodes, to form a cluster with them or to be taken into theirs", "here", now,
			"expected", n.config.BootstrapExpect, "join", strings.Join(n.config.Join, ","))
	}
	return now
}

// forgetHalfBootstrap makes a bootstrap possible that a crash cut short: raft writes term 1 before the first entry, and
// would take the term alone for a state. A founder in term 1 that has voted for nobody, with neither log nor snapshot,
// was never part of a cluster.
func (n *Node) forgetHalfBootstrap() error {
	v := n.identity.get()
	if len(v.Founders) == 0 || v.Quarantined != "" {
		return nil
	}
	last, err := n.stores.log.LastIndex()
	if err != nil || last > 0 {
		return err
	}
	newest, err := n.stores.newestSnapshot()
	if err != nil || newest > 0 {
		return err
	}
	term, voted := uint64(0), uint64(0)
	for key, value := range map[string]*uint64{"CurrentTerm": &term, "LastVoteTerm": &voted} {
		if *value, err = n.stores.stable.GetUint64([]byte(key)); err != nil && err.Error() != "not found" {
			return err
		}
	}
	if term != 1 || voted != 0 {
		return nil
	}
	return n.stores.stable.SetUint64([]byte("CurrentTerm"), 0)
}

// founders returns the first voters if this node is to bootstrap with them, nil if not.
func (n *Node) founders() []string {
	if n.ClusterID() != "" || n.config.BootstrapExpect == 0 || !n.empty.Load() {
		return nil
	}
	if n.config.BootstrapExpect == 1 {
		if len(n.othersToJoin()) > 0 {
			return nil // it is to join them
		}
		return []string{n.server}
	}
	var out []string
	ids := map[string]bool{}
	present := n.book.present()
	for _, m := range present {
		if m.ClusterID != "" || ids[m.NodeID] {
			return nil // somebody belongs to a cluster, or an id is there twice
		}
		ids[m.NodeID] = true
		out = append(out, m.Server)
	}
	if len(out) < n.config.BootstrapExpect {
		return nil
	}
	out = out[:n.config.BootstrapExpect] // present is sorted by node id; the others join afterwards
	if out[0] != n.server {
		return nil
	}
	return out
}
