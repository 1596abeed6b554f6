package fsm

import (
	"sync/atomic"

	"github.com/warrenmq/warren/fsm/store"
)

// Progress is how far a restore is: messages and bytes of bodies.
type Progress struct{ Messages, Of, Bytes, OfBytes uint64 }

// progress counts what a restore has done. Any goroutine may read it meanwhile.
type progress struct{ messages, of, bytes, ofBytes atomic.Uint64 }

// begin sets the goal.
func (p *progress) begin(m *store.Manifest) {
	var messages, bytes uint64
	for i := range m.Queues {
		messages += m.Queues[i].Count
		bytes += m.Queues[i].Bytes
	}
	p.messages.Store(0)
	p.bytes.Store(0)
	p.of.Store(messages)
	p.ofBytes.Store(bytes)
}

func (p *progress) add(entries []store.Entry) {
	var bytes uint64
	for i := range entries {
		bytes += uint64(entries[i].Body)
	}
	p.messages.Add(uint64(len(entries)))
	p.bytes.Add(bytes)
}

// Restoring returns how far the restore that goes on is, or how far the last one came.
func (m *Machine) Restoring() Progress {
	p := &m.progress
	return Progress{Messages: p.messages.Load(), Of: p.of.Load(), Bytes: p.bytes.Load(), OfBytes: p.ofBytes.Load()}
}
