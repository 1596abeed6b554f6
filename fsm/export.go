package fsm

import "io"

// Export writes the whole state at one index as a stream that Replace reads. It does not hold up Apply.
func (m *Machine) Export(w io.Writer) (index uint64, err error) {
	s, err := m.takeSnapshot()
	if err != nil {
		return 0, err
	}
	defer s.release()
	return s.index, s.stream(w)
}

// Replace swaps the whole state for an exported one; entries up to its index are ignored from then on. On an error,
// and when the present state is newer, the old state stays.
func (m *Machine) Replace(r io.Reader) error { return m.restore(r, true) }
