package simulation

import (
	"encoding/binary"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/broker/server"
	"github.com/warrenmq/warren/fsm"
)

// within is in how many seeds a planted fault must be found.
const within = 200

// hasty answers every entry when it is proposed instead of when it is applied, once it is told to begin.
type hasty struct {
	broker.Node
	broker *broker.Broker
	begun  *atomic.Bool
}

// Places in an entry's head.
const (
	entryTerm   = 4
	entryNumber = entryTerm + 9
	entryCount  = entryNumber + 9 + 9
)

func (h *hasty) Propose(entry []byte, done func(error)) {
	if h.begun.Load() {
		results := make([]fsm.Result, binary.BigEndian.Uint32(entry[entryCount:]))
		for i := range results {
			results[i].Routed = 1
		}
		h.broker.Applied(fsm.Applied{Term: binary.BigEndian.Uint64(entry[entryTerm:]),
			Number: binary.BigEndian.Uint64(entry[entryNumber:]), Results: results})
	}
	h.Node.Propose(entry, done)
}

// TestPlantedConfirmBeforeCommit finds a broker that confirms before the entry is committed, by what is lost.
func TestPlantedConfirmBeforeCommit(t *testing.T) {
	found(t, "LOST", func(c *Cluster) {
		var begun atomic.Bool
		c.Formed = func() { begun.Store(true) }
		c.Configure = func(s *server.Config) {
			s.WrapNode = func(n broker.Node, b *broker.Broker) broker.Node { return &hasty{n, b, &begun} }
		}
	})
}

// TestPlantedLyingDisks finds disks that forget what they said they had synced.
func TestPlantedLyingDisks(t *testing.T) {
	found(t, "", func(c *Cluster) { c.LyingDisks = true })
}

func found(t *testing.T, what string, plant func(*Cluster)) {
	for seed := *first; seed < *first+within; seed++ {
		r := simulate(t, seed, plant)
		for _, v := range r.Violations {
			if strings.Contains(v, what) {
				t.Logf("found with seed %d: %s", seed, v)
				return
			}
		}
	}
	t.Errorf("not found in %d seeds", within)
}
