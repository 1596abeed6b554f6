package cluster

import (
	"sync"

	"github.com/hashicorp/raft"
)

// pipeline mends two faults of raft v1.8.0's pipelined replication. When a call fails, raft's decoder leaves and its
// sender may wait for room for ever, which stops replication to that follower and raft's shutdown; and a failed call
// counts as contact with the follower, which prolongs the lease. Here a failed call is not handed on and closes the
// pipeline, so the sender fails and raft starts replication anew.
type pipeline struct {
	raft.AppendPipeline
	done   chan raft.AppendFuture
	closed chan struct{} // closed by Close
	once   sync.Once
	ended  sync.WaitGroup
}

// AppendEntriesPipeline opens a pipeline to a follower.
func (t *transport) AppendEntriesPipeline(id raft.ServerID, to raft.ServerAddress) (raft.AppendPipeline, error) {
	inner, err := t.NetworkTransport.AppendEntriesPipeline(id, to)
	if err != nil {
		return nil, err
	}
	return newPipeline(inner), nil
}

func newPipeline(inner raft.AppendPipeline) *pipeline {
	p := &pipeline{AppendPipeline: inner, done: make(chan raft.AppendFuture), closed: make(chan struct{})}
	p.ended.Go(p.pass)
	return p
}

// pass hands results on until one fails or the pipeline is closed.
func (p *pipeline) pass() {
	for {
		select {
		case f := <-p.AppendPipeline.Consumer():
			if f.Error() != nil {
				_ = p.AppendPipeline.Close()
				return
			}
			select {
			case p.done <- f:
			case <-p.closed:
				return
			}
			if !f.Response().Success { // raft's decoder leaves now
				_ = p.AppendPipeline.Close()
				return
			}
		case <-p.closed:
			return
		}
	}
}

func (p *pipeline) Consumer() <-chan raft.AppendFuture { return p.done }

func (p *pipeline) Close() error {
	p.once.Do(func() { close(p.closed) })
	err := p.AppendPipeline.Close()
	p.ended.Wait()
	return err
}
