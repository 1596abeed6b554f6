// Package server assembles one whole node: state machine, Raft node, broker, front ends and HTTP. The program's
// serve command, tests and simulations all start this.
package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/warrenmq/warren/cluster"
)

// Config is what a node is started with.
type Config struct {
	// Cluster configures the Raft node. FSM, Report and Clients are filled in by New.
	Cluster cluster.Config

	NativeAddr, AMQPAddr, HTTPAddr                string // listeners; "" leaves one out. AMQPAddr is only advertised so far
	NativeAdvertise, AMQPAdvertise, HTTPAdvertise string // "" takes the listener's own address

	BodyMemory  int64         // bytes of message bodies kept in memory; 0 takes the machine's default
	CloseWithin time.Duration // bound of a graceful stop, default 10 s

	CollectRecords int // message files are collected above so many records ...; 0 takes the default
	Logger         *slog.Logger
}

// Server is one running node. Safe for concurrent use.
type Server struct{}

// New opens the data directory and all listeners and starts taking part in the cluster.
func New(c Config) (*Server, error) { panic("not built yet") }

// Run serves until the context ends (then it stops gracefully and returns nil) or the node fails (then it stops at
// once and returns why; ExitCode says how the process should end).
func (s *Server) Run(ctx context.Context) error { panic("not built yet") }

// NativeAddr returns the address that the native listener is bound to.
func (s *Server) NativeAddr() string { panic("not built yet") }

// HTTPAddr returns the address that the HTTP listener is bound to.
func (s *Server) HTTPAddr() string { panic("not built yet") }

// ExitDisk is the exit status of a process whose disk hung or failed (rule 19); ExitState of one whose state
// machine could not go on.
const (
	ExitDisk  = 74
	ExitState = 70
)

// ExitCode returns the exit status that goes with an error of Run.
func ExitCode(err error) int { panic("not built yet") }
