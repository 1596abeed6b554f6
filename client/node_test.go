package client_test

import (
	"context"
	"log"
	"os"

	"github.com/warrenmq/warren/broker/server"
	"github.com/warrenmq/warren/cluster"
)

// startNode runs a node of its own for an example and returns its address.
func startNode() (address string, stop func()) {
	dir, err := os.MkdirTemp("", "warren-example-")
	if err != nil {
		log.Fatal(err)
	}
	node, err := server.New(server.Config{NativeAddr: "127.0.0.1:0", Cluster: cluster.Config{DataDir: dir, BootstrapExpect: 1,
		RaftAddr: "127.0.0.1:0", GossipAddr: "127.0.0.1:0"}})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := node.Run(ctx); err != nil {
			log.Print(err)
		}
	}()
	return node.NativeAddr(), func() {
		cancel()
		<-done
		_ = os.RemoveAll(dir)
	}
}
