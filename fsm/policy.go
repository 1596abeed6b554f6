package fsm

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// policy gives settings to all queues and exchanges of a vhost whose names match. Settings of operators' policies go
// before those of users' policies, numbers excepted: of those the smallest counts.
type policy struct {
	vhost      *vhost
	operator   bool
	name       string
	pattern    string // a regular expression, which may match anywhere in a name
	applyTo    string
	priority   int64
	definition []byte // a field table: arguments without the "x-" in front

	// derived
	matches *regexp.Regexp
	hash    uint64 // its part of state.sum
}

func (p *policy) digest() uint64 {
	h := mixString(mixBools(mix(seedPolicy, p.vhost.number), p.operator), p.name)
	h = mixString(mixString(h, p.pattern), p.applyTo)
	return mixBytes(mix(h, uint64(p.priority)), p.definition)
}

// before orders policies by which is asked first: the one with the highest priority, of several the first by name.
func (p *policy) before(o *policy) int {
	return cmp.Or(cmp.Compare(o.priority, p.priority), strings.Compare(p.name, o.name))
}

// policies are those of a vhost of one kind, in the order in which they are asked.
type policies []*policy

func (l policies) named(name string) *policy {
	if at := l.find(name); at >= 0 {
		return l[at]
	}
	return nil
}

func (l policies) find(name string) int {
	return slices.IndexFunc(l, func(p *policy) bool { return p.name == name })
}

// kindOf returns the policies of operators, or of users.
func (v *vhost) kindOf(operator bool) *policies {
	if operator {
		return &v.operatorPolicies
	}
	return &v.policies
}

// insertPolicy adds a policy whose fields are complete, derived ones excepted. Queues and exchanges do not know of it yet.
func (s *state) insertPolicy(p *policy) {
	p.matches = regexp.MustCompile(p.pattern) // it was checked when it came
	list := p.vhost.kindOf(p.operator)
	at, _ := slices.BinarySearchFunc(*list, p, (*policy).before)
	*list = slices.Insert(*list, at, p)
	p.hash = p.digest()
	s.sum += p.hash
}

func (s *state) removePolicy(p *policy) {
	list := p.vhost.kindOf(p.operator)
	*list = slices.DeleteFunc(*list, func(x *policy) bool { return x == p })
	s.sum -= p.hash
}

// governing is what policies say to a queue or an exchange; nil when none does.
type governing struct {
	user, operator *policy // nil: none
	definition     []byte  // of both
}

func (g *governing) info() (i Governed) {
	if g == nil {
		return i
	}
	if i.Definition = g.definition; g.user != nil {
		i.Policy = g.user.name
	}
	if g.operator != nil {
		i.OperatorPolicy = g.operator.name
	}
	return i
}

// fields returns the settings in force.
func (g *governing) fields() []field {
	if g == nil {
		return nil
	}
	fields, _ := parseTable(g.definition, nil)
	return fields
}

// governed is what a policy may apply to.
type governed struct {
	name string
	kind appliesTo
}

// appliesTo says to what a policy applies.
type appliesTo uint8

const (
	toClassic appliesTo = 1 << iota
	toQuorum
	toStreams
	toExchanges
)

// applications are the values of apply-to.
var applications = map[string]appliesTo{"all": toClassic | toQuorum | toStreams | toExchanges, "queues": toClassic | toQuorum | toStreams,
	"classic_queues": toClassic, "quorum_queues": toQuorum, "streams": toStreams, "exchanges": toExchanges}

func (p *policy) governs(o governed) bool {
	return applications[p.applyTo]&o.kind != 0 && p.matches.MatchString(o.name)
}

func (l policies) first(o governed) *policy {
	for _, p := range l {
		if p.governs(o) {
			return p
		}
	}
	return nil
}

// govern returns what the policies of a vhost say to one of its queues or exchanges.
func (v *vhost) govern(o governed) *governing {
	if len(v.policies)+len(v.operatorPolicies) == 0 {
		return nil
	}
	return governedBy(v.policies.first(o), v.operatorPolicies.first(o))
}

func governedBy(user, operator *policy) *governing {
	if user == nil && operator == nil {
		return nil
	}
	g := &governing{user: user, operator: operator}
	switch {
	case operator == nil:
		g.definition = user.definition
	case user == nil:
		g.definition = operator.definition
	default:
		g.definition = capped(user.definition, operator.definition)
	}
	return g
}

// capped merges the definitions of a user's and an operator's policy.
func capped(user, operator []byte) (merged []byte) {
	fields, _ := parseTable(user, nil)
	caps, _ := parseTable(operator, nil)
	for i := range fields {
		f := &fields[i]
		if c := find(caps, f.name); c == nil || f.below(c) {
			merged = f.append(merged)
		}
	}
	for i := range caps {
		if f := find(fields, caps[i].name); f == nil || !f.below(&caps[i]) {
			merged = caps[i].append(merged)
		}
	}
	return sortedTable(merged)
}

// below reports whether both are numbers and the first allows less; below 0 is no limit.
func (f *field) below(g *field) bool {
	x, ok := f.integer()
	y, also := g.integer()
	return ok && also && x >= 0 && (y < 0 || x < y)
}

// regovern asks again after a policy was put or removed: changed is it, before what it was and after what it is, nil for
// absent. The result is the same pointer when nothing changes.
func (v *vhost) regovern(g *governing, o governed, operator bool, before, after *policy) *governing {
	var user, op *policy
	if g != nil {
		user, op = g.user, g.operator
	}
	one := &user
	if operator {
		one = &op
	}
	switch {
	case before != nil && *one == before:
		*one = v.kindOf(operator).first(o)
	case after != nil && (*one == nil || after.before(*one) < 0) && after.governs(o):
		*one = after
	default:
		return g
	}
	return governedBy(user, op)
}
