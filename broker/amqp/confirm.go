package amqp

import (
	"sync"

	"github.com/warrenmq/warren/protocol/amqp091"
)

// confirms turns the outcomes of a channel's publishes into basic.ack and basic.nack. What has come together when the
// connection's writer takes its buffer is told in as few frames as possible; nothing waits to be put together.
type confirms struct {
	channel *channel

	mu      sync.Mutex
	told    uint64              // all numbers up to it are settled, or will be by what is in due; guarded by mu
	early   map[uint64]struct{} // settled numbers above told; bounded by what a session has in flight; guarded by mu
	due     []confirm           // guarded by mu
	pending bool                // the writer has been asked to call AppendPending; guarded by mu
}

// confirm is a frame to be sent.
type confirm struct {
	number   uint64
	multiple bool
	refused  bool
}

// settle notes the outcome of a publish.
func (c *confirms) settle(number uint64, refused bool) {
	c.mu.Lock()
	last := len(c.due) - 1
	switch {
	case number != c.told+1: // another one below it has no outcome yet
		if c.early == nil {
			c.early = map[uint64]struct{}{}
		}
		c.early[number] = struct{}{}
		c.due = append(c.due, confirm{number: number, refused: refused})
	case !refused && last >= 0 && !c.due[last].refused && c.due[last].number == c.told:
		c.due[last] = confirm{number: number, multiple: true}
		c.told = number
	default:
		c.due = append(c.due, confirm{number: number, refused: refused})
		c.told = number
	}
	for len(c.early) > 0 {
		if _, ok := c.early[c.told+1]; !ok {
			break
		}
		c.told++
		delete(c.early, c.told)
	}
	ask := !c.pending
	c.pending = true
	c.mu.Unlock()
	if ask {
		c.channel.connection.out.Pend(c)
	}
}

// AppendPending appends the frames that are due (broker.Pending).
func (c *confirms) AppendPending(b []byte) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.channel.silent {
		c.due = nil
	}
	for _, d := range c.due {
		if d.refused {
			b = (&amqp091.BasicNack{DeliveryTag: d.number, Requeue: true}).AppendFrame(b, c.channel.number)
		} else {
			b = (&amqp091.BasicAck{DeliveryTag: d.number, Multiple: d.multiple}).AppendFrame(b, c.channel.number)
		}
	}
	c.due = c.due[:0]
	c.pending = false
	return b
}
