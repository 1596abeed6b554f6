package fsm

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/vmihailenco/msgpack/v5"
)

// imageVersion numbers the encoding of a state in a snapshot.
const imageVersion = 2

// image is a state without its messages, as a snapshot keeps it. Fields are encoded in this order and without their
// names: new ones go to the end of their struct.
type image struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"`

	Version     uint16
	HashVersion uint16
	Hash        uint64 // of the whole state, messages included
	Index, Term uint64
	Clock       int64
	Cluster     string
	Leader      string
	Boots       []bootImage
	LastNumber  uint64
	LastStamp   uint64
	Cursor      [2]uint64
	Counters    []uint64
	Vhosts      []vhostImage
	Exchanges   []exchangeImage
	Queues      []queueImage
	Bindings    []bindingImage
	Producers   []producerImage // longest idle first
	Uploads     []uploadImage
	Windows     []windowImage
	Policies    []policyImage
	Users       []userImage // with limits
}

type bootImage struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"`

	Server string
	Boot   [16]byte
}

type vhostImage struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"`

	Number  uint64
	Name    string
	Waiting []waitingImage // by exchange
	Limits  [2]uint64      // connections and queues, see resourceLimits
}

type userImage struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"`

	Name   string
	Limits [2]uint64 // connections and channels
}

type waitingImage struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"`

	Exchange string
	Messages uint64
}

type policyImage struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"`

	Vhost      uint64
	Operator   bool
	Name       string
	Pattern    string
	ApplyTo    string
	Priority   int64
	Definition []byte
}

type exchangeImage struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"`

	Number, Vhost uint64
	Name, Kind    string
	Durable       bool
	AutoDelete    bool
	Internal      bool
	Arguments     []byte
}

type queueImage struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"`

	Number, Vhost   uint64
	Name            string
	Durable         bool
	Exclusive       bool
	AutoDelete      bool
	Arguments       []byte
	OwnerTerm       uint64
	OwnerNumber     uint64
	Mark, Suspicion uint64
	HadConsumer     bool
	InUse           bool
	UnusedSince     int64
	Awaited         uint64
}

type bindingImage struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"`

	Source, Destination uint64 // numbers
	Key                 string
	Arguments           []byte
}

type producerImage struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"`

	ID       string
	Highest  uint64
	Used     int64
	Stamp    uint64
	Outcomes []uint64 // from, to, routed; and so on
}

type uploadImage struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"`

	Term, Session, Number, Total uint64
	Parts                        [][]byte
}

// stateView is the state but for its messages at one moment. It may be read by any goroutine without a lock.
type stateView struct {
	image     // what there is once, vhosts, queues, uploads
	exchanges rowsView[exchange]
	bindings  rowsView[binding]
	producers rowsView[memory]
	windows   []windowView
}

// view takes references to what never changes and copies what does, queues above all; the machine's lock is held.
func (s *state) view() *stateView {
	v := &stateView{exchanges: s.exchanges.view(), bindings: s.bindings.view(), producers: s.producers.rows.view()}
	v.image = image{Version: imageVersion, HashVersion: HashVersion, Hash: s.hash(), Index: s.index, Term: s.term, Clock: s.clock,
		Cluster: s.cluster, Leader: s.leader, LastNumber: s.lastNumber, LastStamp: s.lastStamp,
		Cursor: [2]uint64{s.cursor.queue, s.cursor.sequence}}
	i := &v.image
	for _, n := range s.counters.all() {
		i.Counters = append(i.Counters, *n)
	}
	for _, b := range s.boots {
		i.Boots = append(i.Boots, bootImage{Server: b.Server, Boot: b.Boot})
	}
	for _, v := range s.vhosts {
		made := vhostImage{Number: v.number, Name: v.name, Limits: [2]uint64{v.limits.connections, v.limits.queues}}
		for _, exchange := range slices.Sorted(maps.Keys(v.waiting)) {
			made.Waiting = append(made.Waiting, waitingImage{Exchange: exchange, Messages: v.waiting[exchange]})
		}
		i.Vhosts = append(i.Vhosts, made)
		for _, p := range slices.Concat(v.policies, v.operatorPolicies) {
			i.Policies = append(i.Policies, policyImage{Vhost: v.number, Operator: p.operator, Name: p.name, Pattern: p.pattern,
				ApplyTo: p.applyTo, Priority: p.priority, Definition: p.definition})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.userLimits)) {
		limits := s.userLimits[name]
		i.Users = append(i.Users, userImage{Name: name, Limits: [2]uint64{limits.connections, limits.channels}})
	}
	i.Queues = make([]queueImage, 0, len(s.queues))
	for e := s.byNumber.Front(); e != nil; e = e.Next() {
		q := e.Value.(*queue)
		i.Queues = append(i.Queues, queueImage{Number: q.number, Vhost: q.vhost.number, Name: q.name, Durable: q.durable,
			Exclusive: q.exclusive, AutoDelete: q.autoDelete, Arguments: q.arguments, OwnerTerm: q.owner.Term, OwnerNumber: q.owner.Number,
			Mark: q.mark, Suspicion: q.suspicion, HadConsumer: q.hadConsumer, InUse: q.inUse, UnusedSince: q.unusedSince, Awaited: q.awaited})
	}
	for _, w := range s.windows {
		if w.next > 0 {
			v.windows = append(v.windows, w.view())
		}
	}
	for id, c := range s.sessions {
		for _, u := range c.uploads {
			i.Uploads = append(i.Uploads, uploadImage{Term: id.Term, Session: id.Number, Number: u.number, Total: u.total, Parts: slices.Clone(u.parts)})
		}
	}
	return v
}

// encode returns the view's bytes.
func (v *stateView) encode() []byte {
	i := v.image
	i.Exchanges = make([]exchangeImage, 0, v.exchanges.count)
	for e := range v.exchanges.all {
		i.Exchanges = append(i.Exchanges, exchangeImage{Number: e.number, Vhost: e.vhost.number, Name: e.name, Kind: e.kind,
			Durable: e.durable, AutoDelete: e.autoDelete, Internal: e.internal, Arguments: e.arguments})
	}
	i.Bindings = make([]bindingImage, 0, v.bindings.count)
	for b := range v.bindings.all {
		i.Bindings = append(i.Bindings, bindingImage{Source: b.source.number, Destination: b.destination(), Key: b.key, Arguments: b.arguments})
	}
	i.Producers = make([]producerImage, 0, v.producers.count)
	for p := range v.producers.all {
		made := producerImage{ID: p.id, Highest: p.highest, Used: p.used, Stamp: p.stamp, Outcomes: make([]uint64, 0, 3*len(p.outcomes))}
		for _, o := range p.outcomes {
			made.Outcomes = append(made.Outcomes, o.from, o.to, uint64(o.routed))
		}
		i.Producers = append(i.Producers, made)
	}
	for n := range v.windows {
		i.Windows = append(i.Windows, v.windows[n].image())
	}
	return i.encode()
}

// encode returns the image's bytes, the same for equal states.
func (i *image) encode() []byte {
	slices.SortFunc(i.Vhosts, func(a, b vhostImage) int { return cmp.Compare(a.Number, b.Number) })
	slices.SortFunc(i.Policies, func(a, b policyImage) int {
		return cmp.Or(cmp.Compare(a.Vhost, b.Vhost), strings.Compare(fmt.Sprint(a.Operator), fmt.Sprint(b.Operator)), strings.Compare(a.Name, b.Name))
	})
	slices.SortFunc(i.Exchanges, func(a, b exchangeImage) int { return cmp.Compare(a.Number, b.Number) })
	slices.SortFunc(i.Queues, func(a, b queueImage) int { return cmp.Compare(a.Number, b.Number) })
	slices.SortFunc(i.Bindings, func(a, b bindingImage) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Destination, b.Destination), cmp.Compare(a.Key, b.Key),
			bytes.Compare(a.Arguments, b.Arguments))
	})
	slices.SortFunc(i.Producers, func(a, b producerImage) int { return cmp.Compare(a.Stamp, b.Stamp) })
	slices.SortFunc(i.Windows, func(a, b windowImage) int { return cmp.Compare(a.Number, b.Number) })
	slices.SortFunc(i.Uploads, func(a, b uploadImage) int {
		return cmp.Or(cmp.Compare(a.Term, b.Term), cmp.Compare(a.Session, b.Session), cmp.Compare(a.Number, b.Number))
	})
	b := new(bytes.Buffer)
	e := msgpack.NewEncoder(b)
	e.UseCompactInts(true)
	if err := e.Encode(i); err != nil {
		panic(fmt.Sprintf("a state cannot be encoded: %v", err)) // into memory, of plain values
	}
	return b.Bytes()
}

// decodeImage is the inverse of encode.
func decodeImage(b []byte) (*image, error) {
	i := new(image)
	if err := msgpack.Unmarshal(b, i); err != nil {
		return nil, fmt.Errorf("decode state: %w", err)
	}
	if i.Version != imageVersion {
		return nil, fmt.Errorf("decode state: its format is version %d, this release reads version %d", i.Version, imageVersion)
	}
	return i, nil
}
