package fsm

import (
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
	var memory uint64
	for _, c := range q.chunks {
		for i := range c.slots {
			if x := c.slots[i].content; x != nil {
				memory += uint64(len(x.body))
			}
		}
	}
	if memory != bytes {
		t.Fatalf("%d bytes are in memory, the model has %d", memory, bytes)
	}
	if q.count != uint64(len(m.live)) || q.bytes != bytes || q.sum != sum || q.last != m.last {
		t.Fatalf("queue says %d messages, %d bytes, sum %x, last %d; model %d, %d, %x, %d",
			q.count, q.bytes, q.sum, q.last, len(m.live), bytes, sum, m.last)
	}
	var live []uint64
	for _, c := range q.chunks {
		count, unwritten, counted := 0, 0, 0
		for i := range c.slots {
			if !c.has(i) {
				if c.slots[i] != (slot{}) {
					t.Fatalf("slot %d is dead and not zero", c.first()+uint64(i))
				}
				continue
			}
			count++
			if c.slots[i].file == 0 {
				unwritten++
			}
			if c.slots[i].deliveries() > 0 {
				counted++
			}
		}
		if c.count != count || c.unwritten != unwritten || c.counted != counted {
			t.Fatalf("chunk %d counts %d live, %d unwritten, %d counted; it has %d, %d, %d", c.index, c.count, c.unwritten, c.counted, count, unwritten, counted)
		}
		for i := c.from(0); i >= 0 && i < chunkSlots; {
			at = c.first() + uint64(i)
			if c.slots[i].deliveries() != m.counts[at] || c.slots[i].hash != m.hashes[at] {
				t.Fatalf("message %d: count %d hash %x", at, c.slots[i].deliveries(), c.slots[i].hash)
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
		model := &modelMessages{counts: map[uint64]uint32{}, hashes: map[uint64]uint64{}, bytes: map[uint64]int{}}
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
				if q.memory != q.bytes {
					t.Fatalf("memory is %d, bodies have %d bytes", q.memory, q.bytes)
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
