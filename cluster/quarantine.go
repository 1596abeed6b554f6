package cluster

import (
	"fmt"

	"github.com/hashicorp/raft"
)

// refuseAlone returns an error when there is nobody to fetch the state from.
func (n *Node) refuseAlone(damage error) error {
	if n.config.BootstrapExpect <= 1 && len(n.othersToJoin()) == 0 {
		return fmt.Errorf("%w; this node is alone, so nobody has the lost entries: restore the data directory from a backup", damage)
	}
	return nil
}

// outdated is called when a peer knows a later start of this data directory: an old copy was brought back (rule 18).
func (n *Node) outdated(known uint64, peer string) {
	reason := fmt.Sprintf("%s has seen start %d of this data directory, which counts less: an old copy was brought back", peer, known)
	n.knownBoots.Store(max(known, n.knownBoots.Load()))
	n.quarantine(reason)
}

// quarantine takes this node out of elections until it has applied what a leader seen since has committed.
func (n *Node) quarantine(reason string) {
	if n.transport.quarantined.Swap(true) {
		return
	}
	n.log.Error("this node takes no part in elections until it has caught up", "reason", reason)
	if err := n.identity.change(func(v *identityRecord) { v.Quarantined = reason }); err != nil {
		n.fail(err)
	}
	if n.raft != nil && n.raft.State() == raft.Leader {
		n.raft.LeadershipTransfer()
	}
}

// restoredState looks at what came of a snapshot that the leader sent.
func (n *Node) restoredState() {
	if lost := n.incomplete(); lost != nil {
		n.quarantine(fmt.Sprintf("messages are missing: %v", lost))
	}
}

// endQuarantine lets the node vote again once it is caught up.
func (n *Node) endQuarantine() {
	if !n.transport.quarantined.Load() {
		return
	}
	commit := n.transport.heard.Load()
	if commit == 0 || n.raft.AppliedIndex() < commit || n.Leadership().Server == "" || !n.CaughtUp() || n.incomplete() != nil {
		return
	}
	err := n.identity.change(func(v *identityRecord) {
		v.Quarantined = ""
		if known := n.knownBoots.Load(); v.Boots <= known {
			v.Boots = known + 1
		}
	})
	if err != nil {
		n.fail(err)
		return
	}
	n.transport.quarantined.Store(false)
	n.log.Warn("this node has caught up and votes again", "index", commit)
	n.transport.CloseStreams() // new connections tell the peers of the new boot counter, as introduce does
}

// Quarantined reports whether this node takes no part in elections because something that it had is missing.
func (n *Node) Quarantined() bool { return n.transport.quarantined.Load() }

// CaughtUp reports whether this node knows a leader and has applied what was committed when it last heard from it.
func (n *Node) CaughtUp() bool {
	l := n.Leadership()
	if l.Local {
		return true
	}
	return l.Server != "" && n.raft.AppliedIndex() >= n.transport.heard.Load() && n.transport.heard.Load() > 0
}
