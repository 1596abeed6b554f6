package relay

import (
	"context"
	"io"
	"net"
	"time"

	"github.com/warrenmq/warren/protocol/amqp091"
)

const headerSize = len(amqp091.ProtocolHeader)

// oldHeader is the other one that clients of 0-9-1 begin with.
const oldHeader = "AMQP\x01\x01\x00\x09"

func known(header []byte) bool {
	return string(header) == string(amqp091.ProtocolHeader[:]) || string(header) == oldHeader
}

// serverVersion is for clients that insist on finding one of a kind that they know.
const serverVersion = "4.1.0"

// What a client may send while it is turned away.
const (
	maxGreetingBytes  = 16 << 10 // of one frame
	maxGreetingFrames = 16
)

// forced is the connection.close of a client that may connect again.
func forced(reason string) []byte {
	m := amqp091.ConnectionClose{ReplyCode: uint16(amqp091.ConnectionForced), ReplyText: amqp091.ShortText("CONNECTION_FORCED - " + reason)}
	return m.AppendFrame(nil, 0)
}

// turnAway refuses a client that has sent its header and that no leader can be found for. A client understands a close
// only once it asks to open a virtual host, so it is taken through the handshake up to there.
func turnAway(ctx context.Context, c net.Conn, reason string) {
	_ = c.SetDeadline(time.Now().Add(handshakeLimit))
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Now().Add(lingerLimit)) })()
	properties, err := amqp091.AppendMap(nil, amqp091.Map{"product": "Warren", "version": serverVersion, "capabilities": amqp091.Map{}})
	if err != nil {
		return
	}
	start := amqp091.ConnectionStart{VersionMinor: 9, ServerProperties: properties, Mechanisms: "PLAIN AMQPLAIN", Locales: "en_US"}
	if _, err := c.Write(start.AppendFrame(nil, 0)); err != nil {
		return
	}
	r := amqp091.NewReader(c, maxGreetingBytes)
	for range maxGreetingFrames {
		answer, last, err := refuseOpen(r, reason)
		if err != nil {
			return
		}
		if _, err := c.Write(answer); err != nil {
			return
		}
		if last {
			break
		}
	}
	_ = closeWrite(c)
	_ = c.SetReadDeadline(time.Now().Add(lingerLimit))
	_, _ = io.Copy(io.Discard, c)
}

// refuseOpen reads a frame and returns what to answer; last says that nothing follows.
func refuseOpen(r *amqp091.Reader, reason string) (answer []byte, last bool, err error) {
	f, err := r.Next()
	if err != nil || f.Type != amqp091.FrameMethod {
		return nil, false, err
	}
	payload, err := r.Payload()
	if err != nil {
		return nil, false, err
	}
	id, _, err := amqp091.SplitMethod(payload)
	switch id {
	case amqp091.ConnectionStartOkID:
		m := amqp091.ConnectionTune{ChannelMax: 2047, FrameMax: 128 << 10, Heartbeat: 60}
		return m.AppendFrame(nil, 0), false, err
	case amqp091.ConnectionOpenID:
		return forced(reason), true, err
	case amqp091.ConnectionCloseID:
		return new(amqp091.ConnectionCloseOk).AppendFrame(nil, 0), true, err
	}
	return nil, false, err
}
