package amqp_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/fsm"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// policed is the shared node's operator: the same as the management API's.
type policed struct {
	*testing.T
	session *broker.Session
}

func operator(t *testing.T) *policed { return operatorOf(t, "/") }

func operatorOf(t *testing.T, vhost string) *policed {
	t.Helper()
	if *against != "" {
		t.Skip("policies are set inside the node")
	}
	s, err := shared(t).Broker().Operate(broker.Client{Protocol: "test"}, vhost)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return &policed{t, s}
}

// set sets a policy for all whose names end so, and removes it after the test.
func (p *policed) set(suffix string, c fsm.PutPolicy, definition amqp091.Map) {
	p.Helper()
	c.Name, c.Pattern, c.Definition = name(p, suffix), "^"+name(p, suffix)+"$", table(p.T, definition)
	if c.ApplyTo == "" {
		c.ApplyTo = "all"
	}
	if _, err := p.session.PutPolicy(p.Context(), c); err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = p.session.DeletePolicy(context.WithoutCancel(p.Context()), c.Operator, c.Name) })
}

func TestRow141AlternateExchangeByPolicy(t *testing.T) {
	_, ch := begin(t)
	p := operator(t)
	byPolicy, byArgument := ch.Exchange(name(t, "policy's"), "fanout"), ch.Exchange(name(t, "argument's"), "fanout")
	q1, q2 := ch.Queue(name(t, "q1")), ch.Queue(name(t, "q2"))
	ch.Bind(q1, byPolicy, "", nil)
	ch.Bind(q2, byArgument, "", nil)
	plain, argued := ch.Exchange(name(t, "plain"), "direct"), name(t, "argued")
	ch.Call(&amqp091.ExchangeDeclare{Exchange: argued, Type: "direct", Arguments: table(t, amqp091.Map{"alternate-exchange": byArgument})})
	p.set("plain", fsm.PutPolicy{}, amqp091.Map{"alternate-exchange": byPolicy})
	p.set("argued", fsm.PutPolicy{ApplyTo: "exchanges"}, amqp091.Map{"alternate-exchange": byPolicy})
	ch.Put(plain, "none", "1")
	ch.Put(argued, "none", "2")
	ch.ExpectDepth(q1, 1)
	ch.ExpectDepth(q2, 1)
	if err := p.session.DeletePolicy(t.Context(), false, name(t, "plain")); err != nil {
		t.Fatal(err)
	}
	ch.PutMandatory(plain, "none", "3")
	ch.Expect((&amqp091.BasicReturn{}).ID())
}

func TestRow222PolicyBesideArguments(t *testing.T) {
	_, ch := begin(t)
	p := operator(t)
	ours, other := ch.Exchange(name(t, "ours"), "fanout"), ch.Exchange(name(t, "other"), "fanout")
	dead, wrong := ch.Queue(name(t, "dead")), ch.Queue(name(t, "wrong"))
	ch.Bind(dead, ours, "", nil)
	ch.Bind(wrong, other, "", nil)
	hour, moment := int64(time.Hour/time.Millisecond), int64(50)
	p.set("long", fsm.PutPolicy{}, amqp091.Map{"message-ttl": hour, "dead-letter-exchange": other})
	p.set("short", fsm.PutPolicy{}, amqp091.Map{"message-ttl": moment, "dead-letter-exchange": other})
	long := declared(ch, "long", amqp091.Map{"x-message-ttl": moment, "x-dead-letter-exchange": ours})
	short := declared(ch, "short", amqp091.Map{"x-message-ttl": hour, "x-dead-letter-exchange": ours})
	ch.Put("", long, "1")
	ch.Put("", short, "2")
	await(ch, dead)
	await(ch, dead)
	ch.ExpectDepth(wrong, 0)
}

func TestRow222LimitsByPolicy(t *testing.T) {
	_, ch := begin(t)
	p := operator(t)
	for suffix, lengths := range map[string][2]int64{"argument": {2, 5}, "policy": {5, 2}} {
		p.set(suffix, fsm.PutPolicy{}, amqp091.Map{"max-length": lengths[1]})
		q := declared(ch, suffix, amqp091.Map{"x-max-length": lengths[0]})
		for i := range 4 {
			ch.Put("", q, fmt.Sprint(i))
		}
		ch.ExpectDepth(q, 2)
		if got := ch.Drain(q); !slices.Equal(got, []string{"2", "3"}) {
			t.Fatalf("%s: left are %q", suffix, got)
		}
	}
}

// TestRow223PolicyAndContent: a limit that a policy brings or lowers acts on what a queue has, but not on what a consumer
// holds; without the policy there is none any more.
func TestRow223PolicyAndContent(t *testing.T) {
	c, ch := begin(t)
	p := operator(t)
	for _, suffix := range []string{"dead", "q"} {
		ch.Call(&amqp091.QueueDelete{Queue: name(t, suffix)})
	}
	dead := declared(ch, "dead", nil)
	q := declared(ch, "q", amqp091.Map{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead})
	for i := range 20 {
		ch.Put("", q, fmt.Sprint(i))
	}
	other := c.Channel(2)
	other.Qos(2, false)
	other.Consume(q, "c")
	held := other.ExpectBodies("0", "1")
	p.set("q", fsm.PutPolicy{}, amqp091.Map{"max-length": int64(10)})
	ch.ExpectDepth(q, 10)
	ch.ExpectDepth(dead, 8)
	p.set("q", fsm.PutPolicy{}, amqp091.Map{"max-length": int64(3), "overflow": "drop-head"})
	ch.ExpectDepth(q, 3)
	ch.ExpectDepth(dead, 15)
	other.Ack(held[1].Tag, true)
	other.ExpectBodies("17", "18")
	other.Leave()
	ch.ExpectDepth(q, 3)
	if err := p.session.DeletePolicy(t.Context(), false, name(t, "q")); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		ch.Put("", q, fmt.Sprint(i))
	}
	ch.ExpectDepth(q, 23)
	p.set("q", fsm.PutPolicy{}, amqp091.Map{"max-length": int64(23), "overflow": "reject-publish"})
	ch.Confirm()
	if refused := put(ch, 0, "", q, "no", "no"); len(refused) != 2 {
		t.Fatalf("%d were refused", len(refused))
	}
}

func TestRow224OperatorPolicyCaps(t *testing.T) {
	_, ch := begin(t)
	p := operator(t)
	hour, moment := int64(time.Hour/time.Millisecond), int64(50)
	q := declared(ch, "q", nil)
	p.set("q", fsm.PutPolicy{Priority: 9}, amqp091.Map{"message-ttl": hour, "delivery-limit": int64(7)})
	p.set("q", fsm.PutPolicy{Operator: true}, amqp091.Map{"message-ttl": moment, "delivery-limit": int64(9)})
	ch.Put("", q, "1")
	ch.ExpectDepth(q, 0)
	info, _ := shared(t).Broker().Inspect(t.Context())
	v, _ := info.Vhost("/")
	row, _ := info.Queue(v, q)
	m, err := amqp091.Table(row.Definition).Map()
	if err != nil || m["message-ttl"] != moment || m["delivery-limit"] != int64(7) || row.Policy != q || row.OperatorPolicy != q {
		t.Fatalf("in force is %v of %q and %q, %v", m, row.Policy, row.OperatorPolicy, err)
	}
}

func TestPolicyExpiresQueues(t *testing.T) {
	_, ch := begin(t)
	q := declared(ch, "q", nil)
	operator(t).set("q", fsm.PutPolicy{ApplyTo: "classic_queues"}, amqp091.Map{"expires": int64(100)})
	ch.ExpectGone(q)
}
