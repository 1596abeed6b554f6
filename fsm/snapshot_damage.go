package fsm

import (
	"slices"
	"sync"

	"github.com/warrenmq/warren/fsm/store"
)

// maxDamages is how many damages are remembered.
const maxDamages = 1000

// damages is what is known to be wrong with a directory of message files.
type damages struct {
	mu      sync.Mutex
	list    []*store.Damage
	missing bool // messages are missing from the state because of it
}

// note remembers what a read or a collection found: a body cannot be read, but the state knows of its message.
func (f *messageFiles) note(d *store.Damage) {
	if f == nil {
		return
	}
	f.damages.mu.Lock()
	defer f.damages.mu.Unlock()
	known := slices.ContainsFunc(f.damages.list, func(k *store.Damage) bool { return k.File == d.File && k.Offset == d.Offset })
	if !known && len(f.damages.list) < maxDamages {
		f.damages.list = append(f.damages.list, d)
	}
}

// lose remembers what a restore found: messages are missing from the state.
func (f *messageFiles) lose(damaged []*store.Damage) {
	for _, d := range damaged {
		f.note(d)
	}
	f.damages.mu.Lock()
	defer f.damages.mu.Unlock()
	f.damages.missing = f.damages.missing || len(damaged) > 0
}

// lost returns a damage that made messages missing from the state.
func (f *messageFiles) lost() error {
	if f == nil {
		return nil
	}
	f.damages.mu.Lock()
	defer f.damages.mu.Unlock()
	if f.damages.missing {
		return f.damages.list[0]
	}
	return nil
}

// Incomplete says what made messages missing from the state; nil when none are.
func (m *Machine) Incomplete() error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.files.lost()
}

// Damaged returns what is known to be damaged in the message files, each with its file, offset and queue; missing says
// that the state lacks messages because of it, so that this node must not lead. Replace with another node's Export
// repairs it.
func (m *Machine) Damaged() (damaged []store.Damage, missing bool) {
	m.mu.RLock()
	f := m.files
	m.mu.RUnlock()
	if f == nil {
		return nil, false
	}
	f.damages.mu.Lock()
	defer f.damages.mu.Unlock()
	for _, d := range f.damages.list {
		damaged = append(damaged, *d)
	}
	return damaged, f.damages.missing
}
