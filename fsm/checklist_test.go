package fsm

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The tests named TestRow… hold the machine to the rows of the AMQP 0-9-1 checklist with these numbers, as far as the
// machine decides them.

// answers applies commands one by one and compares what each is answered: "" for success, else code and text.
type answer struct {
	command Command
	want    string
}

func (w *world) answers(list ...answer) {
	w.Helper()
	for _, a := range list {
		before := w.Check(a.command)
		r := w.one(a.command)
		got := ""
		if r.Code != OK {
			got = fmt.Sprintf("%d %s", r.Code, r.Message)
		}
		if got != a.want {
			w.Errorf("%T %+v\n got %s\nwant %s", a.command, a.command, got, a.want)
		}
		switch a.command.(type) {
		case PutQueue, PutExchange, DeleteExchange:
			w.is("the answer of Check", before, Result{Code: r.Code, Message: r.Message})
		}
	}
}

// exchanges and queues name what there is beside what each vhost has.
func (w *world) exchanges() string {
	var names []string
	for _, e := range w.Exchanges(1) {
		if e.Name != "" && !strings.HasPrefix(e.Name, "amq.") {
			names = append(names, e.Name)
		}
	}
	return strings.Join(names, " ")
}

func exchangeNamed(name, kind string, arguments ...any) PutExchange {
	return PutExchange{Vhost: 1, Name: name, Type: kind, Durable: true, Arguments: table(arguments...)}
}

func autoDelete(name string) PutExchange {
	return PutExchange{Vhost: 1, Name: name, Type: fanout, AutoDelete: true}
}

func bindQueue(source, queue, key string, arguments ...any) PutBinding {
	return PutBinding{Vhost: 1, Source: source, Destination: queue, Key: key, Arguments: table(arguments...)}
}

func bindExchange(source, destination, key string) PutBinding {
	return PutBinding{Vhost: 1, Source: source, Kind: ToExchange, Destination: destination, Key: key}
}

// sent publishes and returns how many queues the message reached.
func (w *world) sent(exchange, key string, headers ...any) uint32 {
	w.Helper()
	r := w.one(&Publish{Vhost: 1, Exchange: exchange, RoutingKey: key, Properties: properties(table(headers...), 2)})
	if r.Code != OK {
		w.Error(r.Message)
	}
	return r.Routed
}

const (
	onDefault = "403 ACCESS_REFUSED - operation not permitted on the default exchange"
	onReplyTo = "403 ACCESS_REFUSED - cannot bind or unbind to a volatile (direct reply-to) queue"
	failed406 = "406 PRECONDITION_FAILED - "
)

func TestRow76PredeclaredExchanges(t *testing.T) {
	w := newWorld(t)
	var got []string
	for _, e := range w.Exchanges(1) {
		got = append(got, fmt.Sprint(e.Name, " ", e.Type, " ", e.Durable, e.AutoDelete, e.Internal))
	}
	w.is("exchanges", got, []string{" direct true false false", "amq.direct direct true false false", "amq.fanout fanout true false false",
		"amq.headers headers true false false", "amq.match headers true false false", "amq.rabbitmq.trace topic true false true", "amq.topic topic true false false"})
	w.answers(answer{exchangeNamed("amq.direct", direct), ""}, answer{exchangeNamed("amq.match", headers, "x-other", "1"), ""},
		answer{exchangeNamed("amq.topic", direct), failed406 + "inequivalent arg 'type' for exchange 'amq.topic' in vhost '/': received 'direct' but current is 'topic'"})
}

func TestRow77DefaultExchange(t *testing.T) {
	w := newWorld(t)
	w.queue("q")
	w.answers(answer{exchangeNamed("", direct), onDefault}, answer{DeleteExchange{Vhost: 1}, onDefault}, answer{bindQueue("", "q", "q"), onDefault},
		answer{DeleteBinding(bindQueue("", "q", "q")), onDefault}, answer{bindExchange("", "amq.topic", ""), onDefault}, answer{bindExchange("amq.topic", "", ""), onDefault},
		answer{DeleteBinding(bindExchange("amq.topic", "", "")), onDefault}, answer{bindQueue("", "none", ""), onDefault},
		answer{bindQueue("amq.topic", "amq.rabbitmq.reply-to", ""), onReplyTo}, answer{bindQueue("amq.topic", "amq.rabbitmq.reply-to.g1h2", ""), onReplyTo},
		answer{DeleteBinding(bindQueue("amq.topic", "amq.rabbitmq.reply-to.g1h2", "")), onReplyTo})
	w.is("routed by name", w.sent("", "q"), uint32(1))
}

func TestRow78ReservedExchangeNames(t *testing.T) {
	newWorld(t).answers(answer{exchangeNamed("amq.x", direct), "403 ACCESS_REFUSED - exchange name 'amq.x' contains reserved prefix 'amq.*'"})
}

func TestRow79UnknownExchangeType(t *testing.T) {
	w := newWorld(t)
	w.answers(answer{exchangeNamed("e", "x-odd"), "503 COMMAND_INVALID - unknown exchange type 'x-odd'"}, answer{exchangeNamed("e", "Direct"), "503 COMMAND_INVALID - unknown exchange type 'Direct'"},
		answer{exchangeNamed("e", ""), "503 COMMAND_INVALID - invalid exchange type ''"}, answer{exchangeNamed("", "odd"), "503 COMMAND_INVALID - unknown exchange type 'odd'"})
}

func TestRow80ExchangeEquivalence(t *testing.T) {
	w := newWorld(t)
	w.answers(answer{exchangeNamed("e", direct), ""}, answer{exchangeNamed("e", direct), ""})
	text := func(argument, received, current string) string {
		return fmt.Sprintf(failed406+"inequivalent arg '%s' for exchange 'e' in vhost '/': received '%s' but current is '%s'", argument, received, current)
	}
	for want, change := range map[string]func(*PutExchange){
		text("type", "fanout", "direct"):                    func(e *PutExchange) { e.Type, e.Durable, e.Internal = fanout, false, true },
		text("durable", "false", "true"):                    func(e *PutExchange) { e.Durable, e.AutoDelete = false, true },
		text("auto_delete", "true", "false"):                func(e *PutExchange) { e.AutoDelete, e.Internal = true, true },
		text("internal", "true", "false"):                   func(e *PutExchange) { e.Internal = true; e.Arguments = table("alternate-exchange", "a") },
		"503 COMMAND_INVALID - unknown exchange type 'odd'": func(e *PutExchange) { e.Type = "odd" },
	} {
		c := exchangeNamed("e", direct)
		change(&c)
		w.answers(answer{c, want})
	}
}

func TestRow81And82AlternateExchangeArgument(t *testing.T) {
	w := newWorld(t)
	inequivalent := func(received, current string) string {
		return failed406 + "inequivalent arg 'alternate-exchange' for exchange 'e' in vhost '/': received " + received + " but current is " + current
	}
	w.answers(answer{exchangeNamed("e", direct, "alternate-exchange", "a", "other", "1"), ""},
		answer{exchangeNamed("e", direct, "alternate-exchange", "a", "more", int32(1)), ""},
		answer{exchangeNamed("e", direct), inequivalent("none", "the value 'a' of type 'longstr'")},
		answer{exchangeNamed("e", direct, "alternate-exchange", "b"), inequivalent("'b'", "'a'")},
		answer{exchangeNamed("e", direct, "alternate-exchange", true), inequivalent("'true'", "'a'")},
		answer{exchangeNamed("n", direct, "alternate-exchange", int32(1)), failed406 + "invalid type 'signedint' for arg 'alternate-exchange' in exchange 'n' in vhost '/'"},
		answer{exchangeNamed("n", direct, "alternate-exchange", nil), failed406 + "invalid type 'void' for arg 'alternate-exchange' in exchange 'n' in vhost '/'"})
	w.is("exchanges", w.exchanges(), "e")
}

func TestRow84And85DeleteExchange(t *testing.T) {
	w := newWorld(t)
	w.queue("q")
	w.do(exchangeNamed("source", fanout), exchangeNamed("destination", fanout), bindExchange("source", "destination", ""), bindQueue("destination", "q", ""))
	w.answers(answer{DeleteExchange{Vhost: 1, Name: "none"}, ""}, answer{DeleteExchange{Vhost: 1, Name: "none", IfUnused: true}, ""},
		answer{DeleteExchange{Vhost: 1, Name: "amq.topic"}, "403 ACCESS_REFUSED - deletion of system exchange 'amq.topic' in vhost '/' not allowed"},
		answer{DeleteExchange{Vhost: 1, Name: "amq.none"}, "403 ACCESS_REFUSED - deletion of system exchange 'amq.none' in vhost '/' not allowed"},
		answer{DeleteExchange{Vhost: 1, Name: "source", IfUnused: true}, failed406 + "exchange 'source' in vhost '/' in use"},
		answer{DeleteBinding(bindQueue("destination", "q", "")), ""},
		answer{DeleteExchange{Vhost: 1, Name: "destination", IfUnused: true}, ""})
	w.is("bindings", len(w.Bindings(1)), 0)
	w.answers(answer{DeleteExchange{Vhost: 1, Name: "source", IfUnused: true}, ""})
	w.is("exchanges", w.exchanges(), "")
}

func TestRow86And87AutoDeleteExchanges(t *testing.T) {
	w := newWorld(t)
	w.queue("q")
	w.queue("r")
	w.do(autoDelete("a"), bindQueue("a", "q", "1"), bindQueue("a", "q", "2"), DeleteBinding(bindQueue("a", "q", "1")))
	w.is("one binding is left", w.exchanges(), "a")
	w.do(DeleteBinding(bindQueue("a", "q", "2")))
	w.is("after the last unbind", w.exchanges(), "")
	w.do(autoDelete("a"), autoDelete("b"), autoDelete("c"), autoDelete("never"), exchangeNamed("stays", fanout), bindExchange("a", "b", ""), bindExchange("b", "c", ""),
		bindQueue("c", "r", ""), bindExchange("stays", "c", ""), bindExchange("stays", "never", ""))
	w.do(DeleteQueue{Vhost: 1, Name: "r"})
	w.is("the chain goes with the queue", w.exchanges(), "never stays")
	w.is("bindings", len(w.Bindings(1)), 1)
	w.do(autoDelete("a"), autoDelete("b"), bindExchange("a", "b", ""), bindExchange("b", "a", ""), bindExchange("a", "a", "self"), DeleteExchange{Vhost: 1, Name: "b"})
	w.is("a circle, and a binding to itself", w.exchanges(), "a never stays")
	w.do(DeleteBinding(bindExchange("a", "a", "self")))
	w.is("the binding to itself was the last", w.exchanges(), "never stays")
	w.do(autoDelete("a"), bindExchange("a", "never", ""), DeleteExchange{Vhost: 1, Name: "never"})
	w.is("its destination is deleted", w.exchanges(), "stays")
}

func TestRow86ALongChainGoesAsWell(t *testing.T) {
	w := newWorld(t)
	w.queue("q")
	const length = 5000
	chain := []Command{autoDelete("0")}
	for i := 1; i < length; i++ {
		chain = append(chain, autoDelete(fmt.Sprint(i)), bindExchange(fmt.Sprint(i-1), fmt.Sprint(i), ""))
	}
	w.do(append(chain, bindQueue(fmt.Sprint(length-1), "q", ""))...)
	w.is("routed", w.sent("0", ""), uint32(1))
	w.do(DeleteQueue{Vhost: 1, Name: "q"})
	w.is("exchanges", w.exchanges(), "")
	w.is("bindings", w.Totals().Bindings, 0)
}

func TestRow88ExchangeBindings(t *testing.T) {
	w := newWorld(t)
	w.queue("q")
	w.do(exchangeNamed("a", fanout), exchangeNamed("b", fanout), bindQueue("b", "q", ""))
	w.answers(answer{bindExchange("a", "b", "k"), ""}, answer{bindExchange("a", "b", "k"), ""},
		answer{bindExchange("none", "none2", ""), "404 NOT_FOUND - no exchange 'none' in vhost '/'"}, answer{bindExchange("a", "none", ""), "404 NOT_FOUND - no exchange 'none' in vhost '/'"})
	w.is("bindings", len(w.Bindings(1)), 2)
	w.is("routed", w.sent("a", ""), uint32(1))
	for _, c := range []PutBinding{bindExchange("a", "b", "k"), bindExchange("a", "b", "k"), bindExchange("a", "none", ""), bindExchange("none", "b", "")} {
		w.answers(answer{DeleteBinding(c), ""})
	}
	w.is("routed", w.sent("a", ""), uint32(0))
}

func TestRow90DurableThingsSurviveARestart(t *testing.T) {
	w := newWorld(t)
	w.queue("q")
	w.do(exchangeNamed("durable", fanout), PutExchange{Vhost: 1, Name: "transient", Type: fanout}, PutQueue{Vhost: 1, Name: "t"})
	w.do(bindQueue("durable", "q", ""), bindQueue("durable", "t", ""), bindQueue("transient", "q", ""), bindExchange("durable", "transient", ""))
	w.term++
	w.do(LeaderStarted{Leader: "n", Cold: true})
	for w.one(DropTransient{Limit: 10}).Messages > 0 {
	}
	w.is("exchanges", w.exchanges(), "durable")
	w.is("bindings", w.Bindings(1), []BindingInfo{{Vhost: "/", Source: "durable", Destination: "q", Arguments: w.Bindings(1)[0].Arguments}})
}

func TestRow123And125PublishRefusals(t *testing.T) {
	w := newWorld(t)
	w.do(PutExchange{Vhost: 1, Name: "i", Type: fanout, Internal: true})
	w.answers(answer{&Publish{Vhost: 1, Exchange: "none"}, "404 NOT_FOUND - no exchange 'none' in vhost '/'"},
		answer{&Publish{Vhost: 1, Exchange: "i"}, "403 ACCESS_REFUSED - cannot publish to internal exchange 'i' in vhost '/'"},
		answer{&Publish{Vhost: 1, Exchange: "amq.rabbitmq.trace"}, "403 ACCESS_REFUSED - cannot publish to internal exchange 'amq.rabbitmq.trace' in vhost '/'"})
}

func TestRow128And133UnroutableAndModeThree(t *testing.T) {
	w := newWorld(t)
	q := w.queue("q")
	w.is("unroutable", w.one(&Publish{Vhost: 1, RoutingKey: "none"}), Result{})
	w.is("mode 3", w.one(&Publish{Vhost: 1, RoutingKey: "q", Properties: properties(nil, 3)}), Result{Routed: 1})
	w.is("is transient", w.state.queues[q].messages.transient(new(opened), 1), true)
}

func TestRow134DirectAndFanout(t *testing.T) {
	w := newWorld(t)
	w.queue("q")
	w.queue("r")
	w.do(bindQueue("amq.direct", "q", "k"), bindQueue("amq.direct", "q", "k", "other", "1"), bindQueue("amq.direct", "r", "k"), bindQueue("amq.direct", "r", ""),
		bindQueue("amq.fanout", "q", "x"), bindQueue("amq.fanout", "q", "y"), bindQueue("amq.fanout", "r", ""))
	for key, want := range map[string]uint32{"k": 2, "": 1, "K": 0, "k ": 0} {
		w.is("direct "+key, w.sent("amq.direct", key), want)
	}
	w.is("fanout", w.sent("amq.fanout", "whatever"), uint32(2))
}

func TestRow135TopicTruthTable(t *testing.T) {
	keys := []string{"", "a", "a.b", "a.c.b", "a..b", ".", "a.", ".a", "b", "a.x.y.b"}
	for pattern, want := range map[string][]string{"#": keys, "*": {"a", "b"}, "a.*": {"a.b", "a."}, "a.#": {"a", "a.b", "a.c.b", "a..b", "a.", "a.x.y.b"},
		"#.b": {"a.b", "a.c.b", "a..b", "b", "a.x.y.b"}, "a.*.b": {"a.c.b", "a..b"}, "*.#": keys[1:], "*.*": {"a.b", ".", "a.", ".a"},
		"a.#.b": {"a.b", "a.c.b", "a..b", "a.x.y.b"}, "": {""}, "#.#": keys, "a..b": {"a..b"}, "#.#.#.a": {"a", ".a"}, "a*": nil, "#b": nil} {
		w := newWorld(t)
		w.queue("q")
		w.answers(answer{bindQueue("amq.topic", "q", pattern), ""})
		for _, key := range keys {
			if got := w.sent("amq.topic", key) == 1; got != slices.Contains(want, key) {
				t.Errorf("%q matches %q: %v", pattern, key, got)
			}
		}
	}
}

func TestRow136HeadersExchange(t *testing.T) {
	for _, c := range []struct {
		arguments, headers []any
		want               uint32
	}{
		{nil, nil, 1}, {[]any{"x-match", "any"}, []any{"a", "1"}, 0}, {[]any{"a", "1", "b", "2"}, []any{"b", "2", "c", "3", "a", "1"}, 1},
		{[]any{"x-match", "all", "x-a", "1"}, nil, 1}, {[]any{"x-match", "all-with-x", "x-a", "1"}, nil, 0}, {[]any{"x-match", "all-with-x", "x-a", "1"}, []any{"x-a", "1"}, 1},
		{[]any{"x-match", "any", "x-a", "1"}, []any{"x-a", "1"}, 0}, {[]any{"x-match", "any-with-x", "x-a", "1"}, []any{"x-a", "1"}, 1},
		{[]any{"a", nil}, []any{"a", int32(7)}, 1}, {[]any{"a", nil}, []any{"b", int32(7)}, 0}, {[]any{"a", int32(1)}, []any{"a", "1"}, 0},
		{[]any{"a", int32(1)}, []any{"a", int64(1)}, 1}, {[]any{"a", true}, []any{"a", int32(1)}, 0},
	} {
		w := newWorld(t)
		w.queue("q")
		w.answers(answer{bindQueue("amq.headers", "q", "", c.arguments...), ""})
		w.is(fmt.Sprint(c.arguments, " and ", c.headers), w.sent("amq.headers", "", c.headers...), c.want)
	}
	yes := field{tag: 't', value: []byte{2}}
	newWorld(t).is("any other than 0 is true", yes.equal(&field{tag: 't', value: []byte{1}}), true)
	long := field{tag: 'L', value: []byte{255, 255, 255, 255, 255, 255, 255, 255}}
	newWorld(t).is("L is signed", long.describe(), "the value '-1' of type 'long'")
}

func TestRow137HeadersBindingErrors(t *testing.T) {
	w := newWorld(t)
	w.queue("q")
	w.do(PutQueue{Vhost: 1, Name: "x", Exclusive: true, Owner: Session{1, 9}})
	const value = failed406 + `Invalid x-match field value <<"foo">>; expected all, any, all-with-x, or any-with-x`
	const kind = failed406 + "Invalid x-match field type %s (value %s); expected longstr"
	bad := bindExchange("amq.headers", "amq.fanout", "")
	bad.Arguments = table("x-match", "foo")
	w.answers(answer{bindQueue("amq.headers", "q", "", "x-match", "foo"), value}, answer{bindQueue("amq.match", "q", "", "x-match", "foo"), value}, answer{bad, value},
		answer{bindQueue("amq.headers", "q", "", "x-match", int32(1)), fmt.Sprintf(kind, "signedint", "1")},
		answer{bindQueue("amq.headers", "q", "", "x-match", true), fmt.Sprintf(kind, "bool", "true")},
		answer{bindQueue("amq.headers", "none", "", "x-match", "foo"), "404 NOT_FOUND - no queue 'none' in vhost '/'"},
		answer{bindQueue("amq.headers", "x", "", "x-match", "foo"), "405 " + locked(w.state.vhosts[1], "x").Message},
		answer{bindQueue("amq.topic", "q", "", "x-match", "foo"), ""}, answer{DeleteBinding(bindQueue("amq.headers", "q", "", "x-match", "foo")), ""})
	w.is("bindings", len(w.Bindings(1)), 1)
}

func TestRow138ExchangeChainAndCycle(t *testing.T) {
	w := newWorld(t)
	q := w.queue("q")
	w.do(exchangeNamed("a", fanout), exchangeNamed("b", topic), exchangeNamed("c", direct), bindExchange("a", "b", ""), bindExchange("b", "c", "#"), bindExchange("c", "a", "k"),
		bindExchange("a", "a", ""), bindQueue("a", "q", ""), bindQueue("b", "q", "k"), bindQueue("c", "q", "k"))
	w.is("routed", w.sent("a", "k"), uint32(1))
	m, _, _ := w.Get(q, 1)
	w.is("exchange", m.Exchange, "a")
	w.is("messages", w.Totals().Messages, uint64(1))
}

func TestRow139And140AlternateExchanges(t *testing.T) {
	w := newWorld(t)
	w.queue("q")
	w.queue("lost")
	w.do(exchangeNamed("a", direct, "alternate-exchange", "b"), exchangeNamed("b", topic, "alternate-exchange", "c"), exchangeNamed("c", fanout), exchangeNamed("d", direct, "alternate-exchange", "none"),
		exchangeNamed("e", fanout), bindExchange("e", "d", ""), bindQueue("a", "q", "k"), bindQueue("c", "lost", ""))
	w.is("matched: not through the alternate", w.sent("a", "k"), uint32(1))
	w.is("the alternate's alternate", w.sent("a", "other"), uint32(1))
	w.is("a missing alternate", w.sent("d", "k"), uint32(0))
	w.is("behind another exchange", w.sent("e", "k"), uint32(0))
	w.do(exchangeNamed("none", fanout), bindQueue("none", "lost", ""))
	w.is("declared later", w.sent("d", "k"), uint32(1))
	lost, _ := w.Queue(1, "lost")
	m, _, _ := w.Get(lost.Number, 1)
	w.is("exchange", m.Exchange, "a")
	w.do(exchangeNamed("self", direct, "alternate-exchange", "self"))
	w.is("its own alternate", w.sent("self", "k"), uint32(0))
}
