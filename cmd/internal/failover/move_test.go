package failover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/warrenmq/warren/client"
	"github.com/warrenmq/warren/protocol/native"
)

// moveCount is how many messages are moved while leaders die.
const moveCount = 10_000

// TestLeaderIsKilledInTheMiddleOfAMove: every message is in exactly one place afterwards, in its order; going on moves the
// rest. To stop a move by hand is no different.
func TestLeaderIsKilledInTheMiddleOfAMove(t *testing.T) {
	c := startCluster(t, 3)
	c.Declare("from", "to")
	c.publishNumbered("from", moveCount, 1000)

	conn := c.Dial()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var killing sync.WaitGroup
	kills := 0
	tally, err := conn.Move(ctx, client.Move{Queue: "from", Target: native.MoveToQueue, To: "to"}, func(t client.Tally) {
		if kills < 3 && t.Moved >= uint64(kills+1)*moveCount/5 {
			kills++
			killing.Wait()
			leader := c.Leader()
			later := time.Duration(kills) * 3 * time.Millisecond
			killing.Go(func() { // while the next step is under way
				pass(c.t, later)
				leader.Kill()
				leader.Start()
			})
		}
	})
	killing.Wait()
	c.check(err)
	if kills == 0 {
		t.Fatal("the move was over before a leader was killed")
	}
	c.Ready()
	t.Logf("%d leaders killed; the tally says that %d of %d were moved", kills, tally.Moved, moveCount)
	if left := c.numbers("from"); len(left) > 0 {
		t.Errorf("%d messages were left behind", len(left))
	}
	c.expectEachOnce("to")

	moving, stop := context.WithCancel(t.Context())
	tally, err = conn.Move(moving, client.Move{Queue: "to", Target: native.MoveToQueue, To: "from"}, func(client.Tally) { time.AfterFunc(time.Millisecond, stop) })
	if !errors.Is(err, context.Canceled) || tally.Moved == 0 || tally.Moved == moveCount {
		t.Fatalf("a move that was stopped after %d messages: %v", tally.Moved, err)
	}
	c.expectEachOnce("from", "to")
	c.Agree()
}

// publishNumbered publishes numbered messages.
func (c *cluster) publishNumbered(queue string, count, size int) {
	c.t.Helper()
	ch := c.Channel()
	var confirms []*client.Confirm
	for i := range count {
		body := make([]byte, size)
		copy(body, fmt.Sprintf("%06d", i))
		f, err := ch.PublishAsync(c.t.Context(), "", queue, client.Message{Body: body})
		c.check(err)
		confirms = append(confirms, f)
	}
	for _, f := range confirms {
		_, err := f.Wait(c.t.Context())
		c.check(err)
	}
}

// numbers are those of the messages that a queue has, in order.
func (c *cluster) numbers(queue string) (list []int) {
	c.t.Helper()
	c.check(c.Dial().Peek(c.t.Context(), queue, client.Peek{Truncate: 6}, func(p *client.Peeked) error {
		var n int
		_, err := fmt.Sscanf(string(p.Body), "%06d", &n)
		list = append(list, n)
		return err
	}))
	return list
}

// expectEachOnce checks that queues together have each message once, and each queue has them in order. What was on its
// way when a move was stopped may still arrive.
func (c *cluster) expectEachOnce(queues ...string) {
	c.t.Helper()
	await(c.t, 20*time.Second, "each message in one place", func() error {
		var all []int
		for _, q := range queues {
			list := c.numbers(q)
			if !slices.IsSorted(list) {
				c.t.Fatalf("the messages of queue %s are not in order", q)
			}
			all = append(all, list...)
		}
		slices.Sort(all)
		if n := len(slices.Compact(slices.Clone(all))); n != moveCount || len(all) != moveCount {
			return fmt.Errorf("queues %v have %d messages, %d different ones, of %d", queues, len(all), n, moveCount)
		}
		return nil
	})
}
