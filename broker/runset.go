package broker

import (
	"math/bits"
	"slices"

	"github.com/warrenmq/warren/fsm"
)

// runSet is a set of sequence numbers that are mostly close together: bitmaps of runSetPage numbers each. The zero
// value is empty.
type runSet struct {
	pages map[uint64]*runSetBits
	n     int
}

const runSetPage = 1024

type runSetBits struct {
	words [runSetPage / 64]uint64
	n     int
}

func (s *runSet) add(q uint64) {
	if s.pages == nil {
		s.pages = map[uint64]*runSetBits{}
	}
	p := s.pages[q/runSetPage]
	if p == nil {
		p = &runSetBits{}
		s.pages[q/runSetPage] = p
	}
	if w, m := &p.words[q%runSetPage/64], uint64(1)<<(q%64); *w&m == 0 {
		*w |= m
		p.n++
		s.n++
	}
}

func (s *runSet) has(q uint64) bool {
	p := s.pages[q/runSetPage]
	return p != nil && p.words[q%runSetPage/64]&(1<<(q%64)) != 0
}

func (s *runSet) remove(q uint64) {
	p := s.pages[q/runSetPage]
	if p == nil {
		return
	}
	if w, m := &p.words[q%runSetPage/64], uint64(1)<<(q%64); *w&m != 0 {
		*w &^= m
		p.n--
		s.n--
	}
	if p.n == 0 {
		delete(s.pages, q/runSetPage)
	}
}

// runs returns the numbers as ascending, disjoint runs.
func (s *runSet) runs() []fsm.Run {
	var runs []fsm.Run
	for _, key := range sortedKeys(s.pages) {
		for i, w := range s.pages[key].words {
			for w != 0 {
				q := key*runSetPage + uint64(i)*64 + uint64(bits.TrailingZeros64(w))
				w &= w - 1
				if n := len(runs); n > 0 && runs[n-1].To+1 == q {
					runs[n-1].To = q
				} else {
					runs = append(runs, fsm.Run{From: q, To: q})
				}
			}
		}
	}
	return runs
}

// toRuns sorts sequence numbers in place and returns them as ascending, disjoint runs.
func toRuns(sequences []uint64) []fsm.Run {
	slices.Sort(sequences)
	var runs []fsm.Run
	for _, q := range sequences {
		if n := len(runs); n > 0 && runs[n-1].To+1 >= q {
			runs[n-1].To = q
		} else {
			runs = append(runs, fsm.Run{From: q, To: q})
		}
	}
	return runs
}
