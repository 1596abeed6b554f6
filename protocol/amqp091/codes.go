package amqp091

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Code is a reply code: why a channel or a connection is closed, or a message returned.
type Code uint16

// The reply codes. Those with Hard close the connection, the others the channel.
const (
	ReplySuccess       Code = 200
	ContentTooLarge    Code = 311
	NoRoute            Code = 312
	NoConsumers        Code = 313
	ConnectionForced   Code = 320
	InvalidPath        Code = 402
	AccessRefused      Code = 403
	NotFound           Code = 404
	ResourceLocked     Code = 405
	PreconditionFailed Code = 406
	FrameError         Code = 501
	SyntaxError        Code = 502
	CommandInvalid     Code = 503
	ChannelError       Code = 504
	UnexpectedFrame    Code = 505
	ResourceError      Code = 506
	NotAllowed         Code = 530
	NotImplemented     Code = 540
	InternalError      Code = 541
)

var codeNames = map[Code]string{
	ReplySuccess: "REPLY_SUCCESS", ContentTooLarge: "CONTENT_TOO_LARGE", NoRoute: "NO_ROUTE", NoConsumers: "NO_CONSUMERS",
	ConnectionForced: "CONNECTION_FORCED", InvalidPath: "INVALID_PATH", AccessRefused: "ACCESS_REFUSED", NotFound: "NOT_FOUND",
	ResourceLocked: "RESOURCE_LOCKED", PreconditionFailed: "PRECONDITION_FAILED", FrameError: "FRAME_ERROR",
	SyntaxError: "SYNTAX_ERROR", CommandInvalid: "COMMAND_INVALID", ChannelError: "CHANNEL_ERROR",
	UnexpectedFrame: "UNEXPECTED_FRAME", ResourceError: "RESOURCE_ERROR", NotAllowed: "NOT_ALLOWED",
	NotImplemented: "NOT_IMPLEMENTED", InternalError: "INTERNAL_ERROR",
}

// String returns the name, such as NOT_FOUND, or the digits of an unknown code.
func (c Code) String() string {
	if name := codeNames[c]; name != "" {
		return name
	}
	return fmt.Sprintf("%d", uint16(c))
}

// Hard reports whether the code closes the connection rather than the channel.
func (c Code) Hard() bool {
	switch c {
	case ReplySuccess, ContentTooLarge, NoRoute, NoConsumers, AccessRefused, NotFound, ResourceLocked, PreconditionFailed:
		return false
	}
	return true
}

// Error is what a peer did wrong, as channel.close and connection.close say it. Every error of this package that is not the
// connection's own is one, save those of encoding and of Map and Properties.
type Error struct {
	Code  Code
	Text  string   // the explanation, without the code's name
	Cause MethodID // the method at fault; 0: unknown
	// Fatal: it is not known where the next frame begins. Send connection.close, read nothing more, and close the connection.
	Fatal bool
}

// Errorf makes an error of a method.
func Errorf(code Code, cause MethodID, format string, args ...any) *Error {
	return &Error{Code: code, Cause: cause, Text: fmt.Sprintf(format, args...)}
}

// Hard reports whether the connection has to be closed; on channel 0 it has to be in any case.
func (e *Error) Hard() bool { return e.Fatal || e.Code.Hard() }

// ReplyText is "NAME - explanation", cut to the 255 bytes that a close method can carry, and UTF-8 whatever the client's names are.
func (e *Error) ReplyText() string {
	return ShortText(strings.ToValidUTF8(e.Code.String()+" - "+e.Text, "\uFFFD"))
}

func (e *Error) Error() string {
	if e.Cause == 0 {
		return fmt.Sprintf("%d %s - %s", uint16(e.Code), e.Code, e.Text)
	}
	return fmt.Sprintf("%d %s - %s (%s)", uint16(e.Code), e.Code, e.Text, e.Cause)
}

// ShortText cuts a text to the 255 bytes of a short string, between characters.
func ShortText(s string) string {
	if len(s) <= maxShort {
		return s
	}
	n := maxShort
	for n > maxShort-utf8.UTFMax && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
