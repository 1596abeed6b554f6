package simulation

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/warrenmq/warren/cluster"
)

// gossip stands for memberlist: everybody who runs knows at once of everybody who runs. Safe for concurrent use.
type gossip struct {
	mu      sync.Mutex // guards what follows
	present map[*presence]cluster.Member
}

// presence is one process's cluster.Discovery.
type presence struct {
	gossip  *gossip
	changed chan struct{} // capacity 1; closed by Close
	closed  bool          // guarded by gossip.mu
}

func (g *gossip) join(self cluster.Member) (*presence, error) {
	p := &presence{gossip: g, changed: make(chan struct{}, 1)}
	return p, p.Update(self)
}

// change edits who is present and tells everybody.
func (g *gossip) change(edit func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	edit()
	for p := range g.present {
		select {
		case p.changed <- struct{}{}:
		default:
		}
	}
}

func (p *presence) Members() []cluster.Member {
	p.gossip.mu.Lock()
	defer p.gossip.mu.Unlock()
	return slices.SortedFunc(maps.Values(p.gossip.present), func(a, b cluster.Member) int { return cmp.Compare(a.NodeID, b.NodeID) })
}

func (p *presence) Changed() <-chan struct{} { return p.changed }

func (p *presence) Update(self cluster.Member) error {
	p.gossip.change(func() {
		if !p.closed {
			p.gossip.present[p] = self
		}
	})
	return nil
}

func (p *presence) Leave(time.Duration) error {
	p.gossip.change(func() { delete(p.gossip.present, p) })
	return nil
}

func (p *presence) Close() error {
	p.gossip.change(func() {
		delete(p.gossip.present, p)
		if !p.closed {
			p.closed = true
			close(p.changed)
		}
	})
	return nil
}
