package management

import (
	"net/http"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/fsm"
)

// limitEndpoints are those of the limits of vhosts and users.
func limitEndpoints() []endpoint {
	const del, put = http.MethodDelete, http.MethodPut
	return []endpoint{
		{pattern: "vhost-limits", methods: get((*call).vhostLimits)},
		{pattern: "vhost-limits/{}", methods: get((*call).oneVhostLimits)},
		{pattern: "vhost-limits/{}/{}", methods: methods{put: (*call).putVhostLimit, del: (*call).deleteVhostLimit}},
		{pattern: "user-limits", methods: get((*call).userLimits)},
		{pattern: "user-limits/{}", methods: get((*call).oneUserLimits)},
		{pattern: "user-limits/{}/{}", methods: methods{put: (*call).putUserLimit, del: (*call).deleteUserLimit}},
	}
}

// limitsObject shows those that are set; nil when none is.
func limitsObject(of, name string, l fsm.Limits) object {
	value := object{}
	for key, n := range map[string]int64{"max-connections": l.Connections, "max-queues": l.Queues, "max-channels": l.Channels} {
		if n >= 0 {
			value[key] = n
		}
	}
	if len(value) == 0 {
		return nil
	}
	return object{of: name, "value": value}
}

func (c *call) listVhostLimits(vhosts ...fsm.VhostInfo) error {
	items := []object{}
	for _, v := range vhosts {
		if o := limitsObject("vhost", v.Name, c.in.VhostLimits(v)); o != nil {
			items = append(items, o)
		}
	}
	return c.list(items)
}

func (c *call) vhostLimits() error { return c.listVhostLimits(c.in.Vhosts()...) }

func (c *call) oneVhostLimits() error {
	v, err := c.vhostOf(c.args[0])
	if err != nil {
		return err
	}
	return c.listVhostLimits(v)
}

func (c *call) listUserLimits(users ...string) error {
	items := []object{}
	for _, user := range users {
		if o := limitsObject("user", user, c.in.UserLimits(user)); o != nil {
			items = append(items, o)
		}
	}
	return c.list(items)
}

func (c *call) userLimits() error { return c.listUserLimits(c.in.LimitedUsers()...) }

func (c *call) oneUserLimits() error { return c.listUserLimits(c.args[0]) }

// limitValue reads the value of a limit; below 0 is none, as in RabbitMQ.
func (c *call) limitValue() (int64, error) {
	b, err := c.body()
	if err != nil {
		return 0, err
	}
	if b["value"] == nil {
		return 0, badRequest("key_missing: value")
	}
	return b.integer("value")
}

func (c *call) setLimit(vhost string, limit fsm.PutLimit) error {
	return c.operate(vhost, func(s *broker.Session) error {
		if err := s.PutLimit(c.context, limit); err != nil {
			return err
		}
		return c.done(http.StatusNoContent)
	})
}

func (c *call) putVhostLimit() error {
	v, err := c.vhostOf(c.args[0])
	if err != nil {
		return err
	}
	n, err := c.limitValue()
	if err != nil {
		return err
	}
	return c.setLimit(v.Name, fsm.PutLimit{Name: c.args[1], Value: n})
}

func (c *call) deleteVhostLimit() error {
	v, err := c.vhostOf(c.args[0])
	if err != nil {
		return err
	}
	return c.setLimit(v.Name, fsm.PutLimit{Name: c.args[1], Value: -1})
}

func (c *call) putUserLimit() error {
	n, err := c.limitValue()
	if err != nil {
		return err
	}
	return c.setLimit("", fsm.PutLimit{User: c.args[0], Name: c.args[1], Value: n})
}

func (c *call) deleteUserLimit() error {
	return c.setLimit("", fsm.PutLimit{User: c.args[0], Name: c.args[1], Value: -1})
}
