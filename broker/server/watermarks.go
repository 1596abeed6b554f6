package server

import (
	"runtime"
	"runtime/metrics"

	"github.com/warrenmq/warren/broker"
)

// watermarks are what this process uses, against what it may.
func (s *Server) watermarks() broker.Watermarks {
	m := s.config.Memory
	return broker.Watermarks{MemoryUsed: liveHeap, MaxMemory: m.Live, Unwritten: s.unwritten, MaxUnwritten: uint64(m.Unwritten), Taken: s.taken,
		DiskFree: s.disk.free, MinDiskFree: s.disk.least, Relieve: s.relieve, Reclaim: s.reclaim}
}

// liveHeap returns the bytes that the last collection found in use: what has become garbage since does not count.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}

// unwritten returns the bytes of bodies that are in no message file yet.
func (s *Server) unwritten() uint64 {
	_, n := s.machine.Bodies()
	return n
}

// snapshotDue reports whether a snapshot's part of what may wait to be written does. Small messages take more memory than
// log.
func (s *Server) snapshotDue() bool {
	most := s.config.Memory.Unwritten
	return most > 0 && s.unwritten() >= uint64(most/snapshotsInUnwritten)
}

// taken returns the bytes of messages that have come in since the start.
func (s *Server) taken() uint64 { return s.machine.Taken() }

// relieve lets bodies leave memory and has what is free by now counted as free: a node that takes no publishes makes
// little garbage, and might not find out by itself for minutes.
func (s *Server) relieve() error {
	err := s.node.Snapshot()
	runtime.GC()
	return err
}
