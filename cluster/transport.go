package cluster

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// rpcTimeout bounds raft's calls; an install may take that much for each 256 KiB.
const rpcTimeout = 5 * time.Second

var (
	errQuarantined = errors.New("this node is quarantined and takes no part in elections")
	errStalePeer   = errors.New("a node with an older data directory than known takes no part in elections")
)

// transport stands between raft and its network transport. It keeps a quarantined node out of elections (rule 18),
// notes contact with followers for the lease (rule 10), notes what leaders have committed, and is where this node
// tells itself to stand for election (rule 21).
type transport struct {
	*raft.NetworkTransport
	streams *streams
	rpcs    chan raft.RPC
	now     chan raft.RPC // TimeoutNow to oneself

	quarantined atomic.Bool
	heard       atomic.Uint64 // highest commit index a leader has told since the start
	heardTerm   atomic.Uint64 // highest term of an append or install since the start; 0 is none
	installing  atomic.Int32
	rate        rate // of snapshots sent
	followUps   followUps

	mu       sync.Mutex // guards contacts
	contacts map[raft.ServerID]contact
}

// contact is when a call was sent that a follower answered as such, and in which term.
type contact struct {
	term uint64
	sent time.Time
}

func newTransport(nt *raft.NetworkTransport, s *streams) *transport {
	return &transport{NetworkTransport: nt, streams: s, rpcs: make(chan raft.RPC), now: make(chan raft.RPC), contacts: map[raft.ServerID]contact{},
		rate: rate{bytes: s.n.config.SnapshotRate}}
}

var (
	_ raft.Transport   = (*transport)(nil)
	_ raft.WithPreVote = (*transport)(nil)
	_ raft.WithClose   = (*transport)(nil)
)

// Consumer returns where raft takes incoming calls from.
func (t *transport) Consumer() <-chan raft.RPC { return t.rpcs }

// forward passes incoming calls on until done closes.
func (t *transport) forward(done <-chan struct{}) {
	for {
		var rpc raft.RPC
		select {
		case rpc = <-t.NetworkTransport.Consumer():
			if !t.examine(&rpc) {
				continue
			}
		case rpc = <-t.now:
		case <-done:
			return
		}
		select {
		case t.rpcs <- rpc:
		case <-done:
			return
		}
	}
}

// examine reports whether raft shall see an incoming call; else it has answered it.
func (t *transport) examine(rpc *raft.RPC) bool {
	switch r := rpc.Command.(type) {
	case *raft.AppendEntriesRequest:
		t.hear(r.Term, r.LeaderCommitIndex)
	case *raft.InstallSnapshotRequest:
		t.hear(r.Term, r.LastLogIndex)
	case *raft.RequestVoteRequest:
		if err := t.mayVote(string(r.ID)); err != nil {
			rpc.Respond(&raft.RequestVoteResponse{RPCHeader: r.RPCHeader, Term: r.Term}, err)
			return false
		}
	case *raft.RequestPreVoteRequest:
		if err := t.mayVote(string(r.ID)); err != nil {
			rpc.Respond(&raft.RequestPreVoteResponse{RPCHeader: r.RPCHeader, Term: r.Term}, err)
			return false
		}
	case *raft.TimeoutNowRequest:
		if t.quarantined.Load() {
			rpc.Respond(&raft.TimeoutNowResponse{}, errQuarantined)
			return false
		}
	}
	return true
}

func (t *transport) hear(term, commit uint64) {
	for old := t.heardTerm.Load(); term > old && !t.heardTerm.CompareAndSwap(old, term); old = t.heardTerm.Load() {
	}
	for old := t.heard.Load(); commit > old && !t.heard.CompareAndSwap(old, commit); old = t.heard.Load() {
	}
}

// mayVote says why no votes pass between this node and a peer.
func (t *transport) mayVote(peer string) error {
	if t.quarantined.Load() {
		return errQuarantined
	}
	if t.streams.isStale(peer) {
		return errStalePeer
	}
	return nil
}

func (t *transport) RequestVote(id raft.ServerID, to raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	if err := t.mayVote(string(id)); err != nil {
		return err
	}
	if err := t.NetworkTransport.RequestVote(id, to, args, resp); err != nil {
		return err
	}
	return t.mayVote(string(id)) // what the handshake told counts too
}

func (t *transport) RequestPreVote(id raft.ServerID, to raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	if err := t.mayVote(string(id)); err != nil {
		return err
	}
	if err := t.NetworkTransport.RequestPreVote(id, to, args, resp); err != nil {
		return err
	}
	return t.mayVote(string(id))
}

func (t *transport) TimeoutNow(id raft.ServerID, to raft.ServerAddress, args *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	if err := t.mayVote(string(id)); err != nil {
		return err
	}
	return t.NetworkTransport.TimeoutNow(id, to, args, resp)
}

// AppendEntries notes the contact. Heartbeats come this way; pipelined appends do not, and need not.
func (t *transport) AppendEntries(id raft.ServerID, to raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	sent := time.Now()
	if err := t.NetworkTransport.AppendEntries(id, to, args, resp); err != nil {
		return err
	}
	t.followUps.heard(id, resp.LastLog)
	if resp.Term <= args.Term {
		t.mu.Lock()
		if c := t.contacts[id]; args.Term > c.term || args.Term == c.term && sent.After(c.sent) {
			t.contacts[id] = contact{args.Term, sent}
		}
		t.mu.Unlock()
	}
	return nil
}

// InstallSnapshot sends a snapshot at the rate that is set. raft calls it on a goroutine of the follower's own: heartbeats
// and the other followers go on meanwhile.
func (t *transport) InstallSnapshot(id raft.ServerID, to raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	t.installing.Add(1)
	defer t.installing.Add(-1)
	began := time.Now()
	err := t.NetworkTransport.InstallSnapshot(id, to, args, resp, t.rate.reader(t.streams.n.ctx, data))
	if s, ok := data.(*servedSnapshot); ok && err == nil && resp.Success {
		t.followUps.begin(id, args.Term, time.Since(began), s.store.Lease(s.id))
	}
	return err
}

// contacted reports whether a server answered a call of this term that was not sent before a time.
func (t *transport) contacted(id raft.ServerID, term uint64, since time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.contacts[id]
	return c.term == term && !c.sent.Before(since)
}

// standForElection makes this node a candidate at once. The caller has checked everything that rule 21 asks for: the
// handler in raft checks nothing.
func (t *transport) standForElection(done <-chan struct{}) {
	if t.quarantined.Load() {
		return
	}
	answer := make(chan raft.RPCResponse, 1)
	select {
	case t.now <- raft.RPC{Command: &raft.TimeoutNowRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}}, RespChan: answer}:
	case <-done:
		return
	}
	select {
	case <-answer:
	case <-done:
	}
}
