package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// leadershipTick is how often the term is compared even if raft has told of no change: a follower's term may change
// without the leader changing.
const leadershipTick = 50 * time.Millisecond

// Leadership is who leads in which term, as this node knows it. A leadership is (node, term): the same node
// leading again in a later term is another leadership (rule 1).
type Leadership struct {
	Term   uint64
	Local  bool   // this node leads
	Server string // the leader's Raft server id, "" when unknown
	Leader Member // its addresses, as far as gossip has them
}

// Leadership returns the current leadership.
func (n *Node) Leadership() Leadership {
	n.leaderMu.Lock()
	l := n.leader
	n.leaderMu.Unlock()
	// What was true at the last look may be over: a leader must not be told that it leads when raft knows otherwise.
	if l.Local && (n.raft.State() != raft.Leader || n.raft.CurrentTerm() != l.Term) {
		n.poke()
		l = Leadership{Term: l.Term}
	}
	if l.Server != "" {
		l.Leader = n.member(l.Server)
	}
	return l
}

// LeadershipChanged returns a channel that is closed at the next change of term, leader or locality.
func (n *Node) LeadershipChanged() <-chan struct{} {
	n.leaderMu.Lock()
	defer n.leaderMu.Unlock()
	return n.leaderChanged
}

// observeRaft is called on raft's own goroutines and must not wait.
func (n *Node) observeRaft(o *raft.Observation) bool {
	switch o.Data.(type) {
	case raft.RaftState, raft.LeaderObservation, raft.RequestVoteRequest, raft.PeerObservation:
		n.poke()
	}
	return false
}

func (n *Node) poke() {
	select {
	case n.poked <- struct{}{}:
	default:
	}
}

// lookAtRaft reads a leadership that was true at one moment: the term is raised only while a node does not lead, so
// equal terms before and after belong to the state between.
func (n *Node) lookAtRaft() Leadership {
	for {
		term := n.raft.CurrentTerm()
		local := n.raft.State() == raft.Leader
		_, id := n.raft.LeaderWithID()
		if n.raft.CurrentTerm() != term {
			continue
		}
		if local {
			id = raft.ServerID(n.server)
		} else if string(id) == n.server {
			id = "" // lost, and raft has not yet said so
		}
		return Leadership{Term: term, Local: local, Server: string(id)}
	}
}

// watchLeadership publishes every change. A leadership that was lost and won again between two looks has a higher
// term, so none is missed (rule 1).
func (n *Node) watchLeadership() {
	tick := time.NewTicker(leadershipTick)
	defer tick.Stop()
	for {
		n.noteLeadership(n.lookAtRaft())
		select {
		case <-n.poked:
		case <-tick.C:
			n.endQuarantine()
			if n.empty.Load() && !n.isEmpty() {
				n.wake()
			}
		case <-n.ctx.Done():
			return
		}
	}
}

func (n *Node) noteLeadership(now Leadership) {
	n.leaderMu.Lock()
	before := n.leader
	if now == before {
		n.leaderMu.Unlock()
		return
	}
	n.leader = now
	close(n.leaderChanged)
	n.leaderChanged = make(chan struct{})
	n.leaderMu.Unlock()
	if now.Term != before.Term {
		n.elections.Add(1)
	}
	switch {
	case now.Local:
		n.log.Info("this node leads", "term", now.Term)
	case before.Local:
		n.log.Warn("this node leads no more", "term", now.Term)
	case now.Server != "" && (now.Server != before.Server || now.Term != before.Term):
		n.log.Info("following a leader", "leader", nodeIDOf(now.Server), "term", now.Term)
	case now.Server == "" && before.Server != "":
		n.log.Info("no leader is known", "term", now.Term)
	}
	n.wake()
}

// LeaseValid reports whether a majority was heard of within the lease, by the monotonic clock (rule 10).
func (n *Node) LeaseValid() bool {
	if n.raft.State() != raft.Leader {
		return false
	}
	return n.hasMajority(n.raft.CurrentTerm(), time.Now().Add(-n.config.Timing.Lease))
}

// hasMajority reports whether a majority of the voters, this node included, answered calls of a term that were not sent
// before a time.
func (n *Node) hasMajority(term uint64, since time.Time) bool {
	voters, heard := 0, 0
	for _, s := range n.configuration() {
		if s.Suffrage != raft.Voter {
			continue
		}
		voters++
		if string(s.ID) == n.server || n.transport.contacted(s.ID, term, since) {
			heard++
		}
	}
	return heard > voters/2
}

// VerifyLeader returns nil once a majority has confirmed, after the call, that this node still leads. To raft an answer counts
// that arrives after the call, also if the follower gave it long before; here only those to what was sent after it.
func (n *Node) VerifyLeader(ctx context.Context) error {
	for began := time.Now(); ; {
		err := n.wait(ctx, func() raft.Future { return n.raft.VerifyLeader() }) // sends heartbeats at once
		if errors.Is(err, raft.ErrNotLeader) || errors.Is(err, raft.ErrLeadershipLost) {
			return fmt.Errorf("%w (%v)", ErrNotWritten, err)
		}
		if err != nil || n.hasMajority(n.raft.CurrentTerm(), began) {
			return err
		}
	}
}

// wait calls raft and waits for the future, neither of which knows a context. A future that raft has not answered when it is
// shut down is never answered: Close waits for the calls before that, though not for ever.
func (n *Node) wait(ctx context.Context, call func() raft.Future) error {
	n.calls.Add(1)
	if n.ctx.Err() != nil { // looked at after the call was counted, as Close counts after the end of ctx
		n.calls.Add(-1)
		return ErrClosed
	}
	done := make(chan error, 1)
	go func() {
		defer n.calls.Add(-1)
		done <- call().Error()
	}()
	select {
	case err := <-done:
		if errors.Is(err, raft.ErrRaftShutdown) {
			return ErrClosed
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-n.ctx.Done():
		return ErrClosed
	}
}

// Barrier returns nil once everything committed before the call is applied here; on a follower it first asks the
// leader for its applied index. It serves reads on any node.
func (n *Node) Barrier(ctx context.Context) error {
	for {
		change := n.LeadershipChanged()
		l := n.Leadership()
		var index uint64
		var err error
		switch {
		case l.Local:
			index, err = n.readIndex(ctx)
		case l.Server != "":
			var r reply
			r, err = n.ask(ctx, l.Server, request{Op: opReadIndex})
			index = r.Index
		default:
			err = ErrNoLeader
		}
		if err == nil {
			if n.machine.wait(index, ctx.Done()) {
				return nil
			}
			return ctx.Err()
		}
		select { // another leader may answer
		case <-change:
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", err, ctx.Err())
		case <-n.stopping:
			return ErrClosed
		}
	}
}

// readIndex returns the index of the last command this leader has applied, sure that it led after the call began and
// that everything of earlier terms is applied. Everything acknowledged to anybody before the call is at or below it.
func (n *Node) readIndex(ctx context.Context) (uint64, error) {
	term := n.raft.CurrentTerm()
	if n.raft.State() != raft.Leader {
		return 0, ErrNotWritten
	}
	if n.barrierTerm.Load() != term {
		if err := n.wait(ctx, func() raft.Future { return n.raft.Barrier(0) }); err != nil {
			return 0, err
		}
		n.barrierTerm.Store(term)
	}
	index := n.machine.applied.Load()
	return index, n.VerifyLeader(ctx)
}

// TransferLeadership hands leadership to the best follower; pause proposing first.
func (n *Node) TransferLeadership(ctx context.Context) error {
	var there []raft.ServerID
	absent := false
	term, since := n.raft.CurrentTerm(), time.Now().Add(-n.config.Timing.Heartbeat)
	for _, s := range n.Voters() {
		switch {
		case s == n.server:
		case n.transport.contacted(raft.ServerID(s), term, since):
			there = append(there, raft.ServerID(s))
		default:
			absent = true
		}
	}
	transfer := n.raft.LeadershipTransfer // to whom raft knows to be furthest
	if absent {
		if len(there) == 0 {
			return fmt.Errorf("hand leadership over: %w", errNobodyThere)
		}
		transfer = func() raft.Future {
			return n.raft.LeadershipTransferToServer(there[0], raft.ServerAddress(there[0]))
		}
	}
	if err := n.wait(ctx, transfer); err != nil {
		return fmt.Errorf("hand leadership over: %w", err)
	}
	return nil
}

var errNobodyThere = errors.New("no other voter answers")
