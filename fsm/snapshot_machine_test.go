package fsm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"testing"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"github.com/warrenmq/warren/cluster/snapshotstore"
	"github.com/warrenmq/warren/fsm/store"
	"github.com/warrenmq/warren/fsm/store/vfs"
)

// apply puts commands into one entry and applies it to all machines.
func applyTo(t interface{ Fatalf(string, ...any) }, index uint64, commands []Command, machines ...*Machine) {
	var b Batch
	b.Begin(1, index, int64(index)*1000, 1<<10)
	for _, c := range commands {
		b.Append(c)
	}
	entry := b.Finish()
	for _, m := range machines {
		if _, err := m.Apply(index, 1, bytes.Clone(entry)); err != nil {
			t.Fatalf("apply entry %d: %v", index, err)
		}
	}
}

// replicated leaves out what is another on each node.
func (t Totals) replicated() Totals {
	t.IndexBytes, t.IndexPagedBytes = 0, 0
	return t
}

// sameMachines compares hashes and everything that can be read.
func sameMachines(a, b *Machine) error {
	i, h := a.Hash()
	j, k := b.Hash()
	if i != j || h != k {
		return fmt.Errorf("hash %x at %d and %x at %d", h, i, k, j)
	}
	if a.Totals().replicated() != b.Totals().replicated() {
		return fmt.Errorf("totals %v and %v", a.Totals(), b.Totals())
	}
	for _, v := range a.Vhosts() {
		for what, pair := range map[string][2]any{"queues": {a.Queues(v.Number), b.Queues(v.Number)},
			"exchanges": {a.Exchanges(v.Number), b.Exchanges(v.Number)}, "bindings": {a.Bindings(v.Number), b.Bindings(v.Number)}} {
			if fmt.Sprint(pair[0]) != fmt.Sprint(pair[1]) {
				return fmt.Errorf("%s %v and %v", what, pair[0], pair[1])
			}
		}
	}
	for _, number := range a.QueueNumbers() {
		x, _, err := a.Read(number, 1, 1<<20, 1<<30, nil)
		y, _, err2 := b.Read(number, 1, 1<<20, 1<<30, nil)
		if err := errors.Join(err, err2); err != nil {
			return err
		}
		if fmt.Sprint(x) != fmt.Sprint(y) {
			return fmt.Errorf("queue %d has %v and %v", number, x, y)
		}
	}
	return nil
}

func drawCommand(t *rapid.T) Command {
	name := func(kind string) string { return fmt.Sprint(kind, rapid.IntRange(0, 2).Draw(t, kind)) }
	queue := rapid.Uint64Range(8, 24)
	switch rapid.IntRange(0, 13).Draw(t, "command") {
	case 0:
		return PutQueue{Vhost: 1, Name: name("q"), Durable: true}
	case 1:
		return PutQueue{Vhost: 1, Name: name("x"), Exclusive: true, Owner: Session{1, rapid.Uint64Range(1, 3).Draw(t, "owner")}}
	case 2:
		return PutExchange{Vhost: 1, Name: name("e"), Type: rapid.SampledFrom([]string{"direct", "topic", "fanout", "headers"}).Draw(t, "type")}
	case 3:
		return PutBinding{Vhost: 1, Source: name("e"), Destination: name("q"), Key: name("k")}
	case 4:
		return PutBinding{Vhost: 1, Source: name("e"), Kind: ToExchange, Destination: name("e"), Key: "#"}
	case 5:
		return DeleteQueue{Vhost: 1, Name: name("q")}
	case 6:
		return ClientGone{Session{1, rapid.Uint64Range(1, 3).Draw(t, "session")}}
	case 7:
		return Mark{Queue: queue.Draw(t, "queue"), Upto: rapid.Uint64Range(1, 50).Draw(t, "upto")}
	case 8:
		return BodyPart{Session: Session{1, 1}, Upload: 3, Offset: 0, Total: 100, Bytes: make([]byte, 10)}
	case 9:
		from := rapid.Uint64Range(1, 30).Draw(t, "from")
		return Settle{Queue: queue.Draw(t, "queue"), Kind: rapid.SampledFrom([]SettleKind{Acknowledge, Return}).Draw(t, "kind"), Runs: []Run{{from, from + 6}}}
	case 10:
		return LeaderStarted{Leader: "n1", Boots: []MemberBoot{{Server: "n1", Boot: [16]byte{1}}}}
	default:
		return Publish{Vhost: 1, Exchange: rapid.SampledFrom([]string{"", "e0", "e1", "e2"}).Draw(t, "exchange"),
			RoutingKey: rapid.SampledFrom([]string{"q0", "q1", "q2", "x0", "k0"}).Draw(t, "key"), Properties: []byte{0, 0},
			Body: bytes.Repeat([]byte{'b'}, rapid.IntRange(0, 300).Draw(t, "size")), Producer: []byte(name("p")), Sequence: rapid.Uint64Range(1, 80).Draw(t, "sequence")}
	}
}

// TestSnapshotAtAnyCutAndRestEqualsStraightApply takes machines through snapshot stores, streams and exports at
// random places of a random history: hash and contents are always those of a machine that just applied it all.
func TestSnapshotAtAnyCutAndRestEqualsStraightApply(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mem := vfs.NewMem()
		snapshots, err := snapshotstore.New(mem, "/data/snapshots", 2, nil)
		if err != nil {
			t.Fatal(err)
		}
		options := Options{Files: mem, Dir: "/data/messages", CollectRecords: 20, BodyMemory: int64(rapid.SampledFrom([]int{1, 2000, 1 << 30}).Draw(t, "memory"))}
		straight, m := New(Options{}), New(options)
		index := uint64(0)
		for range rapid.IntRange(1, 8).Draw(t, "rounds") {
			for range rapid.IntRange(1, 10).Draw(t, "entries") {
				index++
				applyTo(t, index, rapid.SliceOfN(rapid.Custom(drawCommand), 1, 12).Draw(t, "commands"), straight, m)
			}
			if err := errors.Join(sameMachines(straight, m), m.bodiesAddUp()); err != nil {
				t.Fatalf("before: %v", err)
			}
			sink, err := snapshots.Create(1, index, 1, raft.Configuration{}, 1, nil)
			if err != nil {
				t.Fatal(err)
			}
			taken, err := m.takeSnapshot()
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(taken.persist(sink), sink.Close()); err != nil {
				t.Fatal(err)
			}
			taken.release()
			if err := m.bodiesAddUp(); err != nil {
				t.Fatal(err)
			}
			next := m
			switch rapid.IntRange(0, 3).Draw(t, "then") {
			case 0: // a restart
				m.Close()
				next = New(options)
				_, r, err := snapshots.Open(sink.ID())
				if err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(next.restore(r, false), r.Close()); err != nil {
					t.Fatal(err)
				}
			case 1: // a follower's install
				_, r, err := snapshots.Open(sink.ID())
				if err != nil {
					t.Fatal(err)
				}
				other := options
				other.Dir = path.Join("/data", fmt.Sprint("other", index))
				next = New(other)
				if err := errors.Join(next.restore(struct{ anyReader }{r}, false), r.Close()); err != nil {
					t.Fatal(err)
				}
			case 2: // a repair
				var b bytes.Buffer
				if at, err := straight.Export(&b); err != nil || at != index {
					t.Fatalf("export at %d: %v", at, err)
				}
				if err := m.Replace(&b); err != nil {
					t.Fatal(err)
				}
			}
			m = next
			if err := errors.Join(sameMachines(straight, m), m.bodiesAddUp()); err != nil {
				t.Fatalf("after: %v", err)
			}
		}
	})
}

type anyReader interface{ Read([]byte) (int, error) }

// TestReplaceKeepsTheOldStateOnError offers a machine damaged and older exports.
func TestReplaceKeepsTheOldStateOnError(t *testing.T) {
	mem := vfs.NewMem()
	m := New(Options{Files: mem, Dir: "/data/messages"})
	applyTo(t, 1, []Command{PutQueue{Vhost: 1, Name: "q", Durable: true}, Publish{Vhost: 1, RoutingKey: "q", Properties: []byte{0, 0}, Body: []byte("body")}}, m)
	var b bytes.Buffer
	if _, err := m.Export(&b); err != nil {
		t.Fatal(err)
	}
	index, hash := m.Hash()
	for at := range b.Bytes() {
		bad := bytes.Clone(b.Bytes())
		bad[at] ^= 4
		if m.Replace(bytes.NewReader(bad)) == nil || m.Replace(bytes.NewReader(bad[:at])) == nil {
			t.Fatalf("byte %d: damage is accepted", at)
		}
	}
	if i, h := m.Hash(); i != index || h != hash {
		t.Error("the old state is gone")
	}
	applyTo(t, 2, []Command{PutQueue{Vhost: 1, Name: "r", Durable: true}}, m)
	if err := m.Replace(bytes.NewReader(b.Bytes())); err == nil {
		t.Error("an older state is accepted")
	}
}

// TestDamagedQueueDoesNotStopTheNode damages one queue's file under a snapshot: the machine restores, names the
// queue, takes no snapshot until it is repaired, and serves the others.
func TestDamagedQueueDoesNotStopTheNode(t *testing.T) {
	mem := vfs.NewMem()
	snapshots, err := snapshotstore.New(mem, "/data/snapshots", 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	options := Options{Files: mem, Dir: "/data/messages"}
	good, m := New(Options{}), New(options)
	commands := []Command{PutQueue{Vhost: 1, Name: "a", Durable: true}, PutQueue{Vhost: 1, Name: "b", Durable: true}}
	for range 3 {
		commands = append(commands, Publish{Vhost: 1, RoutingKey: "a", Properties: []byte{0, 0}, Body: []byte("body")},
			Publish{Vhost: 1, RoutingKey: "b", Properties: []byte{0, 0}, Body: []byte("body")})
	}
	applyTo(t, 1, commands, good, m)
	sink, _ := snapshots.Create(1, 1, 1, raft.Configuration{}, 1, nil)
	taken, err := m.takeSnapshot()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(taken.persist(sink), sink.Close()); err != nil {
		t.Fatal(err)
	}
	taken.release()
	m.Close()
	a, _ := good.Queue(1, "a")
	name := path.Join("/data/snapshots", sink.ID(), "files", store.FileName(a.Number, 1))
	writeFile(mem, name, readFile(mem, name)[:60])

	m = New(options)
	_, r, err := snapshots.Open(sink.ID())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(m.restore(r, false), r.Close()); err != nil {
		t.Fatal(err)
	}
	damaged, missing := m.Damaged()
	if len(damaged) != 1 || damaged[0].Queue != a.Number || damaged[0].Offset != 60 || !missing {
		t.Fatalf("damaged %+v, missing %v", damaged, missing)
	}
	if b, _ := m.Queue(1, "b"); b.Messages != 3 {
		t.Errorf("the other queue has %d messages", b.Messages)
	}
	if _, err := m.takeSnapshot(); err == nil {
		t.Error("a snapshot makes the loss permanent")
	}
	var b bytes.Buffer
	if _, err := good.Export(&b); err != nil {
		t.Fatal(err)
	}
	if err := m.Replace(&b); err != nil {
		t.Fatal(err)
	}
	if err := sameMachines(good, m); err != nil {
		t.Error(err)
	}
	if damaged, missing := m.Damaged(); len(damaged) > 0 || missing {
		t.Errorf("after the repair: %v, %v", damaged, missing)
	}
}

// TestFailedInstallIsNotGoneOnFrom installs a damaged snapshot: nothing is applied after it until a good one came.
func TestFailedInstallIsNotGoneOnFrom(t *testing.T) {
	var fatal error
	leader, m := New(Options{}), New(Options{OnFatal: func(err error) { fatal = err }})
	applyTo(t, 1, []Command{PutQueue{Vhost: 1, Name: "q", Durable: true}}, leader)
	var b bytes.Buffer
	if _, err := leader.Export(&b); err != nil {
		t.Fatal(err)
	}
	bad := bytes.Clone(b.Bytes())
	bad[len(bad)/2] ^= 1
	follower := m.FSM()
	if follower.Restore(io.NopCloser(bytes.NewReader(bad))) == nil {
		t.Fatal("damage is accepted")
	}
	if _, err := follower.Snapshot(); err == nil {
		t.Error("a snapshot is taken of the old state under the new index")
	}
	if follower.Apply(&raft.Log{Index: 2, Term: 1}); fatal == nil {
		t.Error("an entry is applied to the old state")
	}
	if err := follower.Restore(io.NopCloser(bytes.NewReader(b.Bytes()))); err != nil {
		t.Fatal(err)
	}
	if err := sameMachines(leader, m); err != nil {
		t.Error(err)
	}
}
