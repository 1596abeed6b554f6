package management

import (
	"net/http"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/fsm"
	"github.com/warrenmq/warren/protocol/native"
)

// compatible is the RabbitMQ version whose API this is, for tools that decide by it what they call.
const compatible = "3.13.7"

// nodePrefix makes node ids look as tools expect names of nodes.
const nodePrefix = "warren@"

// nodeName is this node's.
func (a *api) nodeName() string {
	self, _ := a.Broker.Self()
	return nodePrefix + self.NodeID
}

func (a *api) cluster() string {
	_, id := a.Broker.Self()
	return id
}

var exchangeTypes = []object{
	{"name": "direct", "description": "AMQP direct exchange, as per the AMQP specification", "enabled": true},
	{"name": "fanout", "description": "AMQP fanout exchange, as per the AMQP specification", "enabled": true},
	{"name": "headers", "description": "AMQP headers exchange, as per the AMQP specification", "enabled": true},
	{"name": "topic", "description": "AMQP topic exchange, as per the AMQP specification", "enabled": true},
	{"name": "x-delayed-message", "description": "Delayed Message Exchange.", "enabled": true},
}

func (c *call) overview() error {
	var queues, exchanges int
	var messages, held uint64
	for _, v := range c.in.Vhosts() {
		exchanges += len(c.in.Exchanges(v))
		for _, q := range c.in.Queues(v) {
			queues++
			messages += q.Messages
			held += min(q.Held, q.Messages)
		}
	}
	s := c.Broker.Stats()
	return c.one(object{
		"management_version": compatible, "rabbitmq_version": compatible, "product_name": "Warren", "product_version": c.Version,
		"erlang_version": runtime.Version(), "erlang_full_version": runtime.Version(), "cluster_name": c.cluster(), "node": c.nodeName(),
		"object_totals": object{"consumers": s.Consumers, "queues": queues, "exchanges": exchanges, "connections": s.Connections, "channels": s.Channels},
		"queue_totals":  object{"messages": messages, "messages_ready": messages - held, "messages_unacknowledged": held},
		"message_stats": object{"publish": s.Publishes, "confirm": s.Confirms, "return_unroutable": s.Returned, "deliver_get": s.Deliveries,
			"redeliver": s.Redeliveries, "ack": s.Acks},
		"churn_rates": object{"connection_created": s.ConnectionsOpened, "connection_closed": s.ConnectionsOpened - uint64(max(s.Connections, 0))},
		"listeners":   c.listeners(), "contexts": []object{}, "exchange_types": exchangeTypes, "rates_mode": "none",
		"disable_stats": false, "enable_queue_totals": false,
	})
}

// listeners are this node's.
func (c *call) listeners() []object {
	self, _ := c.Broker.Self()
	list := []object{}
	for _, l := range []struct{ protocol, address string }{{"amqp", self.Clients.AMQP}, {"warren", self.Clients.Native},
		{"http", self.Clients.HTTP}, {"clustering", self.Raft}} {
		if l.address != "" {
			host, port := split(l.address)
			list = append(list, object{"node": c.nodeName(), "protocol": l.protocol, "ip_address": host, "port": port, "socket_opts": object{}})
		}
	}
	return list
}

func (c *call) nodeList() ([]object, error) {
	status, err := c.Status(c.context)
	if err != nil {
		return nil, err
	}
	items := []object{}
	for i := range status.Members {
		items = append(items, c.nodeObject(&status.Members[i], status.NodeID))
	}
	return items, nil
}

func (c *call) nodeObject(m *native.MemberStatus, self string) object {
	o := object{"name": nodePrefix + m.ID, "type": "disc", "running": m.State != native.StateUnreachable}
	if m.State == native.StateUnreachable {
		return o
	}
	for _, name := range []string{"partitions", "applications", "contexts", "enabled_plugins", "cluster_links"} {
		o[name] = []object{}
	}
	o["rates_mode"], o["exchange_types"], o["being_drained"] = "none", exchangeTypes, false
	o["auth_mechanisms"] = []object{{"name": "PLAIN", "description": "SASL PLAIN authentication mechanism", "enabled": true},
		{"name": "AMQPLAIN", "description": "AMQPLAIN mechanism", "enabled": true}}
	o["mem_alarm"], o["disk_free_alarm"] = lowMemory(m.Short), lowDisk(m.Short)
	o["disk_free"], o["disk_free_limit"] = m.DiskFree, m.MinDiskFree
	if m.ID != self { // the rest is known of this node only
		return o
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	o["os_pid"], o["uptime"] = strconv.Itoa(os.Getpid()), time.Since(c.started).Milliseconds()
	o["mem_used"] = memory.Sys - memory.HeapReleased
	o["proc_used"], o["proc_total"] = runtime.NumGoroutine(), 1<<20
	o["run_queue"], o["processors"], o["gc_num"] = 0, runtime.GOMAXPROCS(0), memory.NumGC
	return o
}

func (c *call) nodes() error {
	items, err := c.nodeList()
	if err != nil {
		return err
	}
	return c.list(items)
}

func (c *call) node() error {
	items, err := c.nodeList()
	if err != nil {
		return err
	}
	for _, o := range items {
		if o["name"] == c.args[0] {
			return c.one(o)
		}
	}
	return errNotFound
}

func (c *call) clusterName() error { return c.ok(object{"name": c.cluster()}) }

// alive is the queue of the aliveness test.
const alive = "aliveness-test"

// aliveness sends a message through a queue of its own.
func (c *call) aliveness() error {
	v, err := c.vhostOf(c.args[0])
	if err != nil {
		return err
	}
	err = c.operate(v.Name, func(s *broker.Session) error {
		if _, err := s.DeclareQueue(c.context, broker.Queue{Name: alive}); err != nil {
			return err
		}
		confirmed := make(chan fsm.Result, 1)
		done := broker.CompleterFunc(func(r fsm.Result) { confirmed <- r })
		if err := s.Publish(c.context, []broker.Publication{{RoutingKey: alive, Body: []byte("alive")}}, done); err != nil {
			return err
		}
		select {
		case r := <-confirmed:
			if r.Code != fsm.OK || r.Routed != 1 {
				return errNotAlive
			}
		case <-c.context.Done():
			return errNotAlive
		}
		_, err := s.Purge(c.context, alive)
		return err
	})
	if err != nil {
		c.Logger.Warn("the aliveness test failed", "vhost", v.Name, "error", err)
		return errNotAlive
	}
	return c.ok(object{"status": "ok"})
}

var errNotAlive = &failure{http.StatusServiceUnavailable, refusal{"failed", "a message did not come through; see the log"}}
