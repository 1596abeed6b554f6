package fsm

import (
	"reflect"
	"regexp"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// modelPolicy is a policy.
type modelPolicy struct {
	PutPolicy
	vhost *modelVhost
}

type drawnPolicy struct {
	definition          []byte
	ttl, limit, expires int64
	dead, alternate     string
	operator            bool // allowed for operators
}

// drawnPolicies are definitions, and what they mean: -1 and "" are nothing.
var drawnPolicies = []drawnPolicy{
	{table("message-ttl", int64(20)), 20, -1, -1, "", "", true},
	{table("message-ttl", int64(50), "expires", int64(30)), 50, -1, 30, "", "", true},
	{table("delivery-limit", int64(1)), -1, 1, -1, "", "", true},
	{table("delivery-limit", int64(-1), "expires", int32(60)), -1, -1, 60, "", "", true},
	{table("dead-letter-exchange", "amq.fanout", "message-ttl", int8(0)), 0, -1, -1, "amq.fanout", "", false},
	{table("alternate-exchange", "amq.fanout"), -1, -1, -1, "", "amq.fanout", false},
	{table("ha-mode", "all"), -1, -1, -1, "", "", true},
}

func (d drawer) policy() Command {
	name, operator := drawOf(d, "policy", "p0", "p1", "p2"), drawOf(d, "operator", false, false, true)
	if drawOf(d, "what", 0, 0, 1) == 1 {
		return &DeletePolicy{Vhost: d.vhost(), Operator: operator, Name: name}
	}
	c := &PutPolicy{Vhost: d.vhost(), Operator: operator, Name: name, Pattern: drawOf(d, "pattern", "", "^q", "0$", "[01]", "a", "^amq\\.", "none", "["),
		ApplyTo:  drawOf(d, "apply", "all", "all", "queues", "exchanges", "quorum_queues", "classic_queues", "streams", "odd"),
		Priority: drawOf[int64](d, "priority", -1, 0, 0, 5)}
	if c.Definition = drawOf(d, "definition", drawnPolicies...).definition; drawOf(d, "wrong", 0, 0, 0, 0, 1) == 1 {
		c.Definition = drawOf(d, "wrong one", nil, table("message-ttl", "text"), table("max-priority", int32(1)), table("expires", int32(0)))
	}
	return c
}

func (m *model) putPolicy(c *PutPolicy) Result {
	v := m.vhost(c.Vhost)
	if v == nil {
		return Result{Code: NotFound}
	}
	at := slices.IndexFunc(drawnPolicies, func(p drawnPolicy) bool { return string(p.definition) == string(c.Definition) })
	if at < 0 || c.Operator && !drawnPolicies[at].operator || c.Pattern == "[" || c.ApplyTo == "odd" {
		return Result{Code: PreconditionFailed}
	}
	before := len(m.policies)
	m.removePolicy(v, c.Operator, c.Name)
	r := Result{Created: len(m.policies) == before}
	m.policies = append(m.policies, &modelPolicy{*c, v})
	m.obey()
	return r
}

func (m *model) removePolicy(v *modelVhost, operator bool, name string) {
	m.policies = slices.DeleteFunc(m.policies, func(p *modelPolicy) bool { return p.vhost == v && p.Operator == operator && p.Name == name })
}

func (m *model) deletePolicy(c *DeletePolicy) Result {
	v, before := m.vhost(c.Vhost), len(m.policies)
	if v == nil {
		return Result{Code: NotFound}
	}
	if m.removePolicy(v, c.Operator, c.Name); len(m.policies) == before {
		return Result{Code: NotFound}
	}
	m.obey()
	return Result{}
}

// says returns what is in force for a name: the policy of operators, or of users; nil for none.
func (m *model) says(v *modelVhost, operator bool, name string, kinds ...string) (best *modelPolicy) {
	for _, p := range m.policies {
		if p.vhost != v || p.Operator != operator || !slices.Contains(kinds, p.ApplyTo) || !regexp.MustCompile(p.Pattern).MatchString(name) {
			continue
		}
		if best == nil || p.Priority > best.Priority || p.Priority == best.Priority && p.Name < best.Name {
			best = p
		}
	}
	return best
}

// obey makes all queues and exchanges follow the policies.
func (m *model) obey() {
	for _, q := range m.queues {
		m.obeyQueue(q)
	}
	for _, e := range m.exchanges {
		m.obeyExchange(e)
	}
}

func smaller(a, b int64) int64 {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}

// obeyQueue gives a queue what its arguments and the policies say.
func (m *model) obeyQueue(q *modelQueue) {
	q.ttl, q.limit, q.expires = -1, -1, -1
	q.dead, q.policy, q.operator = strings.Contains(string(q.arguments), "x-dead-letter-exchange"), "", ""
	if strings.Contains(string(q.arguments), "x-message-ttl") {
		q.ttl, q.limit = 30, 0
	}
	if strings.Contains(string(q.arguments), "x-expires") {
		q.expires = 40
	}
	kind := "classic_queues"
	if q.keepAll {
		kind = "quorum_queues"
	}
	for _, operator := range []bool{false, true} {
		p := m.says(q.vhost, operator, q.name, "all", "queues", kind)
		if p == nil {
			continue
		}
		if operator {
			q.operator = p.Name
		} else {
			q.policy = p.Name
		}
		for _, d := range drawnPolicies {
			if string(d.definition) == string(p.Definition) {
				q.ttl, q.limit, q.expires = smaller(q.ttl, d.ttl), smaller(q.limit, d.limit), smaller(q.expires, d.expires)
				q.dead = q.dead || d.dead != ""
			}
		}
	}
	q.keep = q.dead && strings.Contains(string(q.arguments), "at-least-once") && q.overflow == "reject-publish"
}

func (m *model) obeyExchange(e *modelExchange) {
	e.alternate, e.policy, e.operator = e.argued, "", ""
	if e.name == "" {
		return
	}
	if p := m.says(e.vhost, true, e.name, "all", "exchanges"); p != nil {
		e.operator = p.Name
	}
	if p := m.says(e.vhost, false, e.name, "all", "exchanges"); p != nil {
		e.policy = p.Name
		if e.alternate == "" && strings.Contains(string(p.Definition), "alternate-exchange") {
			e.alternate = "amq.fanout"
		}
	}
}

// checkRules compares what queues and exchanges do with what is made of their settings from scratch.
func checkRules(t *rapid.T, s *state) {
	for _, q := range s.queues {
		g := q.vhost.govern(q.governed())
		set := &settings{policy: g.fields()}
		set.arguments, _ = parseTable(q.arguments, nil)
		if !reflect.DeepEqual(q.policies, g) || q.rules != set.rules() || (s.expiring[q.number] == q) != (q.rules.expires > 0) {
			t.Fatalf("queue %s has %+v, %+v; from scratch %+v, %+v", q.name, q.policies, q.rules, g, set.rules())
		}
	}
	for _, v := range s.vhosts {
		for _, e := range v.exchanges {
			if g := v.govern(e.governed()); !reflect.DeepEqual(e.policies, g) {
				t.Fatalf("exchange %s has %+v; from scratch %+v", e.name, e.policies, g)
			}
		}
	}
}
