package fsm

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// entryLog feeds entries of one term to machines.
type entryLog struct {
	t        testing.TB
	index    uint64
	machines []*Machine
}

func (l *entryLog) apply(commands ...Command) []Result {
	l.t.Helper()
	l.index++
	var b Batch
	b.Begin(1, l.index, int64(l.index)*10, 0)
	for _, c := range commands {
		b.Append(c)
	}
	entry := b.Finish()
	var results []Result
	for i, m := range l.machines {
		got, err := m.Apply(l.index, 1, entry)
		if err != nil {
			l.t.Fatal(err)
		}
		if i == 0 {
			results = got
		}
	}
	checkHash(l.t, l.machines[0])
	return results
}

// checkHash compares the incremental sums with ones made from scratch.
func checkHash(t interface {
	Helper()
	Fatalf(string, ...any)
}, m *Machine) {
	t.Helper()
	s := m.state
	var sum, count, bytes, waiting uint64
	for _, v := range s.vhosts {
		sum += v.digest()
		for _, p := range slices.Concat(v.policies, v.operatorPolicies) {
			sum += p.digest()
		}
		for _, e := range v.exchanges {
			sum += e.digest()
		}
		for _, b := range v.bindings {
			sum += b.digest()
		}
		for exchange, n := range v.waiting {
			sum += n * v.waitingDigest(exchange)
		}
		if q := v.delayed; q != nil {
			sum += q.digest()
			waiting += q.messages.count
			if int(q.messages.count) > len(*q.messages.schedule) {
				t.Fatalf("%d messages wait, %d are scheduled", q.messages.count, len(*q.messages.schedule))
			}
		}
		for _, q := range v.queues {
			sum += q.digest()
			count += q.messages.count
			bytes += q.messages.bytes
		}
	}
	for _, p := range s.producers.byID {
		sum += p.digest()
	}
	for _, w := range s.windows {
		sum += w.digest()
		for at := w.first; at < w.next; at++ {
			sum += w.digestAt(at)
		}
	}
	for user, limits := range s.userLimits {
		sum += userDigest(user, limits)
	}
	for _, c := range s.sessions {
		for _, u := range c.uploads {
			sum += u.sum()
		}
	}
	if sum != s.sum || count != s.messages || waiting != s.waiting || bytes != s.bytes {
		t.Fatalf("sums are %x, %d, %d; from scratch %x, %d, %d", s.sum, s.messages, s.bytes, sum, count, bytes)
	}
}

func TestDeclareBindPublishSettle(t *testing.T) {
	m := New(Options{})
	l := &entryLog{t: t, machines: []*Machine{m, New(Options{})}}
	r := l.apply(PutExchange{Vhost: 1, Name: "orders", Type: "topic", AutoDelete: true}, PutQueue{Vhost: 1, Name: "q", Durable: true},
		PutBinding{Vhost: 1, Source: "orders", Destination: "q", Key: "a.#"},
		&Publish{Vhost: 1, Exchange: "orders", RoutingKey: "a.b", Body: []byte("one"), Producer: []byte("p"), Sequence: 1},
		&Publish{Vhost: 1, Exchange: "orders", RoutingKey: "a.b", Body: []byte("one"), Producer: []byte("p"), Sequence: 1},
		&Publish{Vhost: 1, RoutingKey: "q", Body: []byte("two")}, &Publish{Vhost: 1, Exchange: "none"})
	if !r[3].Duplicate && r[3].Routed != 1 || !r[4].Duplicate || r[4].Routed != 1 || r[5].Routed != 1 {
		t.Fatalf("results are %+v", r)
	}
	if r[6].Message != "NOT_FOUND - no exchange 'none' in vhost '/'" {
		t.Fatalf("message is %q", r[6].Message)
	}
	q := r[1].Queue
	out, _, err := m.Read(q, 1, 10, 1000, nil)
	if err != nil || len(out) != 2 || string(out[0].Body) != "one" || string(out[1].Body) != "two" {
		t.Fatalf("read %+v, %v", out, err)
	}
	r = l.apply(&Settle{Queue: q, Kind: Return, Runs: []Run{{2, 2}}}, &Settle{Queue: q, Runs: []Run{{1, 1}}})
	if msg, ok, _ := m.Get(q, 2); !ok || msg.DeliveryCount != 1 || r[1].Messages != 1 {
		t.Fatalf("message is %+v, results %+v", msg, r)
	}
	l.apply(&Transaction{Operations: []Command{&Publish{Vhost: 1, RoutingKey: "q"}, &Publish{Vhost: 1, Exchange: "none"}}})
	if m.Totals().Messages != 1 {
		t.Fatal("a refused transaction had an effect")
	}
	l.apply(DeleteQueue{Vhost: 1, Name: "q"})
	if _, ok := m.Exchange(1, "orders"); ok {
		t.Fatal("the auto-delete exchange outlived its last binding")
	}
	_, a := m.Hash()
	if _, b := l.machines[1].Hash(); a != b {
		t.Fatal("two machines differ")
	}
}

func TestRule1TermsFenceEverything(t *testing.T) {
	m := New(Options{})
	var b Batch
	b.Begin(1, 1, 5, 0)
	b.Append(PutQueue{Vhost: 1, Name: "q"})
	r, err := m.Apply(1, 2, b.Finish())
	if err != nil || r[0].Code != StaleTerm || m.Totals().Queues != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
}

func topicMatches(pattern, key string) bool {
	var root topicNode
	root.place(pattern).bindings = bindingList{{}}
	var r routing
	for _, n := range r.match(&root, key) {
		if len(n.bindings) > 0 {
			return true
		}
	}
	return false
}

func TestTopicVectors(t *testing.T) {
	b, err := os.ReadFile("testdata/routing.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases struct{ Topic [][3]any }
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases.Topic {
		if got := topicMatches(c[0].(string), c[1].(string)); got != c[2].(bool) {
			t.Errorf("%q matches %q: %v", c[0], c[1], got)
		}
	}
	start := time.Now()
	if topicMatches(strings.TrimSuffix(strings.Repeat("#.a.", 30), "."), strings.Repeat("a.", 120)+"b") {
		t.Error("the worst case matches")
	}
	t.Logf("worst case took %v", time.Since(start))
}
