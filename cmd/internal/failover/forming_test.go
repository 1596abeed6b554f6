package failover

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestThreeEmptyNodesFormOneCluster: in whatever order and how far apart they start.
func TestThreeEmptyNodesFormOneCluster(t *testing.T) {
	rounds := 3
	if *long {
		rounds = 20
	}
	for round := range rounds {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			c := layCluster(t, 3)
			order := rand.Perm(3)
			for i, at := range order {
				if i > 0 {
					pass(t, time.Duration(rand.IntN(1500))*time.Millisecond)
				}
				c.nodes[at].Start()
			}
			began := time.Now()
			c.Ready()
			t.Logf("started in the order %v: ready %v after the last start", order, time.Since(began).Round(time.Millisecond))
			c.ExpectOneCluster()
			c.Declare("q")
			load := c.startLoad("", "q", 1, 500, 1)
			load.AwaitConfirms(50, 10*time.Second)
			c.ExpectKept("q", load.Stop())
		})
	}
}

// ExpectOneCluster checks that all nodes are voters of one cluster.
func (c *cluster) ExpectOneCluster() (id string) {
	c.t.Helper()
	s := c.Agree()
	for _, n := range c.nodes {
		await(c.t, 10*time.Second, n.id+" in the one cluster", func() error {
			of, err := n.Status()
			if err != nil {
				return err
			}
			if of.ClusterID != s.ClusterID || of.Leader != s.Leader || len(of.Members) != len(c.nodes) {
				return fmt.Errorf("%s is in cluster %q led by %q with %d members, not in %q led by %q", n.id, of.ClusterID, of.Leader, len(of.Members), s.ClusterID, s.Leader)
			}
			return nil
		})
	}
	return s.ClusterID
}

// TestEmptiedNodeComesBackAsNew: under its old name, with nothing on disk, while the cluster works on.
func TestEmptiedNodeComesBackAsNew(t *testing.T) {
	c := startCluster(t, 3)
	c.Declare("kept")
	before := c.ExpectOneCluster()
	load := c.startLoad("", "kept", 1, 500, 1)
	load.AwaitConfirms(500, 10*time.Second)
	for _, leads := range []bool{false, true} {
		n := c.Leader()
		if !leads {
			n = c.Followers()[0]
		}
		began := time.Now()
		n.Kill()
		n.Empty()
		n.Start()
		n.Ready()
		load.AwaitConfirms(500, 10*time.Second)
		await(t, time.Minute, "three voters, all of them reachable", func() error {
			s, err := c.Leader().Status()
			if err != nil {
				return err
			}
			for _, m := range s.Members {
				if m.State != "leader" && m.State != "follower" {
					return fmt.Errorf("%+v", s.Members)
				}
			}
			if len(s.Members) != 3 {
				return fmt.Errorf("%+v", s.Members)
			}
			return nil
		})
		t.Logf("%s (leads: %v) emptied: back as a voter after %v, longest gap between confirms %v", n.id, leads,
			time.Since(began).Round(time.Millisecond), load.Gap(began).Round(time.Millisecond))
	}
	c.ExpectKept("kept", load.Stop())
	if after := c.ExpectOneCluster(); after != before {
		t.Errorf("the cluster was %s and is %s", before, after)
	}
}

// TestTwoClustersNeverMerge: a node of each is told to join the other.
func TestTwoClustersNeverMerge(t *testing.T) {
	one, two := startCluster(t, 1), startCluster(t, 1)
	one.Declare("of-one")
	two.Declare("of-two")
	ids := []string{one.ExpectOneCluster(), two.ExpectOneCluster()}
	if ids[0] == ids[1] {
		t.Fatalf("two clusters have the id %s", ids[0])
	}
	a, b := one.nodes[0], two.nodes[0]
	join := []string{a.addr.gossip, b.addr.gossip}
	for _, n := range []*node{a, b} {
		n.Stop()
		n.join = join
		n.args = []string{"--bootstrap-expect", "2"}
	}
	a.Start()
	b.Start()
	one.Ready()
	two.Ready()
	pass(t, 3*time.Second) // many rounds of gossip
	if now := []string{one.ExpectOneCluster(), two.ExpectOneCluster()}; !slices.Equal(now, ids) {
		t.Errorf("the clusters were %v and are %v", ids, now)
	}
	if one.Depth("of-one") != 0 || two.Depth("of-two") != 0 {
		t.Error("a queue has messages that nobody published")
	}
}
