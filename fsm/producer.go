package fsm

import (
	"slices"
	"sort"
)

// ProducerIdle is how long a producer is remembered after its last publish, in ms of the batch clock.
const ProducerIdle = 24 * 60 * 60 * 1000

const (
	// maxOutcomeRuns bounds the runs of all producers together: one that publishes in order to the same queues has
	// one. Beyond it the producers longest idle are dropped, as beyond MaxProducers.
	maxOutcomeRuns = 4 << 20
	// producersDropped is how many idle producers go with one entry.
	producersDropped = 1000
)

// producer remembers which of its publishes took effect and how many queues each reached (rule 5).
type producer struct {
	*memory // changed after producers.writable only

	row            int    // its place in producers.rows
	sum            uint64 // derived: of the outcomes
	hash           uint64 // its part of state.sum
	previous, next *producer
	stale, gone    bool // scratch
}

// memory is what a producer is in a snapshot. One that a snapshot may be reading (its epoch is older than that of the
// rows) is copied before it is changed.
type memory struct {
	epoch    uint64
	id       string
	highest  uint64
	outcomes []outcome // ascending, disjoint; those wholly below the window are gone
	used     int64     // batch clock of its last publish
	stamp    uint64    // orders producers by last use
}

// outcome is a run of sequences that took effect and reached the same number of queues.
type outcome struct {
	from, to uint64
	routed   uint32
}

// producers are the known ones, in a ring by last use.
type producers struct {
	byID map[string]*producer
	ring producer // ring.next is idle for longest
	runs int      // outcomes of all
	rows rows[memory]
}

// writable makes a producer's memory its own.
func (ps *producers) writable(p *producer) {
	if p.epoch == ps.rows.epoch {
		return
	}
	copied := *p.memory
	copied.epoch, copied.outcomes = ps.rows.epoch, slices.Clone(p.outcomes)
	p.memory = &copied
	ps.rows.set(p.row, &copied)
}

func (o outcome) digest() uint64 {
	return mix(mix(mix(seedOutcome, o.from), o.to), uint64(o.routed))
}

func (p *producer) digest() uint64 {
	h := mixString(seedProducer, p.id)
	return mix(mix(mix(mix(h, p.highest), uint64(p.used)), p.stamp), p.sum)
}

// tooOld reports whether a sequence lies below the window of a producer whose highest is given.
func tooOld(highest, sequence uint64) bool {
	return highest >= ProducerWindow && sequence < highest-ProducerWindow
}

// find returns the position of the first outcome that ends at or after a sequence.
func (p *producer) find(sequence uint64) int {
	n := len(p.outcomes)
	if n == 0 || p.outcomes[n-1].to < sequence {
		return n
	}
	return sort.Search(n, func(i int) bool { return p.outcomes[i].to >= sequence })
}

// outcome returns what a sequence reached, if it took effect.
func (p *producer) outcome(sequence uint64) (routed uint32, ok bool) {
	at := p.find(sequence)
	if at == len(p.outcomes) || p.outcomes[at].from > sequence {
		return 0, false
	}
	return p.outcomes[at].routed, true
}

// record notes that a sequence, new and not too old, took effect, and returns by how much the runs grew.
func (p *producer) record(sequence uint64, routed uint32) int {
	before := len(p.outcomes)
	at := p.find(sequence)
	joinsLeft := at > 0 && p.outcomes[at-1].to+1 == sequence && p.outcomes[at-1].routed == routed
	joinsRight := at < before && p.outcomes[at].from == sequence+1 && p.outcomes[at].routed == routed
	switch {
	case joinsLeft && joinsRight:
		p.sum -= p.outcomes[at-1].digest() + p.outcomes[at].digest()
		p.outcomes[at-1].to = p.outcomes[at].to
		p.outcomes = append(p.outcomes[:at], p.outcomes[at+1:]...)
		p.sum += p.outcomes[at-1].digest()
	case joinsLeft:
		p.sum -= p.outcomes[at-1].digest()
		p.outcomes[at-1].to = sequence
		p.sum += p.outcomes[at-1].digest()
	case joinsRight:
		p.sum -= p.outcomes[at].digest()
		p.outcomes[at].from = sequence
		p.sum += p.outcomes[at].digest()
	default:
		p.outcomes = append(p.outcomes, outcome{})
		copy(p.outcomes[at+1:], p.outcomes[at:])
		p.outcomes[at] = outcome{from: sequence, to: sequence, routed: routed}
		p.sum += p.outcomes[at].digest()
	}
	p.highest = max(p.highest, sequence)
	drop := 0
	for drop < len(p.outcomes) && tooOld(p.highest, p.outcomes[drop].to) {
		p.sum -= p.outcomes[drop].digest()
		drop++
	}
	p.outcomes = p.outcomes[drop:]
	return len(p.outcomes) - before
}

// insert adds a producer as the one used last. Its fields are complete, derived ones excepted.
func (s *state) insertProducer(p *producer) {
	ps := &s.producers
	p.sum = 0
	for _, o := range p.outcomes {
		p.sum += o.digest()
	}
	ps.byID[p.id] = p
	p.epoch = ps.rows.epoch
	p.row = ps.rows.add(p.memory)
	ps.runs += len(p.outcomes)
	ps.link(p)
	p.hash = p.digest()
	s.sum += p.hash
}

func (ps *producers) link(p *producer) {
	if ps.ring.next == nil {
		ps.ring.next, ps.ring.previous = &ps.ring, &ps.ring
	}
	p.previous, p.next = ps.ring.previous, &ps.ring
	p.previous.next, p.next.previous = p, p
}

func (p *producer) unlink() { p.previous.next, p.next.previous = p.next, p.previous }

// oldest returns the producer idle for longest, or nil.
func (ps *producers) oldest() *producer {
	if len(ps.byID) == 0 {
		return nil
	}
	return ps.ring.next
}

// use makes a producer the one used last.
func (s *state) use(p *producer) {
	s.producers.writable(p)
	if p.next != &s.producers.ring {
		p.unlink()
		s.producers.link(p)
		s.lastStamp++
		p.stamp = s.lastStamp
	}
	p.used = s.clock
	if !p.stale {
		p.stale = true
		s.stale = append(s.stale, p)
	}
}

// recordPublish notes that a producer's publish took effect.
func (s *state) recordPublish(p *producer, id []byte, sequence uint64, routed uint32) {
	if p == nil {
		s.lastStamp++
		p = &producer{memory: &memory{id: string(id), stamp: s.lastStamp, used: s.clock}}
		s.insertProducer(p)
	}
	s.producers.writable(p)
	s.producers.runs += p.record(sequence, routed)
	s.use(p)
	for len(s.producers.byID) > MaxProducers || s.producers.runs > maxOutcomeRuns && len(s.producers.byID) > 1 {
		s.dropProducer(s.producers.oldest())
	}
}

func (s *state) dropProducer(p *producer) {
	p.unlink()
	p.gone = true
	delete(s.producers.byID, p.id)
	if moved := s.producers.rows.remove(p.row); moved != nil {
		s.producers.byID[moved.id].row = p.row
	}
	s.producers.runs -= len(p.outcomes)
	s.sum -= p.hash
}

// dropIdleProducers forgets those idle for ProducerIdle.
func (s *state) dropIdleProducers() {
	for range producersDropped {
		p := s.producers.oldest()
		if p == nil || p.used > s.clock-ProducerIdle {
			return
		}
		s.dropProducer(p)
	}
}
