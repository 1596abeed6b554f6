package fsm

import (
	"crypto/sha256"
	"math"
)

// The bounds of what is remembered of messages that are to come through once.
const (
	defaultDeduplicationWindow = 10 * 60 * 1000 // ms
	defaultDeduplicationSize   = 100_000        // values of an exchange or a queue
	maxDeduplicationSize       = 1_000_000
	// maxRemembered bounds the values of all exchanges and queues together, at about 60 bytes of memory each. Beyond it
	// the one with the most forgets its oldest.
	maxRemembered = 4 << 20
	// rememberedDropped is how many values go at once then, and how many that are too old go with one entry.
	rememberedDropped = 1000
)

// deduplication says which messages of an exchange or a queue are the same: those with equal values of a header.
type deduplication struct {
	header string // "": none are
	window int64  // ms after which a value is new again; 0: never
	size   uint64 // values after which it is
}

func (s *settings) deduplication() (d deduplication) {
	d.header, _ = s.text("x-deduplication-header")
	if d.window = s.integer("x-deduplication-window"); d.window < 0 {
		d.window = defaultDeduplicationWindow
	}
	size := s.integer("x-deduplication-size")
	if size <= 0 {
		size = defaultDeduplicationSize
	}
	d.size = min(uint64(size), maxDeduplicationSize)
	return d
}

// valueKey stands for a value of a header. Two values have the same if they are equal as headers exchanges compare
// them, and no others do: 128 bits of a cryptographic hash.
type valueKey [2]uint64

// keyOf returns the key of a message's value; ok is false when it has none.
func (d *deduplication) keyOf(properties []byte) (k valueKey, ok bool) {
	tag, value, ok := headerOf(properties, d.header)
	if !ok || tag == 'V' {
		return k, false
	}
	f := field{tag: tag, value: value}
	class, bytes := tag, value
	var wide [8]byte
	if x, ok := f.integer(); ok {
		class, bytes = 'l', big.AppendUint64(wide[:0], uint64(x))
	} else if x, ok := f.float(); ok {
		class, bytes = 'd', big.AppendUint64(wide[:0], math.Float64bits(x+0)) // -0 is 0
	} else if tag == 't' && value[0] != 0 {
		bytes = append(wide[:0], 1)
	}
	var short [128]byte
	sum := sha256.Sum256(append(append(short[:0], class), bytes...))
	return valueKey{big.Uint64(sum[:]), big.Uint64(sum[8:])}, true
}

// headerOf finds a header in property bytes.
func headerOf(properties []byte, name string) (tag byte, value []byte, ok bool) {
	if len(properties) == 0 {
		return 0, nil, false
	}
	from, to, ok := headersAt(properties)
	if !ok {
		return 0, nil, false
	}
	for table := properties[from:to]; len(table) > 0; {
		n := 1 + int(table[0])
		if len(table) < n {
			return 0, nil, false
		}
		found := string(table[1:n]) == name
		tag, value, rest, ok := cutValue(table[n:])
		if !ok || found {
			return tag, value, ok
		}
		table = rest
	}
	return 0, nil, false
}

// repeats reports whether a message with these properties came through before, as far as the window goes, and counts
// it if it did. A nil window has no memory.
func (s *state) repeats(w *window, properties []byte) bool {
	if w == nil {
		return false
	}
	k, ok := w.rules.keyOf(properties)
	if !ok {
		return false
	}
	at, ok := w.positions[k]
	if !ok || w.isOver(at, s.clock) {
		return false
	}
	s.counters.deduplicated++
	s.sum -= w.digest()
	w.duplicates++
	s.sum += w.digest()
	return true
}

// remember notes that a message with these properties came through.
func (s *state) remember(w *window, properties []byte) {
	if w == nil {
		return
	}
	k, ok := w.rules.keyOf(properties)
	if !ok {
		return
	}
	s.addRemembered(w, remembered{k, s.clock})
	for range 2 { // so that it shrinks when it must
		if w.first == w.next || !w.isOver(w.first, s.clock) {
			break
		}
		s.dropRemembered(w)
	}
	if s.remembered > maxRemembered {
		most := s.largestWindow()
		for range min(most.count(), rememberedDropped) {
			s.dropRemembered(most)
		}
	}
}

// deduplicate returns the queues that have not had a message with these properties and a body of so many bytes. They have
// now, those excepted that will refuse it for want of room; and so has the exchange if the message reaches any queue and
// none refuses it.
func (s *state) deduplicate(e *exchange, queues []*queue, properties []byte, body uint64) []*queue {
	reached := len(queues) > 0
	fresh, refused := s.fresh(queues, properties, body)
	if reached && !refused {
		s.remember(e.window, properties)
	}
	return fresh
}

// fresh returns the queues that have not had a message with these properties. They have now, unless they refuse it.
func (s *state) fresh(queues []*queue, properties []byte, body uint64) (fresh []*queue, refused bool) {
	fresh = queues[:0] // the scratch of routing
	for _, q := range queues {
		if s.repeats(q.window, properties) {
			continue
		}
		fresh = append(fresh, q)
		if s.checked || q.hasRoom(1, body) {
			s.remember(q.window, properties)
		} else {
			refused = true
		}
	}
	return fresh, refused
}

// largestWindow returns the window with the most values, of several the youngest object's.
func (s *state) largestWindow() (most *window) {
	for _, w := range s.windows {
		if most == nil || w.count() > most.count() || w.count() == most.count() && w.number > most.number {
			most = w
		}
	}
	return most
}

// dropOldRemembered forgets values whose time is over, so that what nobody publishes to any more takes no memory.
func (s *state) dropOldRemembered() {
	for range rememberedDropped {
		if len(s.aging) == 0 || s.aging[0].due() > s.clock {
			return
		}
		s.dropRemembered(s.aging[0])
	}
}
