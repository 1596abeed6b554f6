package server_test

import (
	"context"
	"testing"
	"time"

	"github.com/warrenmq/warren/broker/server"
	"github.com/warrenmq/warren/cluster"
)

// TestSlowClientsLeaveTheNodeTimeToStop: clients that take all the time of a graceful stop leave the node enough of it to
// end with nothing written behind its back.
func TestSlowClientsLeaveTheNodeTimeToStop(t *testing.T) {
	s, err := server.New(server.Config{Cluster: cluster.Config{DataDir: t.TempDir(), RaftAddr: "127.0.0.1:0", GossipAddr: "127.0.0.1:0"},
		NativeAddr: "127.0.0.1:0", CloseWithin: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
}
