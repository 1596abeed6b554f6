package broker

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

func TestRequestsRunInOrderAndEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var work sync.WaitGroup
		before := 0
		r := NewRequests(&work, func() { before++ })
		if r.Busy() {
			t.Fatal("busy with nothing")
		}
		hold := make(chan struct{})
		var got []int
		r.Do(1, func() { <-hold })
		for i := range 100 {
			r.Do(1, func() { got = append(got, i) })
		}
		if !r.Busy() {
			t.Fatal("not busy while a request waits")
		}
		close(hold)
		r.Rest()
		if r.Busy() || len(got) != 100 || !slices.IsSorted(got) || before != 101 {
			t.Fatalf("ran %v after %d calls of before", got, before)
		}
		work.Wait()
		again := false
		r.Do(0, func() { again = true })
		work.Wait()
		if !again {
			t.Fatal("nothing ran after a rest")
		}
	})
}

func TestRequestsAreBounded(t *testing.T) {
	for name, bytes := range map[string]int{"requests": 0, "bytes": maxRequestsBytes / 4} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var work sync.WaitGroup
				r := NewRequests(&work, nil)
				hold := make(chan struct{})
				taken := 0
				go func() {
					for range maxRequests + 10 {
						r.Do(bytes, func() { <-hold })
						taken++
					}
				}()
				synctest.Wait()
				want := maxRequests
				if bytes > 0 {
					want = 4
				}
				if taken != want && (bytes > 0 || taken != want+1) { // the first may have begun before
					t.Errorf("%d requests were taken while the first ran, want %d", taken, want)
				}
				close(hold)
				synctest.Wait()
				work.Wait()
				if taken != maxRequests+10 {
					t.Errorf("%d requests were taken in the end", taken)
				}
			})
		})
	}
}
