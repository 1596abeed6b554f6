package cluster

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRule04NodesComeBackUnderNewAddresses(t *testing.T) {
	configs := threeConfigs(t)
	nodes := startThree(t, configs)
	leader := leaderOf(t, nodes)
	if err := leader.propose(t, "kept"); err != nil {
		t.Fatal(err)
	}
	cluster := leader.ClusterID()
	eventually(t, "everybody's entry", func() bool {
		return !slices.ContainsFunc(nodes, func(n *testNode) bool { return len(n.fsm.all()) != 1 })
	})
	for _, n := range nodes {
		n.stop(t)
	}
	gossip := freeAddresses(t, 3)
	nodes = nil
	for i := range 3 {
		c := configs[2-i]
		c.GossipAddr, c.Join = gossip[i], gossip
		nodes = append(nodes, start(t, c))
	}
	began := time.Now()
	leaderOf(t, nodes)
	t.Logf("a leader after %v", time.Since(began))
	for _, n := range nodes {
		if err := n.Barrier(t.Context()); err != nil || !slices.Equal(n.fsm.all(), []string{"kept"}) || n.ClusterID() != cluster {
			t.Errorf("%s: %v %v cluster %s", n.fixed.NodeID, n.fsm.all(), err, n.ClusterID())
		}
	}
}

func TestRule23OnlyTheCompleteSetBootstraps(t *testing.T) {
	configs := threeConfigs(t)
	a, b := start(t, configs[2]), start(t, configs[1])
	eventually(t, "the two to meet", func() bool { return len(a.book.present()) == 2 && len(b.book.present()) == 2 })
	for range 4 {
		<-time.After(membershipTick)
		if a.ClusterID() != "" || b.ClusterID() != "" {
			t.Fatal("two of three formed a cluster")
		}
	}
	c := start(t, configs[0])
	leaderOf(t, []*testNode{a, b, c})
	if a.ClusterID() == "" || a.ClusterID() != b.ClusterID() || b.ClusterID() != c.ClusterID() {
		t.Error("not one cluster")
	}
	if len(c.identity.get().Founders) != 3 || len(a.identity.get().Founders) != 0 || len(b.identity.get().Founders) != 0 {
		t.Error("not the smallest id has bootstrapped")
	}
}

func TestTwoClustersNeverMerge(t *testing.T) {
	t.Parallel()
	gossip := freeAddresses(t, 2)
	a := start(t, Config{NodeID: "a", DataDir: t.TempDir(), RaftAddr: "127.0.0.1:0", GossipAddr: gossip[0], BootstrapExpect: 1})
	c := Config{NodeID: "b", DataDir: t.TempDir(), RaftAddr: "127.0.0.1:0", GossipAddr: gossip[1], BootstrapExpect: 1}
	b := start(t, c)
	eventually(t, "both to lead", func() bool { return a.Leadership().Local && b.Leadership().Local })
	b.stop(t)
	c.Join = gossip
	b = start(t, c)
	eventually(t, "the two to meet", func() bool { return len(a.book.present()) == 2 && len(b.book.present()) == 2 })
	eventually(t, "b to lead its own", func() bool { return b.Leadership().Local })
	_, err := b.DialStream(t.Context(), a.server, streamRequest)
	if err == nil || !strings.Contains(err.Error(), "never merge") {
		t.Errorf("a stranger's dial: %v", err)
	}
	if len(a.Members()) != 1 || len(b.Members()) != 1 || a.ClusterID() == b.ClusterID() {
		t.Errorf("members %v and %v", a.Members(), b.Members())
	}
}

func TestAnEmptiedNodeReplacesItsFormerSelf(t *testing.T) {
	configs := threeConfigs(t)
	nodes := startThree(t, configs)
	leader := leaderOf(t, nodes)
	for i := range 10 {
		if err := leader.propose(t, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	var lost *testNode
	for _, n := range nodes {
		if n != leader {
			lost = n
		}
	}
	former := lost.server
	lost.stop(t)
	c := lost.config
	c.DataDir = t.TempDir()
	back := start(t, c)
	eventually(t, "the replacement to vote and its former self to be gone", func() bool {
		v := leader.Voters()
		return len(v) == 3 && slices.Contains(v, back.server) && !slices.Contains(v, former)
	})
	if err := back.Barrier(t.Context()); err != nil || len(back.fsm.all()) != 10 {
		t.Errorf("%v, applied %d", err, len(back.fsm.all()))
	}
}

func TestAFourthNodeJoinsAndIsRemoved(t *testing.T) {
	configs := threeConfigs(t)
	nodes := startThree(t, configs)
	leader := leaderOf(t, nodes)
	fourth := start(t, Config{NodeID: "n4", DataDir: t.TempDir(), RaftAddr: "127.0.0.1:0", GossipAddr: "127.0.0.1:0", BootstrapExpect: 3, Join: configs[0].Join})
	eventually(t, "four voters", func() bool { return len(leader.Voters()) == 4 })
	if err := leader.Remove(t.Context(), "n4"); err != nil {
		t.Fatal(err)
	}
	for range 4 { // it must not come back by itself
		<-time.After(membershipTick)
		if len(leader.Members()) != 3 {
			t.Fatalf("members %v", leader.Members())
		}
	}
	if err := leader.Remove(t.Context(), "nobody"); err == nil {
		t.Error("a stranger was removed")
	}
	_ = fourth
}

func TestRubbishOnTheRaftPortIsRefused(t *testing.T) {
	t.Parallel()
	n := start(t, Config{NodeID: "solo", DataDir: t.TempDir(), RaftAddr: "127.0.0.1:0", GossipAddr: "127.0.0.1:0", BootstrapExpect: 1})
	eventually(t, "leadership", func() bool { return n.Leadership().Local })
	for _, rubbish := range []string{"GET / HTTP/1.1\r\n\r\n", "WRRN\x02\x01\x00\x00", "WRRN\x01\x01\xff\xff", "WRRN\x01\x01\x00\x04\xde\xff\xff\xff"} {
		c, err := net.Dial("tcp", n.fixed.Raft)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write([]byte(rubbish))
		_ = c.SetReadDeadline(time.Now().Add(patience))
		if b, err := io.ReadAll(c); err == nil && len(b) > 0 {
			t.Errorf("%q was answered %q", rubbish, b)
		}
		_ = c.Close()
	}
	// Half-open connections are bounded in number and in time.
	var open []net.Conn
	for range maxUnknown + 20 {
		c, err := net.Dial("tcp", n.fixed.Raft)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
	}
	for _, c := range open {
		_ = c.SetReadDeadline(time.Now().Add(patience))
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("a silent connection was answered")
		} else if ne, ok := err.(net.Error); ok && ne.Timeout() {
			t.Error("a silent connection stayed open")
		}
		_ = c.Close()
	}
	if err := n.propose(t, "a"); err != nil {
		t.Fatal(err)
	}
}
