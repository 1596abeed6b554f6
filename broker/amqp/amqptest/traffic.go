package amqptest

import (
	"time"

	"github.com/warrenmq/warren/protocol/amqp091"
)

// Quorum makes a queue that is declared with an explicit type.
func Quorum(name string) *amqp091.QueueDeclare {
	return &amqp091.QueueDeclare{Queue: name, Durable: true, Arguments: quorum}
}

var quorum = func() amqp091.Table {
	b, err := amqp091.AppendMap(nil, amqp091.Map{"x-queue-type": "quorum"})
	if err != nil {
		panic(err)
	}
	return b
}()

// Declare declares a queue.
func (ch *Channel) Declare(q *amqp091.QueueDeclare) *amqp091.QueueDeclareOk {
	ch.T.Helper()
	return ch.Call(q).(*amqp091.QueueDeclareOk)
}

// Queue declares a durable queue and returns its name.
func (ch *Channel) Queue(name string) string {
	ch.T.Helper()
	return ch.Declare(&amqp091.QueueDeclare{Queue: name, Durable: true}).Queue
}

// Exchange declares a durable exchange and returns its name.
func (ch *Channel) Exchange(name, kind string) string {
	ch.T.Helper()
	ch.Call(&amqp091.ExchangeDeclare{Exchange: name, Type: kind, Durable: true})
	return name
}

// Bind binds a queue.
func (ch *Channel) Bind(queue, exchange, key string, arguments amqp091.Map) {
	ch.T.Helper()
	ch.Call(&amqp091.QueueBind{Queue: queue, Exchange: exchange, RoutingKey: key, Arguments: Table(ch.T, arguments)})
}

// BindExchange binds an exchange to another.
func (ch *Channel) BindExchange(destination, source, key string) {
	ch.T.Helper()
	ch.Call(&amqp091.ExchangeBind{Destination: destination, Source: source, RoutingKey: key})
}

// Look declares a queue passively.
func (ch *Channel) Look(queue string) *amqp091.QueueDeclareOk {
	ch.T.Helper()
	m, _ := ch.Pass(&amqp091.QueueDeclare{Queue: queue, Passive: true})
	return m.(*amqp091.QueueDeclareOk)
}

// ExpectDepth waits until a queue has so many ready messages.
func (ch *Channel) ExpectDepth(queue string, ready uint32) {
	ch.T.Helper()
	var got uint32
	for until := time.Now().Add(Patience); time.Now().Before(until); {
		if got = ch.Look(queue).MessageCount; got == ready {
			return
		}
	}
	ch.T.Fatalf("queue %s has %d ready messages, want %d", queue, got, ready)
}

// ExpectConsumers waits until a queue has so many consumers.
func (ch *Channel) ExpectConsumers(queue string, consumers uint32) {
	ch.T.Helper()
	var got uint32
	for until := time.Now().Add(Patience); time.Now().Before(until); {
		if got = ch.Look(queue).ConsumerCount; got == consumers {
			return
		}
	}
	ch.T.Fatalf("queue %s has %d consumers, want %d", queue, got, consumers)
}

// Exists asks whether a queue exists; the channel survives.
func (ch *Channel) Exists(queue string) bool {
	ch.T.Helper()
	ch.Send(&amqp091.QueueDeclare{Queue: queue, Passive: true})
	for {
		switch e := ch.Next(); m := e.Method.(type) {
		case *amqp091.QueueDeclareOk:
			return true
		case *amqp091.ChannelClose:
			if m.ReplyCode != uint16(amqp091.NotFound) && m.ReplyCode != uint16(amqp091.ResourceLocked) {
				ch.T.Fatalf("looked for queue %s: %s", queue, Describe(m))
			}
			ch.Send(&amqp091.ChannelCloseOk{})
			ch.Reopen()
			return m.ReplyCode == uint16(amqp091.ResourceLocked)
		}
	}
}

// ExpectGone waits until a queue does not exist.
func (ch *Channel) ExpectGone(queue string) {
	ch.T.Helper()
	for until := time.Now().Add(Patience); ch.Exists(queue); {
		if time.Now().After(until) {
			ch.T.Fatalf("queue %s is still there", queue)
		}
	}
}

// Message appends the frames of a publish.
func (ch *Channel) Message(b []byte, m *amqp091.BasicPublish, properties amqp091.PropertyBytes, body []byte) []byte {
	return amqp091.AppendContent(m.AppendFrame(b, ch.Number), ch.Number, properties, body, ch.FrameMax)
}

// Put publishes a message and waits for nothing.
func (ch *Channel) Put(exchange, key, body string) {
	ch.T.Helper()
	ch.PutWith(exchange, key, body, amqp091.Properties{})
}

// PutWith is Put with properties.
func (ch *Channel) PutWith(exchange, key, body string, p amqp091.Properties) {
	ch.T.Helper()
	ch.PutMethod(&amqp091.BasicPublish{Exchange: []byte(exchange), RoutingKey: []byte(key)}, body, p)
}

// PutMandatory is Put with the mandatory flag.
func (ch *Channel) PutMandatory(exchange, key, body string) {
	ch.T.Helper()
	ch.PutMethod(&amqp091.BasicPublish{Exchange: []byte(exchange), RoutingKey: []byte(key), Mandatory: true}, body, amqp091.Properties{})
}

// PutMethod publishes a message and waits for nothing.
func (ch *Channel) PutMethod(m *amqp091.BasicPublish, body string, p amqp091.Properties) {
	ch.T.Helper()
	ch.Raw(ch.Message(nil, m, Properties(ch.T, p), []byte(body)))
}

// Confirm selects confirm mode.
func (ch *Channel) Confirm() {
	ch.T.Helper()
	ch.Call(&amqp091.ConfirmSelect{})
}

// Settled waits until the publishes from..to of a channel in confirm mode are settled, each once, and fails the test if one is
// refused. It returns what else came.
func (ch *Channel) Settled(from, to uint64) []*Event {
	ch.T.Helper()
	refused, others := ch.Outcomes(from, to)
	if len(refused) > 0 {
		ch.T.Fatalf("the broker refused the publishes %v", refused)
	}
	return others
}

// Outcomes waits until the publishes from..to are settled, each once, and returns those that were refused and what else came.
func (ch *Channel) Outcomes(from, to uint64) (refused []uint64, others []*Event) {
	ch.T.Helper()
	settled := make(map[uint64]bool)
	settle := func(tag uint64, multiple, nack bool) {
		first := tag
		if multiple {
			first = from
		}
		if tag > to || tag < from {
			ch.T.Fatalf("the broker confirmed number %d, which was not published (%d to %d were)", tag, from, to)
		}
		for n := first; n <= tag; n++ {
			switch {
			case !settled[n]:
				settled[n] = true
				if nack {
					refused = append(refused, n)
				}
			case n == tag || !multiple:
				ch.T.Fatalf("the broker confirmed number %d twice", n)
			}
		}
	}
	for uint64(len(settled)) < to-from+1 {
		switch e := ch.Next(); m := e.Method.(type) {
		case *amqp091.BasicAck:
			settle(m.DeliveryTag, m.Multiple, false)
		case *amqp091.BasicNack:
			settle(m.DeliveryTag, m.Multiple, true)
		case *amqp091.ChannelClose:
			ch.T.Fatalf("waited for confirms up to %d, got %s", to, Describe(m))
		default:
			others = append(others, e)
		}
	}
	return refused, others
}

// Fill publishes bodies to a queue through the default exchange and returns when all are in it. It uses a channel of its own,
// number 999.
func (c *Conn) Fill(queue string, bodies ...string) {
	c.T.Helper()
	ch := c.Channel(999)
	ch.Confirm()
	var b []byte
	for _, body := range bodies {
		b = ch.Message(b, &amqp091.BasicPublish{RoutingKey: []byte(queue), Mandatory: true}, nil, []byte(body))
	}
	ch.Raw(b)
	if others := ch.Settled(1, uint64(len(bodies))); len(others) > 0 {
		c.T.Fatalf("filling queue %s: %s", queue, Describe(others[0].Method))
	}
	ch.Leave()
}

// Consume starts a consumer and returns its tag.
func (ch *Channel) Consume(queue, tag string) string {
	ch.T.Helper()
	return ch.ConsumeWith(&amqp091.BasicConsume{Queue: queue, ConsumerTag: tag})
}

// ConsumeWith starts a consumer and returns its tag.
func (ch *Channel) ConsumeWith(m *amqp091.BasicConsume) string {
	ch.T.Helper()
	return ch.Call(m).(*amqp091.BasicConsumeOk).ConsumerTag
}

// Qos limits what is under way.
func (ch *Channel) Qos(count uint16, global bool) {
	ch.T.Helper()
	ch.Pass(&amqp091.BasicQos{PrefetchCount: count, Global: global})
}

// Delivery is a message that was received.
type Delivery struct {
	*Event
	Consumer      string // "" of basic.get
	Tag           uint64
	Redelivered   bool
	Exchange, Key string
	Left          uint32 // in the queue, of basic.get
}

// Text is the body.
func (d *Delivery) Text() string { return string(d.Body) }

// Headers are the headers.
func (d *Delivery) Headers() amqp091.Table { return d.Properties.Headers() }

// Deliver waits for a delivery.
func (ch *Channel) Deliver() *Delivery {
	ch.T.Helper()
	e := ch.Expect(amqp091.BasicDeliverID)
	m := e.Method.(*amqp091.BasicDeliver)
	return &Delivery{e, m.ConsumerTag, m.DeliveryTag, m.Redelivered, m.Exchange, m.RoutingKey, 0}
}

// ExpectBodies waits for deliveries with these bodies, in this order.
func (ch *Channel) ExpectBodies(bodies ...string) (all []*Delivery) {
	ch.T.Helper()
	for i, want := range bodies {
		d := ch.Deliver()
		if d.Text() != want {
			ch.T.Fatalf("delivery %d is %q, want %q", i+1, d.Text(), want)
		}
		all = append(all, d)
	}
	return all
}

// Get takes a message, nil when the queue is empty.
func (ch *Channel) Get(queue string, noAck bool) *Delivery {
	ch.T.Helper()
	ch.Send(&amqp091.BasicGet{Queue: queue, NoAck: noAck})
	e := ch.Next()
	switch m := e.Method.(type) {
	case *amqp091.BasicGetOk:
		return &Delivery{e, "", m.DeliveryTag, m.Redelivered, m.Exchange, m.RoutingKey, m.MessageCount}
	case *amqp091.BasicGetEmpty:
	default:
		ch.T.Fatalf("basic.get of %s was answered with %s", queue, Describe(e.Method))
	}
	return nil
}

// MustGet takes a message that is there.
func (ch *Channel) MustGet(queue string) *Delivery {
	ch.T.Helper()
	d := ch.Get(queue, false)
	if d == nil {
		ch.T.Fatalf("queue %s is empty", queue)
	}
	return d
}

// Drain takes everything out of a queue and returns the bodies.
func (ch *Channel) Drain(queue string) []string {
	ch.T.Helper()
	bodies := []string{}
	for d := ch.Get(queue, true); d != nil; d = ch.Get(queue, true) {
		bodies = append(bodies, d.Text())
	}
	return bodies
}

// Ack acknowledges; multiple is for everything up to the tag.
func (ch *Channel) Ack(tag uint64, multiple bool) {
	ch.T.Helper()
	ch.Send(&amqp091.BasicAck{DeliveryTag: tag, Multiple: multiple})
}

// Nack gives a message back, or up.
func (ch *Channel) Nack(tag uint64, multiple, requeue bool) {
	ch.T.Helper()
	ch.Send(&amqp091.BasicNack{DeliveryTag: tag, Multiple: multiple, Requeue: requeue})
}
