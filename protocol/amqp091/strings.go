package amqp091

// Strings turns byte views into strings and remembers a few, since a publisher names the same exchange and key again and again.
// It is used by one goroutine; the zero value is ready.
type Strings struct {
	slots [16]string // by hash
}

// String returns the string of b, without taking memory if it is remembered.
func (s *Strings) String(b []byte) string {
	h := uint32(2166136261) // FNV-1a
	for _, x := range b {
		h = (h ^ uint32(x)) * 16777619
	}
	slot := &s.slots[h%uint32(len(s.slots))]
	if *slot != string(b) {
		*slot = string(b)
	}
	return *slot
}
