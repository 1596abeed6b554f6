package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/warrenmq/warren/broker/server"
	"github.com/warrenmq/warren/cmd/internal/settings"
)

type serve struct {
	settings.Serve
}

// Run runs a node until a signal or a failure ends it.
func (s *serve) Run(ctx context.Context, std Streams) error {
	if problems := s.Problems(); len(problems) > 0 {
		return coded{exitConfig, errors.New("these settings are wrong:\n  " + strings.Join(problems, "\n  "))}
	}
	s.LimitMemory()
	log := s.Logger(std.Err)
	node, err := server.New(s.Config(log, versionText()))
	if err != nil {
		return coded{server.ExitCode(err), err}
	}
	fmt.Fprintf(std.Out, "warren %s listens: native %s, amqp %s, http %s, raft %s, gossip %s; data in %s\n", versionText(),
		node.NativeAddr(), node.AMQPAddr(), node.HTTPAddr(), s.RaftAddr, s.GossipAddr, s.DataDir)
	if err := node.Run(ctx); err != nil {
		return coded{server.ExitCode(err), err}
	}
	return nil
}
