package simulation

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/warrenmq/warren/client"
	"github.com/warrenmq/warren/fsm/store/vfs"
)

// TestADamagedMessageFileOfTheLeaderStopsNobody lets a leader send a snapshot with a record that has rotted on its disk:
// the node that installs it starts, now and after a restart, and gets the message from the third.
func TestADamagedMessageFileOfTheLeaderStopsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCluster(1, logger())
		for i := range Nodes {
			if err := c.Start(i); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		conn, err := client.Dial(ctx, c.Addresses(), client.WithDialer(c.Net.Attach("c1").Dial))
		if err != nil {
			t.Fatal(err)
		}
		ch, err := conn.Channel(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ch.DeclareQueue(ctx, client.Queue{Name: "q", Durable: true}); err != nil {
			t.Fatal(err)
		}
		const messages = 200
		for i := range messages {
			if _, err := ch.Publish(ctx, "", "q", client.Message{Body: fmt.Appendf(nil, "body %03d %s", i, strings.Repeat("x", 2000))}); err != nil {
				t.Fatal(err)
			}
			if i%50 == 49 {
				for j := range Nodes {
					_ = c.Server(j).Node().Snapshot()
				}
			}
		}
		leader := c.Leader()
		if n := rotBody(t, c.machines[leader].disk, path.Join(dataDir, "snapshots"), "body 042 "); n == 0 {
			t.Fatal("no snapshot of the leader has the message")
		}
		hurt := (leader + 1) % Nodes
		c.Crash(hurt, 0)
		c.Wipe(hurt)
		for range 2 {
			if err := c.Start(hurt); err != nil {
				t.Fatal(err)
			}
			if !await(votesWithin, func() bool {
				m := c.Server(hurt).Machine()
				q, _ := m.Queue(1, "q")
				damaged, missing := m.Damaged()
				return q.Messages == messages && !missing && len(damaged) == 0 && c.Server(hurt).Node().CaughtUp()
			}) {
				q, _ := c.Server(hurt).Machine().Queue(1, "q")
				damaged, missing := c.Server(hurt).Machine().Damaged()
				t.Fatalf("%d messages of %d, damaged %v, missing %t", q.Messages, messages, damaged, missing)
			}
			c.Crash(hurt, 0)
		}
		_ = conn.Close(ctx)
		for i := range Nodes {
			if err := c.Stop(i); err != nil {
				t.Error(err)
			}
		}
		c.Wait()
	})
}

// rotBody flips a bit of a body wherever it is on a disk and returns how many files that were.
func rotBody(t *testing.T, disk *vfs.Mem, dir, body string) (rotten int) {
	names, _ := disk.ReadDir(dir)
	for _, name := range names {
		name = path.Join(dir, name)
		if info, err := disk.Stat(name); err == nil && info.IsDir() {
			rotten += rotBody(t, disk, name, body)
			continue
		}
		f, err := disk.OpenFile(name, os.O_RDONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(f)
		_ = f.Close()
		if err != nil {
			t.Fatal(err)
		}
		if at := bytes.Index(data, []byte(body)); at >= 0 {
			if err := vfs.FlipBit(disk, name, 8*int64(at)); err != nil {
				t.Fatal(err)
			}
			rotten++
		}
	}
	return rotten
}
