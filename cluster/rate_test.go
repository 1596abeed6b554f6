package cluster

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

func TestReadersShareARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rate{bytes: 1 << 20}
		began := time.Now()
		var reading sync.WaitGroup
		for range 2 {
			reading.Go(func() {
				n, err := io.Copy(io.Discard, r.reader(t.Context(), strings.NewReader(strings.Repeat("x", 4<<20))))
				if n != 4<<20 || err != nil {
					t.Error(n, err)
				}
			})
		}
		reading.Wait()
		if took := time.Since(began); took < 7900*time.Millisecond || took > 8*time.Second {
			t.Errorf("8 MiB at 1 MiB a second took %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := io.Copy(io.Discard, r.reader(ctx, strings.NewReader(strings.Repeat("x", 4<<20)))); err == nil || time.Since(began) > 9100*time.Millisecond {
			t.Errorf("%v, after %v: a reader outlives its node", err, time.Since(began))
		}
	})
}

// The log that a follower needs once its snapshot has come is kept until it has caught up, for a while.
func TestTheLogBehindASentSnapshotIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f followUps
		kept := map[string]bool{}
		keep := func(id raft.ServerID, name string) {
			kept[name] = true
			f.begin(id, 7, time.Second, func() { kept[name] = false })
		}
		expect := func(when string, names ...string) {
			t.Helper()
			for name, is := range kept {
				want := false
				for _, n := range names {
					want = want || n == name
				}
				if is != want {
					t.Errorf("%s: %s is kept: %v", when, name, is)
				}
			}
		}
		keep("a", "first")
		keep("b", "second")
		f.heard("a", 10)
		f.heard("b", 5)
		f.heard("c", 99)
		f.end(7, 8)
		expect("a has caught up", "second")
		keep("b", "third")
		expect("b needed another", "third")
		f.end(7, 8)
		expect("nothing is known of b", "third")
		<-time.After(followUpLeast + time.Second)
		f.end(7, 8)
		expect("b was too slow")
		keep("a", "fourth")
		f.end(8, 1<<60)
		expect("another term")
	})
}
