package cluster

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
)

const (
	secondDial  = 5 * time.Millisecond   // between two dials that must both be refused
	standInLine = 150 * time.Millisecond // by which each further follower waits for those before it
	crashTries  = 50                     // for the others to see the same, about half a second: then heartbeats have shown it
	crashLimit  = 2 * time.Second        // for one examination
	crashEvery  = 30 * time.Second       // so at most twice a minute
)

// connectionEnded is called when the last incoming connection of a server has ended. If that was the leader's, its
// process may be gone.
func (n *Node) connectionEnded(server string) {
	l := n.Leadership()
	if l.Server != server || l.Local {
		return
	}
	n.spawn(func() { n.examineLeader(l) })
}

// examineLeader stands for election at once if the leader's process is certainly gone (rule 21): heartbeats would
// take a second to show it.
func (n *Node) examineLeader(l Leadership) {
	ctx, cancel := context.WithTimeout(n.ctx, crashLimit)
	defer cancel()
	others := slices.DeleteFunc(n.Voters(), func(s string) bool { return s == l.Server })
	slices.SortFunc(others, func(a, b string) int { return cmp.Compare(a, b) })
	place := slices.Index(others, n.server)
	if place < 0 {
		return
	}
	if place > 0 {
		select {
		case <-time.After(time.Duration(place) * standInLine):
		case <-ctx.Done():
			return
		}
	}
	for try := 0; ; try++ { // the others' connections end a moment sooner or later than this one's
		if now := n.lookAtRaft(); try == crashTries || now.Term != l.Term || n.streams.connected(l.Server) || !n.dialRefused(ctx, l.Server) {
			return
		}
		pause := 2 * secondDial
		if n.confirmed(ctx, l, others) && n.mayReplace(l) {
			if pause = n.crashTurn(); pause <= 0 {
				break
			}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
	n.crashMu.Lock()
	usual := l.Term <= n.crashTerm || len(n.crashTimes) == 2 && time.Since(n.crashTimes[0]) < 2*crashEvery
	if !usual {
		n.crashTerm = l.Term
		n.crashTimes = append(n.crashTimes, time.Now())
		n.crashTimes = n.crashTimes[max(0, len(n.crashTimes)-2):]
	}
	n.crashMu.Unlock()
	if usual {
		return // leave it to the heartbeats
	}
	n.log.Warn("the leader's process is gone, standing for election", "leader", nodeIDOf(l.Server), "term", l.Term)
	n.transport.standForElection(n.ctx.Done())
}

// letGoFirst notes that a server earlier in line was told that the leader is gone: it is about to stand, and two
// candidates at once would split the votes.
func (n *Node) letGoFirst(server string) {
	if server >= n.server {
		return
	}
	n.crashMu.Lock()
	n.crashOther = time.Now()
	n.crashMu.Unlock()
}

// crashTurn is how long this node still leaves the election to one earlier in line, whose votes may be slow to come.
func (n *Node) crashTurn() time.Duration {
	n.crashMu.Lock()
	defer n.crashMu.Unlock()
	return time.Until(n.crashOther.Add(2 * standInLine))
}

// mayReplace reads state and term anew. A leader would abdicate and a non-voter would only raise everybody's term.
func (n *Node) mayReplace(l Leadership) bool {
	now := n.lookAtRaft()
	return now.Term == l.Term && now.Server == l.Server && !now.Local && n.raft.State() == raft.Follower &&
		n.isVoter(n.server) && !n.transport.quarantined.Load() && n.CaughtUp() && !n.streams.connected(l.Server)
}

// confirmed asks the other voters whether they see the same; one must.
func (n *Node) confirmed(ctx context.Context, l Leadership, others []string) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan bool, len(others))
	asked := 0
	for _, s := range others {
		if s == n.server {
			continue
		}
		if n.spawn(func() {
			r, err := n.ask(ctx, s, request{Op: opLeaderGone, Server: l.Server})
			answers <- err == nil && r.Gone
		}) {
			asked++
		}
	}
	for range asked {
		if <-answers {
			return true
		}
	}
	return false
}

// dialRefused reports whether two dials of a server's current address are both refused. A time-out says nothing.
func (n *Node) dialRefused(ctx context.Context, server string) bool {
	m, ok := n.book.find(server)
	if !ok || m.Raft == "" {
		return false
	}
	for i := range 2 {
		if i > 0 {
			select {
			case <-time.After(secondDial):
			case <-ctx.Done():
				return false
			}
		}
		c, err := n.config.Network.Dial(ctx, m.Raft)
		if err == nil {
			_ = c.Close()
			return false
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return false
		}
	}
	return true
}
