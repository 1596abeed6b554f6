package fsm

import (
	"bytes"
	"maps"
	"slices"

	"pgregory.net/rapid"
)

// modelWindow is what an exchange or a queue of the model has had.
type modelWindow struct {
	on      bool // by the header h
	size    int
	time    int64 // 0: no bound
	had     []modelHad
	refused uint64
}

type modelHad struct {
	value string
	at    int64
}

// Arguments that deduplicate.
var (
	drawnOnce  = table("x-deduplication-header", "h", "x-deduplication-size", int32(2), "x-deduplication-window", int32(15))
	drawnEver  = table("x-deduplication-header", "h", "x-deduplication-window", int8(0))
	drawnPlain = table("x-deduplication-header", "h")
)

func newModelWindow(arguments []byte) (w modelWindow) {
	switch {
	case bytes.Equal(arguments, drawnOnce):
		w = modelWindow{on: true, size: 2, time: 15}
	case bytes.Equal(arguments, drawnEver):
		w = modelWindow{on: true, size: 100_000}
	case bytes.Equal(arguments, drawnPlain):
		w = modelWindow{on: true, size: 100_000, time: 600_000}
	}
	return w
}

// value is that of the header by which a message is known again.
func (w *modelWindow) value(p *Publish) (string, bool) {
	if !w.on {
		return "", false
	}
	for _, f := range messageHeaders(p.Properties, nil) {
		if f.name == "h" && f.tag != 'V' {
			return string(f.tag) + string(f.value), true
		}
	}
	return "", false
}

func (m *model) repeats(w *modelWindow, p *Publish) bool {
	value, ok := w.value(p)
	if !ok || !slices.ContainsFunc(w.had, func(h modelHad) bool { return h.value == value && (w.time == 0 || h.at+w.time > m.clock) }) {
		return false
	}
	w.refused++
	m.counters.deduplicated++
	return true
}

// checkWindows compares what is derived of the windows with the values that they have.
func checkWindows(t *rapid.T, s *state) {
	values, aging := uint64(0), 0
	for _, w := range s.windows {
		values += w.count()
		var sum uint64
		last := map[valueKey]uint64{}
		for at := w.first; at < w.next; at++ {
			sum += w.digestAt(at)
			last[w.of(at).key] = at
		}
		if sum != w.sum || !maps.Equal(last, w.positions) {
			t.Fatalf("window %d has the sum %x and the positions %v, of its values it is %x and %v", w.number, w.sum, w.positions, sum, last)
		}
		if w.isAging() {
			aging++
			if s.aging[w.place] != w {
				t.Fatalf("window %d has no place among those that age", w.number)
			}
		}
	}
	if values != s.remembered || aging != len(s.aging) {
		t.Fatalf("%d values in windows, %d of them aging; kept as %d, %d", values, aging, s.remembered, len(s.aging))
	}
}

func (m *model) remember(w *modelWindow, p *Publish) {
	if value, ok := w.value(p); ok {
		w.had = append(w.had, modelHad{value, m.clock})
		w.had = w.had[max(0, len(w.had)-w.size):]
	}
}
