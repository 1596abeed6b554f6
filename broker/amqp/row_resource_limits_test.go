package amqp_test

import (
	"testing"

	"github.com/warrenmq/warren/broker/amqp/amqptest"
	"github.com/warrenmq/warren/fsm"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// limit sets a limit of a vhost of the test's own, or of guest, until the test ends.
func (p *policed) limit(vhost string, c fsm.PutLimit) {
	p.Helper()
	in := p.session
	if vhost != "" {
		if err := in.PutVhost(p.Context(), vhost); err != nil {
			p.Fatal(err)
		}
		in = operatorOf(p.T, vhost).session
	}
	if err := in.PutLimit(p.Context(), c); err != nil {
		p.Fatal(err)
	}
}

func TestRow25ConnectionLimits(t *testing.T) {
	p := operator(t)
	vhost := name(t, "v")
	p.limit(vhost, fsm.PutLimit{Name: "max-connections", Value: 1})
	first := amqptest.DialWith(t, address(t), amqptest.Options{Vhost: vhost})
	refused := amqptest.Connect(t, address(t))
	refused.Login(amqptest.Options{Vhost: vhost})
	refused.Send(0, &amqp091.ConnectionOpen{VirtualHost: vhost})
	refused.ReceiveClose(amqp091.NotAllowed, amqp091.ConnectionOpenID, "access to vhost '"+vhost+"' refused for user 'guest': connection limit (1) is reached")
	first.Close()
	amqptest.DialWith(t, address(t), amqptest.Options{Vhost: vhost}).Close()
}

func TestQueueLimitOfAVhost(t *testing.T) {
	p := operator(t)
	vhost := name(t, "v")
	p.limit(vhost, fsm.PutLimit{Name: "max-queues", Value: 1})
	ch := amqptest.DialWith(t, address(t), amqptest.Options{Vhost: vhost}).Channel(1)
	ch.Queue("one")
	ch.Queue("one")
	ch.Refused(&amqp091.QueueDeclare{Queue: "two", Durable: true}, amqp091.PreconditionFailed, "cannot declare queue 'two': queue limit in vhost '"+vhost+"' (1) is reached")
	ch.Call(&amqp091.QueueDelete{Queue: "one"})
	ch.Queue("two")
}
