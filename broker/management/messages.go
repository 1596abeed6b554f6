package management

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/fsm"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// Bounds of an answer with messages.
const (
	maxGot      = 10_000  // messages
	maxGotBytes = 4 << 20 // of bodies and properties, about
	peekedBody  = 4 << 10 // bytes of each body that a look shows unless it is asked for others
)

// messageObject is what RabbitMQ shows of a message.
func messageObject(m *fsm.Message, truncate int, encoding string) object {
	body := m.Body[:min(len(m.Body), truncate)]
	o := object{"payload_bytes": len(m.Body), "redelivered": m.Redelivered, "exchange": m.Exchange, "routing_key": m.RoutingKey,
		"properties": propertiesObject(m.Properties)}
	if encoding == "auto" && utf8.Valid(body) {
		o["payload"], o["payload_encoding"] = string(body), "string"
	} else {
		o["payload"], o["payload_encoding"] = base64.StdEncoding.EncodeToString(body), "base64"
	}
	return o
}

func propertiesObject(properties []byte) object {
	o := object{}
	for property, value := range amqp091.PropertyBytes(properties).All() {
		switch name := propertyNames[property]; {
		case property == amqp091.PropertyHeaders:
			o[name] = fromTable(value)
		case property == amqp091.PropertyTimestamp:
			o[name] = int64(beUint64(value))
		case property.Text():
			o[name] = string(value)
		default:
			o[name] = value[0]
		}
	}
	return o
}

func beUint64(b []byte) (n uint64) {
	for _, x := range b {
		n = n<<8 | uint64(x)
	}
	return n
}

var propertyNames = map[amqp091.Property]string{amqp091.PropertyContentType: "content_type", amqp091.PropertyContentEncoding: "content_encoding",
	amqp091.PropertyHeaders: "headers", amqp091.PropertyDeliveryMode: "delivery_mode", amqp091.PropertyPriority: "priority",
	amqp091.PropertyCorrelationID: "correlation_id", amqp091.PropertyReplyTo: "reply_to", amqp091.PropertyExpiration: "expiration",
	amqp091.PropertyMessageID: "message_id", amqp091.PropertyTimestamp: "timestamp", amqp091.PropertyType: "type",
	amqp091.PropertyUserID: "user_id", amqp091.PropertyAppID: "app_id", amqp091.PropertyClusterID: "cluster_id"}

// getMessages is RabbitMQ's get: messages are taken from the queue, and acknowledged or given back.
func (c *call) getMessages() error {
	v, q, err := c.queueOf()
	if err != nil {
		return err
	}
	b, err := c.body()
	if err != nil {
		return err
	}
	count, err := b.number("count", 1, maxGot)
	if err != nil {
		return err
	}
	truncate, err := b.number("truncate", maxGotBytes, maxGotBytes)
	if err != nil {
		return err
	}
	mode, err := b.text("ackmode", "")
	if err != nil {
		return err
	}
	encoding, err := b.text("encoding", "auto")
	if err != nil {
		return err
	}
	var kind fsm.SettleKind
	switch mode {
	case "ack_requeue_false":
		kind = fsm.Acknowledge
	case "reject_requeue_false":
		kind = fsm.Reject
	case "ack_requeue_true", "reject_requeue_true":
		kind = fsm.Return
	default:
		return badRequest("ackmode is ack_requeue_true, ack_requeue_false, reject_requeue_true or reject_requeue_false, not %.40q", mode)
	}
	if encoding != "auto" && encoding != "base64" {
		return badRequest("encoding is auto or base64, not %.40q", encoding)
	}
	return c.operate(v.Name, func(s *broker.Session) error {
		ch, err := s.Channel(1)
		if err != nil {
			return err
		}
		items, room, last := []object{}, maxGotBytes, uint64(0)
		for found := true; found && len(items) < count && room > 0; {
			if found, err = ch.Get(c.context, q.Name, false, func(d *broker.Delivery, ready uint64) {
				o := messageObject(d.Message, truncate, encoding)
				o["message_count"] = ready
				items, last = append(items, o), d.Tag
				room -= min(len(d.Message.Body), truncate) + len(d.Message.Properties)
			}); err != nil {
				return err // what was got goes back with the session
			}
		}
		if last > 0 {
			if err := c.settle(ch, kind, last); err != nil {
				return err
			}
		}
		return c.ok(items)
	})
}

// settle settles the deliveries up to a tag and waits until that is applied.
func (c *call) settle(ch *broker.Channel, kind fsm.SettleKind, last uint64) error {
	settled := make(chan fsm.Result, 1)
	ch.Settle(kind, []broker.Range{{From: 1, To: last}}, 0, broker.CompleterFunc(func(r fsm.Result) { settled <- r }))
	select {
	case r := <-settled:
		if r.Code != fsm.OK {
			return &broker.Error{Code: r.Code, Message: r.Message}
		}
		return nil
	case <-c.context.Done():
		return c.context.Err()
	}
}

// number returns a whole number from 0 on, or what stands for it when it is not there. Tools send numbers also as texts.
func (b body) number(name string, missing, most int) (int, error) {
	var text string
	switch v := b[name].(type) {
	case nil:
		return missing, nil
	case json.Number:
		text = v.String()
	case string:
		text = v
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		return 0, badRequest("%s is a number from 0 to %d, not %.60v", name, most, b[name])
	}
	return n, nil
}

// peekMessages is Warren's own: it leaves the messages as they are.
func (c *call) peekMessages() error {
	v, q, err := c.queueOf()
	if err != nil {
		return err
	}
	query := c.r.URL.Query()
	b := body{}
	for _, name := range []string{"offset", "limit", "truncate", "from"} {
		if query.Has(name) {
			b[name] = query.Get(name)
		}
	}
	p := broker.Peek{Queue: q.Name, Filter: filterOf(query.Get("key"), query["header"]), Room: maxGotBytes}
	numbers := map[string]int{"offset": 0, "limit": 100, "truncate": peekedBody, "from": 0}
	for name := range numbers {
		if numbers[name], err = b.number(name, numbers[name], 1<<53); err != nil {
			return err
		}
	}
	p.Skip, p.From, p.Limit = uint64(numbers["offset"]), uint64(numbers["from"]), uint32(min(numbers["limit"], maxGot))
	p.Truncate = uint32(min(numbers["truncate"], maxGotBytes))
	return c.operate(v.Name, func(s *broker.Session) error {
		got, err := s.Peek(c.context, p)
		if err != nil {
			return err
		}
		items := make([]object, len(got.Messages))
		for i := range got.Messages {
			items[i] = peekedObject(&got.Messages[i])
		}
		return c.ok(object{"messages": items, "skipped": got.Skipped, "next": got.Next})
	})
}

func peekedObject(m *broker.PeekedMessage) object {
	o := messageObject(&m.Message, len(m.Body), "auto")
	o["payload_bytes"] = m.BodyBytes
	o["sequence"], o["delivery_count"], o["deaths"], o["priority_level"] = m.Sequence, m.DeliveryCount, m.Died(), m.Priority
	o["id"] = strconv.FormatUint(m.ID[0], 10) + "-" + strconv.FormatUint(m.ID[1], 10)
	o["state"] = m.State.String()
	if m.Dying {
		o["reason"] = m.Reason.String()
	}
	if m.Expires != 0 {
		o["expires"] = time.UnixMilli(max(m.Expires, -m.Expires)).UTC().Format(time.RFC3339Nano)
	}
	if h := m.Holder; h != nil {
		o["holder"] = object{"connection": h.Client.Label(), "channel": h.Channel, "consumer_tag": h.ConsumerTag,
			"since": time.UnixMilli(h.Since).UTC().Format(time.RFC3339Nano)}
	}
	return o
}

func filterOf(key string, headers []string) broker.Filter {
	f := broker.Filter{Key: key}
	for _, h := range headers {
		name, value, given := strings.Cut(h, "=")
		f.Headers = append(f.Headers, broker.HeaderFilter{Name: name, Value: value, Exists: !given})
	}
	return f
}

// moveMessages is Warren's own: a part of a move, which goes on with the same request and next and upto of the answer in it.
func (c *call) moveMessages() error {
	v, q, err := c.queueOf()
	if err != nil {
		return err
	}
	b, err := c.body()
	if err != nil {
		return err
	}
	m := broker.Move{Queue: q.Name}
	if err := b.move(&m); err != nil {
		return err
	}
	return c.operate(v.Name, func(s *broker.Session) error {
		got, err := s.Move(c.context, m)
		if err != nil {
			return err
		}
		o := object{"matched": got.Matched, "moved": got.Moved, "held": got.Held, "kept": got.Kept, "next": got.Next, "upto": got.Upto}
		if got.Reason != "" {
			o["reason"] = got.Reason
		}
		return c.ok(o)
	})
}

var targets = map[string]broker.Target{"queue": broker.TargetQueue, "exchange": broker.TargetExchange, "first_queue": broker.TargetFirstQueue,
	"first_exchange": broker.TargetFirstExchange, "nowhere": broker.TargetNowhere}

// move fills in what a body says of a move.
func (b body) move(m *broker.Move) (err error) {
	target, err := b.text("target", "")
	if err != nil {
		return err
	}
	known := false
	if m.Target, known = targets[target]; !known {
		return badRequest("target is queue, exchange, first_queue, first_exchange or nowhere, not %.40q", target)
	}
	key := ""
	for name, to := range map[string]*string{"to": &m.To, "to_key": &m.Key, "key": &key} {
		if *to, err = b.text(name, ""); err != nil {
			return err
		}
	}
	if m.Target == broker.TargetExchange {
		m.To = exchangeName(m.To)
	}
	if len(m.Key) > fsm.MaxNameBytes {
		return badRequest("to_key has at most %d bytes", fsm.MaxNameBytes)
	}
	var headers []string
	switch list := b["headers"].(type) {
	case nil:
	case []any:
		for _, h := range list {
			text, ok := h.(string)
			if !ok {
				return badRequest("headers is a list of texts, NAME=VALUE or NAME")
			}
			headers = append(headers, text)
		}
	default:
		return badRequest("headers is a list of texts, NAME=VALUE or NAME")
	}
	m.Filter = filterOf(key, headers)
	for name, to := range map[string]*bool{"restore": &m.Restore, "dry_run": &m.DryRun} {
		if *to, err = b.flag(name); err != nil {
			return err
		}
	}
	for name, to := range map[string]*uint64{"limit": &m.Limit, "next": &m.From, "upto": &m.Upto} {
		n, err := b.number(name, 0, 1<<53)
		if err != nil {
			return err
		}
		*to = uint64(n)
	}
	return nil
}
