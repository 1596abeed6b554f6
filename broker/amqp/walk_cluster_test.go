package amqp_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warrenmq/warren/broker/amqp/amqptest"
	"github.com/warrenmq/warren/broker/server"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// mortal is the test of a walker whose connection may end at any time, which fails nothing.
type mortal struct{ testing.TB }

func (m mortal) Fatalf(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !strings.Contains(text, "closed the connection") && !strings.Contains(text, "connection close 320") {
		m.TB.Errorf("%s", text)
	}
	runtime.Goexit()
}

func (m mortal) Fatal(args ...any) { m.Fatalf("%s", fmt.Sprint(args...)) }

// TestRandomWalkThroughFollowers: the same through relays, while leadership moves. What was confirmed is there afterwards, no
// exclusive queue of a connection that has ended stays, and the nodes agree.
func TestRandomWalkThroughFollowers(t *testing.T) {
	seed := *walkSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	c := startTrio(t, func(config *server.Config) { config.CloseWithin = 5 * time.Second })
	t.Logf("-seed %d", seed)
	_, ch := c.dial(c.members[0])
	ch.Declare(amqptest.Quorum("healthy"))
	end := make(chan struct{})
	var walking sync.WaitGroup
	for i := range 3 {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		walking.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
				}
				var life sync.WaitGroup
				life.Go(func() { // it may end in the middle
					w := &walker{chooser: random, prefix: fmt.Sprint("walk", random.IntN(2))}
					conn := amqptest.On(mortal{t}, c.connect(c.members[i]))
					w.walk(conn, 1+random.IntN(100))
					conn.Cut()
				})
				life.Wait()
			}
		})
	}
	confirmed := 0
	for range 2 {
		leader := c.leader()
		_, ch := c.dial(c.followers()[0])
		var trying atomic.Bool
		var moving sync.WaitGroup
		sent, settled := publishUntilEnd(ch, "healthy", func(n int) {
			if n > 100 && !trying.Swap(true) { // it may fail, and is tried again until the connection ends
				moving.Go(func() {
					_ = leader.process.Broker().HandOver(t.Context())
					trying.Store(false)
				})
			}
		})
		moving.Wait()
		t.Logf("%d sent, %d confirmed", sent, settled)
		confirmed += settled
	}
	close(end)
	walking.Wait()
	c.leader()
	_, ch = c.dial(c.followers()[0])
	if n := ch.Look("healthy").MessageCount; int(n) < confirmed {
		t.Errorf("%d were confirmed, %d are there", confirmed, n)
	}
	for _, q := range []string{"walk0a", "walk0b", "walk0c", "walk0none", "walk1a", "walk1b", "walk1c", "walk1none"} {
		deleteSoon(ch, q)
	}
	ch.Call(&amqp091.ChannelFlow{Active: true})
	c.agree()
}
