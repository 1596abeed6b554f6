package logstore

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"github.com/warrenmq/warren/fsm/store/vfs"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func entry(index uint64, size int) *raft.Log {
	return &raft.Log{Index: index, Term: index/10 + 1, Data: bytes.Repeat([]byte{byte(index)}, size), Extensions: []byte{byte(index)}}
}

func entries(from, to uint64, size int) []*raft.Log {
	var logs []*raft.Log
	for i := from; i <= to; i++ {
		logs = append(logs, entry(i, size))
	}
	return logs
}

func contents(t *testing.T, s raft.LogStore) string {
	t.Helper()
	first, err := s.FirstIndex()
	if err != nil {
		t.Fatal(err)
	}
	last, _ := s.LastIndex()
	for i := first; i <= last && first > 0; i++ {
		var l raft.Log
		if err := s.GetLog(i, &l); err != nil {
			t.Fatalf("entry %d of %d to %d: %v", i, first, last, err)
		}
		if want := entry(i, len(l.Data)); l.Index != i || l.Term != want.Term || !bytes.Equal(l.Data, want.Data) || !bytes.Equal(l.Extensions, want.Extensions) {
			t.Fatalf("entry %d reads as %+v", i, l)
		}
	}
	return fmt.Sprintf("%d-%d", first, last)
}

// script is a history with rolls, reuse of segments and truncations at both ends; each step has one outcome.
var script = []struct {
	do   func(raft.LogStore) error
	then string
}{
	{func(s raft.LogStore) error { return s.StoreLogs(entries(1, 5, 300)) }, "1-5"},
	{func(s raft.LogStore) error { return s.StoreLogs(entries(6, 15, 300)) }, "1-15"},
	{func(s raft.LogStore) error { return s.StoreLogs(entries(16, 25, 300)) }, "1-25"},
	{func(s raft.LogStore) error { return s.DeleteRange(1, 12) }, "13-25"},
	{func(s raft.LogStore) error { return s.DeleteRange(19, 25) }, "13-18"},
	{func(s raft.LogStore) error { return s.StoreLogs(entries(19, 30, 100)) }, "13-30"},
	{func(s raft.LogStore) error { return s.StoreLogs(entries(31, 40, 400)) }, "13-40"},
	{func(s raft.LogStore) error { return s.DeleteRange(20, 40) }, "13-19"},
	{func(s raft.LogStore) error { return s.DeleteRange(1, 19) }, "0-0"},
	{func(s raft.LogStore) error { return s.StoreLogs(entries(100, 110, 200)) }, "100-110"},
	{func(s raft.LogStore) error { return s.StoreLog(entry(111, 9000)) }, "100-111"},
	{func(s raft.LogStore) error { return s.DeleteRange(100, 110) }, "111-111"},
}

// covered is what a snapshot covers in these tests: the script deletes nothing else at the front.
const covered = 110

func small(fs vfs.FS) Options {
	return Options{FS: fs, Dir: "log", SegmentSize: 4096, CacheSize: 1, MarkDelay: -1, SnapshotIndex: covered}
}

func TestConformance(t *testing.T) {
	bolt, err := raftboltdb.NewBoltStore(filepath.Join(t.TempDir(), "bolt"))
	if err != nil {
		t.Fatal(err)
	}
	defer bolt.Close()
	disk, err := Open(Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	mem, err := Open(small(vfs.NewMem()))
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	for name, s := range map[string]raft.LogStore{"bolt": bolt, "disk": disk, "mem": mem, "raft": raft.NewInmemStore()} {
		t.Run(name, func(t *testing.T) {
			for i, step := range script {
				if err := step.do(s); err != nil {
					t.Fatalf("step %d: %v", i, err)
				}
				if got := contents(t, s); got != step.then && !(name == "raft" && step.then == "0-0") {
					t.Errorf("after step %d: %s, want %s", i, got, step.then)
				}
			}
			if err := s.GetLog(5, new(raft.Log)); !errors.Is(err, raft.ErrLogNotFound) {
				t.Errorf("a deleted entry: %v", err)
			}
		})
	}
}

// A crash after each single call of the file system loses nothing acknowledged and invents nothing; nor does one
// failing call.
func TestRule17CrashAfterEveryCall(t *testing.T) {
	t.Run("all fail from there", func(t *testing.T) { crashEverywhere(t, vfs.Rule{Count: -1}) })
	t.Run("one fails", func(t *testing.T) { crashEverywhere(t, vfs.Rule{}) })
	t.Run("one is short", func(t *testing.T) { crashEverywhere(t, vfs.Rule{Short: 700}) })
}

func crashEverywhere(t *testing.T, rule vfs.Rule) {
	for call := 1; ; call++ {
		rule.Nth = call
		mem := vfs.NewMem()
		faulty := vfs.Faulty(mem, rule)
		done := 0
		s, err := Open(small(faulty))
		if err == nil {
			for _, step := range script {
				if err = step.do(s); err != nil {
					if again := s.StoreLog(entry(500, 1)); again == nil {
						t.Fatal("the store went on after a failure")
					}
					break
				}
				done++
			}
			s.Close()
		}
		finished := done == len(script)
		seed := uint64(call)
		var r *rand.Rand
		if call%3 > 0 {
			r = rand.New(rand.NewPCG(seed, 7))
		}
		mem.Crash(r)
		s, err = Open(small(mem))
		if err != nil {
			t.Fatalf("call %d, after step %d: %v", call, done, err)
		}
		got := contents(t, s)
		want := []string{"0-0"}
		if done > 0 {
			want[0] = script[done-1].then
		}
		if !finished {
			want = append(want, script[done].then)
		}
		if got != want[0] && got != want[len(want)-1] {
			t.Fatalf("call %d, after step %d: %s, want one of %v", call, done, got, want)
		}
		s.Close()
		if finished {
			return
		}
	}
}

// Each flipped bit is either found or changes nothing that can be read.
func TestRule17BitFlipsAreFound(t *testing.T) {
	build := func() *vfs.Mem {
		mem := vfs.NewMem()
		s, err := Open(small(mem))
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range script[:7] {
			if err := step.do(s); err != nil {
				t.Fatal(err)
			}
		}
		s.Close()
		return mem
	}
	names, _ := build().ReadDir("log")
	for _, name := range names {
		info, _ := build().Stat("log/" + name)
		for bit := int64(3); bit < info.Size()*8; bit += 1009 {
			mem := build()
			if err := vfs.FlipBit(mem, "log/"+name, bit); err != nil {
				t.Fatal(err)
			}
			s, err := Open(small(mem))
			var damage *DamageError
			if errors.As(err, &damage) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := contents(t, s); got != "13-40" {
				t.Fatalf("%s bit %d: %s", name, bit, got)
			}
			s.Close()
		}
	}
}

func TestRule17MissingOrShortSegmentIsSeen(t *testing.T) {
	for _, remove := range []bool{true, false} {
		mem := vfs.NewMem()
		s, _ := Open(small(mem))
		if err := s.StoreLogs(entries(1, 5, 100)); err != nil {
			t.Fatal(err)
		}
		s.Close()
		if remove {
			mem.Remove("log/" + segmentName(1))
		} else {
			f, _ := mem.OpenFile("log/"+segmentName(1), 2, 0)
			f.Truncate(200)
		}
		var damage *DamageError
		if _, err := Open(small(mem)); !errors.As(err, &damage) {
			t.Errorf("remove %v: %v", remove, err)
		}
	}
}

// Whatever is written over a closed log's segment, either Open reports damage or every entry is there. Run it with
// -fuzzminimizetime=20x: salts are random, so go would minimize each new input for a minute, executing nothing new.
func FuzzRecovery(f *testing.F) {
	f.Add([]byte("x"), uint16(64))
	f.Add(make([]byte, 64), uint16(0))
	f.Add([]byte("WGRP"), uint16(500))
	f.Fuzz(func(t *testing.T, junk []byte, off uint16) {
		mem := vfs.NewMem()
		s, err := Open(small(mem))
		if err != nil {
			t.Fatal(err)
		}
		store(t, s, entries(1, 3, 50))
		s.Close()
		overwrite(t, mem, 1, int64(off), junk)
		s, err = Open(small(mem))
		var damage *DamageError
		switch {
		case errors.As(err, &damage):
		case err != nil:
			t.Fatal(err)
		default:
			defer s.Close()
			if got := contents(t, s); got != "1-3" {
				t.Errorf("junk at %d: %s", off, got)
			}
		}
	})
}
