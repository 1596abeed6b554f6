package fsm

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/warrenmq/warren/fsm/store"
	"github.com/warrenmq/warren/fsm/store/vfs"
)

// modelMessages is a queue in plain slices and maps.
type modelMessages struct {
	last   uint64
	live   []uint64
	dying  []uint64
	counts map[uint64]uint32
	why    map[uint64]Reason
	expiry map[uint64]int64
	hashes map[uint64]uint64
	bytes  map[uint64]int
	places map[uint64]place // of those that are in a file
	codes  map[uint64]uint8 // of those that are of no plain level
}

func (m *modelMessages) remove(s uint64) bool {
	i, ok := slices.BinarySearch(m.live, s)
	if ok {
		m.live = slices.Delete(m.live, i, i+1)
	}
	return ok
}

func (m *modelMessages) state(s uint64) uint32 {
	if slices.Contains(m.dying, s) {
		return m.counts[s] | slotDying | uint32(m.why[s])<<slotReason | uint32(m.codes[s])<<slotPriority
	}
	return m.counts[s] | uint32(m.codes[s])<<slotPriority
}

func (m *modelMessages) check(t *rapid.T, q *messagesView) {
	var bytes, sum, at uint64
	for _, s := range slices.Concat(m.live, m.dying) {
		bytes += uint64(m.bytes[s])
		sum += contribution(m.hashes[s], s, m.state(s), m.expiry[s])
	}
	if q.count != uint64(len(m.live)+len(m.dying)) || q.bytes != bytes || q.sum != sum || q.last != m.last {
		t.Fatalf("queue says %d messages, %d bytes, sum %x, last %d; model %d, %d, %x, %d",
			q.count, q.bytes, q.sum, q.last, len(m.live)+len(m.dying), bytes, sum, m.last)
	}
	var live, dead []uint64
	for _, c := range q.chunks {
		count, unwritten, counted, held := 0, 0, 0, 0
		var open opened
		slots := open.slots(c)
		for i := range slots {
			s := &slots[i]
			if !c.keeps(i) {
				if *s != (slot{}) {
					t.Fatalf("slot %d is dead and not zero", c.first()+uint64(i))
				}
				continue
			}
			count++
			if s.file == 0 {
				unwritten++
			}
			if s.changed() {
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
		for i := c.dying.from(0); i >= 0; i = c.dying.from(i + 1) {
			dead = append(dead, c.first()+uint64(i))
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
	if !slices.Equal(dead, m.dying) {
		t.Fatalf("dying are %v, model %v", dead, m.dying)
	}
	if !slices.Equal(live, m.live) {
		t.Fatalf("live are %v, model %v", live, m.live)
	}
}

func (m *modelMessages) clone() *modelMessages {
	c := *m
	c.live, c.dying = slices.Clone(m.live), slices.Clone(m.dying)
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
		model := &modelMessages{why: map[uint64]Reason{}, expiry: map[uint64]int64{}, codes: map[uint64]uint8{}, counts: map[uint64]uint32{}, hashes: map[uint64]uint64{}, bytes: map[uint64]int{}, places: map[uint64]place{}}
		var views []kept
		paging := newPager(Options{Files: vfs.NewMem(), Dir: "/", pageBytes: rapid.SampledFrom([]int{1, 3000, 10_000}).Draw(t, "page bytes")})
		sequence := rapid.Custom(func(t *rapid.T) uint64 { return rapid.Uint64Range(0, model.last+3).Draw(t, "sequence") })
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				for range rapid.IntRange(1, 300).Draw(t, "n") {
					c := &content{hash: model.last * 77, body: make([]byte, model.last%5)}
					model.last++
					expires := drawnExpiry(t)
					model.expiry[model.last] = expires
					if rapid.IntRange(0, 3).Draw(t, "leveled") == 0 {
						model.codes[model.last] = rapid.SampledFrom([]uint8{1, 2, 5, 255}).Draw(t, "code")
					}
					if got := q.appendIn(model.codes[model.last], c, expires); got != model.last {
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
			"page": func(t *rapid.T) {
				v := q.view()
				sparse := map[*store.Page]bool{}
				for _, c := range v.chunks {
					if c.page != nil {
						sparse[c.page] = rapid.Bool().Draw(t, "sparse")
					}
				}
				paging.after = rapid.Uint64Range(0, 1000).Draw(t, "after")
				if s := sequence.Draw(t, "changed"); rapid.Bool().Draw(t, "change") && s > 0 { // while the page is written
					q.packAt(s)
				}
				paging.out(v.chunks, 0, sparse, q.move)
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
			"kill": func(t *rapid.T) {
				s, why := sequence.Draw(t, "s"), Reason(rapid.IntRange(0, 3).Draw(t, "why"))
				ok := model.remove(s)
				if got := q.kill(s, why); got != ok {
					t.Fatalf("kill %d: %v", s, got)
				}
				if ok {
					i, _ := slices.BinarySearch(model.dying, s)
					model.dying, model.why[s] = slices.Insert(model.dying, i, s), why
				}
			},
			"bury": func(t *rapid.T) {
				s := sequence.Draw(t, "s")
				i, ok := slices.BinarySearch(model.dying, s)
				if why, dying := q.death(s); dying != ok || ok && why != model.why[s] {
					t.Fatalf("death of %d: %v, %v", s, why, dying)
				}
				if next, some := q.nextDying(s); some != (i < len(model.dying)) || some && next != model.dying[i] {
					t.Fatalf("nextDying(%d): %d, %v", s, next, some)
				}
				if ok {
					q.bury(s)
					model.dying = slices.Delete(model.dying, i, i+1)
				}
			},
			"expire": func(t *rapid.T) {
				now := rapid.Int64Range(0, 1100).Draw(t, "now")
				var want []uint64
				first := int64(0)
				for _, s := range model.live {
					if e := max(model.expiry[s], -model.expiry[s]); e != 0 && e <= now {
						want = append(want, s)
					} else if e != 0 && (first == 0 || e < first) {
						first = e
					}
				}
				got := q.expired(now, 1<<20)
				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Fatalf("expired are %v, want %v", got, want)
				}
				for _, s := range got {
					q.remove(s)
					model.remove(s)
				}
				q.refresh(now)
				if due := q.firstDue(); first == 0 && due != 0 && due <= now || first != 0 && (due == 0 || due > first) {
					t.Fatalf("due at %d, the first expires at %d", due, first)
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
				checkLevels(t, &q, model)
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

// checkLevels reads the queue level by level.
func checkLevels(t *rapid.T, q *messages, model *modelMessages) {
	const plain = 3
	want := slices.Clone(model.live)
	rank := func(s uint64) float64 {
		if code := model.codes[s]; code != 0 {
			return float64(code)
		}
		return plain + 0.5
	}
	slices.SortStableFunc(want, func(a, b uint64) int { return cmp.Compare(rank(b), rank(a)) })
	var got []uint64
	for _, code := range q.codes(plain, nil) {
		before := len(got)
		for s, ok := q.nextIn(code, 0); ok; s, ok = q.nextIn(code, s+1) {
			got = append(got, s)
		}
		if before == len(got) || code != 0 && q.levelOf(code).last() != got[len(got)-1] {
			t.Fatalf("level %d has %d messages", code, len(got)-before)
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("by levels there are %v, the model has %v", got, want)
	}
}

func drawnExpiry(t *rapid.T) int64 {
	if rapid.IntRange(0, 3).Draw(t, "expires") > 0 {
		return 0
	}
	return rapid.Int64Range(-1000, 1000).Draw(t, "expiry")
}

func BenchmarkMessagesAppendRemove(b *testing.B) {
	var q messages
	c := &content{hash: 1, body: make([]byte, 256)}
	for b.Loop() {
		q.append(c, 0)
		if q.count > 10_000 {
			at, _ := q.first()
			q.remove(at)
		}
	}
}
