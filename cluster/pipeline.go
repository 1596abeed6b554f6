package cluster

import (
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// AppendEntriesPipeline is raft's, made safe against a deadlock in it: raft stops reading responses at the first one
// that is not a success, though its sender may be waiting for a slot that only a read response frees. The sender then
// never learns that the pipeline has failed, and the follower gets heartbeats but no entries for the rest of the term.
func (t *transport) AppendEntriesPipeline(id raft.ServerID, to raft.ServerAddress) (raft.AppendPipeline, error) {
	inner, err := t.NetworkTransport.AppendEntriesPipeline(id, to)
	if err != nil {
		return nil, err
	}
	return newPipeline(inner), nil
}

// pipeline passes responses on up to the first failure and takes the rest itself, so that no sender waits for long.
type pipeline struct {
	raft.AppendPipeline
	failed    atomic.Bool
	responses chan raft.AppendFuture
	closed    chan struct{} // closed by Close, which raft calls once
	ended     chan struct{} // closed by pass
}

func newPipeline(inner raft.AppendPipeline) *pipeline {
	p := &pipeline{AppendPipeline: inner, responses: make(chan raft.AppendFuture), closed: make(chan struct{}), ended: make(chan struct{})}
	go p.pass()
	return p
}

func (p *pipeline) pass() {
	defer close(p.ended)
	for {
		var f raft.AppendFuture
		select {
		case f = <-p.AppendPipeline.Consumer():
		case <-p.closed:
			return
		}
		if p.failed.Load() {
			continue
		}
		if !f.Response().Success {
			p.failed.Store(true)
		}
		select {
		case p.responses <- f:
		case <-p.closed:
			return
		}
	}
}

// AppendEntries sends a request; it fails once a response was not a success.
func (p *pipeline) AppendEntries(args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	if p.failed.Load() {
		return nil, raft.ErrPipelineShutdown
	}
	return p.AppendPipeline.AppendEntries(args, resp)
}

// Consumer returns the responses.
func (p *pipeline) Consumer() <-chan raft.AppendFuture { return p.responses }

// Close ends the pipeline and waits for its goroutine.
func (p *pipeline) Close() error {
	err := p.AppendPipeline.Close()
	close(p.closed)
	<-p.ended
	return err
}
