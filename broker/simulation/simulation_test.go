package simulation

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// harm is for how long, in virtual time, a seed's nemesis is at work.
const harm = 25 * time.Second

func simulate(t *testing.T, seed uint64, prepare func(*Cluster)) (r Report) {
	synctest.Test(t, func(t *testing.T) {
		c := NewCluster(seed, logger())
		if prepare != nil {
			prepare(c)
		}
		r = Run(c, seed, harm)
	})
	return r
}

// TestSeeds runs the simulation for some seeds: see the flags. A seed fixes what is done and when; how goroutines
// interleave is the scheduler's, so a failure may need a few runs to come again.
func TestSeeds(t *testing.T) {
	for seed := *first; seed < *first+uint64(*seeds); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			began := time.Now()
			r := simulate(t, seed, nil)
			t.Logf("seed %d: %v of virtual time in %v; %+v; %v", seed, r.Virtual.Round(time.Millisecond), time.Since(began).Round(time.Millisecond), r.Counts, r.Did)
			if len(r.Violations) > 0 {
				t.Errorf("seed %d, violations:\n%s\nagain: go test ./broker/simulation -run TestSeeds -seeds 1 -seed %d -count 10",
					seed, strings.Join(r.Violations, "\n"), seed)
			}
		})
	}
}
