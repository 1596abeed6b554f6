package server_test

import (
	"testing"
	"time"

	"github.com/warrenmq/warren/broker/amqp/amqptest"
	"github.com/warrenmq/warren/fsm/store/vfs"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// TestHungDisk: when the leader's disk hangs another node leads, clients are served there, also those that come through a
// node that never led, and what was confirmed is there.
func TestHungDisk(t *testing.T) {
	t.Parallel()
	var disks []*vfs.Fault
	nodes := onFiles(t, 3, func(string) vfs.FS {
		disks = append(disks, vfs.Faulty(vfs.OS{}))
		return disks[len(disks)-1]
	})
	leader, followers := leading(t, nodes)
	ch := amqptest.Dial(t, followers[0].AMQPAddr()).Channel(1)
	q := ch.Queue("q")
	ch.Confirm()
	ch.PutWith("", q, "kept", amqp091.Properties{DeliveryMode: 2})
	ch.Settled(1, 1)

	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) }) // before the nodes are stopped
	for i := range nodes {
		if nodes[i] == leader {
			disks[i].Add(vfs.Rule{Op: vfs.OpSync, Count: -1, Hang: hang})
		}
	}
	ch.Put("", q, "in doubt")
	began := time.Now()
	select {
	case <-leader.Node().Failed():
	case <-time.After(10 * diskTimeout):
		t.Fatal("nobody noticed that the leader's disk hangs")
	}
	next, _ := leading(t, followers)
	if next == leader {
		t.Fatal("it leads still")
	}
	for _, n := range followers {
		again := amqptest.Dial(t, n.AMQPAddr()).Channel(1)
		again.Confirm()
		again.PutWith("", q, "more", amqp091.Properties{DeliveryMode: 2})
		again.Settled(1, 1)
	}
	if d := amqptest.Dial(t, next.AMQPAddr()).Channel(1).MustGet(q); d.Text() != "kept" {
		t.Errorf("the first message is %q", d.Text())
	}
	t.Logf("clients were served %v after the leader's disk hung", time.Since(began).Round(time.Millisecond))
}
