package fsm

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// modelMessages is a queue in plain slices and maps.
type modelMessages struct {
	last   uint64
	live   []uint64
	counts map[uint64]uint32
	hashes map[uint64]uint64
	bytes  map[uint64]int
	places map[uint64]place // of those that are in a file
}

func (m *modelMessages) remove(s uint64) bool {
	i, ok := slices.BinarySearch(m.live, s)
	if ok {
		m.live = slices.Delete(m.live, i, i+1)
	}
	return ok
}

func (m *modelMessages) check(t *rapid.T, q *messagesView) {
	var bytes, sum, at uint64
	for _, s := range m.live {
		bytes += uint64(m.bytes[s])
		sum += contribution(m.hashes[s], s, m.counts[s])
	}
	if q.count != uint64(len(m.live)) || q.bytes != bytes || q.sum != sum || q.last != m.last {
		t.Fatalf("queue says %d messages, %d bytes, sum %x, last %d; model %d, %d, %x, %d",
			q.count, q.bytes, q.sum, q.last, len(m.live), bytes, sum, m.last)
	}
	var live []uint64
	for _, c := range q.chunks {
		count, unwritten, counted, held := 0, 0, 0, 0
		var open opened
		slots := open.slots(c)
		for i := range slots {
			s := &slots[i]
			if !c.has(i) {
				if *s != (slot{}) {
					t.Fatalf("slot %d is dead and not zero", c.first()+uint64(i))
				}
				continue
			}
			count++
			if s.file == 0 {
				unwritten++
			}
			if s.deliveries() > 0 {
				counted++
			}
			if s.content != nil {
				held++
			}
		}
		if c.count != count || c.unwritten != unwritten || c.counted != counted || c.held != held {
			t.Fatalf("chunk %d counts %d live, %d unwritten, %d counted, %d held; it has %d, %d, %d, %d", c.index, c.count, c.unwritten, c.counted, c.held,
				count, unwritten, counted, held)
		}
		for i := c.from(0); i >= 0 && i < chunkSlots; {
			at = c.first() + uint64(i)
			s := &slots[i]
			if s.deliveries() != m.counts[at] || s.hash != m.hashes[at] || int(s.body) != m.bytes[at] {
				t.Fatalf("message %d: count %d hash %x body %d", at, s.deliveries(), s.hash, s.body)
			}
			p, written := m.places[at]
			if want := (place{at, int64(s.offset), s.length, s.file}); written && want != p || !written && s.content == nil {
				t.Fatalf("message %d is at %+v, the model says %+v (%v)", at, want, p, written)
			}
			live = append(live, at)
			if i+1 == chunkSlots {
				break
			}
			i = c.from(i + 1)
		}
	}
	if !slices.Equal(live, m.live) {
		t.Fatalf("live are %v, model %v", live, m.live)
	}
}

func (m *modelMessages) clone() *modelMessages {
	c := *m
	c.live = slices.Clone(m.live)
	c.counts = make(map[uint64]uint32)
	for k, v := range m.counts {
		c.counts[k] = v
	}
	c.places = maps.Clone(m.places)
	return &c
}

// TestMessagesEqualModel drives a queue and its model with the same random calls; views taken on the way must not
// change afterwards.
func TestMessagesEqualModel(t *testing.T) {
	type kept struct {
		model *modelMessages
		view  messagesView
	}
	rapid.Check(t, func(t *rapid.T) {
		var q messages
		model := &modelMessages{counts: map[uint64]uint32{}, hashes: map[uint64]uint64{}, bytes: map[uint64]int{}, places: map[uint64]place{}}
		var views []kept
		sequence := rapid.Custom(func(t *rapid.T) uint64 { return rapid.Uint64Range(0, model.last+3).Draw(t, "sequence") })
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				for range rapid.IntRange(1, 300).Draw(t, "n") {
					c := &content{hash: model.last * 77, body: make([]byte, model.last%5)}
					model.last++
					if got := q.append(c); got != model.last {
						t.Fatalf("sequence %d, want %d", got, model.last)
					}
					model.live = append(model.live, model.last)
					model.hashes[model.last], model.bytes[model.last] = c.hash, len(c.body)
				}
			},
			"remove": func(t *rapid.T) {
				s := sequence.Draw(t, "s")
				if got, want := q.remove(s), model.remove(s); got != want {
					t.Fatalf("remove %d: %v, want %v", s, got, want)
				}
			},
			"removeRuns": func(t *rapid.T) {
				from := sequence.Draw(t, "s")
				run := Run{from, from + rapid.Uint64Range(0, 600).Draw(t, "width")}
				var want uint64
				for s := run.From; s <= run.To; s++ {
					if model.remove(s) {
						want++
					}
				}
				if n := q.liveIn([]Run{run}); n != want {
					t.Fatalf("live in %v: %d, want %d", run, n, want)
				}
				if n := q.removeRuns([]Run{run}); n != want {
					t.Fatalf("removed in %v: %d, want %d", run, n, want)
				}
			},
			"removeExcept": func(t *rapid.T) {
				from := sequence.Draw(t, "s")
				held := Run{from, from + rapid.Uint64Range(0, 600).Draw(t, "width")}
				runs := []Run{held}
				if second := rapid.Uint64Range(0, 600).Draw(t, "second"); second > 0 {
					runs = append(runs, Run{held.To + second, held.To + 2*second})
				}
				before := len(model.live)
				model.live = slices.DeleteFunc(model.live, func(s uint64) bool { return !inRuns(runs, s) })
				if n := q.removeExcept(runs); n != uint64(before-len(model.live)) {
					t.Fatalf("%d went, want %d", n, before-len(model.live))
				}
			},
			"removeMany": func(t *rapid.T) {
				var runs []Run
				for at := sequence.Draw(t, "s"); at <= model.last && len(runs) < 20; {
					runs = append(runs, Run{at, at + rapid.SampledFrom([]uint64{0, 0, 1, 63, 64, 255, 300}).Draw(t, "width")})
					at = runs[len(runs)-1].To + rapid.SampledFrom([]uint64{1, 2, 2, 64, 700}).Draw(t, "gap")
				}
				others := rapid.Bool().Draw(t, "others")
				before := len(model.live)
				model.live = slices.DeleteFunc(model.live, func(s uint64) bool { return inRuns(runs, s) != others })
				if n := q.removeMany(runs, others); n != uint64(before-len(model.live)) {
					t.Fatalf("%d went, want %d", n, before-len(model.live))
				}
			},
			"written": func(t *rapid.T) { // to a file, one behind the other but for some
				keep, from := rapid.Bool().Draw(t, "keep"), sequence.Draw(t, "s")
				p := place{offset: int64(rapid.IntRange(32, 1<<40).Draw(t, "offset")), file: rapid.Uint32Range(1, 3).Draw(t, "file")}
				for _, s := range model.live[min(int(from), len(model.live)):] {
					if _, is := model.places[s]; is || rapid.IntRange(0, 500).Draw(t, "stop") == 0 {
						break
					}
					p.sequence, p.length = s, uint32(100+model.bytes[s])
					model.places[s] = p
					var copied *content
					if keep {
						copied = &content{hash: model.hashes[s], body: make([]byte, model.bytes[s])}
					}
					q.written(p, 0, copied)
					if p.offset += int64(p.length); s%91 == 0 {
						p.offset += 7
					}
				}
			},
			"moved": func(t *rapid.T) {
				for s, p := range model.places {
					if s%5 == 0 && slices.Contains(model.live, s) {
						to := place{s, p.offset + 1, p.length, 9}
						q.written(to, p.file, nil)
						model.places[s] = to
					}
				}
			},
			"evict": func(t *rapid.T) { q.evict(rapid.Uint64Range(0, q.memory).Draw(t, "keep"), len(q.chunks), 1000) },
			"pack":  func(t *rapid.T) { q.packAt(max(sequence.Draw(t, "s"), 1)) },
			"raise": func(t *rapid.T) {
				s := sequence.Draw(t, "s")
				_, ok := slices.BinarySearch(model.live, s)
				if got := q.raise(s); got != ok {
					t.Fatalf("raise %d: %v", s, got)
				}
				if ok {
					model.counts[s]++
				}
			},
			"next": func(t *rapid.T) {
				s := sequence.Draw(t, "s")
				i, _ := slices.BinarySearch(model.live, s)
				got, ok := q.next(s)
				if ok != (i < len(model.live)) || ok && got != model.live[i] {
					t.Fatalf("next(%d) = %d, %v", s, got, ok)
				}
			},
			"view": func(*rapid.T) { views = append(views, kept{model.clone(), q.view()}) },
			"": func(t *rapid.T) {
				v := q.view()
				model.check(t, &v)
				var memory, unwritten, index uint64
				for _, c := range q.chunks {
					index += c.weight()
					for i := range c.slots {
						memory += c.slots[i].size()
						if c.slots[i].file == 0 {
							unwritten += c.slots[i].size()
						}
					}
				}
				if q.weights() != (weights{memory, unwritten, index}) {
					t.Fatalf("the weights are %+v, not %d, %d, %d", q.weights(), memory, unwritten, index)
				}
			},
		})
		for i := range views {
			views[i].model.hashes, views[i].model.bytes = model.hashes, model.bytes
			views[i].model.check(t, &views[i].view)
		}
	})
}

func BenchmarkMessagesAppendRemove(b *testing.B) {
	var q messages
	c := &content{hash: 1, body: make([]byte, 256)}
	for b.Loop() {
		q.append(c)
		if q.count > 10_000 {
			at, _ := q.first()
			q.remove(at)
		}
	}
}
