package broker

import (
	"context"

	"github.com/warrenmq/warren/fsm"
)

// PutLimit sets or takes away a limit of the session's vhost or, when c.User is set, of a user (see fsm.PutLimit). What
// exists stays.
func (s *Session) PutLimit(ctx context.Context, c fsm.PutLimit) error {
	if c.User == "" {
		c.Vhost = s.Vhost.Number
	}
	_, err := s.lane.call(ctx, c)
	return err
}

// VhostLimits returns the limits of a vhost.
func (i *Inspection) VhostLimits(v fsm.VhostInfo) fsm.Limits {
	return i.leadership.broker.machine.VhostLimits(v.Number)
}

// UserLimits returns the limits of a user.
func (i *Inspection) UserLimits(user string) fsm.Limits {
	return i.leadership.broker.machine.UserLimits(user)
}

// LimitedUsers lists the users with limits.
func (i *Inspection) LimitedUsers() []string { return i.leadership.broker.machine.LimitedUsers() }

// admitConnection refuses a connection to a vhost, or of a user, that has as many as it may have. The caller holds mu.
func (l *leadership) admitConnection(s *Session) error {
	machine, user := l.broker.machine, s.Client.User
	ofVhost, ofUser := machine.VhostLimits(s.Vhost.Number).Connections, machine.UserLimits(user).Connections
	if s.operator || ofVhost < 0 && ofUser < 0 {
		return nil
	}
	var inVhost, byUser int64
	for _, other := range l.sessions {
		if other.operator {
			continue
		}
		if other.Vhost.Number == s.Vhost.Number {
			inVhost++
		}
		if other.Client.User == user {
			byUser++
		}
	}
	switch {
	case ofVhost >= 0 && inVhost >= ofVhost:
		return errorf(fsm.NotAllowed, "NOT_ALLOWED - access to vhost '%s' refused for user '%s': connection limit (%d) is reached", s.Vhost.Name, user, ofVhost)
	case ofUser >= 0 && byUser >= ofUser:
		return errorf(fsm.NotAllowed, "NOT_ALLOWED - connection refused for user '%s': user connection limit (%d) is reached", user, ofUser)
	}
	return nil
}

// admitChannel refuses a channel of a user who has as many as they may have, on all connections.
func (l *leadership) admitChannel(user string) error {
	limit := l.broker.machine.UserLimits(user).Channels
	if limit < 0 {
		return nil
	}
	var others []*Session
	l.mu.Lock()
	for _, s := range l.sessions {
		if s.Client.User == user && !s.operator {
			others = append(others, s)
		}
	}
	l.mu.Unlock()
	var open int64
	for _, s := range others {
		s.mu.Lock()
		open += int64(len(s.channels))
		s.mu.Unlock()
	}
	if open >= limit {
		return errorf(fsm.NotAllowed, "NOT_ALLOWED - number of channels opened for user '%s' has reached the maximum allowed user limit of (%d)", user, limit)
	}
	return nil
}
