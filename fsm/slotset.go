package fsm

import "math/bits"

// slotSet is a set of positions in a chunk.
type slotSet [chunkSlots / 64]uint64

func (s *slotSet) add(i int)    { s[i/64] |= 1 << (i % 64) }
func (s *slotSet) remove(i int) { s[i/64] &^= 1 << (i % 64) }

func (s *slotSet) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }

// from returns the first position from i on, or -1.
func (s *slotSet) from(i int) int {
	for w := i / 64; w < len(s); w++ {
		word := s[w]
		if w == i/64 {
			word &= ^uint64(0) << (i % 64)
		}
		if word != 0 {
			return w*64 + bits.TrailingZeros64(word)
		}
	}
	return -1
}

// last returns the last position, or -1.
func (s *slotSet) last() int {
	for w := len(s) - 1; w >= 0; w-- {
		if s[w] != 0 {
			return w*64 + 63 - bits.LeadingZeros64(s[w])
		}
	}
	return -1
}

func (s *slotSet) count() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

func (s slotSet) and(other slotSet) slotSet {
	for w := range s {
		s[w] &= other[w]
	}
	return s
}

func (s slotSet) without(other slotSet) slotSet {
	for w := range s {
		s[w] &^= other[w]
	}
	return s
}

func (s slotSet) or(other slotSet) slotSet {
	for w := range s {
		s[w] |= other[w]
	}
	return s
}
