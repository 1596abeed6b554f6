package broker

import (
	"context"
	"time"

	"github.com/warrenmq/warren/fsm"
)

// releaseDelayed routes delayed messages when their time has come, until the leadership ends: an entry that carries the
// message moves it from where it waits to the queues that it reaches then (see fsm.Release). However many wait, only those
// that are due are looked at.
func (l *leadership) releaseDelayed(ctx context.Context) {
	tick := time.NewTicker(releaseInterval)
	defer tick.Stop()
	for {
		for _, number := range l.broker.machine.Delaying(l.broker.clock.now()) {
			for l.releaseSome(ctx, number) {
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// releaseSome routes some of the messages of a queue that are due, in the order in which they are, waits until they are
// where they belong, and reports whether there may be more.
func (l *leadership) releaseSome(ctx context.Context, number uint64) (more bool) {
	due, err := l.broker.machine.ReadDelayed(number, l.broker.clock.now(), releaseStep, readAheadBytes)
	if err != nil {
		l.broker.log.Error("delayed messages cannot be read; they are tried again", "queue", number, "error", err)
		return false
	}
	results := make(chan fsm.Result, len(due))
	for i := range due {
		if err := l.submitMessage(ctx, &due[i], func(p fsm.Publish) fsm.Command {
			return &fsm.Release{Queue: number, Sequence: due[i].Sequence, Message: p}
		}, func(r fsm.Result) { results <- r }); err != nil {
			return false
		}
	}
	released := uint64(0)
	for range due {
		select {
		case r := <-results:
			released += r.Messages
		case <-ctx.Done():
			return false
		}
	}
	return released > 0
}
