package amqptest

import (
	"errors"
	"io"
	"os"
	"time"

	"github.com/warrenmq/warren/protocol/amqp091"
)

// What Poll says of a connection, besides the codes of connection.close.
const (
	Open    amqp091.Code = 0
	Closed  amqp091.Code = 1 // without a word
	Conn320              = amqp091.ConnectionForced
)

// Poll returns the next event of any channel, nil when none comes within a time, and whether the connection is still open, for
// tests in which it may end at any time.
func (c *Conn) Poll(d time.Duration) (*Event, amqp091.Code) {
	c.T.Helper()
	e, err := c.next(time.Now().Add(d))
	switch {
	case err == io.EOF:
		return nil, Closed
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, Open
	case err != nil:
		c.T.Fatal(err)
	}
	if m, ok := e.Method.(*amqp091.ConnectionClose); ok {
		c.Send(0, &amqp091.ConnectionCloseOk{})
		return e, amqp091.Code(m.ReplyCode)
	}
	return e, Open
}
