package cluster

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// progressEvery is how often it is told how far a restore or a replay is.
const progressEvery = time.Second

// Progress is how far the state machine is with a restore, in messages and bytes of them.
type Progress struct{ Messages, Of, Bytes, OfBytes uint64 }

func (p Progress) percent() uint64 {
	if p.Of == 0 {
		return 0
	}
	return min(100*p.Messages/p.Of, 100)
}

// everySecond calls tell once a second until stop is called.
func everySecond(tell func()) (stop func()) {
	ended := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() {
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				tell()
			case <-ended:
				return
			}
		}
	})
	return func() {
		close(ended)
		telling.Wait()
	}
}

// tellRestore says in the log, once a second until done is called, how far a restore is, and then how long it took.
func (m *machine) tellRestore() (done func(error)) {
	if m.progress == nil {
		return func(error) {}
	}
	began := time.Now()
	stop := everySecond(func() {
		p := m.progress()
		m.log.Info("restoring the state", "phase", "snapshot", "percent", p.percent(), "messages", p.Messages, "of", p.Of,
			"bytes", p.Bytes, "of_bytes", p.OfBytes)
	})
	return func(err error) {
		stop()
		if err != nil {
			return // others tell of it
		}
		p := m.progress()
		m.log.Info("restored the state", "phase", "snapshot", "percent", 100, "messages", p.Of, "bytes", p.OfBytes,
			"took", time.Since(began).Round(time.Millisecond))
	}
}

// replay is the tail of the log that a node finds at its start: it is applied once a leader says that it is committed.
type replay struct {
	from, to uint64 // commands behind from, up to to
	bytes    func(after uint64) int64
}

// tailOf returns what is to be replayed of a log; ok is false for nothing.
func (s *stores) tailOf(restored uint64) (r replay, ok bool, err error) {
	last, err := s.log.LastIndex()
	if err != nil {
		return r, false, err
	}
	for ; last > restored; last-- { // those behind the last command are applied by raft itself
		var entry raft.Log
		if err := s.log.GetLog(last, &entry); err != nil {
			return r, false, err
		}
		if entry.Type == raft.LogCommand {
			break
		}
	}
	r = replay{from: restored, to: last, bytes: func(uint64) int64 { return 0 }}
	if s.segments != nil {
		r.bytes = s.segments.BytesSince
	}
	return r, last > restored, nil
}

// tellReplay says in the log, once a second while it goes on, how far the replay of a log is, and when it is over. It
// returns then, or with the node.
func (n *Node) tellReplay(r replay) {
	began, total, before := time.Now(), r.bytes(r.from), r.from
	stop := everySecond(func() {
		now := min(n.machine.applied.Load(), r.to)
		if now <= before {
			return // nobody leads
		}
		before = now
		n.log.Info("replaying the log", "phase", "log", "percent", 100*(now-r.from)/(r.to-r.from), "entries", now-r.from, "of", r.to-r.from,
			"bytes", total-r.bytes(now), "of_bytes", total)
	})
	over := n.machine.wait(r.to, n.ctx.Done())
	stop()
	if over && !n.machine.replaced.Load() {
		n.log.Info("replayed the log", "phase", "log", "percent", 100, "entries", r.to-r.from, "bytes", total, "took", time.Since(began).Round(time.Millisecond))
	}
}
