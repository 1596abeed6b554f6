package management

import (
	"net/http"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/fsm"
)

func (c *call) vhostOf(name string) (fsm.VhostInfo, error) {
	v, ok := c.in.Vhost(name)
	if !ok {
		return v, errNotFound
	}
	return v, nil
}

func (c *call) vhostObject(v fsm.VhostInfo) object {
	var messages, held, delayed uint64
	for _, n := range c.in.Delayed(v) {
		delayed += n
	}
	for _, q := range c.in.Queues(v) {
		messages += q.Messages
		held += min(q.Held, q.Messages)
	}
	return object{"name": v.Name, "description": "", "tags": []string{}, "default_queue_type": "classic", "tracing": false,
		"metadata": object{"description": "", "tags": []string{}}, "messages": messages, "messages_ready": messages - held,
		"messages_unacknowledged": held, "messages_delayed": delayed, "cluster_state": object{c.nodeName(): "running"}}
}

func (c *call) vhosts() error {
	items := []object{}
	for _, v := range c.in.Vhosts() {
		items = append(items, c.vhostObject(v))
	}
	return c.list(items)
}

func (c *call) vhost() error {
	v, err := c.vhostOf(c.args[0])
	if err != nil {
		return err
	}
	return c.one(c.vhostObject(v))
}

// putVhost creates a vhost. Descriptions, tags and a default queue type are passed over.
func (c *call) putVhost() error {
	if _, err := c.body(); err != nil {
		return err
	}
	_, existed := c.in.Vhost(c.args[0])
	return c.operate("", func(s *broker.Session) error {
		if !existed {
			if err := s.PutVhost(c.context, c.args[0]); err != nil {
				return err
			}
		}
		return c.put(existed)
	})
}

func (c *call) deleteVhost() error {
	v, err := c.vhostOf(c.args[0])
	if err != nil {
		return err
	}
	return c.operate("", func(s *broker.Session) error {
		if err := s.DeleteVhost(c.context, v.Name); err != nil {
			return err
		}
		return c.done(http.StatusNoContent)
	})
}
