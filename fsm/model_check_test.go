package fsm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"reflect"
	"slices"
	"testing"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"github.com/warrenmq/warren/cluster/snapshotstore"
	"github.com/warrenmq/warren/fsm/store/vfs"
)

// check compares everything that can be read of a machine with the model.
func (m *model) check(t *rapid.T, machine *Machine) {
	bad := func(what string, got, want any) {
		t.Helper()
		t.Fatalf("after entry %d: %s\n got %+v\nwant %+v", m.index, what, got, want)
	}
	if machine.Clock() != m.clock || machine.ClusterID() != m.cluster || machine.state.leader != m.leader {
		bad("clock, cluster, leader", []any{machine.Clock(), machine.ClusterID(), machine.state.leader}, []any{m.clock, m.cluster, m.leader})
	}
	if !reflect.DeepEqual(machine.state.boots, m.boots) && len(m.boots)+len(machine.state.boots) > 0 {
		bad("boots", machine.state.boots, m.boots)
	}
	var messages, size uint64
	for _, q := range m.queues {
		i, ok := machine.QueueByNumber(q.number)
		want := QueueInfo{Number: q.number, Vhost: q.vhost.name, Name: q.name, Durable: q.durable, Exclusive: q.exclusive, AutoDelete: q.autoDelete,
			Arguments: i.Arguments, Owner: q.owner, Messages: uint64(len(q.live)), FirstLive: q.last + 1, Next: q.last + 1, Mark: q.mark,
			Limited: q.length >= 0 || q.bytes >= 0, Suspicion: q.suspicion, HadConsumer: q.had, InUse: q.inUse, UnusedSince: q.since, Duplicates: q.window.refused,
			Governed: Governed{q.policy, q.operator, i.Definition}}
		for _, x := range q.live {
			want.MessageBytes += uint64(len(x.Body))
			if x.claimed {
				want.Claimed++
			}
			want.FirstLive = min(want.FirstLive, x.Sequence)
		}
		if !ok || !reflect.DeepEqual(i, want) || !bytes.Equal(i.Arguments, q.arguments) {
			bad("queue", i, want)
		}
		messages, size = messages+want.Messages, size+want.MessageBytes
		dying, err := machine.ReadDying(q.number, 0, 1<<20, 1<<30)
		if err != nil || len(dying) != len(q.dying) {
			bad("dying messages of queue "+q.name, fmt.Sprint(len(dying), err), len(q.dying))
		}
		for i, x := range q.dying {
			if g := dying[i]; g.Sequence != x.Sequence || !bytes.Equal(g.Body, x.Body) || !bytes.Equal(g.Properties, x.Properties) || g.Deaths != x.Deaths {
				bad("dying message", g, x)
			}
		}
		q.checkKept(t, machine)
		q.checkLevels(t, machine)
		got, _, err := machine.Read(q.number, 0, 1<<20, 1<<30, nil)
		if err != nil || len(got) != len(q.live) {
			bad("messages of queue "+q.name, fmt.Sprint(len(got), err), len(q.live))
		}
		for i, x := range q.live {
			x.Claimed = x.claimed
			x.Redelivered = x.DeliveryCount > 0 || x.Sequence <= q.suspicion
			g := got[i]
			if !bytes.Equal(g.Body, x.Body) || !bytes.Equal(g.Properties, modelRead(x.Properties)) {
				bad("message", g, x)
			}
			x.Body, x.Properties, g.Body, g.Properties = nil, nil, nil, nil
			if !reflect.DeepEqual(g, x.Message) {
				bad("message", g, x.Message)
			}
		}
	}
	bindings := 0
	for _, v := range m.vhosts {
		if i, ok := machine.Vhost(v.name); !ok || i.Number != v.number {
			bad("vhost", i, v)
		}
		var exchanges []string
		for _, e := range machine.Exchanges(v.number) {
			exchanges = append(exchanges, fmt.Sprint(e.Number, e.Name, e.Type, e.Durable, e.AutoDelete, e.Internal, e.Duplicates, e.Policy, e.OperatorPolicy))
		}
		var want []string
		for _, e := range m.exchanges {
			if e.vhost == v {
				want = append(want, fmt.Sprint(e.number, e.name, e.kind, e.durable, e.autoDelete, e.internal, e.window.refused, e.policy, e.operator))
			}
		}
		slices.Sort(exchanges)
		slices.Sort(want)
		if !slices.Equal(exchanges, want) {
			bad("exchanges", exchanges, want)
		}
		bindings += len(machine.Bindings(v.number))
	}
	for _, b := range m.bindings {
		id := bindingKey{source: b.source.number, key: b.key, arguments: string(b.arguments)}
		if b.queue != nil {
			id.destination = b.queue.number
		} else {
			id.destination = b.exchange.number
		}
		if machine.state.vhosts[b.source.vhost.number].bindings[id] == nil {
			bad("binding", nil, b)
		}
	}
	waiting, waitingBytes := m.checkDelayed(t, machine)
	totals := Totals{Vhosts: len(m.vhosts), Exchanges: len(m.exchanges), Queues: len(m.queues), Bindings: len(m.bindings), Producers: len(m.producers),
		Messages: messages, MessageBytes: size, Published: m.counters.published, Routed: m.counters.routed, Duplicates: m.counters.duplicates,
		Acknowledged: m.counters.acknowledged, Rejected: m.counters.rejected, Returned: m.counters.returned,
		Expired: m.counters.expired, DeadLettered: m.counters.deadLettered, DeadUnrouted: m.counters.deadUnrouted, OverDeliveryLimit: m.counters.overDeliveryLimit, Discarded: m.counters.discarded,
		Moved: m.counters.moved, Deduplicated: m.counters.deduplicated, Waiting: waiting, WaitingBytes: waitingBytes, Delayed: m.counters.delayed, Released: m.counters.released,
		ReleasedUnrouted: m.counters.releasedUnrouted, DelayedDiscarded: m.counters.delayedDiscarded,
		DroppedMaxLength: m.counters.droppedMaxLength, RefusedMaxLength: m.counters.refusedMaxLength}
	totals.Remembered = machine.state.remembered // see checkDerived
	if machine.Totals().replicated() != totals || bindings != totals.Bindings {
		bad("totals", machine.Totals(), totals)
	}
	if machine.state.uploads != len(m.uploads) {
		bad("uploads", machine.state.uploads, len(m.uploads))
	}
}

// checkConservation says what each counter means: a message that came into a queue is there, or has left it in one of the
// counted ways; and one that waited for its dead letter waits, or became one, or reached no queue.
func checkConservation(t *rapid.T, s *state) {
	n := &s.counters
	var live, dying uint64
	for _, q := range s.queues {
		if q.hidden() {
			continue
		}
		live, dying = live+q.messages.count, dying+q.messages.dying.count
		checkLimits(t, q)
	}
	if left := n.acknowledged + n.rejected + n.expired + n.overDeliveryLimit + n.discarded + n.moved + n.droppedMaxLength; n.routed != live+left {
		t.Fatalf("%d messages came into queues, %d are there and %d left: %+v", n.routed, live, left, *n)
	}
	if n.died != dying+n.deadLettered+n.deadUnrouted {
		t.Fatalf("%d messages died, %d wait for their dead letters: %+v", n.died, dying, *n)
	}
	if n.delayed != s.waiting+n.released+n.delayedDiscarded {
		t.Fatalf("%d messages were delayed, %d wait: %+v", n.delayed, s.waiting, *n)
	}
}

// checkDerived compares everything derived in a state with what it is derived from.
func checkDerived(t *rapid.T, s *state) {
	uploads, received := 0, uint64(0)
	for _, c := range s.sessions {
		if len(c.queues)+len(c.uploads) == 0 {
			t.Fatal("an empty session is remembered")
		}
		for _, u := range c.uploads {
			uploads, received = uploads+1, received+u.received
		}
	}
	runs := 0
	for _, p := range s.producers.byID {
		runs += len(p.outcomes)
	}
	if uploads != s.uploads || received != s.uploadBytes || runs != s.producers.runs {
		t.Fatalf("%d uploads of %d bytes, %d runs; kept as %d, %d, %d", uploads, received, runs, s.uploads, s.uploadBytes, s.producers.runs)
	}
	checkWindows(t, s)
	checkRules(t, s)
	var all []uint64
	for e := s.byNumber.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(*queue).number)
	}
	if !slices.Equal(all, slices.Sorted(maps.Keys(s.queues))) {
		t.Fatalf("queues are listed as %v", all)
	}
}

func (r Result) shown() string {
	r.Message, r.Parts, r.Longest = "", nil, Backlog{}
	return fmt.Sprintf("%+v", r)
}

func compareResults(t *rapid.T, c Command, got, want Result) {
	if got.shown() != want.shown() || (got.Code == OK) != (got.Message == "") || len(got.Parts) != len(want.Parts) {
		t.Fatalf("%T %+v gave\n%+v, the model\n%+v", c, c, got, want)
	}
	for i := range got.Parts {
		part := c // of a move
		if transaction, ok := c.(*Transaction); ok {
			part = transaction.Operations[i]
		}
		compareResults(t, part, got.Parts[i], want.Parts[i])
	}
}

type observerFunc func(Applied)

func (f observerFunc) Applied(a Applied) { f(a) }

// TestMachineEqualsModel drives machines and the model with the same random history: results, contents, order and
// counts are equal. A second machine, which now and then goes through a snapshot, an export or an install, has the
// first one's hash at every index.
func TestMachineEqualsModel(t *testing.T) {
	var reached counters
	least, most := 8, 64 // rounds of a hundred histories: until each counter counted something, and so much is in all of them
	if testing.Short() {
		least, most = 2, 2
	}
	missing := func() int {
		return slices.IndexFunc(reached.all(), func(n *uint64) bool { return *n == 0 })
	}
	for round := 0; round < least || round < most && missing() >= 0; round++ {
		rapid.Check(t, func(t *rapid.T) { playAgainstModel(t, &reached) })
	}
	if i := missing(); i >= 0 && !testing.Short() {
		t.Errorf("no history counts anything in %d of the counters: what it is about was not tested", i)
	}
}

func playAgainstModel(t *rapid.T, reached *counters) {
	m := newModel()
	m.term = 1
	var told Applied
	first := New(Options{Observer: observerFunc(func(a Applied) { told = a })})
	mem := vfs.NewMem()
	snapshots, err := snapshotstore.New(mem, "/data/snapshots", 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	options := Options{Files: mem, Dir: "/data/messages", CollectRecords: 10, IndexMemoryMessages: drawOf(drawer{t, m}, "index", 1, 10, 1<<30),
		pageBytes: drawOf(drawer{t, m}, "page", 1, 30), BodyMemory: drawOf(drawer{t, m}, "memory", int64(1), 1000, 1<<30)}
	second := New(options)
	for i := range rapid.IntRange(1, 40).Draw(t, "entries") {
		d := drawer{t, m}
		stale := false
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			m.term++
		case 1:
			stale = true
		case 2:
			second = travel(t, second, snapshots, mem, options, m.index)
		}
		clock := m.clock + drawOf(d, "clock", -50, 0, 10, 1000, int64(ProducerIdle))
		m.begin(clock, stale)
		var b Batch
		b.Begin(m.term-map[bool]uint64{true: 1}[stale], 7, clock, 0)
		var commands []Command
		var results []Result
		drawn := rapid.IntRange(0, 10).Draw(t, "commands")
		var town []Command
		if i == 0 && d.bool("town") {
			town = d.town()
		}
		for n := range len(town) + drawn {
			var c Command
			if n < len(town) {
				c = town[n]
			} else {
				c = d.command()
			}
			commands = append(commands, c)
			b.Append(c)
			if stale {
				results = append(results, Result{Code: StaleTerm})
			} else {
				results = append(results, m.apply(c))
			}
		}
		entry := b.Finish()
		got, err := first.Apply(m.index, m.term, bytes.Clone(entry))
		if err != nil || len(got) != len(results) {
			t.Fatalf("%d results, %v", len(got), err)
		}
		for i := range got {
			compareResults(t, commands[i], got[i], results[i])
		}
		if !slices.Equal(slices.Sorted(slices.Values(told.Grown)), slices.Sorted(maps.Keys(m.grown))) ||
			!slices.Equal(slices.Sorted(slices.Values(told.Deleted)), slices.Sorted(maps.Keys(m.deleted))) {
			t.Fatalf("told of %v grown, %v deleted; the model has %v, %v", told.Grown, told.Deleted, m.grown, m.deleted)
		}
		if _, err := second.Apply(m.index, m.term, bytes.Clone(entry)); err != nil {
			t.Fatal(err)
		}
		_, h := first.Hash()
		if _, k := second.Hash(); h != k {
			t.Fatalf("after entry %d the hashes are %x and %x", m.index, h, k)
		}
		if at, ok := second.HashAt(m.index); !ok || at != h {
			t.Fatalf("the hash at %d is kept as %x, %v", m.index, at, ok)
		}
		checkHash(t, first)
		checkHash(t, second)
		checkDerived(t, first.state)
		checkConservation(t, first.state)
	}
	checkDerived(t, second.state)
	m.check(t, first)
	m.check(t, second)
	if a, b := first.state.view().encode(), second.state.view().encode(); len(m.uploads) == 0 && !bytes.Equal(a, b) {
		t.Fatalf("equal states are encoded as %x and %x", a, b)
	}
	for i, n := range reached.all() {
		*n += *first.state.counters.all()[i]
	}
}

// begin is what an entry does before its commands.
func (m *model) begin(clock int64, stale bool) {
	m.index++
	m.position = 0
	m.grown, m.deleted = map[uint64]bool{}, map[uint64]bool{}
	if stale {
		return
	}
	m.clock = max(m.clock, clock)
	for id, p := range m.producers {
		if p.used <= m.clock-ProducerIdle {
			delete(m.producers, id)
		}
	}
}

// travel takes a machine's state through raft's interfaces or as an export to another machine.
func travel(t *rapid.T, m *Machine, snapshots *snapshotstore.Store, mem vfs.FS, options Options, index uint64) *Machine {
	other := options
	other.Dir = path.Join("/data", fmt.Sprint("other", index))
	how := rapid.IntRange(0, 3).Draw(t, "travel")
	if how == 0 {
		var b bytes.Buffer
		if at, err := m.Export(&b); err != nil || at != index {
			t.Fatalf("export at %d: %v", at, err)
		}
		next := New(other)
		if err := next.Replace(&b); err != nil {
			t.Fatal(err)
		}
		return next
	}
	taken, err := m.FSM().Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	sink, err := snapshots.Create(1, index, 1, raft.Configuration{}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(taken.Persist(sink), sink.Close()); err != nil {
		t.Fatal(err)
	}
	taken.Release()
	_, r, err := snapshots.Open(sink.ID())
	if err != nil {
		t.Fatal(err)
	}
	switch how {
	case 1: // an install on another node
		next := New(other)
		if err := next.FSM().Restore(io.NopCloser(struct{ anyReader }{r})); err != nil {
			t.Fatal(err)
		}
		_ = r.Close()
		return next
	case 2: // a restart
		_ = m.Close()
		next := New(options)
		if err := next.FSM().Restore(r); err != nil {
			t.Fatal(err)
		}
		return next
	}
	_ = r.Close()
	return m
}
