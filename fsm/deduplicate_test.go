package fsm

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func headed(exchange, key string, pairs ...any) *Publish {
	return &Publish{Vhost: 1, Exchange: exchange, RoutingKey: key, Properties: properties(table(pairs...), 2)}
}

func TestDeduplicationArgumentsAreChecked(t *testing.T) {
	m := New(Options{})
	l := &entryLog{t: t, machines: []*Machine{m}}
	for _, c := range []struct {
		arguments []byte
		reason    string
	}{
		{table("x-deduplication-header", int32(1)), "{unacceptable_type,signedint}"},
		{table("x-deduplication-header", ""), `"a header's name has 1 to 255 bytes, this has 0"`},
		{table("x-deduplication-window", int32(1)), `"it means nothing without x-deduplication-header"`},
		{table("x-deduplication-header", "id", "x-deduplication-window", int32(-1)), "{value_negative,-1}"},
		{table("x-deduplication-header", "id", "x-deduplication-size", int32(0)), "{value_zero,0}"},
		{table("x-deduplication-header", "id", "x-deduplication-size", int32(1_000_001)), "{value_too_large,1000001}"},
		{table("x-deduplication-header", "id", "x-deduplication-size", "many"), `"expected integer, got longstr"`},
	} {
		r := l.apply(PutQueue{Vhost: 1, Name: "q", Durable: true, Arguments: c.arguments}, PutExchange{Vhost: 1, Name: "e", Type: fanout, Arguments: c.arguments})
		for i, kind := range []string{"queue 'q'", "exchange 'e'"} {
			if r[i].Code != PreconditionFailed || !strings.HasSuffix(r[i].Message, kind+" in vhost '/': "+c.reason) {
				t.Errorf("%s: %q, want the reason %s", kind, r[i].Message, c.reason)
			}
		}
	}
	once := table("x-deduplication-header", "id")
	r := l.apply(PutExchange{Vhost: 1, Name: "e", Type: fanout, Arguments: once}, PutExchange{Vhost: 1, Name: "e", Type: fanout})
	if r[0].Code != OK || r[1].Message != "PRECONDITION_FAILED - inequivalent arg 'x-deduplication-header' for exchange 'e' in vhost '/': received none but current is the value 'id' of type 'longstr'" {
		t.Errorf("declared as %+v, again without as %+v", r[0], r[1])
	}
}

// TestDuplicatesByTypeAndValue: which values are the same.
func TestDuplicatesByTypeAndValue(t *testing.T) {
	m := New(Options{})
	l := &entryLog{t: t, machines: []*Machine{m}}
	l.apply(PutQueue{Vhost: 1, Name: "q", Durable: true, Arguments: table("x-deduplication-header", "id")})
	for i, c := range []struct {
		value any
		again bool
	}{
		{"1", false}, {"1", true}, {int32(1), false}, {int64(1), true}, {int8(1), true}, {true, false}, {true, true}, {false, false},
		{"", false}, {"", true}, {nil, false}, {nil, false}, {strings.Repeat("x", 1<<16), false}, {strings.Repeat("x", 1<<16), true},
		{strings.Repeat("x", 1<<16-1) + "y", false},
	} {
		before, _ := m.Queue(1, "q")
		r := l.apply(headed("", "q", "other", "o", "id", c.value))
		after, _ := m.Queue(1, "q")
		if r[0].Code != OK || r[0].Routed != 1 || (after.Duplicates > before.Duplicates) != c.again || (after.Messages > before.Messages) == c.again {
			t.Errorf("publish %d: %+v, %d duplicates before and %d after, %d messages", i, r[0], before.Duplicates, after.Duplicates, after.Messages)
		}
	}
}

// TestDeduplicationOfAnExchangeAndOfAQueue: an exchange that had a message sends it nowhere; a queue that had it leaves it
// to the others. Dead letters come through, and what reached no queue is new the next time.
func TestDeduplicationOfAnExchangeAndOfAQueue(t *testing.T) {
	m := New(Options{})
	l := &entryLog{t: t, machines: []*Machine{m, New(Options{})}}
	once := table("x-deduplication-header", "id")
	expect := func(exchange, one, other, total uint64) {
		t.Helper()
		e, _ := m.Exchange(1, "e")
		a, _ := m.Queue(1, "a")
		b, _ := m.Queue(1, "b")
		if e.Duplicates != exchange || a.Messages != one || b.Messages != other || m.Totals().Deduplicated != total {
			t.Fatalf("%d duplicates at the exchange, %d and %d messages, %d duplicates in all; want %d, %d, %d, %d", e.Duplicates, a.Messages, b.Messages, m.Totals().Deduplicated,
				exchange, one, other, total)
		}
	}
	l.apply(PutExchange{Vhost: 1, Name: "e", Type: fanout, Arguments: once}, PutExchange{Vhost: 1, Name: "f", Type: fanout})
	if r := l.apply(headed("e", "", "id", "1")); r[0].Routed != 0 || r[0].Duplicate {
		t.Fatalf("without a queue: %+v", r[0])
	}
	l.apply(PutQueue{Vhost: 1, Name: "a", Durable: true, Arguments: once}, PutQueue{Vhost: 1, Name: "b", Durable: true},
		PutQueue{Vhost: 1, Name: "d", Durable: true, Arguments: table("x-dead-letter-exchange", "e")},
		PutBinding{Vhost: 1, Source: "e", Destination: "a"}, PutBinding{Vhost: 1, Source: "e", Destination: "b"},
		PutBinding{Vhost: 1, Source: "f", Destination: "a"}, PutBinding{Vhost: 1, Source: "f", Destination: "b"})
	r := l.apply(headed("e", "", "id", "1"), headed("e", "", "id", "1"))
	if r[0].Routed != 2 || r[0].Duplicate || r[1].Routed == 0 || !r[1].Duplicate {
		t.Fatalf("%+v", r)
	}
	expect(1, 1, 1, 1)
	if r := l.apply(headed("f", "", "id", "1")); r[0].Routed != 2 || r[0].Duplicate {
		t.Fatalf("to a queue that had it and one that takes all: %+v", r[0])
	}
	expect(1, 1, 2, 2)
	l.apply(headed("", "d", "id", "1"), Settle{Queue: mustQueue(t, m, "d"), Kind: Reject, Runs: []Run{{1, 1}}})
	if r := l.apply(&DeadLetter{Queue: mustQueue(t, m, "d"), Sequence: 1, Message: *headed("", "d", "id", "1")}); r[0].Routed != 2 {
		t.Fatalf("the dead letter: %+v", r[0])
	}
	expect(1, 2, 3, 2)
	l.apply(DeleteExchange{Vhost: 1, Name: "e"}, DeleteQueue{Vhost: 1, Name: "a"})
	if len(m.state.windows) != 0 || m.state.remembered != 0 || len(m.state.aging) != 0 {
		t.Fatalf("%d windows with %d values are left", len(m.state.windows), m.state.remembered)
	}
}

func mustQueue(t *testing.T, m *Machine, name string) uint64 {
	t.Helper()
	q, ok := m.Queue(1, name)
	if !ok {
		t.Fatalf("there is no queue %s", name)
	}
	return q.Number
}

// TestDeduplicationWindow: a value is new again after the time and after the count, exactly; what is too old takes no memory,
// and a snapshot keeps what counts.
func TestDeduplicationWindow(t *testing.T) {
	m := New(Options{})
	l := &entryLog{t: t, machines: []*Machine{m}}
	l.apply(PutQueue{Vhost: 1, Name: "q", Durable: true, Arguments: table("x-deduplication-header", "id", "x-deduplication-size", int32(3000), "x-deduplication-window", int32(100_000))})
	publish := func(id int) bool {
		before, _ := m.Queue(1, "q")
		l.apply(headed("", "q", "id", fmt.Sprint(id)))
		after, _ := m.Queue(1, "q")
		return after.Messages > before.Messages
	}
	for id := range 3000 {
		if !publish(id) {
			t.Fatalf("value %d is new and was not taken", id)
		}
	}
	if publish(0) || !publish(3000) || !publish(0) || publish(2) {
		t.Fatal("it does not remember 3000 values")
	}
	other := New(Options{})
	var b bytes.Buffer
	if _, err := m.Export(&b); err != nil {
		t.Fatal(err)
	}
	if err := other.Replace(&b); err != nil {
		t.Fatal(err)
	}
	l.machines = append(l.machines, other)
	for _, m := range l.machines {
		if n := m.state.remembered; n != 3000 {
			t.Fatalf("%d values are remembered", n)
		}
	}
	l.index += 10_000 // of which each takes 10 ms
	if !publish(1500) || publish(1500) {
		t.Fatal("after the window a value is not new once")
	}
	l.apply()
	l.apply()
	for _, m := range l.machines {
		if n := m.state.remembered; n > 1001 {
			t.Fatalf("%d values are still remembered", n)
		}
		checkHash(t, m)
	}
	l.index += 10_000
	l.apply()
	l.apply()
	for _, m := range l.machines {
		if n := m.state.remembered; n != 0 || len(m.state.aging) != 0 {
			t.Fatalf("%d values are still remembered", n)
		}
	}
	_, h := m.Hash()
	if _, k := other.Hash(); h != k {
		t.Fatalf("the hashes are %x and %x", h, k)
	}
}

// TestDeduplicationIsBounded: all windows together have a bound, and the one with the most makes room.
func TestDeduplicationIsBounded(t *testing.T) {
	m := New(Options{})
	l := &entryLog{t: t, machines: []*Machine{m}}
	once := table("x-deduplication-header", "id")
	l.apply(PutQueue{Vhost: 1, Name: "a", Durable: true, Arguments: once}, PutQueue{Vhost: 1, Name: "b", Durable: true, Arguments: once})
	for id := range 1500 {
		l.apply(headed("", "a", "id", fmt.Sprint(id)))
	}
	s := m.state
	s.remembered += maxRemembered - 1500 // as if others had the rest
	l.apply(headed("", "b", "id", "1"))
	if a, b := s.windows[mustQueue(t, m, "a")].count(), s.windows[mustQueue(t, m, "b")].count(); a != 500 || b != 1 || s.remembered != maxRemembered+1-rememberedDropped {
		t.Fatalf("%d and %d values are left, %d in all", a, b, s.remembered)
	}
}

// TestDeduplicationRulesChange: other bounds count at once for what is remembered, another header begins anew.
func TestDeduplicationRulesChange(t *testing.T) {
	m := New(Options{})
	l := &entryLog{t: t, machines: []*Machine{m}}
	l.apply(PutQueue{Vhost: 1, Name: "q", Durable: true, Arguments: table("x-deduplication-header", "id", "x-deduplication-window", int32(0))})
	q := m.state.queues[mustQueue(t, m, "q")]
	fresh := func(id string) bool {
		before := q.messages.count
		l.apply(headed("", "q", "id", id, "other", id))
		return q.messages.count > before
	}
	for _, id := range []string{"1", "2", "3", "4"} {
		fresh(id)
	}
	change := func(d deduplication) {
		q.window = m.state.changeWindow(q.number, q.window, d)
		l.apply()
	}
	change(deduplication{header: "id", size: 2})
	if fresh("3") || fresh("4") || !fresh("2") {
		t.Fatal("not the last two count")
	}
	change(deduplication{header: "id", size: 10, window: 50})
	if fresh("2") || len(m.state.aging) != 1 {
		t.Fatal("what was remembered is gone, or does not age")
	}
	l.index += 10
	if !fresh("2") {
		t.Fatal("the time does not count")
	}
	change(deduplication{header: "other", size: 10})
	if !fresh("2") || fresh("2") || len(m.state.aging) != 0 {
		t.Fatal("another header did not begin anew")
	}
	change(deduplication{})
	for range 2 {
		if !fresh("2") || q.window != nil || m.state.remembered != 0 {
			t.Fatal("without a header something is remembered")
		}
	}
}
