package cluster_test

import (
	"context"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A follower that needs the whole state gets it at the rate that is set, from the beginning again when the connection
// breaks or its process ends in the middle. Meanwhile the leader goes on and nobody stands for election.
func TestAStateThatBreaksOffInTheMiddleComesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulationOf(t, 3, 256<<10)
		defer s.close()
		leader := s.leader()
		behind := s.machines[0]
		if behind == leader {
			behind = s.machines[1]
		}
		s.crash(behind)
		puts := 0
		put := func() {
			began := time.Now()
			if err := s.put(leader, strings.Repeat("x", 128<<10)); err != nil {
				t.Fatalf("put %d: %v", puts, err)
			}
			if took := time.Since(began); took > 200*time.Millisecond {
				t.Errorf("put %d took %v", puts, took)
			}
			puts++
		}
		for cut := false; puts < 32 || !cut && puts < 64; {
			put()
			if err := leader.node.Snapshot(); err != nil {
				t.Fatal(err)
			}
			names, _ := leader.disk.ReadDir("/data/log")
			cut = !slices.Contains(names, "seg-0000000000000001")
		}
		term := leader.node.Leadership().Term
		streams, interrupted := map[string]int{}, 0 // how often each was seen; the node's own snapshots take no time
		receiving := func() (name string, size int64) {
			names, _ := behind.disk.ReadDir("/data/snapshots")
			for _, n := range names {
				if info, err := behind.disk.Stat(path.Join("/data/snapshots", n, "stream")); err == nil && strings.HasSuffix(n, ".tmp") {
					name, size = n, info.Size()
				}
			}
			return name, size
		}
		s.start(behind)
		began := time.Now()
		for end := time.Now().Add(2 * time.Minute); len(behind.fsm.all()) < puts; {
			if time.Now().After(end) {
				t.Fatalf("it has applied %d of %d within two virtual minutes, %d streams", len(behind.fsm.all()), puts, len(streams))
			}
			if puts < 120 {
				put() // 1 MiB a second or so
			}
			<-time.After(100 * time.Millisecond)
			name, size := receiving()
			if streams[name]++; size < 2<<20 {
				continue
			}
			switch interrupted {
			case 0:
				s.net.Break(leader.name, behind.name)
			case 1:
				s.crash(behind)
				s.start(behind)
			default:
				continue
			}
			interrupted++
			for wait := time.Now().Add(10 * time.Second); ; <-time.After(10 * time.Millisecond) {
				if now, _ := receiving(); now != name {
					break // what was received is gone
				}
				if time.Now().After(wait) {
					t.Fatal("what has been received of the broken stream is still there")
				}
			}
		}
		t.Logf("%d KiB came within %v, after two streams that were broken off", 128*puts, time.Since(began))
		if now := leader.node.Leadership(); now.Term != term || !now.Local {
			t.Errorf("there was an election: term %d has become %d", term, now.Term)
		}
		seen := 0
		for name, times := range streams {
			if name != "" && times > 5 {
				seen++
			}
		}
		if interrupted != 2 || seen != 3 {
			t.Errorf("%d streams came, %d of them were interrupted", seen, interrupted)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := behind.node.Barrier(ctx); err != nil || len(behind.fsm.all()) != puts {
			t.Errorf("%v, it applied %d entries of %d", err, len(behind.fsm.all()), puts)
		}
	})
}
