package client

import (
	"errors"
	"fmt"

	"github.com/warrenmq/warren/protocol/native"
)

// The named errors. What the broker refuses is an *Error that matches one of them under errors.Is.
var (
	ErrClosed             = errors.New("connection or channel closed")
	ErrNotFound           = errors.New("not found")
	ErrPreconditionFailed = errors.New("precondition failed")
	ErrResourceLocked     = errors.New("resource locked")
	ErrAccessRefused      = errors.New("access refused")
	ErrNotAllowed         = errors.New("not allowed")
	ErrNotImplemented     = errors.New("not implemented")
	ErrContentTooLarge    = errors.New("content too large")
	ErrNotLeader          = errors.New("not the leader")
	ErrNoLeader           = errors.New("no leader")
	ErrOverloaded         = errors.New("overloaded")
	ErrSequenceTooOld     = errors.New("sequence below the deduplication window")
	ErrQueueFull          = errors.New("queue full") // one that the message leads to; others may have it
	// ErrOutcomeUnknown: the connection or the leadership ended before the answer; the request may or may not have
	// taken effect, and it was not sent again.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrStaleDelivery: the delivery came over an earlier connection; its message is delivered again.
	ErrStaleDelivery = errors.New("stale delivery")
	// ErrReturned: a mandatory message reached no queue.
	ErrReturned = errors.New("message returned")
	// ErrCancelled: the broker ended the consumer, as a rule because its queue is gone.
	ErrCancelled = errors.New("consumer cancelled by the broker")
	// ErrBlocked: the broker is short of memory or disk and holds publishes up; this one was not sent.
	ErrBlocked = errors.New("publishes are held up by the broker")
	// ErrProtocol: the broker sent what it must not.
	ErrProtocol = errors.New("protocol error")
)

// Error is a refusal by the broker.
type Error struct {
	Code    uint16 // an AMQP reply code, or one of Warren's from 600
	Message string
}

// Error gives the broker's sentence and its code.
func (e *Error) Error() string { return fmt.Sprintf("%s (code %d)", e.Message, e.Code) }

// Unwrap returns the named error of the code, or nil.
func (e *Error) Unwrap() error {
	switch e.Code {
	case native.NotFound:
		return ErrNotFound
	case native.PreconditionFailed:
		return ErrPreconditionFailed
	case native.ResourceLocked:
		return ErrResourceLocked
	case native.AccessRefused:
		return ErrAccessRefused
	case native.NotAllowed:
		return ErrNotAllowed
	case native.NotImplemented:
		return ErrNotImplemented
	case native.ContentTooLarge:
		return ErrContentTooLarge
	case native.NotLeader, native.StaleTerm:
		return ErrNotLeader
	case native.NoLeader:
		return ErrNoLeader
	case native.LeadershipLost:
		return ErrOutcomeUnknown
	case native.Overloaded:
		return ErrOverloaded
	case native.SequenceTooOld:
		return ErrSequenceTooOld
	case native.QueueFull:
		return ErrQueueFull
	}
	return nil
}

// ReturnError tells which mandatory message reached no queue. It matches ErrReturned.
type ReturnError struct{ Exchange, RoutingKey string }

// Error names the exchange and the routing key.
func (e *ReturnError) Error() string {
	return fmt.Sprintf("message returned: exchange %q routes key %q to no queue", e.Exchange, e.RoutingKey)
}

// Unwrap returns ErrReturned.
func (e *ReturnError) Unwrap() error { return ErrReturned }

func refusal(r *native.Reply) error {
	if r.Code == native.OK {
		return nil
	}
	return &Error{Code: r.Code, Message: r.Message}
}

// retryable reports whether another try, perhaps at another node, is what the code asks for.
func retryable(code uint16) bool {
	switch code {
	case native.NotLeader, native.NoLeader, native.LeadershipLost, native.Overloaded, native.StaleTerm:
		return true
	}
	return false
}
