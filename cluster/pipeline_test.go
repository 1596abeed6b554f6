package cluster

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"
)

// stuck is a pipeline whose calls wait for room until it is closed, as raft's do.
type stuck struct {
	done   chan raft.AppendFuture
	closed chan struct{}
}

func (s *stuck) AppendEntries(*raft.AppendEntriesRequest, *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	<-s.closed
	return nil, raft.ErrPipelineShutdown
}
func (s *stuck) Consumer() <-chan raft.AppendFuture { return s.done }
func (s *stuck) Close() error {
	select {
	case <-s.closed:
	default:
		close(s.closed)
	}
	return nil
}

type failedFuture struct{ raft.AppendFuture }

func (failedFuture) Error() error { return errors.New("connection lost") }

func TestAFailedPipelinedCallDoesNotWedgeReplication(t *testing.T) {
	inner := &stuck{make(chan raft.AppendFuture), make(chan struct{})}
	p := newPipeline(inner)
	inner.done <- failedFuture{}
	if _, err := p.AppendEntries(nil, nil); !errors.Is(err, raft.ErrPipelineShutdown) {
		t.Error(err)
	}
	select {
	case <-p.Consumer():
		t.Error("a failed call was handed on, and raft would take it for contact")
	default:
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
