package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/warrenmq/warren/broker/amqp/amqptest"
	"github.com/warrenmq/warren/broker/server"
	"github.com/warrenmq/warren/cluster"
	"github.com/warrenmq/warren/cluster/loopback"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// member is one of three nodes.
type member struct {
	*server.Server
	stop func() // gracefully; waits
}

func startThree(t *testing.T) []*member {
	t.Helper()
	gossip, err := loopback.Addresses(3)
	if err != nil {
		t.Fatal(err)
	}
	var nodes []*member
	for i := range gossip {
		s, err := server.New(server.Config{NativeAddr: "127.0.0.1:0", AMQPAddr: "127.0.0.1:0", HTTPAddr: "127.0.0.1:0", Cluster: cluster.Config{
			NodeID: fmt.Sprintf("n%d", i+1), DataDir: t.TempDir(), RaftAddr: "127.0.0.1:0", GossipAddr: gossip[i], BootstrapExpect: 3, Join: gossip,
			Timing: cluster.Timing{Heartbeat: time.Second}, DiskTimeout: time.Minute}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		var work sync.WaitGroup
		work.Go(func() { _ = s.Run(ctx) })
		m := &member{s, func() { cancel(); work.Wait() }}
		t.Cleanup(m.stop)
		nodes = append(nodes, m)
	}
	return nodes
}

// leading waits until one of the nodes serves and all the others know it, and returns it and them.
func leading(t *testing.T, nodes []*member) (leader *member, followers []*member) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		leader, followers = nil, nil
		known := true
		for _, n := range nodes {
			if n.Broker().Where().Serving {
				leader = n
			} else {
				followers = append(followers, n)
				known = known && n.Broker().Where().NodeID != ""
			}
		}
		if leader != nil && known {
			return leader, followers
		}
		if time.Now().After(end) {
			t.Fatal("waited a minute in vain for a leader")
		}
		<-time.After(5 * time.Millisecond)
	}
}

// connections asks a node for the list.
func connections(t *testing.T, n *member) (list []struct {
	Name, User, Protocol string
}) {
	t.Helper()
	r, err := http.NewRequest("GET", "http://"+n.HTTPAddr()+"/api/connections", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth("guest", "guest")
	a, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	if err := json.NewDecoder(a.Body).Decode(&list); err != nil || a.StatusCode != 200 {
		t.Fatalf("%s: %v", a.Status, err)
	}
	return list
}

// A client of a follower is served by the leader, which sees its real address; it is told when leadership moves, and may
// come back through the same node.
func TestFollowersServeClientsThroughTheLeader(t *testing.T) {
	nodes := startThree(t)
	leader, followers := leading(t, nodes)
	tcp, err := net.Dial("tcp", followers[0].AMQPAddr())
	if err != nil {
		t.Fatal(err)
	}
	c := amqptest.On(t, tcp)
	c.Open(amqptest.Options{})
	ch := c.Channel(1)
	ch.Call(&amqp091.QueueDeclare{Queue: "q", Durable: true})
	want := tcp.LocalAddr().String() + " -> " + followers[0].AMQPAddr()
	for _, n := range nodes {
		if list := connections(t, n); len(list) != 1 || list[0].Name != want || list[0].User != "guest" {
			t.Errorf("%s lists %+v, want %s", n.Broker().Where().NodeID, list, want)
		}
	}
	leader.stop()
	if code := c.ExpectEnd(); code != amqp091.ConnectionForced {
		t.Errorf("when leadership moved the connection was closed with %d", code)
	}
	again := amqptest.Dial(t, followers[0].AMQPAddr()) // it may have to wait for a leader
	again.Channel(1).Call(&amqp091.QueueDeclare{Queue: "q", Passive: true})
	again.Close()
}
