package cluster

import (
	"cmp"
	"slices"
	"sync"
)

// book knows where the servers are: by gossip, and by the prefaces of their connections. Gossip holds for whom it thinks
// alive, also when the boot counter went down because an old data directory was brought back (rule 18); of two prefaces
// the one with the higher boot counter does.
type book struct {
	mu      sync.Mutex
	members map[string]Member // by server id
	alive   map[string]bool   // whom gossip thinks alive
	changed chan struct{}     // closed and replaced at a change
}

// maxBook bounds the entries learnt, for a cluster has few servers and strangers must not fill memory.
const maxBook = 1024

func newBook() *book {
	return &book{members: map[string]Member{}, alive: map[string]bool{}, changed: make(chan struct{})}
}

// learn notes what a connection or gossip says of a member.
func (b *book) learn(m Member) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.learnLocked(m)
}

func (b *book) learnLocked(m Member) {
	old, known := b.members[m.Server]
	if m == old || known && m.Boots < old.Boots || !known && len(b.members) >= maxBook {
		return
	}
	b.members[m.Server] = m
	b.signal()
}

func (b *book) signal() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// gossip replaces who is thought alive.
func (b *book) gossip(members []Member) {
	b.mu.Lock()
	defer b.mu.Unlock()
	alive := make(map[string]bool, len(members))
	for _, m := range members {
		alive[m.Server] = true
		if old, known := b.members[m.Server]; known && m.Boots < old.Boots {
			delete(b.members, m.Server)
		}
		b.learnLocked(m)
	}
	b.alive = alive
}

func (b *book) find(server string) (Member, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m, ok := b.members[server]
	return m, ok
}

// present returns the members that gossip thinks alive, by node id.
func (b *book) present() []Member {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []Member
	for s := range b.alive {
		if m, ok := b.members[s]; ok {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(x, y Member) int { return cmp.Or(cmp.Compare(x.NodeID, y.NodeID), cmp.Compare(x.Server, y.Server)) })
	return out
}

func (b *book) isAlive(server string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.alive[server]
}

func (b *book) change() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}
