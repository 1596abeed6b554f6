package tools

import (
	"context"
	"fmt"

	"github.com/warrenmq/warren/client"
	"github.com/warrenmq/warren/protocol/native"
)

type set struct {
	Policy setPolicy `cmd:"" help:"Give settings to the queues and exchanges whose names match a pattern."`
}

type setPolicy struct {
	target
	Name     string            `arg:"" help:"Name of the policy; one of that name is replaced."`
	Pattern  string            `arg:"" help:"Regular expression that names match, anywhere in them."`
	Settings map[string]string `arg:"" mapsep:"none" placeholder:"KEY=VALUE" help:"Settings: the names of the arguments without x-, as message-ttl=60000."`
	ApplyTo  string            `default:"all" enum:"all,queues,classic_queues,quorum_queues,exchanges" help:"all, queues, classic_queues, quorum_queues or exchanges."`
	Priority int64             `help:"Of the policies that match the one of the highest priority counts."`
	Operator bool              `help:"An operator policy: it caps the others and the arguments."`
}

// Run sets the policy.
func (s *setPolicy) Run(ctx context.Context, std Streams) error {
	return s.with(ctx, func(ctx context.Context, conn *client.Connection) error {
		if err := conn.PutPolicy(ctx, client.Policy{Name: s.Name, Operator: s.Operator, Pattern: s.Pattern, ApplyTo: s.ApplyTo, Priority: s.Priority,
			Definition: arguments{s.Settings}.table()}); err != nil {
			return err
		}
		_, err := fmt.Fprintf(std.Out, "policy %s is set\n", s.Name)
		return err
	})
}

type deletePolicy struct {
	target
	Name     string `arg:"" help:"Name of the policy."`
	Operator bool   `help:"An operator policy."`
}

// Run deletes the policy.
func (d *deletePolicy) Run(ctx context.Context, std Streams) error {
	return d.with(ctx, func(ctx context.Context, conn *client.Connection) error {
		if err := conn.DeletePolicy(ctx, d.Operator, d.Name); err != nil {
			return err
		}
		_, err := fmt.Fprintf(std.Out, "policy %s is deleted\n", d.Name)
		return err
	})
}

type listPolicies struct {
	listing
	Operator bool `help:"Operator policies."`
}

// policyRow is a policy as JSON shows it.
type policyRow struct {
	native.PolicyRow
	Definition map[string]any `json:"definition"`
}

// Run lists policies.
func (l *listPolicies) Run(ctx context.Context, std Streams) error {
	ask := (*client.Connection).Policies
	if l.Operator {
		ask = (*client.Connection).OperatorPolicies
	}
	return rows(ctx, &l.listing, std.Out, func(conn *client.Connection, ctx context.Context, filter string) (list []policyRow, err error) {
		got, err := ask(conn, ctx, filter)
		for _, r := range got {
			definition, err := native.DecodeTable(r.Definition)
			if err != nil {
				return nil, err
			}
			list = append(list, policyRow{r, definition})
		}
		return list, err
	}, []string{"NAME", "PATTERN", "APPLY-TO", "PRIORITY", "DEFINITION"}, func(r policyRow) []any {
		return []any{r.Name, r.Pattern, r.ApplyTo, r.Priority, argumentText(r.PolicyRow.Definition)}
	})
}
