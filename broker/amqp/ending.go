package amqp

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/fsm"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// ended says how a connection ends.
type ended struct {
	exception *amqp091.Error // connection.close is sent with it
	lost      bool           // the framing is lost: nothing more is understood
	asked     bool           // the client sent connection.close
	quiet     time.Duration  // without a frame, the socket is closed after this
}

// gone is the end of a connection whose socket is closed or dead.
var gone = &ended{}

// errAsked is the error of serving connection.close.
var errAsked = errors.New("connection.close")

// endOf turns what stopped the reader into the end of the connection.
func (n *connection) endOf(err error) *ended {
	var e *amqp091.Error
	switch {
	case errors.Is(err, errAsked):
		return &ended{asked: true}
	case errors.As(err, &e):
		return &ended{exception: e, lost: e.Fatal}
	case errors.Is(err, errInterrupted):
		n.mu.Lock()
		defer n.mu.Unlock()
		return &ended{exception: n.failure}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) && n.session != nil {
		n.server.log.Info("an AMQP client missed its heartbeats; its connection is closed", "peer", n.name(), "heartbeat", n.heartbeat)
	} else if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		n.server.log.Debug("an AMQP client's connection ended", "peer", n.name(), "error", err)
	}
	return gone
}

// end says good-bye as section 1.10 of the reference has it. Everything the client held has been given back.
func (n *connection) end(e *ended) {
	switch {
	case e.asked:
		n.send(0, &amqp091.ConnectionCloseOk{})
		n.out.Close()
		n.linger(lingerTimeout)
	case e.exception != nil:
		x := e.exception
		n.logException(x)
		n.send(0, closeOf(x))
		if e.lost {
			n.out.Close()
			n.linger(penalty)
			return
		}
		n.awaitCloseOk()
	case e.quiet > 0:
		n.linger(e.quiet)
	}
}

// logException writes the one line that a misbehaving connection is worth.
func (n *connection) logException(x *amqp091.Error) {
	if x.Code == amqp091.ConnectionForced {
		n.server.log.Info("closed an AMQP connection", "peer", n.name(), "code", uint16(x.Code), "reason", x.Text)
		return
	}
	n.server.broker.Refused()
	n.server.log.Warn("closed an AMQP connection for what its client sent", "peer", n.name(), "code", uint16(x.Code), "reason", x.Text, "method", x.Cause.String())
}

func (n *connection) name() string { return n.conn.RemoteAddr().String() }

// awaitCloseOk discards everything but close and close-ok.
func (n *connection) awaitCloseOk() {
	timeout := closeOkTimeout
	if n.heartbeat > 0 {
		timeout = min(timeout, n.heartbeat)
	}
	n.reads.resume()
	n.reads.within(time.Now().Add(timeout), 0)
	for {
		f, err := n.reader.Next()
		if err != nil {
			return
		}
		if f.Type != amqp091.FrameMethod || f.Channel != 0 {
			continue
		}
		payload, err := n.reader.Payload()
		if err != nil {
			return
		}
		switch id, _, _ := amqp091.SplitMethod(payload); id {
		case amqp091.ConnectionCloseID:
			n.send(0, &amqp091.ConnectionCloseOk{})
		case amqp091.ConnectionCloseOkID:
			return
		}
	}
}

// linger reads and discards until the client closes its end, so that what was written last is not lost to a reset.
func (n *connection) linger(timeout time.Duration) {
	n.reads.resume()
	n.reads.within(time.Now().Add(timeout), 0)
	var b [4096]byte
	for {
		if _, err := n.reads.Read(b[:]); err != nil {
			return
		}
	}
}

func forced(reason string) *amqp091.Error {
	return amqp091.Errorf(amqp091.ConnectionForced, 0, "%s", reason)
}

func closeOf(x *amqp091.Error) *amqp091.ConnectionClose {
	return &amqp091.ConnectionClose{ReplyCode: uint16(x.Code), ReplyText: x.ReplyText(), Cause: x.Cause}
}

// asException finds the exception in an error.
func asException(err error, x **amqp091.Error) bool { return errors.As(err, x) }

// exceptionOf turns an error of the broker into an exception; one that is an exception already is passed on.
func exceptionOf(err error, method amqp091.MethodID) *amqp091.Error {
	var x *amqp091.Error
	if errors.As(err, &x) {
		if x.Cause == 0 {
			x.Cause = method
		}
		return x
	}
	e := broker.AsError(err)
	return exceptionOfCode(e.Code, e.Message, method)
}

// exceptionOfCode is exceptionOf for a result. Codes of Warren's own have none of AMQP's: they end the connection, since
// the client cannot know what became of its request.
func exceptionOfCode(code fsm.Code, message string, method amqp091.MethodID) *amqp091.Error {
	_, reason, _ := strings.Cut(message, " - ")
	switch {
	case code == broker.Overloaded:
		return amqp091.Errorf(amqp091.ResourceError, method, "%s", reason)
	case code >= 600:
		return forced(leaderGone + ": " + reason)
	}
	return amqp091.Errorf(amqp091.Code(code), method, "%s", reason)
}
