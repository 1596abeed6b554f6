package server_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warrenmq/warren/broker/amqp/amqptest"
	"github.com/warrenmq/warren/broker/server"
	"github.com/warrenmq/warren/cluster"
	"github.com/warrenmq/warren/cluster/loopback"
	"github.com/warrenmq/warren/fsm/store/vfs"
	"github.com/warrenmq/warren/fsm/store/vfs/vfstest"
	"github.com/warrenmq/warren/protocol/amqp091"
)

const (
	diskSize = 64 << 20 // bytes
	diskFree = 16 << 20 // Config.MinDiskFree
	// diskTimeout is longer than a busy machine's disk takes.
	diskTimeout = 3 * time.Second
)

// TestFullDisk: the disk of one node, or of a follower, becomes full: publishers wait and are told, consumers go on even when
// nothing at all is left, and publishers go on by themselves when there is room. (Over real disks: TestFullDisk of
// cmd/internal/failover.)
func TestFullDisk(t *testing.T) {
	for _, size := range []int{1, 3} {
		t.Run(fmt.Sprint(size), func(t *testing.T) { t.Parallel(); fullDisk(t, size) })
	}
}

// onDisks starts nodes with a small disk each.
func onDisks(t *testing.T, size int) (nodes []*member, disks []*vfstest.Small) {
	t.Helper()
	nodes = onFiles(t, size, func(dir string) vfs.FS {
		disks = append(disks, vfstest.NewSmall(dir, diskSize))
		return disks[len(disks)-1]
	})
	return nodes, disks
}

// onFiles starts nodes with a file system each.
func onFiles(t *testing.T, size int, files func(dir string) vfs.FS) (nodes []*member) {
	t.Helper()
	gossip, err := loopback.Addresses(size)
	if err != nil {
		t.Fatal(err)
	}
	for i := range gossip {
		dir := t.TempDir()
		c := server.Config{NativeAddr: "127.0.0.1:0", AMQPAddr: "127.0.0.1:0", HTTPAddr: "127.0.0.1:0", MinDiskFree: diskFree, Cluster: cluster.Config{
			NodeID: fmt.Sprintf("n%d", i+1), DataDir: dir, RaftAddr: "127.0.0.1:0", GossipAddr: gossip[i], BootstrapExpect: size,
			Files: files(dir), DiskTimeout: diskTimeout, SegmentBytes: 1 << 20, SnapshotBytes: 1 << 20}}
		if size > 1 {
			c.Cluster.Join = gossip
		}
		s, err := server.New(c)
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

func fullDisk(t *testing.T, size int) {
	nodes, disks := onDisks(t, size)
	leader, followers := leading(t, nodes)
	small := leader
	if size > 1 {
		small = followers[0]
	}
	self, _ := small.Broker().Self()
	var disk *vfstest.Small
	for i := range nodes {
		if nodes[i] == small {
			disk = disks[i]
		}
	}
	reserve := filepath.Join(disk.Dir(), "reserve")
	eventually(t, "a reserve", func() error { _, err := os.Stat(reserve); return err })

	c := amqptest.Dial(t, small.AMQPAddr())
	ch := c.Channel(1)
	q := ch.Queue("q")
	ch.Confirm()
	const messages = 100
	for range messages {
		ch.PutWith("", q, strings.Repeat("x", 64<<10), amqp091.Properties{DeliveryMode: 2})
	}
	ch.Settled(1, messages)

	disk.Take(int64(free(t, disk)) - diskFree/2) // others leave too little
	eventually(t, "the alarm where publishes are taken", func() error {
		reason, _ := leader.Broker().Flow()
		if !strings.Contains(reason, "node '"+self.NodeID+"': the disk has less than 16 MiB free") {
			return fmt.Errorf("the reason is %q", reason)
		}
		return nil
	})
	ch.Put("", q, "waits")
	if m := c.Expect(0, amqp091.ConnectionBlockedID).Method.(*amqp091.ConnectionBlocked); m.Reason != "low on disk" {
		t.Errorf("the reason is %q", m.Reason)
	}
	for _, n := range nodes { // each of them tells of all
		status, err := n.Broker().Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range status.Members {
			if (m.Alarm != "") != (m.ID == self.NodeID) || m.MinDiskFree != diskFree {
				t.Errorf("of %s: %q, least %d", m.ID, m.Alarm, m.MinDiskFree)
			}
		}
	}

	disk.Take(diskSize) // and now nothing at all
	consumer := amqptest.Dial(t, small.AMQPAddr()).Channel(1)
	consumer.Qos(10, false)
	consumer.Consume(q, "t")
	for range messages {
		consumer.Ack(consumer.Deliver().Tag, false)
	}
	consumer.Quiet()
	consumer.Call(&amqp091.BasicCancel{ConsumerTag: "t"})
	consumer.ExpectDepth(q, 0)
	select {
	case <-small.Node().Failed():
		t.Fatalf("the node ended: %v", small.Node().Err())
	default:
	}

	disk.Take(0)
	c.Expect(0, amqp091.ConnectionUnblockedID)
	ch.Settled(messages+1, messages+1)
	consumer.ExpectDepth(q, 1)
	eventually(t, "a whole reserve", func() error {
		if info, err := os.Stat(reserve); err != nil || info.Size() != diskFree/4 {
			return errors.Join(err, fmt.Errorf("it has %d bytes", info.Size()))
		}
		return nil
	})
}

func free(t *testing.T, disk *vfstest.Small) uint64 {
	t.Helper()
	n, err := disk.Free("")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func eventually(t *testing.T, what string, ok func() error) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; <-time.After(5 * time.Millisecond) {
		err := ok()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s: %v", what, err)
		}
	}
}
