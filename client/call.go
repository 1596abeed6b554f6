package client

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/warrenmq/warren/protocol/native"
)

// call is a request other than a publish or a settlement, on its way. Its frame is sent again over the next link
// unless once says that a repetition could take effect twice.
type call struct {
	rid      uint64
	frame    []byte
	once     bool
	internal bool // of the restoring of one link; not sent again
	sent     bool
	answer   native.Frame // to be decoded into; nil when the reply is all
	reply    native.Reply
	body     []byte // of a get
	epoch    uint64 // of the link that answered
	err      error
	done     chan struct{} // closed by finish, once
	after    func(*call)   // called with mu held when the call succeeded
}

func (k *call) finish(l *link, err error) {
	k.err = err
	if l != nil {
		k.epoch = l.epoch
	}
	close(k.done)
}

func sortedCalls(calls map[uint64]*call) []*call {
	out := make([]*call, 0, len(calls))
	for _, k := range calls {
		if !k.internal {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, func(a, b *call) int {
		if a.rid < b.rid {
			return -1
		}
		return 1
	})
	return out
}

func (c *Connection) rid() uint64 {
	c.lastRID += 2
	return c.lastRID
}

// do sends the frame that make builds for a request id and waits for its answer.
func (c *Connection) do(ctx context.Context, k *call, make func(rid uint64) native.Frame) error {
	return c.doBytes(ctx, k, func(b []byte, rid uint64) []byte { return native.Append(b, make(rid)) })
}

// doBytes is do for frames that make appends with mu held; when it returns nil, nothing is sent and k.err returned.
func (c *Connection) doBytes(ctx context.Context, k *call, make func(b []byte, rid uint64) []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return ErrClosed
	}
	k.rid, k.done = c.rid(), newDone()
	if k.frame = make(nil, k.rid); k.frame == nil {
		c.mu.Unlock()
		return k.err
	}
	c.calls[k.rid] = k
	if l := c.ready; l != nil {
		k.sent = true
		l.out = append(l.out, k.frame...)
		l.signal()
	}
	c.mu.Unlock()
	select {
	case <-k.done:
		return k.err
	case <-ctx.Done():
		c.mu.Lock()
		delete(c.calls, k.rid)
		err := c.lastErr
		c.mu.Unlock()
		if err != nil {
			return fmt.Errorf("%w (%w)", ctx.Err(), err)
		}
		return ctx.Err()
	}
}

// abandon sends a request whose answer does not matter, when there is a link to undo something on.
func (c *Connection) abandon(f *native.Cancel) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.ready; l != nil {
		f.RID = c.rid()
		l.out = native.Append(l.out, f)
		l.signal()
	}
}

func newDone() chan struct{} { return make(chan struct{}) }

// receive handles one frame. An error ends the link.
func (c *Connection) receive(l *link, t native.Type, payload []byte) error {
	switch t {
	case native.TypePublish.Response():
		var ok native.PublishOK
		if err := native.DecodePublishOK(payload, &ok); err != nil {
			return err
		}
		return c.confirmed(&ok)
	case native.TypeDeliver:
		var d native.Deliver
		if err := native.DecodeDeliver(payload, &d); err != nil {
			return err
		}
		return c.deliver(l, &d)
	case native.TypeAck.Response(), native.TypeNack.Response():
		var r native.Reply
		if err := native.DecodeReply(t, payload, &r); err != nil {
			return err
		}
		return c.settled(&r)
	case native.TypeBodyPart:
		var p native.BodyPart
		if err := native.Decode(payload, &p); err != nil {
			return err
		}
		return l.addPart(&p)
	case native.TypeCancel:
		var f native.Cancel
		if err := native.Decode(payload, &f); err != nil {
			return err
		}
		c.mu.Lock()
		var consumer *Consumer
		if ch := c.channels[f.Channel]; ch != nil {
			consumer = ch.consumers[f.ConsumerTag]
			delete(ch.consumers, f.ConsumerTag)
		}
		c.mu.Unlock()
		if consumer != nil {
			consumer.end(ErrCancelled)
		}
		return nil
	case native.TypeFlow:
		var f native.Flow
		if err := native.Decode(payload, &f); err != nil {
			return err
		}
		c.flow(l, &f)
		return nil
	case native.TypeReturn: // the publish's response says it too
		var f native.Return
		if err := native.Decode(payload, &f); err != nil {
			return err
		}
		l.takeParts(f.Upload)
		return nil
	case native.TypeRedirect:
		var r native.Redirect
		if err := native.Decode(payload, &r); err != nil {
			return err
		}
		f := &follower{r.Leader, r.Members}
		c.learn(f)
		return f
	}
	if t.IsResponse() {
		return c.answered(l, t, payload)
	}
	return nil // heartbeat, and what later brokers may push
}

func (c *Connection) answered(l *link, t native.Type, payload []byte) error {
	var r native.Reply
	if err := native.DecodeReply(t, payload, &r); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.calls[r.RID]
	if k == nil {
		if r.RID == 0 {
			return refusal(&r) // of no request: the broker ends the connection
		}
		return nil // given up, or a body part's
	}
	if retryable(r.Code) && (!k.once || r.Code != native.LeadershipLost) {
		return refusal(&r) // the link ends; lost and begin do the rest
	}
	delete(c.calls, r.RID)
	k.reply = r
	err := refusal(&r)
	if err == nil && k.answer != nil {
		err = native.Decode(payload, k.answer)
		if get, ok := k.answer.(*native.GetOK); ok {
			k.body = l.body(&get.Delivery)
		}
	}
	if err == nil && k.after != nil {
		k.after(k)
	}
	if r.Code == native.LeadershipLost {
		err = fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
	k.finish(l, err)
	var refused *Error
	if err != nil && !errors.As(err, &refused) && !errors.Is(err, ErrOutcomeUnknown) {
		return err
	}
	return nil
}
