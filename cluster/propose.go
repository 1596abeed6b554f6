package cluster

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
)

// maxProposals bounds the entries that wait for raft and those whose outcome is awaited; Propose then blocks. The
// broker keeps two in flight.
const maxProposals = 64

type proposal struct {
	entry []byte
	done  func(error)
}

type pending struct {
	future raft.ApplyFuture
	done   func(error)
}

// Propose appends an entry to the log. It returns at once; done is called exactly once, from another goroutine,
// unless the node shuts down: with nil when the entry was committed and applied here, an error wrapping
// ErrNotWritten when it certainly was not written, and one wrapping ErrOutcomeUnknown otherwise. Entries proposed by one
// goroutine are appended in that order. Results travel through the state machine's observer, not through done.
func (n *Node) Propose(entry []byte, done func(error)) {
	n.inFlight.Add(1)
	select {
	case n.proposals <- proposal{entry, done}:
	case <-n.stopping:
		n.inFlight.Add(-1)
	}
}

// hand passes proposals to raft in order. raft takes none while its main goroutine writes to the disk, which is why
// the proposer does not do it itself.
func (n *Node) hand() {
	defer close(n.pending)
	for {
		select {
		case p := <-n.proposals:
			select {
			case n.pending <- pending{n.raft.Apply(p.entry, 0), p.done}:
			case <-n.ctx.Done():
				return
			}
		case <-n.stopping:
			return
		}
	}
}

// await reports outcomes in order. raft may leave a future unanswered at its shutdown; Close then leaves this
// goroutine behind.
func (n *Node) await() {
	defer close(n.awaited)
	for p := range n.pending {
		err := outcome(p.future.Error())
		n.inFlight.Add(-1)
		p.done(err)
	}
}

// outcome sorts raft's errors into the two kinds of rule 6.
func outcome(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress), errors.Is(err, raft.ErrEnqueueTimeout):
		return fmt.Errorf("%w (%v)", ErrNotWritten, err)
	}
	return fmt.Errorf("%w (%v)", ErrOutcomeUnknown, err)
}
