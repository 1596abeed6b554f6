package broker

import (
	"context"

	"github.com/warrenmq/warren/fsm"
)

// PutPolicy sets a policy in the session's vhost (see fsm.PutPolicy) and reports whether there was none of that name. It
// applies to what exists when it returns.
func (s *Session) PutPolicy(ctx context.Context, p fsm.PutPolicy) (created bool, err error) {
	p.Vhost = s.Vhost.Number
	if r := s.leadership.broker.machine.Check(&p); r.Code != fsm.OK {
		return false, resultError(r)
	}
	r, err := s.lane.call(ctx, p)
	return r.Created, err
}

// DeletePolicy removes a policy of the session's vhost. NotFound when there is none.
func (s *Session) DeletePolicy(ctx context.Context, operator bool, name string) error {
	_, err := s.lane.call(ctx, fsm.DeletePolicy{Vhost: s.Vhost.Number, Operator: operator, Name: name})
	return err
}

// Policies lists the policies of the session's vhost whose names contain a filter, in the order in which they are asked.
func (s *Session) Policies(ctx context.Context, operator bool, filter string) ([]fsm.PolicyInfo, error) {
	if err := s.readable(ctx); err != nil {
		return nil, err
	}
	var rows []fsm.PolicyInfo
	for _, p := range s.leadership.broker.machine.Policies(s.Vhost.Number, operator) {
		if contains(p.Name, filter) {
			rows = append(rows, p)
		}
	}
	return rows, nil
}

// Policies lists the policies of a vhost in the order in which they are asked.
func (i *Inspection) Policies(v fsm.VhostInfo, operator bool) []fsm.PolicyInfo {
	return i.leadership.broker.machine.Policies(v.Number, operator)
}

// Policy finds a policy.
func (i *Inspection) Policy(v fsm.VhostInfo, operator bool, name string) (fsm.PolicyInfo, bool) {
	return i.leadership.broker.machine.Policy(v.Number, operator, name)
}
