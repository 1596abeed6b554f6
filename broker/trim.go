package broker

import (
	"context"

	"github.com/warrenmq/warren/fsm"
)

// trimQueues drops, in bounded steps and until the leadership ends, what is too much in queues whose limits were lowered.
func (l *leadership) trimQueues(ctx context.Context) {
	for {
		for _, number := range l.broker.machine.Overfull() {
			for more := true; more; {
				r, err := l.system.call(ctx, &fsm.Trim{Queue: number, Limit: trimStep})
				if err != nil {
					break
				}
				more = r.Messages == trimStep
			}
		}
		select {
		case <-l.overran:
		case <-ctx.Done():
			return
		}
	}
}

// limitsChanged is called when a queue has other limits than before: what consumers hold is claimed from now on. What
// they hold already is claimed first, since only then it is none of the ready messages.
func (l *leadership) limitsChanged(number uint64) {
	v := l.existingView(number)
	info, ok := l.broker.machine.QueueByNumber(number)
	if v == nil || !ok || !info.Limited {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.claims != nil {
		return
	}
	v.claims = &claiming{}
	if runs := v.held.runs(); len(runs) > 0 {
		v.submitClaim(&fsm.Claim{Queue: number, Runs: runs}, nil)
	}
}
