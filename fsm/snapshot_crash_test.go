package fsm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path"
	"slices"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/warrenmq/warren/cluster/snapshotstore"
	"github.com/warrenmq/warren/fsm/store/vfs"
)

// step makes round n's changes, the same ones each time.
func (b *backlog) step(n int) {
	r := rand.New(rand.NewPCG(uint64(n), 7))
	for number := uint64(1); number <= 2; number++ {
		m := b.queues[number]
		if m == nil {
			m = new(messages)
			b.queues[number] = m
		}
		for i := range 12 {
			serial := uint64(n*1000+i)*10 + number
			m.append(&content{exchange: "e", routingKey: "k", body: bytes.Repeat([]byte{byte(serial)}, r.IntN(900)), hash: serial * 77}, 0)
		}
		for range 14 {
			m.remove(1 + r.Uint64N(m.last))
		}
		m.raise(m.last)
	}
}

// store takes a snapshot into a snapshot store, as raft does.
func (b *backlog) store(s *snapshotstore.Store, index uint64) error {
	taken := b.snapshot()
	sink, err := s.Create(1, index, 1, raft.Configuration{}, 1, nil)
	if err != nil {
		return err
	}
	if err := taken.persist(sink); err != nil {
		sink.Cancel()
		return err
	}
	return sink.Close()
}

// TestRule16CrashAtAnyCallLosesNothing ends the process, and takes the power away with torn writes, at each file
// system call of three snapshots with collections. What restores then is a snapshot that was reported complete, or
// the one after it; its messages and all their bodies are there, and a next snapshot works.
func TestRule16CrashAtAnyCallLosesNothing(t *testing.T) {
	const rounds = 4
	want := make([]*backlog, rounds+1) // by round, as a plain replay has them
	for n := range want {
		want[n] = newBacklog(t, Options{})
		for i := 1; i <= n; i++ {
			want[n].step(i)
		}
	}
	calls := -1
	for crash := 1; calls < 0 || crash <= calls; crash++ {
		mem := vfs.NewMem()
		if err := errors.Join(mem.MkdirAll("/data", 0o750), mem.SyncDir("/")); err != nil {
			t.Fatal(err)
		}
		faulty := vfs.Faulty(mem, vfs.Rule{Nth: crash, Count: -1})
		options := Options{Files: faulty, Dir: "/data/messages", CollectRecords: 15, CollectBytes: 4 << 10}
		done, complete := uint64(0), true
		func() {
			files, err := snapshotstore.New(faulty, "/data/snapshots", 2, nil)
			if err != nil {
				complete = false
				return
			}
			b := &backlog{queues: make(map[uint64]*messages), root: newMessageRoot(options)}
			if b.files, err = b.root.make(); err != nil {
				complete = false
				return
			}
			for n := 1; n <= rounds; n++ {
				b.step(n)
				if err := b.store(files, uint64(n)); err != nil {
					complete = false
					return
				}
				done = uint64(n)
			}
		}()
		if complete {
			calls = faulty.Calls()
		}
		seed := rand.New(rand.NewPCG(uint64(crash), 1))
		if crash%3 == 0 {
			seed = nil // everything unsynced is lost
		}
		mem.Crash(seed)
		if err := recovered(mem, options, want, done); err != nil {
			t.Fatalf("crash at call %d after %d snapshots: %v", crash, done, err)
		}
	}
	if calls < 100 {
		t.Errorf("the run has %d file system calls: the collections did not happen", calls)
	}
}

func recovered(mem *vfs.Mem, options Options, want []*backlog, done uint64) error {
	options.Files = mem
	files, err := snapshotstore.New(mem, "/data/snapshots", 2, nil)
	if err != nil {
		return err
	}
	metas, err := files.List()
	if err != nil {
		return err
	}
	if len(metas) == 0 {
		if done > 0 {
			return fmt.Errorf("no snapshot is left")
		}
		return nil
	}
	for i, meta := range slices.Backward(metas) { // the newest last: going on from it reaps
		if i == 0 && meta.Index != done && meta.Index != done+1 {
			return fmt.Errorf("the newest is snapshot %d", meta.Index)
		}
		_, r, err := files.Open(meta.ID)
		if err != nil {
			return err
		}
		b := &backlog{root: newMessageRoot(options)}
		next, err := b.restored(r, options)
		r.Close()
		if err != nil {
			return fmt.Errorf("restore snapshot %d: %w", meta.Index, err)
		}
		if len(next.damaged) > 0 {
			return fmt.Errorf("restore snapshot %d: %w", meta.Index, next.damaged[0])
		}
		if err := want[meta.Index].equal(next); err != nil {
			return fmt.Errorf("snapshot %d: %w", meta.Index, err)
		}
		// The stream that a follower would get is as good, and exactly as long as promised.
		_, r, err = files.Open(meta.ID)
		if err != nil {
			return err
		}
		stream, err := io.ReadAll(r)
		r.Close()
		if err != nil || int64(len(stream)) != meta.Size {
			return fmt.Errorf("snapshot %d: a stream of %d bytes, %d promised: %w", meta.Index, len(stream), meta.Size, err)
		}
		follower, err := b.restored(bytes.NewReader(stream), Options{Files: vfs.NewMem(), Dir: path.Join("/other")})
		if err != nil {
			return fmt.Errorf("install snapshot %d: %w", meta.Index, err)
		}
		if err := want[meta.Index].equal(follower); err != nil {
			return fmt.Errorf("install snapshot %d: %w", meta.Index, err)
		}
		if i > 0 {
			continue
		}
		if err := next.root.settle(next.files, true); err != nil {
			return err
		}
		next.step(int(meta.Index) + 1)
		if err := next.store(files, meta.Index+1); err != nil {
			return fmt.Errorf("snapshot after snapshot %d: %w", meta.Index, err)
		}
		if int(meta.Index)+1 < len(want) {
			if err := want[meta.Index+1].equal(next); err != nil {
				return fmt.Errorf("going on from snapshot %d: %w", meta.Index, err)
			}
		}
	}
	return nil
}

// TestRule16OneFailingCallIsSurvived lets one file system call fail and goes on in the same process: the snapshot
// that meets it fails or not, the next one is complete and has everything.
func TestRule16OneFailingCallIsSurvived(t *testing.T) {
	const rounds = 4
	want := newBacklog(t, Options{})
	for n := 1; n <= rounds; n++ {
		want.step(n)
	}
	for nth := 1; ; nth++ {
		mem := vfs.NewMem()
		if err := errors.Join(mem.MkdirAll("/data", 0o750), mem.SyncDir("/")); err != nil {
			t.Fatal(err)
		}
		faulty := vfs.Faulty(mem)
		options := Options{Files: faulty, Dir: "/data/messages", CollectRecords: 15, CollectBytes: 4 << 10}
		files, err := snapshotstore.New(faulty, "/data/snapshots", 2, nil)
		if err != nil {
			t.Fatal(err)
		}
		b := newBacklog(t, options)
		before := faulty.Calls()
		faulty.Add(vfs.Rule{Nth: nth})
		for n := 1; n < rounds; n++ {
			b.keep = n%2 == 0
			b.step(n)
			_ = b.store(files, uint64(n)) // fails if it meets the fault
		}
		made := faulty.Calls() - before
		faulty.Clear()
		b.step(rounds)
		if err := b.store(files, rounds); err != nil {
			t.Fatalf("call %d: the snapshot after the failed one: %v", nth, err)
		}
		if err := want.equal(b); err != nil {
			t.Fatalf("call %d: %v", nth, err)
		}
		metas, err := files.List()
		if err != nil || len(metas) == 0 || metas[0].Index != rounds {
			t.Fatalf("call %d: list %v, %v", nth, metas, err)
		}
		_, r, err := files.Open(metas[0].ID)
		if err != nil {
			t.Fatalf("call %d: %v", nth, err)
		}
		next, err := b.restored(r, options)
		if err := errors.Join(err, r.Close()); err != nil {
			t.Fatalf("call %d: %v", nth, err)
		}
		if err := want.equal(next); err != nil || len(next.damaged) > 0 {
			t.Fatalf("call %d: %v, damage %v", nth, err, next.damaged)
		}
		if made < nth {
			return
		}
	}
}
