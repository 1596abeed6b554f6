package cluster

import (
	"context"
	"sync"
	"time"
)

const (
	introduceEvery = 250 * time.Millisecond
	introduceLimit = 2 * time.Second // for one round
)

// introduce tells every member of this start, again and again until it has heard. Whoever knows a later start of this
// data directory says so in its answer (rule 18). A leader that dials first learns that this is an old copy, but only a
// connection of this node's own tells this node, and ends what the others hold against it once it has caught up.
func (n *Node) introduce() {
	tick := time.NewTicker(introduceEvery)
	defer tick.Stop()
	for {
		if n.ClusterID() != "" {
			n.introduceOnce()
		}
		select {
		case <-tick.C:
		case <-n.ctx.Done():
			return
		}
	}
}

// introduceOnce asks those who do not know of this start yet, all at once. The preface says all there is to say.
func (n *Node) introduceOnce() {
	boots := n.identity.get().Boots
	ctx, cancel := context.WithTimeout(n.ctx, introduceLimit)
	defer cancel()
	var wg sync.WaitGroup
	for _, s := range n.configuration() {
		if server := string(s.ID); server != n.server && !n.streams.hasTold(server, boots) {
			wg.Go(func() { _, _ = n.ask(ctx, server, request{Op: opStatus}) })
		}
	}
	wg.Wait()
}
