package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/warrenmq/warren/cluster"
	"github.com/warrenmq/warren/fsm"
)

// slow is a node that keeps entries to itself and answers nothing.
type slow struct {
	Node
	entries chan func(error) // the answers that are due
}

func (s *slow) Propose(_ []byte, done func(error)) { s.entries <- done }

// TestRule06ResultsComeFromApply confirms what was applied, whatever becomes of Raft's own answers, and tells the rest
// apart: an entry on its way has an unknown outcome, a command that is in none was not written.
func TestRule06ResultsComeFromApply(t *testing.T) {
	node := &slow{entries: make(chan func(error), maxEntriesFlying+1)}
	b := New(Config{})
	b.node = node
	l := newLeadership(b, 1)
	p := l.proposer
	ended := make(chan struct{}, 2)
	go func() { p.run(); ended <- struct{}{} }()
	go func() { p.finish(); ended <- struct{}{} }()
	lane := p.newLane()
	type outcome struct {
		token uint64
		code  fsm.Code
	}
	outcomes := make(chan outcome, 16)
	submit := func(token uint64) {
		s := submission{command: fsm.PutVhost{Name: fmt.Sprint(token)}, token: token, done: completer(func(token uint64, r fsm.Result) { outcomes <- outcome{token, r.Code} })}
		s.size = 100
		if err := lane.submit(context.Background(), true, s); err != nil {
			t.Fatal(err)
		}
	}
	var answers []func(error)
	for token := range uint64(maxEntriesFlying) {
		submit(token + 1)
		answers = append(answers, <-node.entries) // so that each has an entry of its own
	}
	submit(maxEntriesFlying + 1)

	// Raft's answer alone confirms nothing, and one of another term is nobody's.
	answers[0](nil)
	p.applied(fsm.Applied{Term: 2, Number: 1, Results: []fsm.Result{{Code: fsm.OK}}})
	select {
	case o := <-outcomes:
		t.Fatalf("command %d was answered %v before it was applied", o.token, o.code)
	default:
	}
	p.applied(fsm.Applied{Term: 1, Number: 1, Results: []fsm.Result{{Code: fsm.OK}}})
	if o := <-outcomes; o.token != 1 || o.code != fsm.OK {
		t.Errorf("the command that was applied: %+v", o)
	}
	answers = append(answers, <-node.entries) // there is room for the fourth
	submit(maxEntriesFlying + 2)

	answers[1](fmt.Errorf("%w (as if)", cluster.ErrOutcomeUnknown))
	select {
	case <-l.failed:
	default:
		t.Error("the leadership goes on after an entry whose outcome is unknown")
	}
	p.close()
	want := map[uint64]fsm.Code{2: LeadershipLost, 3: LeadershipLost, 4: LeadershipLost, 5: NotLeader}
	var order []uint64
	for range want {
		o := <-outcomes
		if order = append(order, o.token); o.code != want[o.token] {
			t.Errorf("command %d ended with %v, expected %v", o.token, o.code, want[o.token])
		}
	}
	if !slices.IsSorted(order) {
		t.Errorf("the commands ended in the order %v", order)
	}
	for range cap(ended) {
		<-ended
	}
	var e *Error
	if err := lane.submit(context.Background(), true, submission{size: 1}); !errors.As(err, &e) || e.Code != NotLeader {
		t.Errorf("after the end: %v", err)
	}
	for _, answer := range answers[2:] {
		answer(cluster.ErrOutcomeUnknown) // too late to matter
	}
}

// completer makes a function a Completer.
type completer func(token uint64, r fsm.Result)

func (c completer) Complete(token uint64, r fsm.Result) { c(token, r) }
