package broker

import (
	"context"

	"github.com/warrenmq/warren/fsm"
)

// submitMessage sends a command that carries a message into the log, a large body in parts ahead of it.
func (l *leadership) submitMessage(ctx context.Context, m *fsm.Message, command func(fsm.Publish) fsm.Command, done CompleterFunc) error {
	p := fsm.Publish{Exchange: m.Exchange, RoutingKey: m.RoutingKey, Properties: m.Properties, Body: m.Body}
	if len(m.Body) > fsm.MaxInlineBody {
		p.Session, p.Upload, p.Body = fsm.Session{Term: l.term}, l.uploads.Add(1), nil // no client has number 0
		for at := 0; at < len(m.Body); at += deadPartBytes {
			part := fsm.BodyPart{Session: p.Session, Upload: p.Upload, Offset: uint64(at), Total: uint64(len(m.Body)),
				Bytes: m.Body[at:min(at+deadPartBytes, len(m.Body))]}
			if err := l.system.submit(ctx, true, submission{command: &part, size: fsm.Size(&part)}); err != nil {
				return err
			}
		}
	}
	c := command(p)
	return l.system.submit(ctx, true, submission{command: c, size: fsm.Size(c), done: done})
}
