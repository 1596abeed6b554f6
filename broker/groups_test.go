package broker

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/warrenmq/warren/fsm"
)

// Field tables of queue arguments.
var (
	byRoutingKey = []byte("\x0bx-group-keyS\x00\x00\x00\x0brouting-key")
	byHeader     = []byte("\x0bx-group-keyS\x00\x00\x00\x01g")
)

// grouped makes properties with the header g.
func grouped(g string) []byte {
	return append([]byte{0x20, 0, 0, 0, 0, byte(7 + len(g)), 1, 'g', 'S', 0, 0, 0, byte(len(g))}, g...)
}

// publishGrouped sends messages "group number" and waits until they are there.
func (w *wire) publishGrouped(queue string, bodies ...string) {
	w.t.Helper()
	for _, b := range bodies {
		group, _, _ := strings.Cut(b, " ")
		p := Publication{RoutingKey: queue, Body: []byte(b), Properties: grouped(group)}
		if group == "" {
			p.Properties = nil
		}
		done := make(chan fsm.Result, 1)
		check(w.t, w.session.Publish(within(w.t), []Publication{p}, CompleterFunc(func(r fsm.Result) { done <- r })))
		if r := <-done; r.Code != fsm.OK || r.Routed != 1 {
			w.t.Fatalf("%q: %+v", b, r)
		}
	}
}

// TestAGroupGoesToOneConsumerAtATime: the next message of a group goes to who holds one, in order; those of other groups
// and of none do not wait for it.
func TestAGroupGoesToOneConsumerAtATime(t *testing.T) {
	w := startAlone(t, Config{}).connect()
	w.declare(Queue{Name: "q", Arguments: byHeader})
	one, two := w.channel(1), w.channel(2)
	one.Qos(2, false)
	two.Qos(2, false)
	w.publishGrouped("q", "a 1", "a 2", "a 3", "a 4", "b 1", " 1", " 2")
	w.consume(one, Consumer{Queue: "q", Tag: "one"})
	first := w.next("one", "a 1")
	second := w.next("one", "a 2")
	w.blocked("q")
	w.consume(two, Consumer{Queue: "q", Tag: "two"})
	b := w.next("two", "b 1")
	w.next("two", " 1")
	w.blocked("q")
	w.nothing()
	// What comes back comes before what lies behind it, to who still holds the group.
	check(t, one.SettleTag(fsm.Return, first.Tag, false))
	first = w.next("one", "a 1")
	check(t, two.SettleTag(fsm.Acknowledge, b.Tag, false))
	w.next("two", " 2")
	check(t, one.SettleTag(fsm.Acknowledge, second.Tag, false))
	w.next("one", "a 3")
	// Cancelled, the first keeps what it holds and with it the group.
	check(t, one.Cancel(within(t), "one"))
	two.Qos(0, false)
	w.consume(two, Consumer{Queue: "q", Tag: "three"})
	w.publishGrouped("q", "c 1")
	w.next("three", "c 1")
	w.nothing()
	check(t, one.SettleTag(fsm.Return, 0, true))
	for _, body := range []string{"a 1", "a 3", "a 4"} {
		w.next("three", body)
	}
	w.nothing()
}

// TestAGetIsAHolderOfItsOwn: a get takes what nobody else's group is in, and the channel keeps the group.
func TestAGetIsAHolderOfItsOwn(t *testing.T) {
	w := startAlone(t, Config{}).connect()
	w.declare(Queue{Name: "q", Arguments: byHeader})
	ch, other := w.channel(1), w.channel(2)
	get := func(ch *Channel, want string) (tag uint64) {
		t.Helper()
		found, err := ch.Get(within(t), "q", false, func(d *Delivery, _ uint64) {
			if tag = d.Tag; string(d.Message.Body) != want {
				t.Errorf("got %q, want %q", d.Message.Body, want)
			}
		})
		if check(t, err); found != (want != "") {
			t.Fatalf("found %v, want %q", found, want)
		}
		return tag
	}
	w.publishGrouped("q", "a 1", "a 2", "b 1", "a 3")
	get(ch, "a 1")
	get(other, "b 1")
	get(ch, "a 2")
	get(other, "")
	w.consume(other, Consumer{Queue: "q", Tag: "c"})
	w.looked("q")
	w.nothing()
	check(t, ch.SettleTag(fsm.Return, 0, true))
	for _, body := range []string{"a 1", "a 2", "a 3"} {
		w.next("c", body)
	}
	get(ch, "")
}

// looked waits until dispatch has looked at everything that was published.
func (w *wire) looked(queue string) {
	w.t.Helper()
	info, err := w.session.queue(queue)
	check(w.t, err)
	v := w.session.leadership.view(info.Number)
	eventually(w.t, "everything has been looked at", func() bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		return v.cursor > w.session.leadership.broker.machine.LastSequence(info.Number) && len(v.ahead) == 0
	})
}

// TestManyGroupsGoOnInParallel: consumers that take one message at a time all have one, and the groups that wait for
// them hold nobody up.
func TestManyGroupsGoOnInParallel(t *testing.T) {
	w := startAlone(t, Config{}).connect()
	w.declare(Queue{Name: "q", Arguments: byRoutingKey})
	check(t, w.session.Bind(within(t), Binding{Source: "amq.topic", Destination: "q", Key: "#"}))
	ch := w.channel(1)
	ch.Qos(1, false)
	const consumers, groups, each = 8, 40, 5
	for g := range groups { // all of a group, then all of the next
		for n := range each {
			done := make(chan fsm.Result, 1)
			check(t, w.session.Publish(within(t), []Publication{{Exchange: "amq.topic", RoutingKey: fmt.Sprint("g", g), Body: []byte{byte(n)}}}, CompleterFunc(func(r fsm.Result) { done <- r })))
			<-done
		}
	}
	for c := range consumers {
		w.consume(ch, Consumer{Queue: "q", Tag: fmt.Sprint("c", c)})
	}
	got, position, first := map[string]int{}, map[string]byte{}, map[string]bool{}
	var held []Delivery
	for n := range groups * each {
		d := w.next("", "")
		if d.Message.Body[0] != position[d.Message.RoutingKey] {
			t.Fatalf("message %d of %s came, want %d", d.Message.Body[0], d.Message.RoutingKey, position[d.Message.RoutingKey])
		}
		position[d.Message.RoutingKey]++
		got[d.ConsumerTag]++
		held = append(held, d)
		if n < consumers-1 {
			continue // until each has one
		}
		if n == consumers-1 {
			for _, d := range held {
				first[d.Message.RoutingKey] = true
			}
			if len(got) != consumers || len(first) != consumers {
				t.Fatalf("the first %d messages went to %v, of the groups %v", consumers, got, first)
			}
		}
		for _, d := range held {
			check(t, ch.SettleTag(fsm.Acknowledge, d.Tag, false))
		}
		held = nil
	}
	for tag, n := range got {
		if n < groups*each/consumers/4 {
			t.Errorf("%s got %d of %d messages", tag, n, groups*each)
		}
	}
}

// messageState is where a message of TestGroupsUnderRandomUse is.
type messageState int

const (
	inQueue    messageState = iota
	out                     // with somebody
	comingBack              // the call that returns it has not ended
	over
)

// groupOracle checks every delivery when it is made.
type groupOracle struct {
	mu     sync.Mutex
	wrong  string
	states map[string][]messageState // of each group, by number
	by     map[string]string         // who has "group number"
	outs   map[string][]*outing      // of each session
}

type outing struct {
	channel *Channel
	tag     uint64
	body    string
	who     string
}

type groupWire struct {
	*groupOracle
	name string
	wire *wire
	ch   *Channel
}

func (g *groupWire) Deliver(d Delivery) {
	who := g.name + "/" + d.ConsumerTag
	body := string(d.Message.Body)
	var group string
	var number int
	_, _ = fmt.Sscan(body, &group, &number)
	g.mu.Lock()
	defer g.mu.Unlock()
	for n, state := range g.states[group] {
		key := fmt.Sprint(group, " ", n)
		switch {
		case state == out && g.by[key] != who:
			g.wrong = fmt.Sprintf("%q for %s, while %s has %q", body, who, g.by[key], key)
		case n < number && state == inQueue:
			g.wrong = fmt.Sprintf("%q for %s, while %q waits", body, who, key)
		}
	}
	if s := g.states[group][number]; s == over || s == out {
		g.wrong = fmt.Sprintf("%q for %s again", body, who)
	}
	g.states[group][number] = out
	g.by[body] = who
	g.outs[g.name] = append(g.outs[g.name], &outing{g.ch, d.Tag, body, who})
}
func (g *groupWire) Writable() bool         { return true }
func (g *groupWire) Full() bool             { return false }
func (g *groupWire) Cancelled(Cancellation) {}

func (g *groupOracle) set(body string, state messageState) {
	var group string
	var number int
	_, _ = fmt.Sscan(body, &group, &number)
	g.states[group][number] = state
}

// TestGroupsUnderRandomUse: consumers acknowledge, return, cancel, disconnect and get as they like. At each delivery nobody else
// holds a message of the group, and nothing before it waits; at the end each message was acknowledged.
func TestGroupsUnderRandomUse(t *testing.T) {
	a := startAlone(t, Config{})
	round := 0
	rapid.Check(t, func(r *rapid.T) {
		round++
		queue := fmt.Sprint("q", round)
		o := &groupOracle{states: map[string][]messageState{}, by: map[string]string{}, outs: map[string][]*outing{}}
		publisher := a.connect()
		publisher.declare(Queue{Name: queue, Arguments: byHeader})
		sessions := map[string]*groupWire{}
		opened := 0
		open := func(slot int) {
			opened++
			g := &groupWire{groupOracle: o, name: fmt.Sprint("s", slot, ".", opened), wire: &wire{t: t}}
			s, err := a.broker.Open(Client{Name: g.name, Peer: "127.0.0.1:1", Local: "127.0.0.1:5672", User: "guest"}, "/", g)
			check(t, err)
			g.wire.session = s
			g.ch = g.wire.channel(1)
			g.ch.Qos(uint32(rapid.IntRange(0, 3).Draw(r, "prefetch")), false)
			g.wire.consume(g.ch, Consumer{Queue: queue, Tag: "c0", Priority: int64(rapid.IntRange(0, 1).Draw(r, "priority"))})
			sessions[fmt.Sprint(slot)] = g
		}
		for slot := range 8 {
			open(slot)
		}
		defer func() {
			for _, g := range sessions {
				g.wire.session.Close()
			}
			publisher.session.Close()
		}()
		take := func(g *groupWire, all bool, to messageState) (list []*outing) {
			o.mu.Lock()
			defer o.mu.Unlock()
			outs := o.outs[g.name]
			if len(outs) == 0 {
				return nil
			}
			at := rapid.IntRange(0, len(outs)-1).Draw(r, "which")
			if all {
				list, o.outs[g.name] = outs[:at+1], slices.Clone(outs[at+1:])
			} else {
				list, o.outs[g.name] = []*outing{outs[at]}, slices.Delete(slices.Clone(outs), at, at+1)
			}
			for _, x := range list {
				o.set(x.body, to)
			}
			return list
		}
		back := func(list []*outing) {
			o.mu.Lock()
			defer o.mu.Unlock()
			for _, x := range list {
				var group string
				var number int
				_, _ = fmt.Sscan(x.body, &group, &number)
				if o.states[group][number] == comingBack {
					o.set(x.body, inQueue)
				}
			}
		}
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			slot := rapid.IntRange(0, 7).Draw(r, "slot")
			g := sessions[fmt.Sprint(slot)]
			switch rapid.IntRange(0, 11).Draw(r, "step") {
			case 0, 1, 2:
				for range rapid.IntRange(1, 8).Draw(r, "messages") {
					group := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(r, "group")
					o.mu.Lock()
					body := fmt.Sprint(group, " ", len(o.states[group]))
					o.states[group] = append(o.states[group], inQueue)
					o.mu.Unlock()
					publisher.publishGrouped(queue, body)
				}
			case 3, 4, 5:
				for _, x := range take(g, false, over) {
					check(t, x.channel.SettleTag(fsm.Acknowledge, x.tag, false))
				}
			case 6, 7:
				if list := take(g, true, comingBack); list != nil {
					// those before it are all there are: tags ascend
					check(t, g.ch.SettleTag(fsm.Return, list[len(list)-1].tag, true))
					back(list)
				}
			case 8:
				list := take(g, false, comingBack)
				for _, x := range list {
					check(t, x.channel.SettleTag(fsm.Return, x.tag, false))
				}
				back(list)
			case 9:
				check(t, g.ch.Cancel(within(t), "c0"))
				g.wire.consume(g.ch, Consumer{Queue: queue, Tag: "c0"})
			case 10:
				o.mu.Lock()
				list := o.outs[g.name]
				o.mu.Unlock()
				for _, x := range list {
					o.mu.Lock()
					o.set(x.body, comingBack)
					o.mu.Unlock()
				}
				g.wire.session.Close()
				o.mu.Lock()
				more := o.outs[g.name][len(list):] // delivered meanwhile
				for _, x := range more {
					o.set(x.body, inQueue)
				}
				delete(o.outs, g.name)
				o.mu.Unlock()
				back(list)
				open(slot)
			case 11:
				get := &groupWire{groupOracle: o, name: g.name, ch: g.ch}
				_, err := g.ch.Get(within(t), queue, false, func(d *Delivery, _ uint64) {
					d.ConsumerTag = "get"
					get.Deliver(*d)
				})
				check(t, err)
			}
			if o.failed() != "" {
				r.Fatal(o.failed())
			}
		}
		eventually(t, "all messages are acknowledged", func() bool {
			left := false
			for _, g := range sessions {
				o.mu.Lock()
				list := o.outs[g.name]
				delete(o.outs, g.name)
				for _, x := range list {
					o.set(x.body, over)
				}
				o.mu.Unlock()
				for _, x := range list {
					check(t, x.channel.SettleTag(fsm.Acknowledge, x.tag, false))
				}
			}
			o.mu.Lock()
			defer o.mu.Unlock()
			for _, list := range o.states {
				left = left || slices.ContainsFunc(list, func(s messageState) bool { return s != over })
			}
			return !left || o.wrong != ""
		})
		if o.failed() != "" {
			r.Fatal(o.failed())
		}
	})
}

func (g *groupOracle) failed() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.wrong
}
