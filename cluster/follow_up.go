package cluster

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// followUpLeast is how long, at least, the log behind a snapshot that a follower was sent is kept for it.
const followUpLeast = time.Minute

// followUps are the followers that were sent a snapshot and have not caught up since. Under load the log would be cut
// beyond that snapshot before they have read on from it: they would need the next one, and so for ever. A snapshot that
// is leased keeps the log behind it (keptLog). Safe for concurrent use.
type followUps struct {
	mu sync.Mutex // guards of
	of map[raft.ServerID]followUp
}

type followUp struct {
	term    uint64
	last    uint64 // the end of the follower's log, as far as it has told
	until   time.Time
	release func() // ends the lease of the snapshot
}

// begin keeps the log for a follower, for twice as long as its snapshot took to send.
func (f *followUps) begin(id raft.ServerID, term uint64, took time.Duration, release func()) {
	f.mu.Lock()
	before, ok := f.of[id]
	if f.of == nil {
		f.of = map[raft.ServerID]followUp{}
	}
	f.of[id] = followUp{term: term, until: time.Now().Add(max(followUpLeast, 2*took)), release: release}
	f.mu.Unlock()
	if ok {
		before.release()
	}
}

// heard notes where a follower's log ends.
func (f *followUps) heard(id raft.ServerID, last uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if u, ok := f.of[id]; ok {
		u.last = last
		f.of[id] = u
	}
}

// end lets go of the log that is kept for followers whose log reaches the newest snapshot, of another term, or too slow.
func (f *followUps) end(term, newest uint64) {
	f.mu.Lock()
	var over []func()
	for id, u := range f.of {
		if u.last >= newest || u.term != term || time.Now().After(u.until) {
			over = append(over, u.release)
			delete(f.of, id)
		}
	}
	f.mu.Unlock()
	for _, release := range over {
		release()
	}
}
