package fsm

import (
	"bytes"
	"strings"
)

// checkPutPolicy returns the policy of that name, if there is one, or a refusal.
func (s *state) checkPutPolicy(c *PutPolicy) (*vhost, *policy, Result) {
	v := s.vhosts[c.Vhost]
	if v == nil {
		return nil, nil, noVhost(c.Vhost)
	}
	if r := checkNames(nil, c.Name); r.Code != OK {
		return v, nil, r
	}
	switch reason := checkPattern(c.Pattern); {
	case c.Name == "":
		return v, nil, refuse(PreconditionFailed, "a policy needs a name")
	case reason != "":
		return v, nil, refuse(PreconditionFailed, "%s", reason)
	case applications[c.ApplyTo] == 0:
		return v, nil, refuse(PreconditionFailed, "Validation failed: apply-to '%s' unrecognised: it is all, queues, classic_queues, quorum_queues, streams or exchanges", c.ApplyTo)
	case c.Priority < -maxPriorityOfPolicy || c.Priority > maxPriorityOfPolicy:
		return v, nil, refuse(PreconditionFailed, "Validation failed: a priority of %d is beyond %d", c.Priority, maxPriorityOfPolicy)
	}
	if r := checkDefinition(c.Definition, c.Operator); r.Code != OK {
		return v, nil, r
	}
	p := v.kindOf(c.Operator).named(c.Name)
	if p == nil && len(*v.kindOf(c.Operator)) >= MaxPolicies {
		return v, nil, refuse(PreconditionFailed, "cannot set policy '%s': vhost '%s' has %d, as many as it may have", c.Name, v.name, MaxPolicies)
	}
	return v, p, Result{}
}

func (s *state) applyPutPolicy(c *PutPolicy) Result {
	v, before, r := s.checkPutPolicy(c)
	if r.Code != OK {
		return r
	}
	after := &policy{vhost: v, operator: c.Operator, name: strings.Clone(c.Name), pattern: strings.Clone(c.Pattern), applyTo: strings.Clone(c.ApplyTo),
		priority: c.Priority, definition: bytes.Clone(sortedTable(c.Definition))}
	if before != nil {
		s.removePolicy(before)
	}
	s.insertPolicy(after)
	s.policyChanged(v, c.Operator, before, after)
	return Result{Created: before == nil}
}

func (s *state) applyDeletePolicy(c *DeletePolicy) Result {
	v := s.vhosts[c.Vhost]
	if v == nil {
		return noVhost(c.Vhost)
	}
	p := v.kindOf(c.Operator).named(c.Name)
	if p == nil {
		return refuse(NotFound, "no policy '%s' in vhost '%s'", c.Name, v.name)
	}
	s.removePolicy(p)
	s.policyChanged(v, c.Operator, p, nil)
	return Result{}
}

// policyChanged makes the queues and exchanges of a vhost follow. What it does to one does not depend on the others.
func (s *state) policyChanged(v *vhost, operator bool, before, after *policy) {
	for _, q := range sortedQueues(v.queues) {
		if g := v.regovern(q.policies, q.governed(), operator, before, after); g != q.policies {
			q.policies = g
			s.setRules(q)
		}
	}
	for _, e := range v.exchanges {
		if g := v.regovern(e.policies, e.governed(), operator, before, after); g != e.policies {
			e.policies = g
			s.setExchangeRules(e)
			s.rerouted = true
		}
	}
}

// governed: policies are about what clients know.
func (q *queue) governed() governed {
	switch {
	case q.hidden():
		return governed{}
	case q.keepAll:
		return governed{q.name, toQuorum}
	}
	return governed{q.name, toClassic}
}

// governed: the default exchange has no policy, as it routes by the names of queues alone.
func (e *exchange) governed() governed {
	if e.name == "" {
		return governed{}
	}
	return governed{e.name, toExchanges}
}

// setRules makes a queue do what its arguments and policies say, from now on.
func (s *state) setRules(q *queue) {
	before := limits{length: -1, bytes: -1} // of a new queue
	if q.inAll != nil {
		before = q.rules.limits
	}
	q.rules = q.settings().rules()
	if q.rules.limits != before && (q.rules.limited() || before.limited()) {
		s.limitsChanged(q)
	}
	if q.rules.expires > 0 {
		s.expiring[q.number] = q
	} else {
		delete(s.expiring, q.number)
	}
}

func (q *queue) settings() *settings {
	arguments, _ := parseTable(q.arguments, nil)
	return &settings{arguments: arguments, policy: q.policies.fields()}
}

// setExchangeRules does the same for an exchange.
func (s *state) setExchangeRules(e *exchange) {
	arguments, _ := parseTable(e.arguments, nil)
	set := &settings{arguments: arguments, policy: e.policies.fields()}
	e.alternate, _ = set.text("alternate-exchange")
}

// PolicyInfo is a policy.
type PolicyInfo struct {
	Vhost, Name, Pattern string
	ApplyTo              string // all, queues, classic_queues, quorum_queues, streams or exchanges
	Priority             int64
	Definition           []byte // a field table without its length prefix, sorted by name
}

// Policies lists the policies of a vhost in the order in which they are asked: by priority, the highest first, then by name.
func (m *Machine) Policies(vhost uint64, operator bool) []PolicyInfo {
	m.mu.RLock()
	defer m.mu.RUnlock()
	v := m.state.vhosts[vhost]
	if v == nil {
		return nil
	}
	var list []PolicyInfo
	for _, p := range *v.kindOf(operator) {
		list = append(list, p.info())
	}
	return list
}

// Policy finds a policy.
func (m *Machine) Policy(vhost uint64, operator bool, name string) (PolicyInfo, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if v := m.state.vhosts[vhost]; v != nil {
		if p := v.kindOf(operator).named(name); p != nil {
			return p.info(), true
		}
	}
	return PolicyInfo{}, false
}

func (p *policy) info() PolicyInfo {
	return PolicyInfo{Vhost: p.vhost.name, Name: p.name, Pattern: p.pattern, ApplyTo: p.applyTo, Priority: p.priority, Definition: p.definition}
}
