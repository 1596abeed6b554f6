package settings

import (
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/warrenmq/warren/broker/server"
	"github.com/warrenmq/warren/cluster"
)

// Logger returns the logger that the settings ask for.
func (s *Serve) Logger(w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(s.LogLevel)) // checked by Problems
	options := &slog.HandlerOptions{Level: level}
	if s.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// Config returns what the server is started with. The settings must have no problems.
func (s *Serve) Config(log *slog.Logger, version string) server.Config {
	timing := cluster.Timing{Heartbeat: 500 * time.Millisecond, Election: 500 * time.Millisecond, Lease: 400 * time.Millisecond}
	if s.Timing == "fast" {
		timing = cluster.Timing{Heartbeat: 200 * time.Millisecond, Election: 200 * time.Millisecond, Lease: 180 * time.Millisecond}
	}
	config := server.Config{
		Cluster: cluster.Config{
			NodeID: s.NodeID, DataDir: s.DataDir, Version: version,
			RaftAddr: s.RaftAddr, RaftAdvertise: s.AdvertiseRaft, GossipAddr: s.GossipAddr, GossipAdvertise: s.AdvertiseGossip,
			BootstrapExpect: s.BootstrapExpect.N, Join: s.Join, Timing: timing,
			LogStore: s.LogStore, SegmentBytes: s.SegmentSize.Bytes,
			SnapshotBytes: s.SnapshotLogBytes.Bytes, SnapshotAge: s.SnapshotAge.Duration, SnapshotRate: s.SnapshotRate.Bytes, DiskTimeout: s.DiskTimeout.Duration,
			Logger: log,
		},
		NativeAddr: s.NativeAddr, AMQPAddr: s.AMQPAddr, HTTPAddr: s.HTTPAddr,
		NativeAdvertise: s.AdvertiseNative, AMQPAdvertise: s.AdvertiseAMQP, HTTPAdvertise: s.AdvertiseHTTP,
		Memory: server.Divide(s.budget()), MinDiskFree: uint64(s.MinDiskFree.Bytes),
		CloseWithin: s.CloseWithin.Duration, CollectRecords: s.CollectRecords.N, IndexMemoryMessages: s.IndexMemoryMessages.N, Logger: log,
	}
	config.Broker.DefaultUser, config.Broker.DefaultPassword = s.DefaultUser, s.DefaultPassword
	config.Broker.ConsumerTimeout = s.ConsumerTimeout.Duration
	config.Broker.LoopbackUsers = s.LoopbackUsers
	if slices.Equal(s.LoopbackUsers, []string{noUsers}) {
		config.Broker.LoopbackUsers = []string{}
	}
	return config
}
