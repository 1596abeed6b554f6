package broker

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/warrenmq/warren/fsm"
)

// releaseDelayed routes delayed messages when their time has come, until the leadership ends: an entry that carries the
// message moves it from where it waits to the queues that it reaches then (see fsm.Release). However many wait, only those
// that are due are looked at.
func (l *leadership) releaseDelayed(ctx context.Context) {
	tick := time.NewTicker(releaseInterval)
	defer tick.Stop()
	unreadable := map[uint64]time.Time{} // queues that could not be read, by when to try again
	for {
		due := l.broker.machine.Delaying(l.broker.clock.now())
		maps.DeleteFunc(unreadable, func(number uint64, again time.Time) bool {
			return !time.Now().Before(again) || !slices.Contains(due, number)
		})
		for _, number := range due {
			for more := unreadable[number].IsZero(); more; {
				var err error
				if more, err = l.releaseSome(ctx, number); err != nil {
					l.broker.log.Error("delayed messages cannot be read; they wait until they can be, or are repaired from another node", "queue", number, "error", err)
					unreadable[number] = time.Now().Add(damageRetry)
				}
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
// where they belong, and reports whether there may be more. The error is that of reading them.
func (l *leadership) releaseSome(ctx context.Context, number uint64) (more bool, err error) {
	due, err := l.broker.machine.ReadDelayed(number, l.broker.clock.now(), releaseStep, readAheadBytes)
	if err != nil {
		return false, err
	}
	results := make(chan fsm.Result, len(due))
	for i := range due {
		if err := l.submitMessage(ctx, &due[i], func(p fsm.Publish) fsm.Command {
			return &fsm.Release{Queue: number, Sequence: due[i].Sequence, Message: p}
		}, func(r fsm.Result) { results <- r }); err != nil {
			return false, nil // the leadership is over
		}
	}
	released := uint64(0)
	for range due {
		select {
		case r := <-results:
			released += r.Messages
		case <-ctx.Done():
			return false, nil
		}
	}
	return released > 0, nil
}
