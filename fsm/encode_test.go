package fsm

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// samples has each command at least once, every field set in one of them.
func samples() []Command {
	s, runs := Session{3, 300}, []Run{{1, 4}, {7, 7}, {70_000, 1 << 40}}
	boots := []MemberBoot{{"n1", [16]byte{1}}, {"n2", [16]byte{2}}}
	return []Command{
		&PutVhost{"v"}, &DeleteVhost{"v"}, &PutExchange{1, "e", "topic", true, false, true, []byte{1}},
		&DeleteExchange{1, "e", true}, &PutQueue{1, "q", true, false, true, []byte{2}, s},
		&DeleteQueue{1, "q", 9, true, runs, s}, &PutBinding{1, "e", ToExchange, "f", "k", []byte{3}, s},
		&DeleteBinding{1, "e", ToQueue, "q", "k", []byte{3}, s}, &Purge{9, runs},
		&Publish{Vhost: 1, Exchange: "e", RoutingKey: "k", Properties: []byte{0, 0}, Body: []byte("b")},
		&Publish{1, "e", "k", []byte{0, 0}, []byte{}, 5, s, []byte("p"), 1 << 33},
		&Publish{1, strings.Repeat("e", 32), strings.Repeat("k", 255), []byte{0, 0}, []byte("b"), 0, Session{}, []byte("p"), 256},
		&Settle{9, Acknowledge, runs}, &Settle{9, Return, runs}, &Settle{9, Unclaim, runs}, &Claim{9, runs, 300, 1 << 33}, &Trim{9, 4096},
		&Transaction{[]Command{&Publish{Vhost: 1, Exchange: "e", Properties: []byte{0, 0}, Body: []byte("b")}, &Settle{9, Reject, runs}}},
		&ClientGone{s}, &LeaderStarted{"n1", true, boots}, &MemberBoots{boots}, &DropExclusive{7}, &DropTransient{8},
		&ConsumerPresence{9, true}, &DeleteUnused{9, 1 << 41}, &UseQueue{9},
		&Expire{9, []Run{{1, 2}, {5, 5}}}, &DeadLetter{9, 8, 7, Publish{Exchange: "e", RoutingKey: "k", Properties: []byte{0, 0}, Body: []byte("body")}},
		&Move{9, []Moved{{8, 7, Publish{Exchange: "e", RoutingKey: "k", Properties: []byte{0, 0}, Body: []byte("body")}},
			{300, 0, Publish{0, "e", "k", []byte{0, 0}, []byte{}, 5, s, []byte{}, 0}}}}, &DeleteMessages{9, runs}, &Release{9, 8, Publish{Exchange: "e", RoutingKey: "k", Properties: []byte{0, 0}, Body: []byte("body")}},
		&BodyPart{s, 5, 10, 20, []byte("part")}, &DropUpload{s, 5},
		&Mark{9, 4096}, &Audit{77, 1, 1 << 63}, &FoundCluster{"id"},
		&PutPolicy{1, true, "p", "^q", "queues", -7, []byte{4}}, &DeletePolicy{1, true, "p"}, &PutLimit{1, "", "max-queues", -1},
	}
}

func TestCommandsSurviveTheirEncoding(t *testing.T) {
	for _, c := range samples() {
		b := c.appendTo(nil)
		d := decoder{b: b}
		got, err := d.command(c.opcode())
		if err != nil || len(d.b) != 0 || !reflect.DeepEqual(got, c) {
			t.Errorf("%+v came back as %+v, %v, %d bytes left", c, got, err, len(d.b))
		}
		if Size(c) < len(b)+1 {
			t.Errorf("Size(%T) is %d, it takes %d", c, Size(c), len(b)+1)
		}
	}
}

var update = flag.Bool("update", false, "write the golden files anew")

// TestCommandsGolden pins the bytes of each command and of an entry's head: logs are read by later releases.
func TestCommandsGolden(t *testing.T) {
	var b strings.Builder
	for _, c := range samples() {
		fmt.Fprintf(&b, "%d %s %x\n", c.opcode(), strings.TrimPrefix(fmt.Sprintf("%T", c), "*fsm."), c.appendTo(nil))
	}
	var entry Batch
	entry.Begin(5, 6, 1_700_000_000_000, 0)
	entry.Append(Mark{9, 4096})
	entry.Append(&DropUpload{Session{5, 1}, 1})
	fmt.Fprintf(&b, "entry %x\n", entry.Finish())
	const name = "testdata/commands.golden"
	if *update {
		if err := os.WriteFile(name, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	got, lines := strings.Split(b.String(), "\n"), strings.Split(string(want), "\n")
	if len(got) != len(lines) {
		t.Fatalf("%d lines, golden %d", len(got), len(lines))
	}
	for i := range got {
		if got[i] != lines[i] {
			t.Errorf("got  %s\nwant %s", got[i], lines[i])
		}
	}
}

// decodeEntry is what apply does with an entry, without applying it.
func decodeEntry(entry []byte) (h Header, commands []Command, ok bool) {
	d := decoder{b: entry}
	if h = d.header(); d.bad || h.Version != entryVersion {
		return h, nil, false
	}
	for range h.Count {
		c, err := d.command(Opcode(d.byte()))
		if err != nil {
			return h, nil, false
		}
		commands = append(commands, c)
	}
	return h, commands, len(d.b) == 0
}

// FuzzEntry applies any bytes. Those that decode are exactly those that a Batch makes.
func FuzzEntry(f *testing.F) {
	var all Batch
	all.Begin(1, 1, 5, 0)
	for _, c := range samples() {
		var b Batch
		b.Begin(1, 1, 5, 0)
		b.Append(PutQueue{Vhost: 1, Name: "q"})
		b.Append(c)
		f.Add(b.Finish())
		all.Append(c)
	}
	f.Add(all.Finish())
	f.Fuzz(func(t *testing.T, entry []byte) {
		h, commands, ok := decodeEntry(entry)
		if ok {
			var b Batch
			b.Begin(h.Term, h.Number, h.Clock, 0)
			for _, c := range commands {
				b.Append(c)
			}
			if again := b.Finish(); !bytes.Equal(again, entry) {
				t.Fatalf("%x is accepted, a Batch makes %x", entry, again)
			}
		}
		m := New(Options{})
		_, err := m.Apply(1, h.Term, entry)
		if (err == nil) != ok && h.Term == 1 {
			t.Fatalf("decodes: %v, applies: %v", ok, err)
		}
		if err == nil {
			checkHash(t, m)
		}
	})
}

func FuzzRuns(f *testing.F) {
	f.Add(appendRuns(nil, []Run{{1, 4}, {7, 7}, {70_000, 1 << 40}}))
	f.Add(appendRuns(nil, []Run{{0, 0}, {1, 1<<64 - 1}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		d := decoder{b: b}
		runs := d.runs(nil)
		if d.bad {
			return
		}
		if again := appendRuns(nil, ascending(runs)); !bytes.Equal(again, b[:len(b)-len(d.b)]) {
			t.Fatalf("%v came from %x, encodes as %x", runs, b, again)
		}
		var q messages
		for range 10 {
			q.append(&content{}, 0)
		}
		if live := q.liveIn(runs); live != q.removeRuns(runs) || live+q.count != 10 {
			t.Fatalf("%v: %d live, %d left", runs, live, q.count)
		}
	})
}

func FuzzTable(f *testing.F) {
	f.Add(table("x-match", "any", "h", nil, "i", int32(5), "l", int64(5), "b", int8(-1), "t", true), []byte{0, 0})
	f.Add(table("x-message-ttl", int64(-1), "x-queue-type", "quorum"), properties(table("h", int32(5)), 2))
	f.Fuzz(func(t *testing.T, b, message []byte) {
		fields, ok := parseTable(b, nil)
		size := 0
		for i := range fields {
			x := &fields[i]
			if width, _ := fixedWidth(x.tag); width < 0 {
				size += 4
			}
			size += 2 + len(x.name) + len(x.value)
			if _, nan := x.float(); !x.equal(x) && !nan {
				t.Fatalf("%v does not equal itself", x)
			}
			_, _ = x.describe(), x.text()
		}
		if ok && size != len(b) {
			t.Fatalf("%d bytes gave fields of %d", len(b), size)
		}
		if sorted, _ := parseTable(sortedTable(b), nil); ok && (len(sorted) != len(fields) || !slices.IsSortedFunc(sorted, func(a, b field) int { return strings.Compare(a.name, b.name) })) {
			t.Fatalf("%q is sorted to %q", b, sortedTable(b))
		}
		isTransient(message)
		if c, r := parseCriteria(b); r.Code == OK {
			c.match(messageHeaders(message, nil))
		} else if r.Message == "" {
			t.Fatal("a refusal without a reason")
		}
		m := New(Options{})
		applyTo(t, 1, []Command{PutQueue{Vhost: 1, Name: "q", Durable: true, Arguments: b}, PutExchange{Vhost: 1, Name: "e", Type: "fanout", Arguments: b}}, m)
		checkHash(t, m)
	})
}

func TestRule5Window(t *testing.T) {
	l := &entryLog{t: t, machines: []*Machine{New(Options{})}}
	publish := func(sequence uint64) Result {
		return l.apply(&Publish{Vhost: 1, RoutingKey: "none", Producer: []byte("p"), Sequence: sequence})[0]
	}
	for _, c := range []struct {
		sequence  uint64
		duplicate bool
		code      Code
	}{{5, false, OK}, {3, false, OK}, {4, false, OK}, {3, true, OK}, {70_000, false, OK}, {4463, false, SequenceTooOld},
		{4464, false, OK}, {4464, true, OK}, {70_000, true, OK}} {
		if r := publish(c.sequence); r.Duplicate != c.duplicate || r.Code != c.code {
			t.Errorf("sequence %d gave %+v", c.sequence, r)
		}
	}
}
