package broker

import (
	"container/heap"
	"slices"
	"time"

	"github.com/warrenmq/warren/fsm"
)

// deferredMessage is a live message that is not to be delivered before a batch clock value, in ms. The truth has that time,
// so that a new leader finds it when it reads the message.
type deferredMessage struct {
	at       int64
	sequence uint64
}

// deferredHeap is a min-heap of such messages by their time. Those that went away meanwhile leave it when their time has
// come, or when it has grown to twice what it needed, deferredSpare included.
type deferredHeap []deferredMessage

func (h deferredHeap) Len() int           { return len(h) }
func (h deferredHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h deferredHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *deferredHeap) Push(x any)        { *h = append(*h, x.(deferredMessage)) }
func (h *deferredHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// isDeferred reports whether a message must not be handed out yet, and then keeps it for later. The caller holds mu.
func (v *view) isDeferred(m *fsm.Message) bool {
	if m.NotBefore == 0 || m.NotBefore <= v.leadership.broker.clock.now() {
		return false
	}
	heap.Push(&v.deferred, deferredMessage{m.NotBefore, m.Sequence})
	if len(v.deferred) > v.deferredMost {
		v.forgetDeferred()
	}
	return true
}

// forgetDeferred drops what is gone from the queue. The caller holds mu.
func (v *view) forgetDeferred() {
	v.deferred = slices.DeleteFunc(v.deferred, func(d deferredMessage) bool {
		return v.leadership.broker.machine.Live(v.queue.Number, []fsm.Run{{From: d.sequence, To: d.sequence}}) == 0
	})
	heap.Init(&v.deferred)
	v.deferredMost = 2*len(v.deferred) + deferredSpare
}

// undefer gives back what is deliverable by now. The caller holds mu.
func (v *view) undefer() {
	if len(v.deferred) == 0 {
		return
	}
	for now := v.leadership.broker.clock.now(); len(v.deferred) > 0 && v.deferred[0].at <= now; {
		v.putBack(heap.Pop(&v.deferred).(deferredMessage).sequence)
	}
}

// untilDeferred returns when to look again for messages that are deliverable by then; 0 when there are none. The batch
// clock may run faster than time: it is looked at often enough. The caller holds mu.
func (v *view) untilDeferred() time.Duration {
	if len(v.deferred) == 0 {
		return 0
	}
	wait := time.Duration(v.deferred[0].at-v.leadership.broker.clock.now()) * time.Millisecond
	return min(max(wait, time.Millisecond), maxDeferredWait)
}
