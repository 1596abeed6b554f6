package fsm

import (
	"container/heap"
	"encoding/binary"
	"slices"
)

// rememberedTogether is how many values a part of a window has.
const rememberedTogether = 1024

// window is what an exchange or a queue remembers of the messages that came through: the values of their header, in
// the order in which they came. A value that comes again while it is remembered does not change its place.
type window struct {
	number     uint64 // of the exchange or the queue
	rules      deduplication
	duplicates uint64 // messages that were not let through
	first      uint64 // position of the oldest value
	next       uint64 // position of the next value; never goes back

	// derived
	parts     []*[rememberedTogether]remembered // from that of first on; a snapshot may read below its next
	positions map[valueKey]uint64               // where each value came last
	sum       uint64                            // of the values
	place     int                               // in state.aging, if it is there
}

// remembered is a value and when it came, by the batch clock.
type remembered struct {
	key valueKey
	at  int64
}

// had returns how many messages a window has not let through; nil is none.
func (w *window) had() uint64 {
	if w == nil {
		return 0
	}
	return w.duplicates
}

func (w *window) count() uint64 { return w.next - w.first }

func (w *window) of(position uint64) *remembered {
	return &w.parts[position/rememberedTogether-w.first/rememberedTogether][position%rememberedTogether]
}

// isOver reports whether the value at a position counts no more. What is over is gone a little later.
func (w *window) isOver(position uint64, clock int64) bool {
	return position < w.first || position+w.rules.size < w.next || w.rules.window > 0 && w.of(position).at+w.rules.window <= clock
}

// due is when the oldest value is over. There is one.
func (w *window) due() int64 { return w.of(w.first).at + w.rules.window }

// digest covers what is there beside the values; a window that has had none is nothing.
func (w *window) digest() uint64 {
	if w.next == 0 {
		return 0
	}
	return mix(mix(mix(seedWindow, w.number), w.duplicates), w.next)
}

func (w *window) digestAt(position uint64) uint64 {
	r := w.of(position)
	return mix(mix(mix(mix(mix(seedRemembered, w.number), position), r.key[0]), r.key[1]), uint64(r.at))
}

// insertWindow makes the window of an exchange or a queue; nil when its rules ask for none.
func (s *state) insertWindow(number uint64, rules deduplication) *window {
	if rules.header == "" {
		return nil
	}
	w := &window{number: number, rules: rules, positions: map[valueKey]uint64{}}
	s.windows[number] = w
	return w
}

// changeWindow gives an exchange or a queue other rules, and returns what is its window then. Another header is another
// window; with the same one what is remembered stays, and the new bounds count for it too.
func (s *state) changeWindow(number uint64, w *window, rules deduplication) *window {
	if w == nil || w.rules.header != rules.header {
		s.removeWindow(w)
		return s.insertWindow(number, rules)
	}
	if w.isAging() {
		heap.Remove(&s.aging, w.place)
	}
	if w.rules = rules; w.isAging() {
		heap.Push(&s.aging, w)
	}
	return w
}

// removeWindow forgets everything.
func (s *state) removeWindow(w *window) {
	if w == nil {
		return
	}
	delete(s.windows, w.number)
	if w.isAging() {
		heap.Remove(&s.aging, w.place)
	}
	s.remembered -= w.count()
	s.sum -= w.digest() + w.sum
}

// isAging reports whether the window is in state.aging.
func (w *window) isAging() bool { return w.rules.window > 0 && w.count() > 0 }

// addRemembered puts a value behind all others.
func (s *state) addRemembered(w *window, r remembered) {
	s.sum -= w.digest()
	w.put(r)
	added := w.digestAt(w.next - 1)
	w.sum += added
	s.sum += w.digest() + added
	s.remembered++
	if w.count() == 1 && w.isAging() {
		heap.Push(&s.aging, w)
	}
}

func (w *window) put(r remembered) {
	if w.next%rememberedTogether == 0 || len(w.parts) == 0 {
		w.parts = append(w.parts, new([rememberedTogether]remembered))
	}
	w.next++
	*w.of(w.next - 1) = r
	w.positions[r.key] = w.next - 1
}

// dropRemembered forgets the oldest value. There is one.
func (s *state) dropRemembered(w *window) {
	gone := w.digestAt(w.first)
	w.sum -= gone
	s.sum -= gone
	s.remembered--
	if key := w.of(w.first).key; w.positions[key] == w.first {
		delete(w.positions, key)
	}
	aging := w.isAging()
	w.first++
	if w.first%rememberedTogether == 0 {
		w.parts[0] = nil
		w.parts = w.parts[1:]
	}
	switch {
	case !aging:
	case w.count() == 0:
		heap.Remove(&s.aging, w.place)
	default:
		heap.Fix(&s.aging, w.place)
	}
	if w.count() == 0 {
		w.positions = map[valueKey]uint64{} // a map does not shrink
	}
}

// agingWindows are the windows with values that will be too old, in a heap: the one whose oldest is due first.
type agingWindows []*window

func (h agingWindows) Len() int { return len(h) }
func (h agingWindows) Less(i, j int) bool {
	if a, b := h[i].due(), h[j].due(); a != b {
		return a < b
	}
	return h[i].number < h[j].number
}
func (h agingWindows) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}
func (h *agingWindows) Push(x any) {
	w := x.(*window)
	w.place = len(*h)
	*h = append(*h, w)
}
func (h *agingWindows) Pop() any {
	last := (*h)[len(*h)-1]
	(*h)[len(*h)-1] = nil
	*h = (*h)[:len(*h)-1]
	return last
}

// windowView is a window at one moment. It may be read by any goroutine without a lock: what it has is not written again.
type windowView struct {
	number, duplicates, first, next uint64
	parts                           []*[rememberedTogether]remembered
}

func (w *window) view() windowView {
	return windowView{w.number, w.duplicates, w.first, w.next, slices.Clone(w.parts)}
}

// windowImage is a window in a snapshot.
type windowImage struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"`

	Number     uint64
	Duplicates uint64
	First      uint64
	Values     []byte // of each: its key, 16 bytes, and how much later than the one before it came, as a varint
}

func (v *windowView) image() windowImage {
	i := windowImage{Number: v.number, Duplicates: v.duplicates, First: v.first, Values: make([]byte, 0, 18*(v.next-v.first))}
	before := int64(0)
	for at := v.first; at < v.next; at++ {
		r := &v.parts[at/rememberedTogether-v.first/rememberedTogether][at%rememberedTogether]
		i.Values = big.AppendUint64(big.AppendUint64(i.Values, r.key[0]), r.key[1])
		i.Values = binary.AppendVarint(i.Values, r.at-before)
		before = r.at
	}
	return i
}

// restoreWindow fills a window from its image, and reports whether that is one.
func (s *state) restoreWindow(i *windowImage) bool {
	w := s.windows[i.Number]
	if w == nil {
		return false
	}
	s.sum -= w.digest()
	w.first, w.next, w.duplicates = i.First, i.First, i.Duplicates
	s.sum += w.digest()
	at := int64(0)
	for b := i.Values; len(b) > 0; {
		if len(b) < 17 {
			return false
		}
		key := valueKey{big.Uint64(b), big.Uint64(b[8:])}
		later, n := binary.Varint(b[16:])
		if n <= 0 {
			return false
		}
		at, b = at+later, b[16+n:]
		s.addRemembered(w, remembered{key, at})
	}
	return true
}
