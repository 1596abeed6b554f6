package management

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/fsm"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// policyEndpoints are those of users' and of operators' policies.
func policyEndpoints(base string, operator bool) []endpoint {
	as := func(f func(*call, bool) error) func(*call) error {
		return func(c *call) error { return f(c, operator) }
	}
	return []endpoint{
		{pattern: base, methods: get(as((*call).policies))},
		{pattern: base + "/{}", methods: get(as((*call).vhostPolicies))},
		{pattern: base + "/{}/{}", methods: get(as((*call).policy)).and(http.MethodPut, as((*call).putPolicy)).and(http.MethodDelete, as((*call).deletePolicy))},
	}
}

func policyObject(p *fsm.PolicyInfo) object {
	return object{"vhost": p.Vhost, "name": p.Name, "pattern": p.Pattern, "apply-to": p.ApplyTo, "priority": p.Priority,
		"definition": fromTable(p.Definition)}
}

func (c *call) policyList(operator bool, vhosts ...fsm.VhostInfo) error {
	items := []object{}
	for _, v := range vhosts {
		rows := c.in.Policies(v, operator)
		for i := range rows {
			items = append(items, policyObject(&rows[i]))
		}
	}
	return c.list(items)
}

func (c *call) policies(operator bool) error { return c.policyList(operator, c.in.Vhosts()...) }

func (c *call) vhostPolicies(operator bool) error {
	v, err := c.vhostOf(c.args[0])
	if err != nil {
		return err
	}
	return c.policyList(operator, v)
}

// policyOf finds the policy that the path names.
func (c *call) policyOf(operator bool) (fsm.VhostInfo, fsm.PolicyInfo, error) {
	v, err := c.vhostOf(c.args[0])
	if err != nil {
		return v, fsm.PolicyInfo{}, err
	}
	p, ok := c.in.Policy(v, operator, c.args[1])
	if !ok {
		return v, p, errNotFound
	}
	return v, p, nil
}

func (c *call) policy(operator bool) error {
	_, p, err := c.policyOf(operator)
	if err != nil {
		return err
	}
	return c.one(policyObject(&p))
}

func (c *call) putPolicy(operator bool) error {
	v, err := c.vhostOf(c.args[0])
	if err != nil {
		return err
	}
	b, err := c.body()
	if err != nil {
		return err
	}
	for _, key := range []string{"pattern", "definition"} {
		if b[key] == nil {
			return badRequest("key_missing: %s", key)
		}
	}
	p := fsm.PutPolicy{Operator: operator, Name: c.args[1]}
	if p.Pattern, err = b.text("pattern", ""); err != nil {
		return err
	}
	if p.ApplyTo, err = b.text("apply-to", "all"); err != nil {
		return err
	}
	if p.Priority, err = b.integer("priority"); err != nil {
		return err
	}
	definition, ok := b["definition"].(map[string]any)
	if !ok {
		return badRequest("definition is an object, not %.60v", b["definition"])
	}
	if p.Definition, err = amqp091.AppendMap(nil, toTable(definition).(map[string]any)); err != nil {
		return badRequest("definition: %v", err)
	}
	return c.operate(v.Name, func(s *broker.Session) error {
		created, err := s.PutPolicy(c.context, p)
		if err != nil {
			return err
		}
		return c.put(!created)
	})
}

func (c *call) deletePolicy(operator bool) error {
	v, p, err := c.policyOf(operator)
	if err != nil {
		return err
	}
	return c.operate(v.Name, func(s *broker.Session) error {
		if err := s.DeletePolicy(c.context, operator, p.Name); err != nil {
			return err
		}
		return c.done(http.StatusNoContent)
	})
}

// orNull is null for no name.
func orNull(name string) any {
	if name == "" {
		return nil
	}
	return name
}

// integer returns a number without a fraction, which some tools send as a text; 0 when it is not there.
func (b body) integer(name string) (int64, error) {
	var text string
	switch v := b[name].(type) {
	case nil:
		return 0, nil
	case json.Number:
		text = v.String()
	case string:
		text = v
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, badRequest("%s is an integer, not %.60v", name, b[name])
	}
	return n, nil
}
