package fsm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/warrenmq/warren/cluster/snapshotstore"
	"github.com/warrenmq/warren/fsm/store/vfs"
)

// TestSnapshotsBesideApply applies, reads, exports and snapshots at the same time, bodies leaving memory and files
// being collected meanwhile. Every message read has the body that its routing key names.
func TestSnapshotsBesideApply(t *testing.T) {
	mem := vfs.NewMem()
	snapshots, err := snapshotstore.New(mem, "/data/snapshots", 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	straight, m := New(Options{}), New(Options{Files: mem, Dir: "/data/messages", CollectRecords: 50, BodyMemory: 2000})
	applyTo(t, 1, []Command{PutQueue{Vhost: 1, Name: "q", Durable: true}}, straight, m)
	q, _ := m.Queue(1, "q")
	const rounds = 60
	var wait sync.WaitGroup
	var persists sync.WaitGroup
	done := make(chan struct{}) // closed when all is applied
	for range 2 {
		wait.Go(func() {
			for running := true; running; {
				select {
				case <-done:
					running = false
				default:
				}
				out, _, err := m.Read(q.Number, 1, 1000, 1<<20, nil)
				if err != nil {
					t.Errorf("read: %v", err)
					return
				}
				for _, msg := range out {
					if string(msg.Body) != fmt.Sprintf("body %x", msg.ID[0]) {
						t.Errorf("message %d of entry %x has the body %q", msg.Sequence, msg.ID[0], msg.Body)
						return
					}
				}
			}
		})
	}
	wait.Go(func() {
		for running := true; running; {
			select {
			case <-done:
				running = false
			default:
			}
			if _, err := m.Export(io.Discard); err != nil {
				t.Errorf("export: %v", err)
				return
			}
		}
	})
	for i := uint64(2); i < rounds; i++ {
		var commands []Command
		for range 20 {
			commands = append(commands, Publish{Vhost: 1, RoutingKey: "q", Properties: []byte{0, 0}, Body: fmt.Appendf(nil, "body %x", i)})
		}
		commands = append(commands, Settle{Queue: q.Number, Runs: []Run{{i * 7, i*7 + 14}}})
		applyTo(t, i, commands, straight, m)
		persists.Wait() // raft persists one at a time, beside apply
		taken, err := m.takeSnapshot()
		if err != nil {
			t.Fatal(err)
		}
		persists.Go(func() {
			defer taken.release()
			sink, err := snapshots.Create(1, i, 1, raft.Configuration{}, 1, nil)
			if err == nil {
				err = errors.Join(taken.persist(sink), sink.Close())
			}
			if err != nil {
				t.Errorf("snapshot %d: %v", i, err)
			}
		})
	}
	persists.Wait()
	close(done)
	wait.Wait()
	if err := sameMachines(straight, m); err != nil {
		t.Error(err)
	}
	var b bytes.Buffer
	if _, err := m.Export(&b); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}
