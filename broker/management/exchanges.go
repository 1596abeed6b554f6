package management

import (
	"net/http"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/fsm"
)

// defaultExchange is what the exchange without a name is called in paths.
const defaultExchange = "amq.default"

func exchangeName(segment string) string {
	if segment == defaultExchange {
		return ""
	}
	return segment
}

func exchange(x *fsm.ExchangeInfo, delayed uint64) object {
	return object{"name": x.Name, "vhost": x.Vhost, "type": x.Type, "durable": x.Durable, "auto_delete": x.AutoDelete,
		"internal": x.Internal, "arguments": fromTable(x.Arguments), "policy": orNull(x.Policy), "operator_policy": orNull(x.OperatorPolicy),
		"effective_policy_definition": fromTable(x.Definition), "messages_delayed": delayed}
}

func (c *call) exchangeList(vhosts []fsm.VhostInfo) error {
	items := []object{}
	for _, v := range vhosts {
		rows, delayed := c.in.Exchanges(v), c.in.Delayed(v)
		for i := range rows {
			items = append(items, exchange(&rows[i], delayed[rows[i].Name]))
		}
	}
	return c.list(items)
}

func (c *call) exchanges() error { return c.exchangeList(c.in.Vhosts()) }

func (c *call) vhostExchanges() error {
	v, err := c.vhostOf(c.args[0])
	if err != nil {
		return err
	}
	return c.exchangeList([]fsm.VhostInfo{v})
}

// exchangeOf finds the exchange that the path names.
func (c *call) exchangeOf() (fsm.VhostInfo, fsm.ExchangeInfo, error) {
	v, err := c.vhostOf(c.args[0])
	if err != nil {
		return v, fsm.ExchangeInfo{}, err
	}
	x, ok := c.in.Exchange(v, exchangeName(c.args[1]))
	if !ok {
		return v, x, errNotFound
	}
	return v, x, nil
}

func (c *call) exchange() error {
	v, x, err := c.exchangeOf()
	if err != nil {
		return err
	}
	return c.one(exchange(&x, c.in.Delayed(v)[x.Name]))
}

func (c *call) putExchange() error {
	v, err := c.vhostOf(c.args[0])
	if err != nil {
		return err
	}
	b, err := c.body()
	if err != nil {
		return err
	}
	x := broker.Exchange{Name: exchangeName(c.args[1])}
	if x.Kind, err = b.text("type", "direct"); err != nil {
		return err
	}
	for name, to := range map[string]*bool{"durable": &x.Durable, "auto_delete": &x.AutoDelete, "internal": &x.Internal} {
		if *to, err = b.flag(name); err != nil {
			return err
		}
	}
	if x.Arguments, err = b.arguments(); err != nil {
		return err
	}
	_, existed := c.in.Exchange(v, x.Name)
	return c.operate(v.Name, func(s *broker.Session) error {
		if err := s.DeclareExchange(c.context, x); err != nil {
			return err
		}
		return c.put(existed)
	})
}

func (c *call) deleteExchange() error {
	v, x, err := c.exchangeOf()
	if err != nil {
		return err
	}
	return c.operate(v.Name, func(s *broker.Session) error {
		if err := s.DeleteExchange(c.context, x.Name, c.r.URL.Query().Get("if-unused") == "true"); err != nil {
			return err
		}
		return c.done(http.StatusNoContent)
	})
}
