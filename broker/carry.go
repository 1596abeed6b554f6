package broker

import (
	"context"

	"github.com/warrenmq/warren/fsm"
)

// partBytes is how much of a large body goes into the log at once.
const partBytes = 256 << 10

// sendParts submits a large body in parts, ahead of the command that carries its message, and puts the upload in its place.
// It waits for room in the lane.
func (l *lane) sendParts(ctx context.Context, p *fsm.Publish, session fsm.Session, upload uint64) error {
	body := p.Body
	p.Session, p.Upload, p.Body = session, upload, nil
	for at := 0; at < len(body); at += partBytes {
		part := fsm.BodyPart{Session: session, Upload: upload, Offset: uint64(at), Total: uint64(len(body)), Bytes: body[at:min(at+partBytes, len(body))]}
		if err := l.submit(ctx, true, submission{command: &part, size: fsm.Size(&part)}); err != nil {
			return err
		}
	}
	return nil
}

// submitMessage sends a command of the leadership itself that carries a message into the log.
func (l *leadership) submitMessage(ctx context.Context, m *fsm.Message, command func(fsm.Publish) fsm.Command, done CompleterFunc) error {
	p := fsm.Publish{Exchange: m.Exchange, RoutingKey: m.RoutingKey, Properties: m.Properties, Body: m.Body}
	if len(m.Body) > fsm.MaxInlineBody {
		if err := l.system.sendParts(ctx, &p, fsm.Session{Term: l.term}, l.uploads.Add(1)); err != nil { // no client has number 0
			return err
		}
	}
	c := command(p)
	return l.system.submit(ctx, true, submission{command: c, size: fsm.Size(c), done: done})
}
