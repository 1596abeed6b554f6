package cluster

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

const (
	startTry   = 30 * time.Millisecond
	startLimit = 10 * time.Second // after that elections go by heartbeat alone
)

// electAtStart ends the wait for a first leader (rule 22): when a majority of the voters is there and none of them has
// heard of a leader since it started, the one with the best log stands for election at once. It does so once.
func (n *Node) electAtStart() {
	giveUp := time.After(startLimit)
	for {
		if n.transport.heardTerm.Load() > 0 || n.Leadership().Server != "" {
			return
		}
		if n.bestOfMajority() {
			n.log.Debug("a majority is here and nobody leads, standing for election")
			n.transport.standForElection(n.ctx.Done())
			return
		}
		select {
		case <-time.After(startTry):
		case <-giveUp:
			return
		case <-n.ctx.Done():
			return
		}
	}
}

// bestOfMajority asks all other voters.
func (n *Node) bestOfMajority() bool {
	voters := n.Voters()
	if !n.isVoter(n.server) || n.transport.quarantined.Load() {
		return false
	}
	ctx, cancel := context.WithTimeout(n.ctx, 500*time.Millisecond)
	defer cancel()
	var mu sync.Mutex
	reports := map[string]reply{n.server: n.report()}
	var wg sync.WaitGroup
	for _, s := range voters {
		if s == n.server {
			continue
		}
		wg.Go(func() {
			if r, err := n.ask(ctx, s, request{Op: opStatus}); err == nil {
				mu.Lock()
				reports[s] = r
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(reports) <= len(voters)/2 {
		return false
	}
	mine := reports[n.server]
	for s, r := range reports {
		if r.Heard || r.KnowsLeader || r.Quarantined != "" && len(reports)-1 <= len(voters)/2 {
			return false
		}
		if r.LastTerm > mine.LastTerm || r.LastTerm == mine.LastTerm && (r.LastIndex > mine.LastIndex || r.LastIndex == mine.LastIndex && s < n.server) {
			return false
		}
	}
	now := n.lookAtRaft()
	return now.Term == mine.Term && now.Server == "" && n.raft.State() == raft.Follower && n.transport.heardTerm.Load() == 0
}
