package fsm

import (
	"fmt"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/warrenmq/warren/cluster/snapshotstore"
	"github.com/warrenmq/warren/fsm/store/vfs"
)

// bodiesAddUp compares what the machine counts of bodies in memory with what is there.
func (m *Machine) bodiesAddUp() error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var all weights
	for _, q := range m.state.queues {
		var here weights
		for _, c := range q.messages.chunks {
			here.index += c.weight()
			held := 0
			for i := range c.slots {
				s := &c.slots[i]
				if !c.keeps(i) || s.content == nil {
					continue
				}
				held++
				here.contents += s.size()
				if s.file == 0 {
					here.unwritten += s.size()
				}
			}
			if held != c.held {
				return fmt.Errorf("queue %d: a chunk counts %d contents, it has %d", q.number, c.held, held)
			}
		}
		if counted := q.messages.weights(); here != counted || here != q.held {
			return fmt.Errorf("queue %d: it counts %+v, the state %+v, there are %+v", q.number, counted, q.held, here)
		}
		all.contents += here.contents
		all.unwritten += here.unwritten
		all.index += here.index
	}
	if all != m.state.memory {
		return fmt.Errorf("the state counts %+v, there are %+v", m.state.memory, all)
	}
	return nil
}

// TestBodiesLeaveMemory: a snapshot leaves as many bodies in memory as may stay, the first of the queue, and fewer when
// the index needs the room.
func TestBodiesLeaveMemory(t *testing.T) {
	const each, index = 100 + contentBytes, chunkBytes + 128*40 // the last of them is in a chunk of 128 slots, and held
	for _, c := range []struct {
		memory int64
		want   uint64
	}{{0, 4000}, {index + 3000, 3000}, {1, 500}} {
		mem := vfs.NewMem()
		snapshots, err := snapshotstore.New(mem, "/data/snapshots", 2, nil)
		if err != nil {
			t.Fatal(err)
		}
		m := New(Options{Files: mem, Dir: "/data/messages", BodyMemory: 4000, Memory: c.memory})
		applyTo(t, 1, []Command{PutQueue{Vhost: 1, Name: "q", Durable: true}}, m)
		for i := range uint64(100) {
			applyTo(t, 2+i, []Command{Publish{Vhost: 1, RoutingKey: "q", Properties: []byte{0, 0}, Body: make([]byte, 98)}}, m)
		}
		if memory, unwritten := m.Bodies(); memory != 100*each || unwritten != 100*each {
			t.Fatalf("before the snapshot %d bytes are in memory, %d in no file", memory, unwritten)
		}
		for round := range uint64(2) { // what is written for the first time, and what was kept before
			sink, err := snapshots.Create(1, 101+round, 1, raft.Configuration{}, 1, nil)
			if err != nil {
				t.Fatal(err)
			}
			s, err := m.takeSnapshot()
			if err != nil {
				t.Fatal(err)
			}
			if err := s.persist(sink); err != nil {
				t.Fatal(err)
			}
			s.release()
			if err := sink.Close(); err != nil {
				t.Fatal(err)
			}
			if err := m.bodiesAddUp(); err != nil {
				t.Fatal(err)
			}
			memory, unwritten := m.Bodies()
			if memory > c.want || unwritten != 0 {
				t.Errorf("Memory %d: after the snapshot %d bytes are in memory, %d in no file; at most %d may stay", c.memory, memory, unwritten, c.want)
			}
		}
		_ = m.Close()
	}
}
