package server_test

import (
	"context"
	"testing"
	"time"

	"github.com/warrenmq/warren/broker/server"
	"github.com/warrenmq/warren/cluster"
)

// The first entry of a leadership is enough to be seen in the histogram of apply.
func TestApplyIsMeasured(t *testing.T) {
	s, err := server.New(server.Config{Cluster: cluster.Config{DataDir: t.TempDir(), RaftAddr: "127.0.0.1:0", GossipAddr: "127.0.0.1:0",
		BootstrapExpect: 1}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	for end := time.Now().Add(time.Minute); s.Broker().Stats().Apply.Sum == 0; {
		if time.Now().After(end) {
			t.Error("nothing was measured")
			break
		}
		<-time.After(2 * time.Millisecond)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
