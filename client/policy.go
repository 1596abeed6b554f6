package client

import (
	"context"

	"github.com/warrenmq/warren/protocol/native"
)

// Policy gives settings to the queues and exchanges of a vhost whose names match a pattern.
type Policy struct {
	Name       string
	Operator   bool   // it caps what users' policies and arguments say
	Pattern    string // a regular expression (RE2), which may match anywhere in a name
	ApplyTo    string // all, queues, classic_queues, quorum_queues or exchanges; "" is all
	Priority   int64  // of those that match the highest counts
	Definition map[string]any
}

// PutPolicy sets a policy of the connection's vhost, in place of one of its name. It takes effect at once, also on queues
// and exchanges that exist.
func (c *Connection) PutPolicy(ctx context.Context, p Policy) error {
	definition, err := native.EncodeTable(nil, p.Definition)
	if err != nil {
		return err
	}
	if p.ApplyTo == "" {
		p.ApplyTo = "all"
	}
	return c.do(ctx, &call{}, func(rid uint64) native.Frame {
		return &native.PolicyPut{Head: native.Head{RID: rid, Channel: controlChannel}, Operator: p.Operator, Name: p.Name, Pattern: p.Pattern,
			ApplyTo: p.ApplyTo, Priority: p.Priority, Definition: definition}
	})
}

// DeletePolicy removes a policy; it is NotFound when there is none of that name.
func (c *Connection) DeletePolicy(ctx context.Context, operator bool, name string) error {
	return c.do(ctx, &call{}, func(rid uint64) native.Frame {
		return &native.PolicyDelete{Head: native.Head{RID: rid, Channel: controlChannel}, Operator: operator, Name: name}
	})
}

// Policies lists the policies of the connection's vhost whose name contains filter, in the order in which they are asked.
func (c *Connection) Policies(ctx context.Context, filter string) ([]native.PolicyRow, error) {
	return list[native.PolicyRow](ctx, c, native.ListPolicies, filter)
}

// OperatorPolicies is Policies for those of operators.
func (c *Connection) OperatorPolicies(ctx context.Context, filter string) ([]native.PolicyRow, error) {
	return list[native.PolicyRow](ctx, c, native.ListOperator, filter)
}
