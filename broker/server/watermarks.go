package server

import (
	"runtime/metrics"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/fsm/store/vfs"
)

// watermarks are what this process uses, against what it may.
func (s *Server) watermarks() broker.Watermarks {
	return broker.Watermarks{MemoryUsed: liveHeap, MaxMemory: s.config.MaxMemory, DiskFree: s.diskFree, MinDiskFree: s.config.MinDiskFree,
		Relieve: func() error { return s.node.Snapshot() }}
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

// diskFree returns the bytes that the data directory's file system has left for this process.
func (s *Server) diskFree() (uint64, error) { return vfs.Free(s.config.Cluster.DataDir) }
