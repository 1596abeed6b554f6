package fsm

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawnDelay is a header that lets a message wait for 15 ms.
var drawnDelay = table("h", "1", "x-delay", "15")

func modelDelay(properties []byte) int64 {
	if bytes.Contains(properties, drawnDelay) {
		return 15
	}
	return 0
}

// withoutInner returns an exchange's arguments without the type that a delayed exchange has inside.
func withoutInner(arguments []byte) (rest []byte) {
	fields, _ := parseTable(arguments, nil)
	for _, f := range fields {
		if f.name != "x-delayed-type" {
			rest = f.append(rest)
		}
	}
	return rest
}

func (m *model) delay(v *modelVhost, p *Publish, body []byte, ms int64) {
	if v.delayed == nil {
		v.delayed = &modelQueue{number: m.next(), vhost: v}
	}
	q := v.delayed
	q.last++
	q.live = append(q.live, modelMessage{Message: Message{Sequence: q.last, Exchange: p.Exchange, RoutingKey: p.RoutingKey,
		Properties: bytes.Clone(p.Properties), Body: bytes.Clone(body), ID: [2]uint64{m.index, m.position}, Expires: max(m.clock, 1) + ms}})
	m.position++
	m.counters.delayed++
}

func (m *model) release(c *Release) Result {
	key := modelUpload{c.Message.Session, c.Message.Upload}
	if c.Message.Upload != 0 {
		defer m.dropUpload(key)
	}
	v := only(m.vhosts, func(v *modelVhost) bool { return v.delayed != nil && v.delayed.number == c.Queue })
	if v == nil {
		return Result{}
	}
	at := slices.IndexFunc(v.delayed.live, func(x modelMessage) bool { return x.Sequence == c.Sequence })
	if at < 0 || v.delayed.live[at].Expires > m.clock {
		return Result{}
	}
	if c.Message.Upload != 0 && m.totals[key] != uint64(len(m.uploads[key])) {
		return Result{Code: PreconditionFailed}
	}
	x := v.delayed.live[at]
	v.delayed.live = slices.Delete(v.delayed.live, at, at+1)
	reached := map[*modelQueue]bool{}
	m.route(m.exchange(v, x.Exchange), &c.Message, map[*modelExchange]bool{}, reached)
	m.counters.released++
	routed := uint32(len(reached))
	if routed == 0 {
		m.counters.releasedUnrouted++
	}
	for q := range reached {
		if m.repeats(&q.window, &c.Message) {
			delete(reached, q)
		} else if m.checked || q.hasRoom(1, len(x.Body)) {
			m.remember(&q.window, &c.Message)
		}
	}
	fresh := uint32(len(reached))
	m.enqueue(reached, x.Exchange, x.RoutingKey, delayed(x.Properties), x.Body, nil, 0)
	m.counters.routed += uint64(len(reached))
	routed -= fresh - uint32(len(reached))
	return Result{Messages: 1, Routed: routed}
}

// release draws the release of a delayed message, due or not, or of something else.
func (d drawer) release() Command {
	for _, v := range d.m.vhosts {
		if v.delayed != nil && len(v.delayed.live) > 0 && d.bool("this") {
			x := rapid.SampledFrom(v.delayed.live).Draw(d.T, "delayed")
			return &Release{Queue: v.delayed.number, Sequence: x.Sequence,
				Message: Publish{Exchange: x.Exchange, RoutingKey: x.RoutingKey, Properties: x.Properties, Body: x.Body}}
		}
	}
	return &Release{Queue: d.queue(), Sequence: rapid.Uint64Range(0, 9).Draw(d.T, "sequence"), Message: *d.publish()}
}

// checkDelayed compares what waits.
func (m *model) checkDelayed(t *rapid.T, machine *Machine) (waiting, size uint64) {
	for _, v := range m.vhosts {
		if v.delayed == nil {
			continue
		}
		want := map[string]uint64{}
		for _, x := range v.delayed.live {
			want[x.Exchange]++
			size += uint64(len(x.Body))
		}
		waiting += uint64(len(v.delayed.live))
		if got := machine.Delayed(v.number); !maps.Equal(got, want) {
			t.Fatalf("vhost %s has %v delayed, the model %v", v.name, got, want)
		}
		for _, now := range []int64{0, m.clock, m.clock + 7, 1 << 60} {
			var due []modelMessage
			for _, x := range v.delayed.live {
				if x.Expires <= now {
					due = append(due, x)
				}
			}
			slices.SortStableFunc(due, func(a, b modelMessage) int { return int(a.Expires - b.Expires) })
			got, err := machine.ReadDelayed(v.delayed.number, now, 1<<20, 1<<30)
			if err != nil || len(got) != len(due) || slices.Contains(machine.Delaying(now), v.delayed.number) != (len(due) > 0) {
				t.Fatalf("at %d %d are due, %v; the model says %d", now, len(got), err, len(due))
			}
			for i, x := range due {
				if g := got[i]; g.Sequence != x.Sequence || g.Expires != x.Expires || g.Exchange != x.Exchange || g.RoutingKey != x.RoutingKey || g.ID != x.ID ||
					!bytes.Equal(g.Properties, x.Properties) || !bytes.Equal(g.Body, x.Body) {
					t.Fatalf("at %d %+v is due, the model has %+v", now, g, x)
				}
			}
		}
	}
	return waiting, size
}

// TestDelayHeader: which values of x-delay let a message wait, and how it looks afterwards (as with RabbitMQ's plugin).
func TestDelayHeader(t *testing.T) {
	for _, c := range []struct {
		value any
		ms    int64
	}{{int8(5), 5}, {int32(5000), 5000}, {int64(86_400_000), 86_400_000}, {"250", 250}, {int32(-5000), 0}, {int32(0), 0}, {"soon", 0}, {"", 0},
		{nil, 0}, {true, 0}, {int64(maxPeriod), maxPeriod}, {int64(maxPeriod + 1), 0}} {
		p := properties(table("a", "b", "x-delay", c.value, "c", "d"), 2)
		if ms := delayOf(p); ms != c.ms {
			t.Errorf("x-delay %v lets wait for %d ms, expected %d", c.value, ms, c.ms)
		}
		if c.ms == 0 {
			continue
		}
		if want := properties(table("a", "b", "x-delay", -c.ms, "c", "d"), 2); !bytes.Equal(delayed(p), want) {
			t.Errorf("x-delay %v becomes %q, expected %q", c.value, delayed(p), want)
		}
	}
	for _, p := range [][]byte{nil, {0, 0}, properties(nil, 2), properties(table("y-delay", int32(5)), 0), properties(table("a", "\x07x-delayI\x00\x00\x00\x05"), 0)} {
		if ms := delayOf(p); ms != 0 {
			t.Errorf("%q lets wait for %d ms", p, ms)
		}
	}
}
