package amqptest

import (
	"time"

	"github.com/warrenmq/warren/protocol/amqp091"
)

// Channel is one channel of a connection.
type Channel struct {
	*Conn
	Number uint16
}

// Channel opens a channel.
func (c *Conn) Channel(number uint16) *Channel {
	c.T.Helper()
	ch := &Channel{c, number}
	ch.Call(&amqp091.ChannelOpen{})
	return ch
}

// Send writes methods.
func (ch *Channel) Send(methods ...amqp091.Method) {
	ch.T.Helper()
	ch.Conn.Send(ch.Number, methods...)
}

// Next returns the next event.
func (ch *Channel) Next() *Event {
	ch.T.Helper()
	return ch.Conn.Next(ch.Number)
}

// Expect returns the next event, whose method must be the one given.
func (ch *Channel) Expect(id amqp091.MethodID) *Event {
	ch.T.Helper()
	return ch.Conn.Expect(ch.Number, id)
}

// answer is the method that answers one.
func answer(id amqp091.MethodID) amqp091.MethodID {
	if id == amqp091.ExchangeUnbindID {
		return amqp091.ExchangeUnbindOkID
	}
	return id + 1
}

// Call sends a request and returns its answer, which must be the next that comes.
func (ch *Channel) Call(m amqp091.Method) amqp091.Method {
	ch.T.Helper()
	ch.Send(m)
	return ch.Expect(answer(m.ID())).Method
}

// Pass sends a request and returns its answer and what came before it, as when deliveries are under way.
func (ch *Channel) Pass(m amqp091.Method) (amqp091.Method, []*Event) {
	ch.T.Helper()
	ch.Send(m)
	var before []*Event
	for {
		e := ch.Next()
		switch e.Method.ID() {
		case answer(m.ID()):
			return e.Method, before
		case amqp091.ChannelCloseID:
			ch.T.Fatalf("%s was answered with %s", m.ID(), Describe(e.Method))
		}
		before = append(before, e)
	}
}

// Refused sends a method and expects the channel to be closed for it. Then it opens the channel again.
func (ch *Channel) Refused(m amqp091.Method, code amqp091.Code, text string) {
	ch.T.Helper()
	ch.Send(m)
	ch.ExpectClose(code, m.ID(), text)
	ch.Reopen()
}

// ExpectClose waits for channel.close, checks it and answers it. The text is the part behind the code's name; "" is any. What
// came on the channel before is dropped.
func (ch *Channel) ExpectClose(code amqp091.Code, cause amqp091.MethodID, text string) []*Event {
	ch.T.Helper()
	before := ch.ReceiveClose(code, cause, text)
	ch.Send(&amqp091.ChannelCloseOk{})
	return before
}

// ReceiveClose is ExpectClose without the answer. It returns what came before.
func (ch *Channel) ReceiveClose(code amqp091.Code, cause amqp091.MethodID, text string) (before []*Event) {
	ch.T.Helper()
	for {
		e := ch.Next()
		m, ok := e.Method.(*amqp091.ChannelClose)
		if !ok {
			before = append(before, e)
			continue
		}
		if m.ReplyCode != uint16(code) || cause != AnyMethod && m.Cause != cause || text != "" && m.ReplyText != amqp091.ShortText(code.String()+" - "+text) {
			ch.T.Fatalf("the broker closed the channel with\n  %s, want\n  %s", Describe(m), describe(uint16(code), code.String()+" - "+text, cause))
		}
		return before
	}
}

// Reopen opens the channel's number again.
func (ch *Channel) Reopen() {
	ch.T.Helper()
	ch.Call(&amqp091.ChannelOpen{})
}

// Leave closes the channel.
func (ch *Channel) Leave() {
	ch.T.Helper()
	ch.Pass(&amqp091.ChannelClose{ReplyCode: 200})
}

// Fatal sends a method and expects the connection to be closed for it.
func (ch *Channel) Fatal(m amqp091.Method, code amqp091.Code, text string) {
	ch.T.Helper()
	ch.Send(m)
	ch.Conn.ExpectClose(code, m.ID(), text)
}

// Quiet checks that nothing has come on the channel: the answer to a request is the next thing.
func (ch *Channel) Quiet() {
	ch.T.Helper()
	if e := ch.Idle(); e != nil {
		ch.T.Fatalf("on a quiet channel came %s", Describe(e.Method))
	}
}

// Idle is Quiet for channels on which something may have come: it returns the first such event.
func (ch *Channel) Idle() *Event {
	ch.T.Helper()
	_, before := ch.Pass(&amqp091.ChannelFlow{Active: true})
	if len(before) > 0 {
		return before[0]
	}
	return nil
}

// Nothing checks that nothing comes for a time, for what only time can tell.
func (ch *Channel) Nothing(d time.Duration) {
	ch.T.Helper()
	if e := ch.NextWithin(ch.Number, d); e != nil {
		ch.T.Fatalf("on a quiet channel came %s", Describe(e.Method))
	}
}
