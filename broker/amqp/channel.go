package amqp

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// channel is one channel of a connection, from channel.open until its number is free again. Requests that wait for the
// log run on its worker, in order; what comes after such a request waits behind it.
type channel struct {
	*broker.Channel
	number     uint16
	connection *connection
	requests   *broker.Requests
	context    context.Context // ends with the channel
	cancel     context.CancelFunc

	// Only the reader uses these.
	incoming   incoming // the message that is coming in
	confirming bool
	published  uint64        // publishes since confirm.select
	work       *transaction  // nil: not transactional
	left       chan struct{} // closed when the client's channel.close is served; nil before it came

	gathered   atomic.Int64 // bytes in the transaction
	returnable atomic.Int32 // mandatory publishes that have no outcome yet

	lastQueue string // of the last declare; only requests in turn use it
	confirms  confirms

	state  atomic.Uint32 // a state; it only goes up
	silent bool          // its end is in the buffer: nothing goes out on the number behind it; guarded by the Outgoing's lock

	mu       sync.Mutex
	failure  *amqp091.Error // the exception that ends it; guarded by mu
	deleting bool           // a queue.delete is under way: the consumers that it ends are told of behind its answer; guarded by mu
	ended    []string       // their tags; guarded by mu
}

// state is how far a channel is from its end.
type state uint32

const (
	open    state = iota
	leaving       // the client closes it: what comes in is dropped, what came in before is still served
	failing       // an exception was raised: what comes in or waits is dropped, channel.close is about to be sent
	closing       // channel.close or close-ok was sent: what comes in is dropped until the client has answered
)

// openChannel serves channel.open.
func (n *connection) openChannel(number uint16) error {
	if old := n.find(number); old != nil {
		if old.left != nil {
			select { // the client did not wait for close-ok
			case <-old.left:
			case <-n.context.Done():
				return errInterrupted
			}
		}
		if n.find(number) != nil {
			return amqp091.Errorf(amqp091.ChannelError, amqp091.ChannelOpenID, "second 'channel.open' seen")
		}
	}
	n.mu.Lock()
	count := len(n.channels)
	n.mu.Unlock()
	if count >= n.channelMax {
		return amqp091.Errorf(amqp091.NotAllowed, 0, "number of channels opened (%d) has reached the negotiated channel_max (%d)", count, n.channelMax)
	}
	b, err := n.session.Channel(uint32(number))
	if err != nil {
		return exceptionOf(err, amqp091.ChannelOpenID)
	}
	c := &channel{Channel: b, number: number, connection: n, requests: broker.NewRequests(&n.work, n.room)}
	c.context, c.cancel = context.WithCancel(n.context)
	c.confirms.channel = c
	n.mu.Lock()
	n.channels[number] = c
	n.mu.Unlock()
	n.send(number, &amqp091.ChannelOpenOk{})
	return nil
}

func (c *channel) is(s state) bool { return state(c.state.Load()) == s }

// enter moves the state on; false when it was there already.
func (c *channel) enter(s state) bool {
	for {
		now := c.state.Load()
		if state(now) >= s {
			return false
		}
		if c.state.CompareAndSwap(now, uint32(s)) {
			return true
		}
	}
}

// ends notes the exception that ends the channel; false when it has failed or ended already.
func (c *channel) ends(x *amqp091.Error) bool {
	c.mu.Lock() // close looks for both
	defer c.mu.Unlock()
	if !c.enter(failing) {
		return false
	}
	c.failure = x
	return true
}

// inTurn runs a request on the worker, behind those before it. bytes is the memory that it keeps. A request of a
// channel that has failed meanwhile is dropped.
func (c *channel) inTurn(bytes int, request func() error) { c.inTurnThen(bytes, request, func() {}) }

// inTurnThen also calls a function at the end, of a dropped request too.
func (c *channel) inTurnThen(bytes int, request func() error, then func()) {
	c.connection.held.Add(int64(bytes))
	c.requests.Do(bytes, func() {
		defer then()
		defer c.connection.held.Add(-int64(bytes))
		if c.is(open) || c.is(leaving) {
			c.failed(request())
		}
	})
}

// direct runs a request now if nothing of its channel waits, else in its turn. Its error ends the connection.
func (c *channel) direct(bytes int, request func() error) error {
	if c.requests.Busy() {
		c.inTurn(bytes, request)
		return nil
	}
	var x *amqp091.Error
	switch err := request(); {
	case err == nil || errors.Is(err, context.Canceled):
		return nil
	case !errors.As(err, &x):
		return exceptionOf(err, 0)
	case x.Hard():
		return x
	}
	c.fail(x)
	return nil
}

// reply is direct for a request that is answered: what came before it is returned, if it must be, before the answer.
func (c *channel) reply(bytes int, request func() error) error {
	if c.returnable.Load() == 0 {
		return c.direct(bytes, request)
	}
	c.inTurn(bytes, func() error {
		if err := c.returned(); err != nil {
			return err
		}
		return request()
	})
	return nil
}

// returned waits until the outcome of every mandatory publish is known and told.
func (c *channel) returned() error {
	if c.returnable.Load() == 0 {
		return nil
	}
	return c.connection.session.Settled(c.context)
}

// failed ends the channel or the connection for an error of a request; it runs where the channel's requests run.
func (c *channel) failed(err error) {
	var x *amqp091.Error
	switch {
	case err == nil || errors.Is(err, context.Canceled):
	case !errors.As(err, &x):
		c.connection.raise(exceptionOf(err, 0))
	case x.Hard():
		c.connection.raise(x)
	default:
		if c.ends(x) {
			c.close()
		}
	}
}

// fail ends the channel for a soft exception that the reader met. Frames that follow on it are dropped.
func (c *channel) fail(x *amqp091.Error) {
	if c.ends(x) {
		c.drop()
		c.requests.Do(0, c.close)
	}
}

// failLater is fail for goroutines that must not block.
func (c *channel) failLater(x *amqp091.Error) {
	if x.Hard() {
		c.connection.raise(x)
		return
	}
	if c.ends(x) {
		c.connection.spawn(func() { c.requests.Do(0, c.close) })
	}
}

// close sends channel.close, once, behind the confirms of everything that was accepted before. What the channel held
// returns to its queues at once. It runs where the channel's requests run.
func (c *channel) close() {
	n := c.connection
	c.mu.Lock()
	x, due := c.failure, c.is(failing)
	c.mu.Unlock()
	if !due {
		return
	}
	c.Channel.Close()
	c.forgetTransaction()
	_ = n.session.Settled(n.context) // when it fails the connection ends
	n.server.log.Debug("closed an AMQP channel", "peer", n.name(), "channel", c.number, "code", uint16(x.Code), "reason", x.Text)
	n.server.broker.Refused()
	c.enter(closing)
	m := amqp091.ChannelClose{ReplyCode: uint16(x.Code), ReplyText: x.ReplyText(), Cause: x.Cause}
	c.last(&m)
}

// leave serves the client's channel.close, behind all that the client asked for: the number is free again when the answer
// is on its way. If something of that fails, the client is told so first and has to answer, as when closes cross.
func (c *channel) leave() {
	n := c.connection
	c.enter(leaving)
	c.drop()
	if n.server.broker.Blocked() { // if it comes to that later, watch does this
		c.cancel() // publishes that are held up will not be made
	}
	c.left = make(chan struct{})
	c.requests.Do(0, func() {
		defer close(c.left)
		c.Channel.Close()
		c.forgetTransaction()
		_ = n.session.Settled(n.context) // when it fails the connection ends
		if !c.state.CompareAndSwap(uint32(leaving), uint32(closing)) {
			c.close()
			n.send(c.number, &amqp091.ChannelCloseOk{})
			return
		}
		c.cancel()
		n.forget(c)
		c.last(&amqp091.ChannelCloseOk{})
	})
}

// last sends the channel's last method, behind all that is pending.
func (c *channel) last(m amqp091.Method) {
	c.connection.out.AppendBehind(func(b []byte) []byte {
		c.silent = true
		return m.AppendFrame(b, c.number)
	})
}

// send appends a method to what goes out, unless the channel's end is in it already: clients take what comes behind that
// for an error of the connection.
func (c *channel) send(m amqp091.Method) {
	c.append(func(b []byte) []byte { return m.AppendFrame(b, c.number) })
}

// append is send of more than a method.
func (c *channel) append(add func(b []byte) []byte) {
	c.connection.out.Append(func(b []byte) []byte {
		if c.silent {
			return b
		}
		return add(b)
	})
}

// forget frees the channel's number.
func (n *connection) forget(c *channel) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.channels[c.number] == c {
		delete(n.channels, c.number)
	}
}

// find returns the channel of a number, nil if it is not open.
func (n *connection) find(number uint16) *channel {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.channels[number]
}
