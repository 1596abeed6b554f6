package fsm

import (
	"fmt"
	"io"

	"github.com/warrenmq/warren/fsm/store"
)

// restore reads a snapshot or an export, builds its state aside and swaps. On an error the old state stays and what
// was made is removed. A repair takes neither a state older than the present one nor one that is damaged itself.
func (m *Machine) restore(r io.Reader, repair bool) error {
	var open func() (*messageFiles, error)
	if m.root != nil {
		open = m.root.make
	}
	read, err := readSnapshot(r, open, &m.progress)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	next, err := read.machineState()
	if err == nil && repair && len(read.damaged) > 0 {
		err = read.damaged[0]
	}
	if err == nil {
		err = m.swap(next, read, repair)
	}
	if err != nil {
		if read.files != nil {
			read.files.dir.Retire()
		}
		return fmt.Errorf("restore: %w", err)
	}
	return nil
}

// machineState makes the state and checks it against the hash that it had when it was written.
func (r *restored) machineState() (*state, error) {
	i, err := decodeImage(r.state)
	if err != nil {
		return nil, err
	}
	s, err := i.state(r.queues)
	if err != nil {
		return nil, err
	}
	if got := s.hash(); got != i.Hash && i.HashVersion == HashVersion && len(r.damaged) == 0 {
		return nil, fmt.Errorf("%w: the state at index %d has hash %x, it was written with %x", store.ErrManifest, i.Index, got, i.Hash)
	}
	return s, nil
}

// swap puts a state in the place of the present one.
func (m *Machine) swap(next *state, read *restored, repair bool) error {
	m.applying.Lock()
	defer m.applying.Unlock()
	m.mu.Lock()
	if now := m.state.index; repair && next.index < now {
		m.mu.Unlock()
		return fmt.Errorf("the state offered is at index %d, this one already at %d", next.index, now)
	}
	if m.root != nil {
		read.files.lose(read.damaged)
		if err := m.root.settle(read.files, read.linked); err != nil {
			m.mu.Unlock()
			return err
		}
	}
	old := m.files
	m.state, m.files, m.hashes, m.failed = next, read.files, hashRing{}, nil
	m.exchanges.Add(1)
	m.hashes.put(next.index, next.hash())
	m.mu.Unlock()
	if old != nil {
		old.dir.Retire()
	}
	if m.options.Observer != nil {
		m.options.Observer.Applied(Applied{Index: next.index, Term: next.term, Replaced: true})
	}
	return nil
}
