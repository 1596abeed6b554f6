package fsm

import (
	"maps"
	"slices"
)

// resourceLimits bound what a virtual host or a user may have. 0 is no limit, all else is one more than what is allowed.
type resourceLimits struct{ connections, queues, channels uint64 }

// field returns where the limit of a name is; nil for a name that means nothing there.
func (r *resourceLimits) field(name string, user bool) *uint64 {
	switch {
	case name == "max-connections":
		return &r.connections
	case name == "max-queues" && !user:
		return &r.queues
	case name == "max-channels" && user:
		return &r.channels
	}
	return nil
}

func (r *resourceLimits) mix(h uint64) uint64 {
	if *r == (resourceLimits{}) {
		return h
	}
	return mix(mix(mix(h, r.connections), r.queues), r.channels)
}

// maxLimitedUsers bounds how many users can have limits.
const maxLimitedUsers = 65_536

// PutLimit sets a limit of a virtual host (max-connections, max-queues), or of a user if Vhost is 0 (max-connections,
// max-channels); a Value below 0 takes it away. What is there already stays. NotFound when there is no such host,
// PreconditionFailed for another name.
type PutLimit struct {
	Vhost uint64
	User  string
	Name  string
	Value int64
}

func (PutLimit) opcode() Opcode { return OpPutLimit }

func (c PutLimit) appendTo(b []byte) []byte {
	return appendUint(appendString(appendString(appendUint(appendArray(b, 4), c.Vhost), c.User), c.Name), uint64(c.Value))
}

func (s *state) applyPutLimit(c *PutLimit) Result {
	if r := checkNames(nil, c.User); r.Code != OK {
		return r
	}
	limits, v := s.userLimits[c.User], s.vhosts[c.Vhost]
	if c.Vhost != 0 {
		if v == nil {
			return noVhost(c.Vhost)
		}
		limits = v.limits
	}
	field := limits.field(c.Name, c.Vhost == 0)
	switch {
	case field == nil:
		return refuse(PreconditionFailed, "there is no limit '%s': a virtual host has max-connections and max-queues, a user max-connections and max-channels", c.Name)
	case c.Vhost == 0 && c.User == "":
		return refuse(PreconditionFailed, "a user has a name")
	case c.Vhost == 0 && c.Value >= 0 && s.userLimits[c.User] == (resourceLimits{}) && len(s.userLimits) >= maxLimitedUsers:
		return refuse(PreconditionFailed, "%d users have limits, as many as may have", maxLimitedUsers)
	}
	if *field = 0; c.Value >= 0 {
		*field = uint64(c.Value) + 1
	}
	if v != nil {
		s.sum -= v.hash
		v.limits = limits
		v.hash = v.digest()
		s.sum += v.hash
		return Result{}
	}
	s.setUserLimits(c.User, limits)
	return Result{}
}

func (s *state) setUserLimits(user string, limits resourceLimits) {
	if before, ok := s.userLimits[user]; ok {
		s.sum -= userDigest(user, before)
		delete(s.userLimits, user)
	}
	if limits != (resourceLimits{}) {
		s.userLimits[user] = limits
		s.sum += userDigest(user, limits)
	}
}

func userDigest(user string, limits resourceLimits) uint64 {
	return limits.mix(mixString(seedUser, user))
}

// queueLimit refuses a new queue in a virtual host that has as many as it may have.
func queueLimit(v *vhost, name string) Result {
	if v.limits.queues > 0 && uint64(len(v.queues)) >= v.limits.queues-1 {
		return refuse(PreconditionFailed, "cannot declare queue '%s': queue limit in vhost '%s' (%d) is reached", name, v.name, v.limits.queues-1)
	}
	return Result{}
}

// Limits are what a virtual host or a user may have; -1: no limit.
type Limits struct{ Connections, Queues, Channels int64 }

func (r *resourceLimits) shown() Limits {
	return Limits{int64(r.connections) - 1, int64(r.queues) - 1, int64(r.channels) - 1}
}

// VhostLimits returns the limits of a virtual host.
func (m *Machine) VhostLimits(vhost uint64) Limits {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if v := m.state.vhosts[vhost]; v != nil {
		return v.limits.shown()
	}
	return (&resourceLimits{}).shown()
}

// UserLimits returns the limits of a user.
func (m *Machine) UserLimits(user string) Limits {
	m.mu.RLock()
	defer m.mu.RUnlock()
	limits := m.state.userLimits[user]
	return limits.shown()
}

// LimitedUsers lists the users with limits, sorted.
func (m *Machine) LimitedUsers() []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.Sorted(maps.Keys(m.state.userLimits))
}
