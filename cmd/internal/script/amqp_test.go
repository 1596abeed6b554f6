package script

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/warrenmq/warren/broker/amqp/amqptest"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// amqp is a channel of an AMQP client in confirm mode. A refusal closes it and prints its text; it is opened again.
type amqp struct {
	t         *testing.T
	ch        *amqptest.Channel
	published uint64
	coming    []*amqptest.Event // deliveries that no step asked for yet
}

// The steps. K=V are arguments or headers, whole numbers and booleans taken as such; "@expiration=V" and so on are
// properties.
const amqpSteps = `
amqp declare QUEUE [K=V…]           a durable queue
amqp exchange NAME TYPE [K=V…]      a durable exchange
amqp bind QUEUE EXCHANGE KEY [K=V…]
amqp publish EXCHANGE KEY BODY [K=V…]
amqp get QUEUE                      prints the delivery; it stays unacknowledged
amqp consume QUEUE TAG [K=V…]
amqp next                           waits for a delivery to a consumer
amqp nothing                        checks that none waits
amqp cancel TAG
amqp qos COUNT
amqp ack TAG, amqp nack TAG, amqp requeue TAG   by delivery tag, nack without requeueing
amqp purge QUEUE
amqp delete QUEUE
amqp reopen                         closes the channel and opens it again
`

func newAMQP(t *testing.T, address string) *amqp {
	a := &amqp{t: t, ch: amqptest.Dial(t, address).Channel(1)}
	a.ch.Confirm()
	t.Cleanup(a.ch.Close)
	return a
}

func (a *amqp) run(words []string) string {
	need := map[string]int{"declare": 1, "exchange": 2, "bind": 3, "publish": 3, "get": 1, "consume": 2, "next": 0, "nothing": 0, "cancel": 1, "qos": 1,
		"ack": 1, "nack": 1, "requeue": 1, "purge": 1, "delete": 1, "reopen": 0}
	if len(words) == 0 {
		words = []string{""}
	}
	verb, args := words[0], words[1:]
	if n, ok := need[verb]; !ok || len(args) < n {
		a.t.Fatalf("amqp %s: the steps are%s", strings.Join(words, " "), amqpSteps)
	}
	args, pairs := args[:need[verb]], args[need[verb]:]
	switch verb {
	case "declare":
		return a.call(&amqp091.QueueDeclare{Queue: args[0], Durable: true, Arguments: a.table(pairs)})
	case "exchange":
		return a.call(&amqp091.ExchangeDeclare{Exchange: args[0], Type: args[1], Durable: true, Arguments: a.table(pairs)})
	case "bind":
		return a.call(&amqp091.QueueBind{Queue: args[0], Exchange: args[1], RoutingKey: args[2], Arguments: a.table(pairs)})
	case "publish":
		return a.publish(args, pairs)
	case "get":
		return a.call(&amqp091.BasicGet{Queue: args[0]})
	case "consume":
		return a.call(&amqp091.BasicConsume{Queue: args[0], ConsumerTag: args[1], Arguments: a.table(pairs)})
	case "cancel":
		return a.call(&amqp091.BasicCancel{ConsumerTag: args[0]})
	case "qos":
		return a.call(&amqp091.BasicQos{PrefetchCount: uint16(a.number(args[0]))})
	case "ack":
		a.ch.Send(&amqp091.BasicAck{DeliveryTag: a.number(args[0])})
	case "nack":
		a.ch.Send(&amqp091.BasicReject{DeliveryTag: a.number(args[0])})
	case "requeue":
		a.ch.Send(&amqp091.BasicReject{DeliveryTag: a.number(args[0]), Requeue: true})
	case "purge":
		return a.call(&amqp091.QueuePurge{Queue: args[0]})
	case "delete":
		return a.call(&amqp091.QueueDelete{Queue: args[0]})
	case "next":
		for len(a.coming) == 0 {
			a.coming = append(a.coming, a.ch.Next())
		}
		e := a.coming[0]
		a.coming = a.coming[1:]
		return show(e)
	case "nothing":
		if e := a.ch.Idle(); e != nil {
			a.coming = append(a.coming, e)
		}
		if len(a.coming) > 0 {
			return show(a.coming[0])
		}
	case "reopen":
		a.ch.Leave()
		a.reopen()
	}
	return ""
}

func (a *amqp) reopen() {
	a.ch.Reopen()
	a.ch.Confirm()
	a.published, a.coming = 0, nil
}

// call sends a request and shows its answer. Deliveries that come first are for next.
func (a *amqp) call(m amqp091.Method) string {
	a.ch.Send(m)
	for {
		e := a.ch.Next()
		if e.Method.ID() == amqp091.BasicDeliverID {
			a.coming = append(a.coming, e)
			continue
		}
		if e.Method.ID() == amqp091.ChannelCloseID {
			a.ch.Send(&amqp091.ChannelCloseOk{})
			a.reopen()
		}
		return show(e)
	}
}

func (a *amqp) publish(args, pairs []string) string {
	var p amqp091.Properties
	var headers []string
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		switch name {
		case "@expiration":
			p.Expiration = value
		case "@priority":
			p.Priority = uint8(a.number(value))
		case "@delivery-mode":
			p.DeliveryMode = uint8(a.number(value))
		case "@message-id":
			p.MessageID = value
		case "@correlation-id":
			p.CorrelationID = value
		case "@reply-to":
			p.ReplyTo = value
		default:
			headers = append(headers, pair)
		}
	}
	if len(headers) > 0 {
		p.Headers = a.fields(headers)
	}
	a.published++
	a.ch.PutMethod(&amqp091.BasicPublish{Exchange: []byte(args[0]), RoutingKey: []byte(args[1]), Mandatory: true}, args[2], p)
	returned := ""
	for {
		switch e := a.ch.Next(); e.Method.ID() {
		case amqp091.BasicDeliverID:
			a.coming = append(a.coming, e)
		case amqp091.BasicReturnID:
			returned = "returned, "
		case amqp091.ChannelCloseID:
			a.ch.Send(&amqp091.ChannelCloseOk{})
			a.reopen()
			return show(e)
		default:
			return returned + show(e)
		}
	}
}

func (a *amqp) number(word string) uint64 {
	n, err := strconv.ParseUint(word, 10, 64)
	if err != nil {
		a.t.Fatal(err)
	}
	return n
}

func (a *amqp) table(pairs []string) amqp091.Table { return amqptest.Table(a.t, a.fields(pairs)) }

func (a *amqp) fields(pairs []string) amqp091.Map {
	m := amqp091.Map{}
	for _, pair := range pairs {
		name, value, found := strings.Cut(pair, "=")
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			m[name] = n
		} else if value == "true" || value == "false" {
			m[name] = value == "true"
		} else if found {
			m[name] = value
		} else {
			m[name] = nil
		}
	}
	return m
}

// show tells of what came.
func show(e *amqptest.Event) string {
	switch m := e.Method.(type) {
	case *amqp091.QueueDeclareOk:
		return fmt.Sprintf("queue %s: %d ready, %d consumers", m.Queue, m.MessageCount, m.ConsumerCount)
	case *amqp091.QueuePurgeOk:
		return fmt.Sprintf("%d purged", m.MessageCount)
	case *amqp091.QueueDeleteOk:
		return fmt.Sprintf("deleted with %d", m.MessageCount)
	case *amqp091.BasicGetEmpty:
		return "empty"
	case *amqp091.BasicGetOk:
		return message(m.DeliveryTag, m.Redelivered, string(m.Exchange), string(m.RoutingKey), e)
	case *amqp091.BasicDeliver:
		return string(m.ConsumerTag) + " " + message(m.DeliveryTag, m.Redelivered, string(m.Exchange), string(m.RoutingKey), e)
	case *amqp091.BasicAck:
		return "confirmed"
	case *amqp091.BasicNack:
		return "refused"
	case *amqp091.BasicCancel:
		return "cancelled by the broker: " + m.ConsumerTag
	case *amqp091.ChannelClose:
		return fmt.Sprintf("! %d %s", m.ReplyCode, m.ReplyText)
	}
	return ""
}

// message shows a delivery: its tag, body and envelope, its headers in the order of their names.
func message(tag uint64, redelivered bool, exchange, key string, e *amqptest.Event) string {
	out := fmt.Sprintf("%d %q exchange=%s key=%s", tag, e.Body, exchange, key)
	if redelivered {
		out += " redelivered"
	}
	var p amqp091.Properties
	if err := amqp091.DecodeProperties(e.Properties, &p); err != nil {
		return out + " " + err.Error()
	}
	if p.Expiration != "" {
		out += " @expiration=" + p.Expiration
	}
	if p.Priority != 0 {
		out += fmt.Sprintf(" @priority=%d", p.Priority)
	}
	return out + text(p.Headers, " ")
}

// text shows a table, its names sorted.
func text(m amqp091.Map, before string) (out string) {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		out += before + name + "=" + value(m[name])
	}
	return out
}

func value(v any) string {
	switch v := v.(type) {
	case amqp091.Map:
		return "{" + strings.TrimSpace(text(v, " ")) + "}"
	case []any:
		var list []string
		for _, x := range v {
			list = append(list, value(x))
		}
		return "[" + strings.Join(list, ", ") + "]"
	case time.Time:
		return "(time)"
	}
	return fmt.Sprint(v)
}
