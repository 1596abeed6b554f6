package fsm

import "io"

// Export writes the whole state at one index as a stream that Replace reads. It does not hold up Apply.
func (m *Machine) Export(w io.Writer) (index uint64, err error) { panic("not built yet") }

// Replace swaps the whole state for an exported one; entries up to its index are ignored from then on. On an error
// the old state stays.
func (m *Machine) Replace(r io.Reader) error { panic("not built yet") }
