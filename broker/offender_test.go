package broker

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestOffenderFirst: near the watermark of memory the connection that makes a queue grow is slowed, and says so in the list of
// connections; one whose queue is consumed is as fast as before, and nobody is blocked.
func TestOffenderFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var used atomic.Uint64
		a := startAlone(t, Config{Watermarks: Watermarks{MemoryUsed: used.Load, MaxMemory: 64 << 20}})
		offender, other := a.connect(), a.connect()
		offender.declare(Queue{Name: "grows", Durable: true})
		other.declare(Queue{Name: "flows", Durable: true})
		other.consume(other.channel(1), Consumer{Queue: "flows", AutoAck: true})
		body := strings.Repeat("x", 10_000)
		publish := func(w *wire, queue string, d time.Duration) (n int) {
			for end := time.Now().Add(d); time.Now().Before(end); n++ {
				w.publish(queue, body)
				if queue == "flows" {
					w.next("", body)
				}
				time.Sleep(2 * time.Millisecond)
			}
			return n
		}
		both := func(d time.Duration) (grown, flown int) {
			var work sync.WaitGroup
			work.Go(func() { grown = publish(offender, "grows", d) })
			work.Go(func() { flown = publish(other, "flows", d) })
			work.Wait()
			return grown, flown
		}
		both(3 * time.Second) // queues are watched for a while before they are said to grow
		free, flowing := both(4 * time.Second)
		used.Store(62 << 20)
		both(time.Second)
		slowed, flown := both(4 * time.Second)
		if slowed > free/4 || slowed == 0 || flown < flowing*9/10 {
			t.Errorf("the one that makes its queue grow published %d and then %d, the other %d and %d", free, slowed, flowing, flown)
		}
		offender.publish("grows", body)
		for w, want := range map[*wire]string{offender: StateFlow, other: StateRunning} {
			if state := w.session.row().State; state != want {
				t.Errorf("a connection is in the state %q, want %q", state, want)
			}
		}
		if a.broker.Blocked() {
			t.Error("publishes are held up below the watermark")
		}
	})
}
