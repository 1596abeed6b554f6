package fsm

import (
	"errors"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/warrenmq/warren/cluster/snapshotstore"
	"github.com/warrenmq/warren/fsm/store/vfs"
)

// pagedMachine is a machine with a queue of which the index of all but the first 1000 messages is to be in pages.
type pagedMachine struct {
	*Machine
	t         *testing.T
	snapshots *snapshotstore.Store
	options   Options
	index     uint64
	queue     uint64
	body      int // bytes
}

func newPaged(t *testing.T, files vfs.FS) *pagedMachine {
	snapshots, err := snapshotstore.New(files, "/data/snapshots", 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &pagedMachine{t: t, snapshots: snapshots, index: 1, body: 5,
		options: Options{Files: files, Dir: "/data/messages", BodyMemory: 1, IndexMemoryMessages: 1000, pageBytes: 16 << 10}}
	p.Machine = New(p.options)
	p.queue = mustApply(t, p.Machine, 1, PutQueue{Vhost: 1, Name: "q", Durable: true})[0].Queue
	return p
}

func (p *pagedMachine) publish(n int) {
	for range n / benchBatch {
		p.index++
		entry := benchEntry(p.index, &Publish{Vhost: 1, RoutingKey: "q", Properties: []byte{0, 0}, Body: make([]byte, p.body)}, benchBatch)
		if _, err := p.Apply(p.index, 1, entry); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *pagedMachine) apply(c Command) {
	p.index++
	mustApply(p.t, p.Machine, p.index, c)
}

func (p *pagedMachine) snapshot() {
	p.t.Helper()
	s, err := p.takeSnapshot()
	if err != nil {
		p.t.Fatal(err)
	}
	defer s.release()
	sink, err := p.snapshots.Create(1, p.index, 1, raft.Configuration{}, 0, nil)
	if err == nil {
		err = errors.Join(s.persist(sink), sink.Close())
	}
	if err == nil {
		err = p.bodiesAddUp()
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// restarted is a machine made of the last snapshot.
func (p *pagedMachine) restarted() *pagedMachine {
	p.t.Helper()
	list, err := p.snapshots.List()
	if err != nil {
		p.t.Fatal(err)
	}
	_, r, err := p.snapshots.Open(list[0].ID)
	if err != nil {
		p.t.Fatal(err)
	}
	defer r.Close()
	again := *p
	again.Machine = New(p.options)
	if err := again.restore(r, false); err != nil {
		p.t.Fatal(err)
	}
	return &again
}

// chunks counts the queue's chunks on the heap and in pages, and the pages.
func (p *pagedMachine) chunks() (heap, paged, pages int) {
	seen := map[any]bool{}
	for _, c := range p.state.queues[p.queue].messages.chunks {
		if c.page == nil {
			heap++
		} else {
			paged++
			seen[c.page] = true
		}
	}
	return heap, paged, len(seen)
}

// TestTheIndexOfALongQueueIsPaged: beyond a number of messages the index is on the disk, also right after a restart, and
// what was consumed takes no space there.
func TestTheIndexOfALongQueueIsPaged(t *testing.T) {
	p := newPaged(t, vfs.NewMem())
	defer p.Close()
	const messages = 100_000
	p.publish(messages)
	p.snapshot()
	p.apply(Mark{Queue: p.queue, Upto: 1})
	p.snapshot() // what the first one packed
	check := func(p *pagedMachine, atMost int) {
		t.Helper()
		heap, paged, _ := p.chunks()
		if heap > atMost || paged == 0 {
			t.Errorf("%d chunks are on the heap, at most %d may be; %d are in pages", heap, atMost, paged)
		}
		if all := p.Totals(); all.IndexBytes > uint64(heap)*chunkSlots*20+uint64(paged)*chunkBytes || all.IndexPagedBytes < uint64(paged)*chunkSlots*9 {
			t.Errorf("the index takes %d bytes on the heap, %d in pages", all.IndexBytes, all.IndexPagedBytes)
		}
		first, _, err := p.Read(p.queue, messages-500, 400, 1<<20, nil)
		if err != nil || len(first) != 400 || first[0].Sequence != messages-500 {
			t.Errorf("read %d messages: %v", len(first), err)
		}
	}
	const head, page = 1000/chunkSlots + 1, 16<<10/(9*chunkSlots) + 1
	check(p, head+page)
	again := p.restarted()
	defer again.Close()
	check(again, head+page)
	if _, a := p.Hash(); a != func() uint64 { _, h := again.Hash(); return h }() {
		t.Error("the restarted machine has another hash")
	}

	// Every page keeps a chunk or two.
	var runs []Run
	for from := uint64(1); from < messages; from += 7 * chunkSlots {
		runs = append(runs, Run{from, from + 6*chunkSlots - 1})
	}
	again.apply(Settle{Queue: p.queue, Runs: runs})
	_, _, before := again.chunks()
	again.snapshot()
	if _, paged, pages := again.chunks(); paged == 0 || pages > before/3 {
		t.Errorf("%d chunks are in %d pages, there were %d", paged, pages, before)
	}
	again.apply(Settle{Queue: p.queue, Runs: []Run{{1, messages - 300}}})
	again.snapshot()
	if _, paged, _ := again.chunks(); paged > 1 {
		t.Errorf("%d chunks of %d messages are in pages", paged, 300)
	}
	again.apply(Purge{Queue: p.queue})
	again.snapshot()
	for end := time.Now().Add(10 * time.Second); ; runtime.Gosched() {
		runtime.GC()
		if paged := again.Totals().IndexPagedBytes; paged == 0 {
			break
		} else if time.Now().After(end) {
			t.Fatalf("%d bytes of pages are still there", paged)
		}
	}
}

// TestNoPageIsNoError: where pages cannot be written the index stays on the heap.
func TestNoPageIsNoError(t *testing.T) {
	files := vfs.Faulty(vfs.NewMem(), vfs.Rule{Op: vfs.OpWrite, Path: "index.page", Err: syscall.ENOSPC, Count: -1})
	p := newPaged(t, files)
	defer p.Close()
	p.publish(20_000)
	p.snapshot()
	p.snapshot()
	p.apply(Settle{Queue: p.queue, Runs: []Run{{5000, 6000}}})
	p.snapshot()
	if heap, paged, _ := p.chunks(); paged > 0 || heap == 0 {
		t.Errorf("%d chunks on the heap, %d in pages", heap, paged)
	}
	files.Clear() // there is room again
	p.apply(Mark{Queue: p.queue, Upto: 1})
	p.snapshot()
	if _, paged, _ := p.chunks(); paged == 0 {
		t.Error("nothing is in pages though there is room")
	}
}

// TestBodiesFarFromTheHeadLeaveMemory: what is written far behind the head of a queue is not kept as well, however much may be.
func TestBodiesFarFromTheHeadLeaveMemory(t *testing.T) {
	p := newPaged(t, vfs.NewMem())
	defer p.Close()
	p.body, p.Machine.options.BodyMemory = 2000, 1<<30
	const each = 2000 + 2 + contentBytes
	p.publish(3 * nearHead / each)
	p.snapshot()
	if memory, unwritten := p.Bodies(); memory < nearHead/2 || memory > nearHead+nearHead/8 || unwritten != 0 {
		t.Errorf("%d bytes are in memory, %d in no file; it should be %d", memory, unwritten, nearHead)
	}
}
