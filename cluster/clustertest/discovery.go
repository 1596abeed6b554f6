package clustertest

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/warrenmq/warren/cluster"
)

// Directory is a gossip that everybody reads at once and that no cut impairs. Safe for concurrent use.
type Directory struct {
	mu      sync.Mutex // guards both
	members map[string]cluster.Member
	parties map[*party]struct{}
}

// NewDirectory returns an empty directory.
func NewDirectory() *Directory {
	return &Directory{members: map[string]cluster.Member{}, parties: map[*party]struct{}{}}
}

// Join is for cluster.Config.Discovery.
func (d *Directory) Join(self cluster.Member) (cluster.Discovery, error) {
	p := &party{d: d, server: self.Server, changed: make(chan struct{}, 1)}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.parties[p] = struct{}{}
	d.put(self)
	return p, nil
}

// put is called with mu held.
func (d *Directory) put(m cluster.Member) {
	d.members[m.Server] = m
	d.tell()
}

func (d *Directory) tell() {
	for p := range d.parties {
		select {
		case p.changed <- struct{}{}:
		default:
		}
	}
}

// Forget takes a server out, as gossip does some time after a crash.
func (d *Directory) Forget(server string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.members, server)
	d.tell()
}

type party struct {
	d       *Directory
	server  string
	changed chan struct{}
	once    sync.Once
}

func (p *party) Members() []cluster.Member {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	return slices.SortedFunc(maps.Values(p.d.members), func(a, b cluster.Member) int {
		if a.Server < b.Server {
			return -1
		}
		return 1
	})
}

func (p *party) Changed() <-chan struct{} { return p.changed }

func (p *party) Update(self cluster.Member) error {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	p.d.put(self)
	return nil
}

func (p *party) Leave(time.Duration) error {
	p.d.Forget(p.server)
	return nil
}

func (p *party) Close() error {
	p.once.Do(func() {
		p.d.mu.Lock()
		defer p.d.mu.Unlock()
		delete(p.d.parties, p)
		close(p.changed)
	})
	return nil
}
