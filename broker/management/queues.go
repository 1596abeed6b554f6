package management

import (
	"net/http"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/fsm"
	"github.com/warrenmq/warren/protocol/amqp091"
)

func (c *call) queueObject(q *broker.QueueRow) object {
	kind := "classic"
	if v, ok := amqp091.Table(q.Arguments).Lookup("x-queue-type"); ok {
		if text, ok := v.Text(); ok {
			kind = string(text)
		}
	}
	o := object{"name": q.Name, "vhost": q.Vhost, "node": c.nodeName(), "type": kind, "state": "running",
		"durable": q.Durable, "auto_delete": q.AutoDelete, "exclusive": q.Exclusive, "arguments": fromTable(q.Arguments),
		"policy": orNull(q.Policy), "operator_policy": orNull(q.OperatorPolicy), "effective_policy_definition": fromTable(q.Definition),
		"exclusive_consumer_tag": nil, "single_active_consumer_tag": nil}
	query := c.r.URL.Query()
	bare := query.Get("disable_stats") == "true"
	if !bare || query.Get("enable_queue_totals") == "true" {
		unacked := min(q.Held, q.Messages)
		o["messages"], o["messages_ready"], o["messages_unacknowledged"] = q.Messages, q.Messages-unacked, unacked
	}
	if bare {
		return o
	}
	o["message_bytes"], o["consumers"] = q.MessageBytes, q.Consumers
	o["leader"] = c.nodeName()
	if q.Exclusive {
		if owner := c.in.Owner(q.QueueInfo); owner != "" {
			o["owner_pid_details"] = object{"name": owner}
		}
	}
	return o
}

func (c *call) queueList(vhosts []fsm.VhostInfo) error {
	items := []object{}
	for _, v := range vhosts {
		rows := c.in.Queues(v)
		for i := range rows {
			items = append(items, c.queueObject(&rows[i]))
		}
	}
	return c.list(items)
}

func (c *call) queues() error { return c.queueList(c.in.Vhosts()) }

func (c *call) vhostQueues() error {
	v, err := c.vhostOf(c.args[0])
	if err != nil {
		return err
	}
	return c.queueList([]fsm.VhostInfo{v})
}

// queueOf finds the queue that the path names.
func (c *call) queueOf() (fsm.VhostInfo, broker.QueueRow, error) {
	v, err := c.vhostOf(c.args[0])
	if err != nil {
		return v, broker.QueueRow{}, err
	}
	q, ok := c.in.Queue(v, c.args[1])
	if !ok {
		return v, q, errNotFound
	}
	return v, q, nil
}

func (c *call) queue() error {
	_, q, err := c.queueOf()
	if err != nil {
		return err
	}
	o := c.queueObject(&q)
	if o["consumer_details"], err = c.consumersWhere(func(r *broker.ConsumerRow) bool {
		return r.Vhost == q.Vhost && r.Queue == q.Name
	}); err != nil {
		return err
	}
	return c.one(o)
}

func (c *call) putQueue() error {
	v, err := c.vhostOf(c.args[0])
	if err != nil {
		return err
	}
	b, err := c.body()
	if err != nil {
		return err
	}
	q := broker.Queue{Name: c.args[1]}
	if q.Durable, err = b.flag("durable"); err != nil {
		return err
	}
	if q.AutoDelete, err = b.flag("auto_delete"); err != nil {
		return err
	}
	if q.Arguments, err = b.arguments(); err != nil {
		return err
	}
	if q.Name == "" {
		return badRequest("a queue needs a name")
	}
	_, existed := c.in.Queue(v, q.Name)
	return c.operate(v.Name, func(s *broker.Session) error {
		if _, err := s.DeclareQueue(c.context, q); err != nil {
			return err
		}
		return c.put(existed)
	})
}

func (c *call) deleteQueue() error {
	v, q, err := c.queueOf()
	if err != nil {
		return err
	}
	query := c.r.URL.Query()
	return c.operate(v.Name, func(s *broker.Session) error {
		if _, err := s.DeleteQueue(c.context, q.Name, query.Get("if-unused") == "true", query.Get("if-empty") == "true"); err != nil {
			return err
		}
		return c.done(http.StatusNoContent)
	})
}

func (c *call) purge() error {
	v, q, err := c.queueOf()
	if err != nil {
		return err
	}
	return c.operate(v.Name, func(s *broker.Session) error {
		if _, err := s.Purge(c.context, q.Name); err != nil {
			return err
		}
		return c.done(http.StatusNoContent)
	})
}
