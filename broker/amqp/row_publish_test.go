package amqp_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/warrenmq/warren/broker/amqp/amqptest"
	"github.com/warrenmq/warren/protocol/amqp091"
)

func TestRow123MissingExchange(t *testing.T) {
	_, ch := begin(t)
	q, none := ch.Queue(name(t, "q")), name(t, "none")
	ch.Confirm()
	for range 20 {
		ch.Put("", q, "m")
	}
	ch.Put(none, "k", "lost")
	ch.Put("", q, "too late")
	var confirmed uint64
	for _, e := range ch.ExpectClose(amqp091.NotFound, amqp091.BasicPublishID, "no exchange '"+none+"' in vhost '/'") {
		ack, ok := e.Method.(*amqp091.BasicAck)
		switch {
		case !ok || ack.DeliveryTag > 20:
			t.Fatalf("got %s", amqptest.Describe(e.Method))
		case ack.Multiple:
			confirmed = ack.DeliveryTag
		default:
			confirmed++
		}
	}
	if confirmed != 20 {
		t.Fatalf("%d of 20 were confirmed before the channel was closed", confirmed)
	}
	ch.Reopen()
	ch.ExpectDepth(q, 20)
}

func TestRow125InternalExchange(t *testing.T) {
	_, ch := begin(t)
	x, y, q := name(t, "x"), ch.Exchange(name(t, "y"), "fanout"), ch.Queue(name(t, "q"))
	ch.Call(&amqp091.ExchangeDeclare{Exchange: x, Type: "fanout", Internal: true})
	ch.BindExchange(x, y, "")
	ch.Bind(q, x, "", nil)
	ch.Put(y, "", "through")
	ch.ExpectDepth(q, 1)
	ch.Put(x, "k", "refused")
	ch.ExpectClose(amqp091.AccessRefused, amqp091.BasicPublishID, "cannot publish to internal exchange '"+x+"' in vhost '/'")
}

func TestRow126Immediate(t *testing.T) {
	c, ch := begin(t)
	ch.PutMethod(&amqp091.BasicPublish{RoutingKey: []byte("q"), Immediate: true}, "m", amqp091.Properties{})
	c.ExpectClose(amqp091.NotImplemented, amqp091.BasicPublishID, "immediate=true")
}

func TestRow127Mandatory(t *testing.T) {
	_, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	large := strings.Repeat("0123456789", 40_000)
	for _, confirm := range []bool{false, true} {
		if confirm {
			ch.Confirm()
		}
		p := amqp091.Properties{MessageID: "m1", Headers: amqp091.Map{"a": "b", "BCC": []any{"nowhere"}}}
		for _, text := range []string{"small", "", large} {
			ch.PutMethod(&amqp091.BasicPublish{Exchange: []byte("amq.direct"), RoutingKey: []byte("nowhere"), Mandatory: true}, text, p)
			e := ch.Expect(amqp091.BasicReturnID)
			m := e.Method.(*amqp091.BasicReturn)
			if m.ReplyCode != 312 || m.ReplyText != "NO_ROUTE" || m.Exchange != "amq.direct" || m.RoutingKey != "nowhere" || string(e.Body) != text {
				t.Fatalf("returned %+v with %d bytes", m, len(e.Body))
			}
			if id, _ := e.Properties.Value(amqp091.PropertyMessageID); string(id) != "m1" {
				t.Fatalf("message id %q", id)
			}
			headers := e.Properties.Headers()
			if _, found := headers.Lookup("BCC"); found {
				t.Fatal("the BCC header was returned")
			}
			if _, found := headers.Lookup("a"); !found {
				t.Fatal("a header was lost")
			}
			if confirm {
				ch.Expect(amqp091.BasicAckID)
			}
		}
		ch.PutMandatory("", q, "routed")
		if confirm {
			ch.Settled(4, 4)
		}
	}
	ch.ExpectDepth(q, 2)
	ch.Quiet()
}

// TestRow127ReturnedBeforeLaterAnswers: what is sent behind a mandatory publish is answered behind its return.
func TestRow127ReturnedBeforeLaterAnswers(t *testing.T) {
	c, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	transactional := c.Channel(2)
	next := func() amqp091.MethodID {
		for {
			if id := ch.Next().Method.ID(); id != amqp091.BasicAckID { // the confirms come when they come
				return id
			}
		}
	}
	for range 20 {
		for _, m := range []amqp091.Method{&amqp091.ConfirmSelect{}, &amqp091.BasicQos{PrefetchCount: 1}, &amqp091.ChannelFlow{Active: true},
			&amqp091.AccessRequest{}, &amqp091.QueueDeclare{Queue: q, Passive: true}, &amqp091.ExchangeDeclare{Exchange: "amq.direct", Passive: true},
			&amqp091.BasicConsume{Queue: q, ConsumerTag: "t"}, &amqp091.BasicCancel{ConsumerTag: "t"}, &amqp091.QueuePurge{Queue: q},
			&amqp091.BasicRecover{Requeue: true}} {
			ch.PutMandatory("", name(t, "missing"), "m")
			ch.Send(m)
			if first, second := next(), next(); first != amqp091.BasicReturnID || second != m.ID()+1 {
				t.Fatalf("%s and %s came for a message that is returned and %s", first, second, m.ID())
			}
		}
	}
	transactional.PutMandatory("", name(t, "missing"), "m")
	transactional.Send(&amqp091.TxSelect{})
	transactional.Expect(amqp091.BasicReturnID)
	transactional.Expect(amqp091.TxSelectOkID)
}

func TestRow128Unroutable(t *testing.T) {
	_, ch := begin(t)
	ch.Confirm()
	ch.Put("", name(t, "none"), "m")
	ch.Put("amq.topic", name(t, "none"), "m")
	if others := ch.Settled(1, 2); len(others) > 0 {
		t.Fatal(others)
	}
}

func TestRow129UserID(t *testing.T) {
	_, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	ch.PutWith("", q, "m", amqp091.Properties{UserID: "guest"})
	ch.ExpectDepth(q, 1)
	ch.PutWith("", q, "m", amqp091.Properties{UserID: "bob"})
	ch.ExpectClose(amqp091.PreconditionFailed, amqp091.BasicPublishID, "user_id property set to 'bob' but authenticated user was 'guest'")
	ch.Reopen()
	ch.ExpectDepth(q, 1)
}

func TestRow130Expiration(t *testing.T) {
	_, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	for i, good := range []string{"60000", "+60000", "315360000000", "0060000"} {
		ch.PutWith("", q, "m", amqp091.Properties{Expiration: good})
		ch.ExpectDepth(q, uint32(i+1))
	}
	for bad, reason := range map[string]string{"abc": "no_integer", "-1": "{value_negative,-1}", "315360000001": "{value_too_large,315360000001}",
		"1.5": `{leftover_string,".5"}`, "10 ": `{leftover_string," "}`, " 5": "no_integer", "12x": `{leftover_string,"x"}`, "1e3": `{leftover_string,"e3"}`} {
		ch.PutWith("", q, "m", amqp091.Properties{Expiration: bad})
		ch.ExpectClose(amqp091.PreconditionFailed, amqp091.BasicPublishID, "invalid expiration '"+bad+"': "+reason)
		ch.Reopen()
	}
	// An empty one, which is not the same as none.
	ch.Raw(ch.Message(nil, toQueue(q), []byte{0x01, 0x00, 0}, []byte("m")))
	ch.ExpectClose(amqp091.PreconditionFailed, amqp091.BasicPublishID, "invalid expiration '': no_integer")
}

func TestRow131CarbonCopies(t *testing.T) {
	_, ch := begin(t)
	a, b, bcc := ch.Queue(name(t, "a")), ch.Queue(name(t, "b")), ch.Queue(name(t, "bcc"))
	ch.Bind(a, "amq.direct", b, nil) // a second way to the same queue
	ch.Confirm()
	ch.PutWith("", a, "m", amqp091.Properties{Headers: amqp091.Map{"CC": []any{b, a, int32(5)}, "BCC": []any{bcc}, "x": "y"}})
	ch.PutWith("amq.direct", a, "direct", amqp091.Properties{Headers: amqp091.Map{"CC": []any{b, b}}})
	ch.Settled(1, 2)
	if got := ch.Drain(b); !slices.Equal(got, []string{"m"}) {
		t.Errorf("the CC queue has %v", got)
	}
	first, second := ch.MustGet(a), ch.MustGet(a)
	if first.Text() != "m" || second.Text() != "direct" || ch.Get(a, true) != nil {
		t.Errorf("the queue of the key has %q, %q and maybe more", first.Text(), second.Text())
	}
	blind := ch.MustGet(bcc)
	for _, d := range []*amqptest.Delivery{first, blind} {
		headers := d.Headers()
		_, cc := headers.Lookup("CC")
		_, hidden := headers.Lookup("BCC")
		_, other := headers.Lookup("x")
		if !cc || hidden || !other || d.Key != a {
			t.Errorf("CC %v, BCC %v, another header %v, key %s", cc, hidden, other, d.Key)
		}
	}
}

func TestRow132CarbonCopyTypes(t *testing.T) {
	_, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	for _, key := range []string{"CC", "BCC"} {
		ch.PutWith("", q, "m", amqp091.Properties{Headers: amqp091.Map{key: "q"}})
		ch.ExpectClose(amqp091.PreconditionFailed, amqp091.BasicPublishID, `invalid message: {unacceptable_type_in_header,"`+key+`",longstr}`)
		ch.Reopen()
	}
	ch.ExpectDepth(q, 0)
}

func TestRow133DeliveryMode3(t *testing.T) {
	_, ch := begin(t)
	q := ch.Queue(name(t, "q"))
	ch.PutWith("", q, "m", amqp091.Properties{DeliveryMode: 3})
	ch.ExpectDepth(q, 1)
	if mode, _ := ch.MustGet(q).Properties.Byte(amqp091.PropertyDeliveryMode); mode != 3 {
		t.Fatalf("delivery mode %d", mode)
	}
}

func TestRow134DirectAndFanout(t *testing.T) {
	_, ch := begin(t)
	direct, fanout, q, other := ch.Exchange(name(t, "direct"), "direct"), ch.Exchange(name(t, "fanout"), "fanout"), ch.Queue(name(t, "q")), ch.Queue(name(t, "other"))
	for _, key := range []string{"a", "b"} {
		ch.Bind(q, direct, key, nil)
		ch.Bind(q, fanout, key, nil)
	}
	ch.Bind(q, direct, "a", amqp091.Map{"another": true}) // arguments make it another binding
	ch.Bind(other, fanout, "", nil)
	ch.Confirm()
	ch.Put(direct, "a", "1")
	ch.Put(direct, "b", "2")
	ch.Put(direct, "A", "lost")
	ch.Put(direct, "", "lost")
	ch.Put(fanout, "whatever", "3")
	ch.Settled(1, 5)
	if got := ch.Drain(q); !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("got %v", got)
	}
	if got := ch.Drain(other); !slices.Equal(got, []string{"3"}) {
		t.Errorf("the other got %v", got)
	}
	ch.Call(&amqp091.QueueUnbind{Queue: q, Exchange: direct, RoutingKey: "a"})
	ch.Put(direct, "a", "4") // the one with arguments is left
	ch.Settled(6, 6)
	if got := ch.Drain(q); !slices.Equal(got, []string{"4"}) {
		t.Errorf("got %v", got)
	}
}

// topics are which keys each pattern matches, of topicKeys.
var topicKeys = []string{"", "a", "a.b", "a.c.b", "a..b", ".", "a.", ".a", "b", "a.x.y.b"}

var topics = map[string][]string{
	"#":     topicKeys,
	"*":     {"a", "b"},
	"a.*":   {"a.b", "a."},
	"a.#":   {"a", "a.b", "a.c.b", "a..b", "a.", "a.x.y.b"},
	"#.b":   {"a.b", "a.c.b", "a..b", "b", "a.x.y.b"},
	"a.*.b": {"a.c.b", "a..b"},
	"*.#":   topicKeys[1:],
	"*.*":   {"a.b", ".", "a.", ".a"},
	"a.#.b": {"a.b", "a.c.b", "a..b", "a.x.y.b"},
	"":      {""},
	"#.#":   topicKeys,
	"a..b":  {"a..b"},
	"a#":    {},
	"*a":    {},
}

func TestRow135Topics(t *testing.T) {
	_, ch := begin(t)
	x := ch.Exchange(name(t, "x"), "topic")
	queue := func(pattern string) string { return name(t, "pattern "+pattern) }
	for pattern := range topics {
		ch.Bind(ch.Queue(queue(pattern)), x, pattern, nil)
	}
	ch.Confirm()
	for _, key := range topicKeys {
		ch.Put(x, key, key)
	}
	ch.Settled(1, uint64(len(topicKeys)))
	for pattern, want := range topics {
		if got := ch.Drain(queue(pattern)); !slices.Equal(got, want) {
			t.Errorf("%q matches %q, want %q", pattern, got, want)
		}
	}
}

func TestRow136Headers(t *testing.T) {
	_, ch := begin(t)
	x := ch.Exchange(name(t, "x"), "headers")
	messages := map[string]amqp091.Map{"none": nil, "a1": {"a": int32(1)}, "a1b2": {"a": int64(1), "b": int8(2), "c": "extra"}, "a text": {"a": "1"}, "a2": {"a": int32(2)},
		"x1": {"x-a": int32(1)}, "a1x1": {"a": int32(1), "x-a": int32(1)}, "b2": {"b": int32(2)}}
	for criteria, part := range map[string]struct {
		arguments amqp091.Map
		want      []string
	}{
		"default is all":    {amqp091.Map{"a": int32(1), "b": int32(2)}, []string{"a1b2"}},
		"all":               {amqp091.Map{"x-match": "all", "a": int32(1)}, []string{"a1", "a1b2", "a1x1"}},
		"any":               {amqp091.Map{"x-match": "any", "a": int32(1), "b": int32(2)}, []string{"a1", "a1b2", "a1x1", "b2"}},
		"all leaves x- out": {amqp091.Map{"x-match": "all", "a": int32(1), "x-a": int32(1)}, []string{"a1", "a1b2", "a1x1"}},
		"any leaves x- out": {amqp091.Map{"x-match": "any", "x-a": int32(1), "b": int32(2)}, []string{"a1b2", "b2"}},
		"all with x":        {amqp091.Map{"x-match": "all-with-x", "a": int32(1), "x-a": int32(1)}, []string{"a1x1"}},
		"any with x":        {amqp091.Map{"x-match": "any-with-x", "b": int32(2), "x-a": int32(1)}, []string{"a1b2", "x1", "a1x1", "b2"}},
		"void":              {amqp091.Map{"a": nil}, []string{"a1", "a1b2", "a text", "a2", "a1x1"}},
		"text":              {amqp091.Map{"a": "1"}, []string{"a text"}},
		"no criteria, all":  {amqp091.Map{"x-match": "all"}, []string{"none", "a1", "a1b2", "a text", "a2", "x1", "a1x1", "b2"}},
		"no arguments":      {nil, []string{"none", "a1", "a1b2", "a text", "a2", "x1", "a1x1", "b2"}},
		"no criteria, any":  {amqp091.Map{"x-match": "any"}, []string{}},
	} {
		q := ch.Queue(name(t, criteria))
		ch.Bind(q, x, "ignored", part.arguments)
		ch.Confirm()
		for text, headers := range messages {
			ch.PutWith(x, "k", text, amqp091.Properties{Headers: headers})
		}
		ch.Settled(1, uint64(len(messages)))
		got := ch.Drain(q)
		slices.Sort(got)
		slices.Sort(part.want)
		if !slices.Equal(got, part.want) {
			t.Errorf("%s: got %q, want %q", criteria, got, part.want)
		}
		ch.Leave()
		ch.Reopen()
		ch.Call(&amqp091.QueueDelete{Queue: q})
	}
}

func TestRow137BadXMatch(t *testing.T) {
	_, ch := begin(t)
	x, q := ch.Exchange(name(t, "x"), "headers"), ch.Queue(name(t, "q"))
	bind := func(v any) amqp091.Method {
		return &amqp091.QueueBind{Queue: q, Exchange: x, Arguments: table(t, amqp091.Map{"x-match": v})}
	}
	ch.Refused(bind("foo"), amqp091.PreconditionFailed, `Invalid x-match field value <<"foo">>; expected all, any, all-with-x, or any-with-x`)
	ch.Refused(bind(int32(1)), amqp091.PreconditionFailed, "Invalid x-match field type signedint (value 1); expected longstr")
}

func TestRow138ChainsAndCycles(t *testing.T) {
	_, ch := begin(t)
	a, b, c, q := ch.Exchange(name(t, "a"), "topic"), ch.Exchange(name(t, "b"), "fanout"), ch.Exchange(name(t, "c"), "direct"), ch.Queue(name(t, "q"))
	ch.BindExchange(b, a, "#")
	ch.BindExchange(c, b, "")
	ch.BindExchange(a, c, "k") // a cycle
	ch.BindExchange(a, a, "#") // to itself
	for _, x := range []string{a, b, c} {
		ch.Bind(q, x, "k", nil)
	}
	ch.Confirm()
	ch.Put(a, "k", "m")
	ch.Settled(1, 1)
	d := ch.MustGet(q)
	if d.Exchange != a || d.Key != "k" {
		t.Errorf("exchange %s, key %s", d.Exchange, d.Key)
	}
	if more := ch.Drain(q); len(more) != 0 {
		t.Errorf("%d copies too many", len(more))
	}
}

// withAlternate declares an exchange with an alternate one.
func withAlternate(ch *amqptest.Channel, x, kind, alternate string) string {
	ch.T.Helper()
	ch.Call(&amqp091.ExchangeDeclare{Exchange: x, Type: kind, Arguments: table(ch.T, amqp091.Map{"alternate-exchange": alternate})})
	return x
}

func TestRow139AlternateExchange(t *testing.T) {
	_, ch := begin(t)
	rest, q := ch.Queue(name(t, "rest")), ch.Queue(name(t, "q"))
	ae := ch.Exchange(name(t, "ae"), "fanout")
	ch.Bind(rest, ae, "", nil)
	x := withAlternate(ch, name(t, "x"), "direct", ae)
	lost := withAlternate(ch, name(t, "lost"), "direct", name(t, "none"))
	ch.Bind(q, x, "k", nil)
	ch.Confirm()
	ch.PutMandatory(x, "k", "matched")
	ch.PutMandatory(x, "else", "rest")
	if returned := ch.Settled(1, 2); len(returned) > 0 {
		t.Errorf("returned: %s", amqptest.Describe(returned[0].Method))
	}
	ch.PutMandatory(lost, "k", "lost")
	ch.Expect(amqp091.BasicReturnID)
	ch.Settled(3, 3)
	if got := ch.Drain(q); !slices.Equal(got, []string{"matched"}) {
		t.Errorf("the queue has %v", got)
	}
	d := ch.MustGet(rest)
	if d.Text() != "rest" || d.Exchange != x || ch.Get(rest, true) != nil {
		t.Errorf("the alternate has %q of exchange %s, and maybe more", d.Text(), d.Exchange)
	}
}

func TestRow140AlternateChain(t *testing.T) {
	_, ch := begin(t)
	last, q := ch.Exchange(name(t, "last"), "fanout"), ch.Queue(name(t, "q"))
	ch.Bind(q, last, "", nil)
	x := last
	for i := range 5 {
		x = withAlternate(ch, fmt.Sprintf("%s.%d", name(t, "x"), i), "direct", x)
	}
	a := withAlternate(ch, name(t, "a"), "direct", name(t, "b")) // a cycle that leads nowhere
	withAlternate(ch, name(t, "b"), "direct", a)
	ch.Confirm()
	ch.PutMandatory(x, "k", "m")
	if others := ch.Settled(1, 1); len(others) > 0 {
		t.Error("returned")
	}
	ch.PutMandatory(a, "k", "m")
	ch.Expect(amqp091.BasicReturnID)
	ch.Settled(2, 2)
	if got := ch.Drain(q); len(got) != 1 {
		t.Errorf("got %v", got)
	}
}
