package management

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"strconv"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// closedByOperator is what a client is told when the operator gave no reason.
const closedByOperator = "Closed via management plugin"

func connection(r *broker.ConnectionRow, node string) object {
	host, port := split(r.Client.Local)
	peerHost, peerPort := split(r.Client.Peer)
	o := object{"name": r.Client.Label(), "user": r.Client.User, "vhost": r.Vhost, "node": node, "host": host, "port": port,
		"peer_host": peerHost, "peer_port": peerPort, "state": r.State, "protocol": r.Client.Protocol,
		"auth_mechanism": r.Client.Mechanism, "ssl": false, "peer_cert_subject": nil, "peer_cert_issuer": nil, "peer_cert_validity": nil,
		"channels": r.Channels, "channel_max": r.Client.ChannelMax, "frame_max": r.Client.FrameMax,
		"timeout": int(r.Client.Heartbeat.Seconds()), "connected_at": r.Connected, "type": "network",
		"client_properties": fromTable(r.Client.Properties)}
	name, _ := amqp091.Table(r.Client.Properties).Lookup("connection_name")
	if text, ok := name.Text(); ok {
		o["user_provided_name"] = string(text)
	} else if r.Client.Name != "" {
		o["user_provided_name"] = r.Client.Name
	}
	return o
}

func split(address string) (host string, port int) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return address, 0
	}
	port, _ = strconv.Atoi(text)
	return host, port
}

// connectionsWhere answers the connections that are wanted.
func (c *call) connectionsWhere(wanted func(*broker.ConnectionRow) bool) error {
	rows, err := c.Broker.Connections()
	if err != nil {
		return err
	}
	items := []object{}
	for i := range rows {
		if wanted(&rows[i]) {
			items = append(items, connection(&rows[i], c.nodeName()))
		}
	}
	return c.list(items)
}

func (c *call) connections() error {
	return c.connectionsWhere(func(*broker.ConnectionRow) bool { return true })
}

func (c *call) userConnections() error {
	return c.connectionsWhere(func(r *broker.ConnectionRow) bool { return r.Client.User == c.args[0] })
}

func (c *call) vhostConnections() error {
	if _, err := c.vhostOf(c.args[0]); err != nil {
		return err
	}
	return c.connectionsWhere(func(r *broker.ConnectionRow) bool { return r.Vhost == c.args[0] })
}

func (c *call) connection() error {
	rows, err := c.Broker.Connections()
	if err != nil {
		return err
	}
	for i := range rows {
		if rows[i].Client.Label() == c.args[0] || rows[i].Name == c.args[0] {
			return c.one(connection(&rows[i], c.nodeName()))
		}
	}
	return errNotFound
}

func (c *call) reason() string { return cmp.Or(c.r.Header.Get("X-Reason"), closedByOperator) }

func (c *call) closeConnection() error {
	if err := c.Broker.CloseSession(c.args[0], c.reason()); err != nil {
		return err
	}
	return c.done(http.StatusNoContent)
}

func (c *call) closeUserConnections() error {
	rows, err := c.Broker.Connections()
	if err != nil {
		return err
	}
	for i := range rows {
		if rows[i].Client.User == c.args[0] {
			_ = c.Broker.CloseSession(rows[i].Name, c.reason()) // it may have gone by itself
		}
	}
	return c.done(http.StatusNoContent)
}

func channelName(c *broker.Client, number uint32) string {
	return fmt.Sprintf("%s (%d)", c.Label(), number)
}

func channel(r *broker.ChannelRow, node string) object {
	host, port := split(r.Client.Peer)
	return object{"name": channelName(&r.Client, r.Number), "number": r.Number, "node": node, "vhost": r.Vhost, "user": r.Client.User,
		"state": "running", "connection_details": object{"name": r.Client.Label(), "peer_host": host, "peer_port": port},
		"consumer_count": r.Consumers, "prefetch_count": r.Prefetch, "global_prefetch_count": r.Limit,
		"messages_unacknowledged": r.Unacked, "acks_uncommitted": r.Held, "confirm": r.Confirm, "transactional": r.Transactional}
}

// channelsWhere answers the channels that are wanted.
func (c *call) channelsWhere(wanted func(*broker.ChannelRow) bool) error {
	rows, err := c.Broker.Channels()
	if err != nil {
		return err
	}
	items := []object{}
	for i := range rows {
		if wanted(&rows[i]) {
			items = append(items, channel(&rows[i], c.nodeName()))
		}
	}
	return c.list(items)
}

func (c *call) channels() error {
	return c.channelsWhere(func(*broker.ChannelRow) bool { return true })
}

func (c *call) vhostChannels() error {
	if _, err := c.vhostOf(c.args[0]); err != nil {
		return err
	}
	return c.channelsWhere(func(r *broker.ChannelRow) bool { return r.Vhost == c.args[0] })
}

func (c *call) connectionChannels() error {
	return c.channelsWhere(func(r *broker.ChannelRow) bool { return r.Client.Label() == c.args[0] || r.Session == c.args[0] })
}

func (c *call) channel() error {
	rows, err := c.Broker.Channels()
	if err != nil {
		return err
	}
	for i := range rows {
		if channelName(&rows[i].Client, rows[i].Number) == c.args[0] {
			o := channel(&rows[i], c.nodeName())
			if o["consumer_details"], err = c.consumersWhere(func(r *broker.ConsumerRow) bool {
				return r.Session == rows[i].Session && r.Channel == rows[i].Number
			}); err != nil {
				return err
			}
			return c.one(o)
		}
	}
	return errNotFound
}

func consumer(r *broker.ConsumerRow, node string) object {
	host, port := split(r.Client.Peer)
	status := "up"
	if !r.Active {
		status = "waiting"
	}
	return object{"consumer_tag": r.Tag, "queue": object{"name": r.Queue, "vhost": r.Vhost},
		"channel_details": object{"name": channelName(&r.Client, r.Channel), "number": r.Channel, "connection_name": r.Client.Label(),
			"node": node, "peer_host": host, "peer_port": port, "user": r.Client.User},
		"ack_required": !r.AutoAck, "exclusive": r.Exclusive, "active": r.Active, "activity_status": status,
		"prefetch_count": r.Prefetch, "arguments": fromTable(r.Arguments)}
}

func (c *call) consumersWhere(wanted func(*broker.ConsumerRow) bool) ([]object, error) {
	rows, err := c.Broker.Consumers()
	if err != nil {
		return nil, err
	}
	items := []object{}
	for i := range rows {
		if wanted(&rows[i]) {
			items = append(items, consumer(&rows[i], c.nodeName()))
		}
	}
	return items, nil
}

func (c *call) consumers() error {
	items, err := c.consumersWhere(func(*broker.ConsumerRow) bool { return true })
	if err != nil {
		return err
	}
	return c.list(items)
}

func (c *call) vhostConsumers() error {
	if _, err := c.vhostOf(c.args[0]); err != nil {
		return err
	}
	items, err := c.consumersWhere(func(r *broker.ConsumerRow) bool { return r.Vhost == c.args[0] })
	if err != nil {
		return err
	}
	return c.list(items)
}
