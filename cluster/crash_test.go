package cluster

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// without returns the nodes but one.
func without(nodes []*testNode, n *testNode) []*testNode {
	return slices.DeleteFunc(slices.Clone(nodes), func(o *testNode) bool { return o == n })
}

// The leader's listener and connections end as those of a killed process do.
func TestRule21ACrashedLeaderIsReplacedWithoutWaitingForHeartbeats(t *testing.T) {
	configs := threeConfigs(t)
	for i := range configs {
		configs[i].Timing = Timing{Heartbeat: 20 * time.Second}
	}
	nodes := startThree(t, configs)
	leader := leaderOf(t, nodes)
	if err := leader.propose(t, "a"); err != nil {
		t.Fatal(err)
	}
	rest := without(nodes, leader)
	for _, n := range rest {
		if err := n.Barrier(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	leader.fail(errors.New("killed"))
	next := leaderOf(t, rest)
	took := time.Since(began)
	t.Logf("a new leader after %v", took)
	if took > leader.Node.config.Timing.Heartbeat {
		t.Errorf("a new leader took %v, as long as the heartbeats", took)
	}
	if err := next.propose(t, "b"); err != nil {
		t.Fatal(err)
	}
}

func TestRule21NeitherLeaderNorNonVoterStandsForElection(t *testing.T) {
	nodes := startThree(t, threeConfigs(t))
	leader := leaderOf(t, nodes)
	if leader.mayReplace(leader.lookAtRaft()) {
		t.Error("a leader would replace itself")
	}
	for _, n := range without(nodes, leader) {
		if n.mayReplace(n.lookAtRaft()) {
			t.Error("a follower would replace a leader whose connection lives")
		}
		if n.dialRefused(t.Context(), leader.server) {
			t.Error("a living leader's dial counts as refused")
		}
	}
}
