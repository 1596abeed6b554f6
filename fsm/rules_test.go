package fsm

import (
	"bytes"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/warrenmq/warren/cluster/snapshotstore"
	"github.com/warrenmq/warren/fsm/store/vfs"
)

// world is a machine that a test drives, entry by entry, with the observer's view of it.
type world struct {
	*testing.T
	*Machine
	index, term uint64
	now         int64
	told        Applied
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, term: 1, now: 1000}
	w.Machine = New(Options{Observer: observerFunc(func(a Applied) { w.told = a })})
	return w
}

func (w *world) do(commands ...Command) []Result {
	w.Helper()
	w.index++
	var b Batch
	b.Begin(w.term, w.index, w.now, 0)
	for _, c := range commands {
		b.Append(c)
	}
	results, err := w.Machine.Apply(w.index, w.term, b.Finish())
	if err != nil {
		w.Fatal(err)
	}
	checkHash(w.T, w.Machine)
	return results
}

// one applies one command.
func (w *world) one(c Command) Result { w.Helper(); return w.do(c)[0] }

// queue declares a durable queue and returns its number.
func (w *world) queue(name string) uint64 {
	w.Helper()
	return w.one(PutQueue{Vhost: 1, Name: name, Durable: true}).Queue
}

func (w *world) publish(queue string, bodies ...string) {
	w.Helper()
	for _, b := range bodies {
		if r := w.one(&Publish{Vhost: 1, RoutingKey: queue, Properties: properties(nil, 2), Body: []byte(b)}); r.Routed != 1 {
			w.Fatalf("publish: %+v", r)
		}
	}
}

// bodies lists the messages of a queue, each followed by ! if it is redelivered.
func (w *world) bodies(queue uint64) string {
	w.Helper()
	out, _, err := w.Read(queue, 1, 1000, 1<<20, nil)
	if err != nil {
		w.Fatal(err)
	}
	var s []string
	for _, m := range out {
		s = append(s, string(m.Body)+map[bool]string{true: "!"}[m.Redelivered])
	}
	return strings.Join(s, " ")
}

func (w *world) is(what string, got, want any) {
	w.Helper()
	if r, ok := got.(Result); ok {
		got = r.withoutBacklog()
	}
	if !reflect.DeepEqual(got, want) {
		w.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// withoutBacklog leaves out what depends on the other publishes.
func (r Result) withoutBacklog() Result {
	r.Longest = Backlog{}
	for i := range r.Parts {
		r.Parts[i] = r.Parts[i].withoutBacklog()
	}
	return r
}

// swapped takes the state through an export.
func (w *world) swapped() {
	w.Helper()
	var b bytes.Buffer
	if _, err := w.Export(&b); err != nil {
		w.Fatal(err)
	}
	fresh := New(w.options)
	if err := fresh.Replace(&b); err != nil {
		w.Fatal(err)
	}
	w.Machine = fresh
}

func TestRule1StaleBatchHasNoEffectAndMovesNoClock(t *testing.T) {
	w := newWorld(t)
	q := w.queue("q")
	w.publish("q", "a")
	var b Batch
	b.Begin(1, 9, 1<<40, 0)
	b.Append(Settle{Queue: q, Runs: []Run{{1, 1}}})
	b.Append(&Publish{Vhost: 1, RoutingKey: "q"})
	w.index++
	r, err := w.Apply(w.index, 2, b.Finish())
	if err != nil || len(r) != 2 || r[0].Code != StaleTerm || r[1].Code != StaleTerm {
		t.Fatalf("%+v, %v", r, err)
	}
	w.is("queue", w.bodies(q), "a")
	w.is("clock", w.Clock(), int64(1000))
	index, term := w.Applied()
	w.is("applied", []uint64{index, term}, []uint64{w.index, 2})
	w.is("told", []any{w.told.Number, len(w.told.Results), len(w.told.Grown)}, []any{uint64(0), 2, 0}) // nobody waits for it here
	if _, ok := w.HashAt(w.index); !ok {
		t.Error("the entry has no hash")
	}
}

func TestRule2NumbersAreNeverReused(t *testing.T) {
	w := newWorld(t)
	old := w.queue("q")
	w.publish("q", "a", "b")
	w.do(DeleteQueue{Vhost: 1, Name: "q"})
	w.is("deleted", w.told.Deleted, []uint64{old})
	q := w.queue("q")
	if q == old {
		t.Fatal("the number is reused")
	}
	w.publish("q", "c")
	for _, c := range []Command{Settle{Queue: old, Runs: []Run{{1, 9}}}, Settle{Queue: old, Kind: Return, Runs: []Run{{1, 9}}}, Purge{Queue: old},
		Mark{Queue: old, Upto: 9}, ConsumerPresence{Queue: old, Present: true}, DeleteUnused{Queue: old, Since: 1 << 40},
		DeleteQueue{Vhost: 1, Name: "q", Number: old}} {
		w.do(c)
		if i, ok := w.QueueByNumber(q); !ok || i.Messages != 1 || i.Mark != 0 || i.InUse {
			t.Fatalf("%T of the old queue touched the new one: %+v", c, i)
		}
	}
	w.swapped()
	if next := w.queue("r"); next <= q {
		t.Errorf("after a restore numbers go on at %d", next)
	}
	w.is("settled", w.one(Settle{Queue: q, Runs: []Run{{1, 1}}}).Messages, uint64(1))
	w.is("settled again", w.one(Settle{Queue: q, Runs: []Run{{1, 1}}}).Messages, uint64(0))
	w.is("acknowledged", w.Totals().Acknowledged, uint64(1))
}

func TestRule3HeldMessagesAreNotReady(t *testing.T) {
	w := newWorld(t)
	q := w.queue("q")
	w.publish("q", "a", "b", "c", "d")
	r := w.one(Purge{Queue: q, Held: []Run{{2, 2}, {4, 9}}})
	w.is("purged", r.Messages, uint64(2))
	w.is("left", w.bodies(q), "b d")
	r = w.one(DeleteQueue{Vhost: 1, Name: "q", IfEmpty: true, Held: []Run{{2, 2}}})
	w.is("if-empty with a ready message", r, Result{Code: PreconditionFailed, Message: "PRECONDITION_FAILED - queue 'q' in vhost '/' not empty"})
	r = w.one(DeleteQueue{Vhost: 1, Name: "q", IfEmpty: true, Held: []Run{{4, 4}, {2, 2}}}) // held runs need not be in order
	w.is("if-empty with held ones only", r, Result{})
	w.is("queues", w.Totals().Queues, 0)
}

func (w *world) numbered(sequence uint64, exchange, key string) Result {
	w.Helper()
	return w.one(&Publish{Vhost: 1, Exchange: exchange, RoutingKey: key, Properties: properties(nil, 2), Body: fmt.Append(nil, sequence), Producer: []byte("p"), Sequence: sequence})
}

func TestRule5DuplicatesAreAnsweredWithTheFirstOutcome(t *testing.T) {
	w := newWorld(t)
	q := w.queue("q")
	w.is("first", w.numbered(1, "", "q"), Result{Routed: 1})
	w.is("unroutable", w.numbered(2, "", "none"), Result{})
	w.is("refused", w.numbered(3, "none", "q").Code, NotFound)
	w.do(DeleteQueue{Vhost: 1, Name: "q"}, PutQueue{Vhost: 1, Name: "none", Durable: true})
	w.is("first again, the queue is gone", w.numbered(1, "", "q"), Result{Routed: 1, Duplicate: true})
	w.is("unroutable counts", w.numbered(2, "", "none"), Result{Duplicate: true})
	w.is("refused does not count", w.numbered(3, "", "none"), Result{Routed: 1})
	w.is("duplicates", w.Totals().Duplicates, uint64(2))
	w.is("published", w.Totals().Published, uint64(3))
	_ = q
}

func TestRule5GapsAndResendsInOrder(t *testing.T) {
	w := newWorld(t)
	q := w.queue("q")
	for _, n := range []uint64{1, 2, 5, 6, 9} { // 3, 4, 7, 8 were lost on the way
		w.is("first", w.numbered(n, "", "q"), Result{Routed: 1})
	}
	w.swapped()
	for n := uint64(1); n <= 10; n++ { // the client sends all again, in order, then something new
		lost := slices.Contains([]uint64{3, 4, 7, 8, 10}, n)
		w.is(fmt.Sprint("again ", n), w.numbered(n, "", "q"), Result{Routed: 1, Duplicate: !lost})
	}
	w.is("queue", w.bodies(q), "1 2 5 6 9 3 4 7 8 10")
}

func TestRule5WindowSurvivesASnapshot(t *testing.T) {
	w := newWorld(t)
	w.queue("q")
	w.numbered(1, "", "q")
	w.numbered(ProducerWindow+1, "", "q")
	for range 2 {
		w.is("at the window's edge", w.numbered(1, "", "q"), Result{Routed: 1, Duplicate: true})
		w.swapped()
	}
	w.is("moves the window", w.numbered(ProducerWindow+2, "", "q"), Result{Routed: 1})
	for range 2 {
		r := w.numbered(1, "", "q")
		w.is("below the window", r.Code, SequenceTooOld)
		w.is("below the window, a duplicate", r.Duplicate, false)
		w.swapped()
	}
	w.is("messages", w.Totals().Messages, uint64(3))
}

func TestRule5IdleProducersAreForgotten(t *testing.T) {
	w := newWorld(t)
	w.queue("q")
	w.numbered(1, "", "q")
	w.now += ProducerIdle - 1
	w.is("within 24 h", w.numbered(1, "", "q").Duplicate, true)
	w.now += ProducerIdle - 1
	w.is("a duplicate is a use", w.numbered(1, "", "q").Duplicate, true)
	w.now += ProducerIdle
	w.do()
	w.is("producers", w.Totals().Producers, 0)
	w.is("after 24 h", w.numbered(1, "", "q").Duplicate, false)
}

func TestRule5OutcomesOfAllProducersAreBounded(t *testing.T) {
	s := genesis()
	for i := range 3 {
		p := &producer{memory: &memory{id: fmt.Sprint(i), outcomes: make([]outcome, maxOutcomeRuns/2)}}
		s.insertProducer(p)
	}
	s.settleUp()
	s.recordPublish(nil, []byte("new"), 1, 1)
	if s.producers.runs > maxOutcomeRuns || s.producers.byID["new"] == nil || s.producers.byID["2"] == nil || s.producers.byID["0"] != nil {
		t.Errorf("%d runs of %d producers are kept", s.producers.runs, len(s.producers.byID))
	}
}

func part(session Session, upload, offset, total uint64, b string) BodyPart {
	return BodyPart{Session: session, Upload: upload, Offset: offset, Total: total, Bytes: []byte(b)}
}

func TestRule7UploadsEndWithTheirPublishClientOrTerm(t *testing.T) {
	w := newWorld(t)
	q := w.queue("q")
	s := Session{1, 4}
	uploaded := func() {
		t.Helper()
		w.do(part(s, 1, 0, 6, "abc"), part(s, 1, 3, 6, "def"))
		w.is("uploads", w.state.uploads, 1)
	}
	publish := &Publish{Vhost: 1, RoutingKey: "q", Properties: properties(nil, 2), Upload: 1, Session: s}
	refused := &Publish{Vhost: 1, Exchange: "none", Properties: properties(nil, 2), Upload: 1, Session: s}
	for name, c := range map[string]Command{"publish": publish, "refused publish": refused, "client": ClientGone{s}, "rollback": DropUpload{s, 1},
		"term": LeaderStarted{Leader: "n"}, "wrong part": part(s, 1, 1, 6, "x"), "transaction": &Transaction{[]Command{publish, refused}}} {
		uploaded()
		w.swapped()
		w.do(c)
		if w.state.uploads != 0 || w.state.uploadBytes != 0 || len(w.state.sessions) != 0 {
			t.Errorf("%s leaves an upload", name)
		}
	}
	w.is("queue", w.bodies(q), "abcdef")
	uploaded()
	w.is("another session's", w.one(&Publish{Vhost: 1, RoutingKey: "q", Upload: 1, Session: Session{1, 5}}).Code, PreconditionFailed)
	w.do(part(s, 2, 0, 6, "abc"))
	w.is("unfinished", w.one(&Publish{Vhost: 1, RoutingKey: "q", Upload: 2, Session: s}).Code, PreconditionFailed)
	w.is("a publish of an unfinished one drops it", w.state.uploads, 1)
	w.is("too large", w.one(part(s, 3, 0, MaxBody+1, "x")).Code, ContentTooLarge)
}

func TestRule8TransactionsAreAllOrNone(t *testing.T) {
	w := newWorld(t)
	q := w.queue("q")
	w.publish("q", "a", "b")
	w.do(Settle{Queue: q, Runs: []Run{{1, 1}}})
	publish := func(exchange, body string) *Publish {
		return &Publish{Vhost: 1, Exchange: exchange, RoutingKey: "q", Properties: properties(nil, 2), Body: []byte(body)}
	}
	r := w.one(&Transaction{[]Command{publish("", "c"), &Settle{Queue: q, Runs: []Run{{2, 2}}}, publish("none", "d")}})
	w.is("refused", r, Result{Code: NotFound, Message: "NOT_FOUND - no exchange 'none' in vhost '/'"})
	w.is("queue", w.bodies(q), "b")
	r = w.one(&Transaction{[]Command{publish("", "c"), &Settle{Queue: q, Runs: []Run{{1, 2}}}, &Settle{Queue: 999, Runs: []Run{{1, 1}}}, publish("", "d")}})
	w.is("committed", r, Result{Parts: []Result{{Routed: 1}, {Messages: 1}, {}, {Routed: 1}}}) // an ack of what is gone does not fail it
	w.is("queue", w.bodies(q), "c d")
	old := publish("", "e")
	old.Producer, old.Sequence = []byte("p"), 1
	far := publish("", "f")
	far.Producer, far.Sequence = []byte("p"), ProducerWindow+2
	w.is("too old after the one before it", w.one(&Transaction{[]Command{far, old}}).Code, SequenceTooOld)
	w.is("producers", w.Totals().Producers, 0)
	many := &Transaction{Operations: slices.Repeat([]Command{&Settle{Queue: q}}, MaxTransactionOperations+1)}
	var b Batch
	b.Begin(1, 1, 0, 0)
	b.Append(many)
	if _, err := w.Apply(w.index+1, 1, b.Finish()); !errors.Is(err, ErrEntry) {
		t.Errorf("%d operations: %v", len(many.Operations), err)
	}
}

func TestRule9QuorumQueuesKeepTransientMessages(t *testing.T) {
	w := newWorld(t)
	keeps := w.one(PutQueue{Vhost: 1, Name: "keeps", Durable: true, Arguments: table("x-queue-type", "quorum")}).Queue
	plain := w.queue("plain")
	w.do(PutBinding{Vhost: 1, Source: "amq.fanout", Destination: "keeps"}, PutBinding{Vhost: 1, Source: "amq.fanout", Destination: "plain"})
	for _, mode := range []byte{1, 2, 0} {
		w.do(&Publish{Vhost: 1, Exchange: "amq.fanout", Properties: properties(nil, mode), Body: fmt.Append(nil, mode)})
	}
	w.swapped()
	for w.one(DropTransient{Limit: 1}).Messages > 0 {
	}
	w.is("quorum", w.bodies(keeps), "1 2 0")
	w.is("classic", w.bodies(plain), "2")
}

func TestRule11SuspicionIsWhatMayHaveBeenDelivered(t *testing.T) {
	w := newWorld(t)
	q := w.queue("q")
	w.publish("q", "a", "b", "c")
	w.do(Mark{Queue: q, Upto: 2})
	w.do(Mark{Queue: q, Upto: 1})
	w.is("same term", w.bodies(q), "a b c")
	w.term++
	w.do(LeaderStarted{Leader: "n2"})
	w.is("next term", w.bodies(q), "a! b! c")
	w.do(Mark{Queue: q, Upto: 4096})
	w.publish("q", "d")
	w.swapped()
	w.term++
	w.do(LeaderStarted{Leader: "n3"})
	w.publish("q", "e") // the mark was beyond the last message: what comes is new all the same
	w.is("term after", w.bodies(q), "a! b! c! d! e")
	i, _ := w.QueueByNumber(q)
	w.is("mark, suspicion", []uint64{i.Mark, i.Suspicion}, []uint64{4, 4})
	w.do(Settle{Queue: q, Kind: Return, Runs: []Run{{5, 5}}})
	w.is("returned", w.bodies(q), "a! b! c! d! e!")
}

func TestRule12LifetimesOverAChangeOfLeader(t *testing.T) {
	w := newWorld(t)
	auto := w.one(PutQueue{Vhost: 1, Name: "auto", Durable: true, AutoDelete: true}).Queue
	never := w.one(PutQueue{Vhost: 1, Name: "never", Durable: true, AutoDelete: true}).Queue
	for i := range uint64(3) {
		w.do(PutQueue{Vhost: 1, Name: fmt.Sprint("x", i), Exclusive: true, Owner: Session{1, i % 2}})
	}
	w.do(ConsumerPresence{Queue: auto, Present: true})
	w.now, w.term = 5000, 2
	w.do(LeaderStarted{Leader: "n2"}, PutQueue{Vhost: 1, Name: "mine", Exclusive: true, Owner: Session{2, 1}})
	i, _ := w.QueueByNumber(auto)
	w.is("in use, unused since", []any{i.InUse, i.UnusedSince, i.HadConsumer}, []any{false, int64(5000), true})
	w.is("drop", w.one(DropExclusive{Limit: 2}).Messages, uint64(1))
	w.swapped()
	w.is("drop", w.one(DropExclusive{Limit: 2}).Messages, uint64(0))
	w.is("queues", w.QueueNumbers(), []uint64{auto, never, auto + 5})
	w.is("abandoned too early", len(w.AbandonedQueues(4999, 10)), 0)
	w.is("abandoned", w.AbandonedQueues(5000, 10), []uint64{auto})
	w.do(DeleteUnused{Queue: auto, Since: 4999})
	w.is("queues", w.Totals().Queues, 3)
	w.do(DeleteUnused{Queue: auto, Since: 5000})
	w.is("queues", w.QueueNumbers(), []uint64{never, auto + 5})
	w.do(ConsumerPresence{Queue: never, Present: true}, ConsumerPresence{Queue: never})
	w.do(ClientGone{Session{2, 1}})
	w.is("all gone", w.Totals().Queues, 0)
	w.is("sessions", len(w.state.sessions), 0)
}

func TestAQueueExpiresWhenItIsNotUsed(t *testing.T) {
	w := newWorld(t)
	w.now = 1000
	expires := table("x-expires", int32(500))
	declare := PutQueue{Vhost: 1, Name: "classic", Durable: true, Arguments: expires}
	classic := w.one(declare).Queue
	quorum := PutQueue{Vhost: 1, Name: "quorum", Durable: true, Arguments: table("x-queue-type", "quorum", "x-expires", int32(500))}
	kept := w.one(quorum).Queue
	w.queue("plain")
	unused := func(now int64, want ...UnusedQueue) {
		t.Helper()
		w.is("unused", append([]UnusedQueue{}, w.UnusedQueues(now, 10)...), append([]UnusedQueue{}, want...))
	}
	unused(1499)
	unused(1500, UnusedQueue{classic, 1000}, UnusedQueue{kept, 1000})
	w.is("bounded", len(w.UnusedQueues(1500, 1)), 1)
	w.now = 1400
	w.do(declare, quorum) // of a quorum queue that is no use
	unused(1500, UnusedQueue{kept, 1000})
	w.do(UseQueue{Queue: kept})
	unused(1500)
	w.do(DeleteUnused{Queue: kept, Since: 1000})
	w.swapped()
	w.do(ConsumerPresence{Queue: classic, Present: true}, UseQueue{Queue: classic})
	unused(5000, UnusedQueue{kept, 1400})
	w.do(DeleteUnused{Queue: classic, Since: 5000}, DeleteUnused{Queue: kept, Since: 1400})
	w.now = 6000
	w.do(ConsumerPresence{Queue: classic})
	unused(6499)
	unused(6500, UnusedQueue{classic, 6000})
}

func TestRule13ColdStartDropsWhatIsTransient(t *testing.T) {
	w := newWorld(t)
	q := w.queue("q")
	w.do(PutQueue{Vhost: 1, Name: "t"}, PutExchange{Vhost: 1, Name: "e", Type: fanout}, PutExchange{Vhost: 1, Name: "d", Type: fanout, Durable: true},
		PutBinding{Vhost: 1, Source: "e", Destination: "q"}, PutBinding{Vhost: 1, Source: "d", Destination: "t"},
		PutBinding{Vhost: 1, Source: "d", Destination: "q"})
	for i := range 200 {
		mode := byte(1 + i%2)
		w.do(&Publish{Vhost: 1, RoutingKey: "q", Properties: properties(nil, mode), Body: []byte{'0' + mode}})
	}
	boot := MemberBoot{Server: "n1", Boot: [16]byte{7}}
	w.term++
	w.do(LeaderStarted{Leader: "n1", Cold: true, Boots: []MemberBoot{boot}})
	w.do(MemberBoots{[]MemberBoot{{Server: "n0", Boot: [16]byte{8}}}})
	steps := 0
	for ; w.one(DropTransient{Limit: 10}).Messages > 0; steps++ {
		if steps == 5 {
			w.swapped()
		}
	}
	w.is("steps", steps > 5 && steps < 20, true)
	w.is("boots", w.Boots(), []MemberBoot{{Server: "n0", Boot: [16]byte{8}}, boot})
	if got := w.Totals(); got.Queues != 1 || got.Messages != 100 || got.Bindings != 1 || got.Exchanges != 8 {
		t.Errorf("left are %+v", got)
	}
	w.is("queue", w.bodies(q), strings.TrimSpace(strings.Repeat("2 ", 100)))
	for range 300 { // the list of boots is bounded
		w.do(MemberBoots{[]MemberBoot{{Server: fmt.Sprint(w.index)}}})
	}
	w.is("boots", len(w.Boots()), maxBoots)
}

func TestRule14TheClockNeverGoesBack(t *testing.T) {
	w := newWorld(t)
	w.do()
	w.now = 400
	w.do(LeaderStarted{Leader: "n", Cold: true})
	w.is("clock", w.Clock(), int64(1000))
	w.now = 1001
	w.do()
	w.swapped()
	w.is("clock", w.Clock(), int64(1001))
}

func TestRule15AnAuditFindsTheNodeThatIsWrong(t *testing.T) {
	good, bad := newWorld(t), newWorld(t)
	both := func(c ...Command) {
		good.do(c...)
		bad.do(c...)
	}
	both(PutQueue{Vhost: 1, Name: "q", Durable: true})
	q, _ := bad.Queue(1, "q")
	both(&Publish{Vhost: 1, RoutingKey: "q", Properties: properties(nil, 2), Body: []byte("a")})
	flipped := bad.state.queues[q.Number]
	flipped.mark = 77 // a bit flips in memory
	bad.state.touch(flipped)
	both()
	index, hash := good.Hash()
	both(Audit{Index: index, Version: HashVersion + 1, Hash: hash})
	bad.is("unknown version", bad.told.Suspect, (*Audit)(nil))
	both(Audit{Index: index + 5000, Version: HashVersion, Hash: hash})
	bad.is("unknown index", bad.told.Suspect, (*Audit)(nil))
	both(Audit{Index: index, Version: HashVersion, Hash: hash})
	good.is("the right one", good.told.Suspect, (*Audit)(nil))
	bad.is("the wrong one", bad.told.Suspect, &Audit{Index: index, Version: HashVersion, Hash: hash})
	both()
	bad.is("told once", bad.told.Suspect, (*Audit)(nil))

	var b bytes.Buffer // a repair: a peer's state at K, and entries up to K are passed over
	at, err := good.Export(&b)
	if err != nil || at != good.index {
		t.Fatal(err)
	}
	if err := bad.Replace(&b); err != nil {
		t.Fatal(err)
	}
	bad.is("told", bad.told, Applied{Index: at, Term: 1, Replaced: true})
	if _, ok := bad.HashAt(index); ok {
		t.Error("hashes from before the repair are remembered")
	}
	if r, err := bad.Apply(at, 1, nil); r != nil || err != nil {
		t.Errorf("an entry up to K is not passed over: %v, %v", r, err)
	}
	for range 3 {
		both(&Publish{Vhost: 1, RoutingKey: "q", Body: []byte("b")})
		_, h := good.Hash()
		if k, ok := bad.HashAt(good.index); !ok || k != h {
			t.Fatalf("after the repair the hashes are %x and %x", h, k)
		}
	}
	both(Audit{Index: good.index, Version: HashVersion, Hash: func() uint64 { _, h := good.Hash(); return h }()})
	bad.is("after the repair", bad.told.Suspect, (*Audit)(nil))
}

func TestRule15HashesOfTheLast1024Entries(t *testing.T) {
	w := newWorld(t)
	var first uint64
	for i := range 1025 {
		w.do(Mark{})
		if i == 0 {
			_, first = w.Hash()
		}
	}
	if _, ok := w.HashAt(1); ok {
		t.Error("the 1025th is remembered")
	}
	if h, ok := w.HashAt(2); !ok || h == 0 || first == 0 {
		t.Error("the 1024th is forgotten")
	}
	if _, ok := w.HashAt(0); ok {
		t.Error("there is no entry 0")
	}
}

func TestRule16MembershipChangeAlone(t *testing.T) {
	if _, ok := New(Options{}).FSM().(raft.ConfigurationStore); !ok {
		t.Error("a snapshot would be refused after a change of membership without traffic")
	}
}

// TestRule16RecordsAtOrAboveTheNextSequenceAreIgnored appends to a queue's file behind what a snapshot knows, as a
// process does that ends before its next snapshot is complete.
func TestRule16RecordsAtOrAboveTheNextSequenceAreIgnored(t *testing.T) {
	mem := vfs.NewMem()
	snapshots, err := snapshotstore.New(mem, "/data/snapshots", 5, nil)
	if err != nil {
		t.Fatal(err)
	}
	options := Options{Files: mem, Dir: "/data/messages"}
	w := newWorld(t)
	w.Machine = New(options)
	persist := func(complete bool) string {
		t.Helper()
		taken, err := w.FSM().Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		defer taken.Release()
		sink, err := snapshots.Create(1, w.index, 1, raft.Configuration{}, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := taken.Persist(sink); err != nil {
			t.Fatal(err)
		}
		if complete {
			err = sink.Close()
		} else {
			err = sink.Cancel()
		}
		if err != nil {
			t.Fatal(err)
		}
		return sink.ID()
	}
	q := w.queue("q")
	w.publish("q", "a", "b")
	_, hash := w.Hash()
	id := persist(true)
	w.publish("q", "c", "d")
	persist(false) // c and d are in the file now
	_ = w.Close()
	w.Machine = New(options)
	_, r, err := snapshots.Open(id)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.FSM().Restore(r); err != nil {
		t.Fatal(err)
	}
	w.is("queue", w.bodies(q), "a b")
	if _, got := w.Hash(); got != hash {
		t.Errorf("hash %x, it was %x", got, hash)
	}
	i, _ := w.QueueByNumber(q)
	w.is("next", i.Next, uint64(3))
	w.index = 3
	w.publish("q", "C") // replay gives the sequences again
	persist(true)
	w.is("queue", w.bodies(q), "a b C")
}

// TestRule24OnlyOneFileImportsRaft checks the imports of the package, and that nothing of it can differ between nodes:
// no clock, no random numbers.
func TestRule24OnlyOneFileImportsRaft(t *testing.T) {
	allowed := []string{"github.com/warrenmq/warren/fsm/store", "github.com/warrenmq/warren/fsm/store/vfs", "github.com/vmihailenco/msgpack/v5",
		"github.com/cespare/xxhash/v2"}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range parsed.Imports {
			name, _ := strconv.Unquote(i.Path.Value)
			switch {
			case name == "github.com/hashicorp/raft" && f.Name() == "raft.go", slices.Contains(allowed, name):
			case strings.Contains(name, "."), name == "time", name == "math/rand", name == "math/rand/v2", name == "crypto/rand", name == "net", name == "os":
				t.Errorf("%s imports %s", f.Name(), name)
			}
		}
	}
}
