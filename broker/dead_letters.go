package broker

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/warrenmq/warren/fsm"
)

// undertaker routes the dead letters of messages that died, until the leadership ends: a message stays in its queue,
// dying, until an entry that carries it moves it to where its queue's rules lead (see fsm.DeadLetter).
type undertaker struct {
	leadership *leadership
	waiting    map[uint64]stuck // queues with messages that reached no queue
}

// stuck is when a queue's dead letters are tried again.
type stuck struct {
	until time.Time
	after time.Duration
}

func (l *leadership) routeDeadLetters(ctx context.Context) {
	u := &undertaker{leadership: l, waiting: map[uint64]stuck{}}
	retry := time.NewTimer(time.Hour)
	defer retry.Stop()
	for {
		next := time.Hour
		dying := l.broker.machine.DyingQueues()
		maps.DeleteFunc(u.waiting, func(number uint64, _ stuck) bool { // those that are gone, or empty
			_, found := slices.BinarySearch(dying, number)
			return !found
		})
		for _, number := range dying {
			if w, ok := u.waiting[number]; ok && time.Now().Before(w.until) {
				next = min(next, time.Until(w.until))
				continue
			}
			if left := u.bury(ctx, number); left > 0 {
				w := u.waiting[number]
				w.after = min(max(2*w.after, deadRetry), maxDeadRetry)
				w.until = time.Now().Add(w.after)
				u.waiting[number] = w
				next = min(next, w.after)
			} else {
				delete(u.waiting, number)
			}
		}
		retry.Reset(max(next, 0))
		select {
		case <-l.died:
		case <-retry.C:
		case <-ctx.Done():
			return
		}
	}
}

// bury routes all dead letters of a queue in the order of their sequences, and returns how many were not taken.
func (u *undertaker) bury(ctx context.Context, number uint64) (left int) {
	l := u.leadership
	info, ok := l.broker.machine.QueueByNumber(number)
	if !ok {
		return 0
	}
	for from := uint64(1); ctx.Err() == nil; {
		dying, err := l.broker.machine.ReadDying(number, from, readAheadCount, readAheadBytes)
		if err != nil {
			l.broker.log.Error("the dead letters of a queue cannot be read; they are tried again", "queue", info.Name, "vhost", info.Vhost, "error", err)
			return left + 1
		}
		if len(dying) == 0 {
			return left
		}
		from = dying[len(dying)-1].Sequence + 1
		results := make(chan fsm.Result, len(dying))
		submitted := 0
		for i := range dying {
			if err := u.submit(ctx, info, &dying[i], func(r fsm.Result) { results <- r }); err != nil {
				return left + len(dying)
			}
			submitted++
		}
		for range submitted {
			select {
			case r := <-results:
				if r.Code != fsm.OK {
					left++
				}
			case <-ctx.Done():
				return left
			}
		}
	}
	return left
}

// submit sends one dead letter into the log.
func (u *undertaker) submit(ctx context.Context, info fsm.QueueInfo, m *fsm.Message, done CompleterFunc) error {
	return u.leadership.submitMessage(ctx, m, func(p fsm.Publish) fsm.Command {
		return &fsm.DeadLetter{Queue: info.Number, Sequence: m.Sequence, Deaths: m.Deaths, Message: p}
	}, done)
}
