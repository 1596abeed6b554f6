package cluster

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// refusing is raft's pipeline in front of a follower that refuses everything: a request is handed over only when the
// response before it was read.
type refusing struct {
	sent      chan raft.AppendFuture
	responses chan raft.AppendFuture
	closed    chan struct{}
}

type refusal struct{ raft.AppendFuture }

func (refusal) Response() *raft.AppendEntriesResponse { return &raft.AppendEntriesResponse{} }

func (r *refusing) answer() {
	for {
		select {
		case f := <-r.sent:
			select {
			case r.responses <- f:
			case <-r.closed:
				return
			}
		case <-r.closed:
			return
		}
	}
}

func (r *refusing) AppendEntries(*raft.AppendEntriesRequest, *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	select {
	case r.sent <- refusal{}:
		return refusal{}, nil
	case <-r.closed:
		return nil, raft.ErrPipelineShutdown
	}
}

func (r *refusing) Consumer() <-chan raft.AppendFuture { return r.responses }
func (r *refusing) Close() error                       { close(r.closed); return nil }

// TestFailedPipelineFreesItsSender reads one response, as raft does, and goes on sending.
func TestFailedPipelineFreesItsSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &refusing{sent: make(chan raft.AppendFuture), responses: make(chan raft.AppendFuture), closed: make(chan struct{})}
		go inner.answer()
		p := newPipeline(inner)
		read := make(chan struct{})
		go func() { <-p.Consumer(); close(read) }()
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 5 {
				if _, err := p.AppendEntries(nil, nil); err != nil {
					return
				}
			}
			t.Error("five requests went through a pipeline that has failed")
		}()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Error("the sender waits for ever")
		}
		<-read
		_ = p.Close()
		<-done
	})
}
