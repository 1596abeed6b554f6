// Package server assembles one whole node: state machine, Raft node, broker, front ends and HTTP. The program's
// serve command, tests and simulations all start this.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/broker/amqp"
	"github.com/warrenmq/warren/broker/httpapi"
	"github.com/warrenmq/warren/broker/native"
	"github.com/warrenmq/warren/broker/relay"
	"github.com/warrenmq/warren/cluster"
	"github.com/warrenmq/warren/fsm"
	"github.com/warrenmq/warren/fsm/store/vfs"
)

// Config is what a node is started with.
type Config struct {
	// Cluster configures the Raft node. FSM, Unreadable, Incomplete, Restoring, ObserveApply, Report and Clients are filled in by New.
	Cluster cluster.Config

	NativeAddr, AMQPAddr, HTTPAddr                string // listeners; "" leaves one out
	NativeAdvertise, AMQPAdvertise, HTTPAdvertise string // "" takes the listener's own address

	Memory      Memory        // what the node may take
	CloseWithin time.Duration // bound of a graceful stop, default 10 s

	// MinDiskFree is where publishes are held up, in bytes; a quarter of it more is kept in a file for when the disk is full
	// all the same. 0 is no bound.
	MinDiskFree uint64

	CollectRecords int // message files are collected above so many records; 0 takes the default
	// IndexMemoryMessages is how many messages of a queue have their index in memory whatever happens; 0 takes the default.
	IndexMemoryMessages int
	Broker              broker.Config
	AMQP                amqp.Config // ClusterName, Version and Logger are filled in
	Logger              *slog.Logger

	// WrapNode changes what the broker sees of the Raft node: the simulation plants faults with it. Nil changes nothing.
	WrapNode func(broker.Node, *broker.Broker) broker.Node
}

// defaultCloseWithin bounds a graceful stop.
const defaultCloseWithin = 10 * time.Second

// Server is one running node. Safe for concurrent use.
type Server struct {
	config     Config
	log        *slog.Logger
	machine    *fsm.Machine
	node       *cluster.Node
	broker     *broker.Broker
	native     *native.Server
	amqp       *amqp.Server
	relay      *relay.Server // in front of amqp: on a follower it brings clients to the leader
	web        *http.Server
	management *relay.Web // brings management requests to the leader

	watch                                      *vfs.Watch // in front of the files
	disk                                       *disk
	lock                                       io.Closer // of the data directory; nil when nobody else can reach it
	nativeListener, amqpListener, httpListener net.Listener
	fatal                                      chan error // capacity 1: the state machine cannot go on
}

// New opens the data directory and all listeners and starts taking part in the cluster. Clients are served by Run.
func New(c Config) (*Server, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.CloseWithin == 0 {
		c.CloseWithin = defaultCloseWithin
	}
	if c.Cluster.Files == nil {
		c.Cluster.Files = vfs.OS{}
	}
	if c.Cluster.Logger == nil {
		c.Cluster.Logger = c.Logger
	}
	if c.Broker.Logger == nil {
		c.Broker.Logger = c.Logger
	}
	s := &Server{config: c, log: c.Logger, fatal: make(chan error, 1)}
	if err := s.openWatched(); err != nil {
		return nil, err
	}
	return s, nil
}

// open does New's work.
func (s *Server) open() (err error) {
	c := s.config
	defer func() {
		if err != nil {
			s.closeListeners()
			if s.machine != nil {
				_ = s.machine.Close()
			}
			_ = s.unlock()
		}
	}()
	if err = s.lockDirectory(); err != nil { // before anything in it is read, counted or tidied up
		return err
	}
	if c.Cluster.Files, err = s.openDisk(s.watch); err != nil {
		return fmt.Errorf("open the disk reserve: %w", err)
	}
	if s.nativeListener, err = s.listen("native", c.NativeAddr); err != nil {
		return err
	}
	if s.amqpListener, err = s.listen("amqp", c.AMQPAddr); err != nil {
		return err
	}
	if s.httpListener, err = s.listen("http", c.HTTPAddr); err != nil {
		return err
	}
	if c.Broker.Watermarks.MemoryUsed == nil {
		c.Broker.Watermarks = s.watermarks()
	}
	if c.Broker.MaxInFlight == 0 {
		c.Broker.MaxInFlight = int(c.Memory.InFlight)
	}
	c.Broker.MaxInFlight = int(s.disk.inFlight(int64(c.Broker.MaxInFlight)))
	if n := c.Memory.Unwritten / snapshotsInUnwritten; n > 0 && (c.Cluster.SnapshotBytes == 0 || c.Cluster.SnapshotBytes > n) {
		c.Cluster.SnapshotBytes = n
	}
	c.Cluster.SnapshotBytes = s.disk.logged(cmp.Or(c.Cluster.SnapshotBytes, cluster.DefaultSnapshotBytes))
	s.broker = broker.New(c.Broker)
	s.machine = fsm.New(fsm.Options{Observer: s.broker, OnFatal: s.stateFailed, Files: c.Cluster.Files,
		Dir: filepath.Join(c.Cluster.DataDir, "messages"), BodyMemory: c.Memory.Bodies, Memory: c.Memory.Stored, CollectRecords: c.CollectRecords, Room: s.disk.room,
		IndexMemoryMessages: c.IndexMemoryMessages, End: s.endNow})
	c.Cluster.FSM, c.Cluster.Unreadable = s.machine.FSM(), fsm.Unreadable
	c.Cluster.Incomplete = s.machine.Incomplete
	c.Cluster.Restoring = func() cluster.Progress { return cluster.Progress(s.machine.Restoring()) }
	c.Cluster.Report, c.Cluster.ObserveApply = s.report, s.broker.ObserveApply
	c.Cluster.Clients = cluster.Addresses{Native: advertised(c.NativeAdvertise, s.nativeListener),
		AMQP: advertised(c.AMQPAdvertise, s.amqpListener), HTTP: advertised(c.HTTPAdvertise, s.httpListener)}
	if s.node, err = cluster.Open(c.Cluster); err != nil {
		return err
	}
	var node broker.Node = s.node
	if c.WrapNode != nil {
		node = c.WrapNode(node, s.broker)
	}
	s.broker.Attach(node, s.machine)
	s.native = native.NewServer(s.broker, c.Logger)
	c.AMQP.ClusterName, c.AMQP.Version, c.AMQP.Logger = s.node.ClusterID, c.Cluster.Version, c.Logger
	s.amqp = amqp.NewServer(s.broker, c.AMQP)
	s.relay = relay.NewServer(s.broker, s.node, s.amqp, c.Logger)
	s.web, s.management = s.newWeb()
	return nil
}

func (s *Server) listen(what, address string) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	listen := func(a string) (net.Listener, error) { return net.Listen("tcp", a) }
	if n := s.config.Cluster.Network; n != nil {
		listen = n.Listen
	}
	l, err := listen(address)
	if err != nil {
		return nil, fmt.Errorf("listen for %s clients on %s: %w; choose another --%s-addr or stop what uses it", what, address, err, what)
	}
	return l, nil
}

func advertised(address string, l net.Listener) string {
	if address == "" && l != nil {
		return l.Addr().String()
	}
	return address
}

// report is this node's view of its state machine.
func (s *Server) report() cluster.Report {
	index, hash := s.machine.Hash()
	return cluster.Report{AppliedIndex: index, StateHash: hash, HashIndex: index, ClusterID: s.machine.ClusterID(),
		Bytes: s.machine.Totals().MessageBytes, SnapshotDue: s.snapshotDue(), Resources: s.resources()}
}

func (s *Server) stateFailed(err error) {
	select {
	case s.fatal <- err:
	default:
	}
}

// Run serves until the context ends (then it stops gracefully and returns nil) or the node fails (then it stops at
// once and returns why; ExitCode says how the process should end). It is called once.
func (s *Server) Run(ctx context.Context) error {
	serving, stop := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() { s.broker.Run(serving) })
	if s.nativeListener != nil {
		work.Go(func() { _ = s.native.Serve(s.nativeListener) })
	}
	if s.amqpListener != nil {
		work.Go(func() { _ = s.relay.Serve(s.amqpListener) })
	}
	if s.httpListener != nil {
		work.Go(func() { _ = s.web.Serve(httpapi.Limit(s.httpListener, httpapi.MaxConnections)) })
	}
	return s.end(s.wait(ctx), func(err error) error { return s.shut(err, stop, &work) })
}

// shut stops everything: gracefully without an error, at once with one.
func (s *Server) shut(err error, stop context.CancelFunc, work *sync.WaitGroup) error {
	within, cancel := context.WithTimeout(context.Background(), s.config.CloseWithin)
	defer cancel()
	if err != nil {
		s.log.Error("this node cannot go on; it stops", "error", err)
		cancel()
	} else if handed := s.broker.HandOver(within); handed != nil && within.Err() == nil {
		s.log.Info("leadership was not handed over", "reason", handed)
	}
	s.closeListeners()
	s.native.Close(within)
	s.amqp.Close(within)
	s.relay.Close(within)
	if s.web.Shutdown(within) != nil {
		_ = s.web.Close()
	}
	s.management.Close(within)
	stop()
	if until, _ := within.Deadline(); err == nil && time.Until(until) < nodeWithin {
		var ended context.CancelFunc
		within, ended = context.WithTimeout(context.WithoutCancel(within), nodeWithin)
		defer ended()
	}
	closed := s.node.Close(within)
	work.Wait()
	return errors.Join(closed, s.machine.Close(), s.unlock())
}

func (s *Server) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-s.node.Failed():
		return &failure{ExitDisk, s.fullDisk(s.node.Err())}
	case <-s.watch.Hung():
		return &failure{ExitDisk, s.watch.Err()}
	case err := <-s.fatal:
		return &failure{ExitState, err}
	}
}

func (s *Server) closeListeners() {
	for _, l := range []net.Listener{s.nativeListener, s.amqpListener, s.httpListener} {
		if l != nil {
			_ = l.Close()
		}
	}
}

// NativeAddr returns the address that the native listener is bound to, "" without one.
func (s *Server) NativeAddr() string { return advertised("", s.nativeListener) }

// AMQPAddr returns the address that the AMQP listener is bound to, "" without one.
func (s *Server) AMQPAddr() string { return advertised("", s.amqpListener) }

// HTTPAddr returns the address that the HTTP listener is bound to, "" without one.
func (s *Server) HTTPAddr() string { return advertised("", s.httpListener) }

// Node returns the Raft node.
func (s *Server) Node() *cluster.Node { return s.node }

// Machine returns the state machine.
func (s *Server) Machine() *fsm.Machine { return s.machine }

// Broker returns the broker.
func (s *Server) Broker() *broker.Broker { return s.broker }

// ExitDisk is the exit status of a process whose disk hung or failed (rule 19); ExitState of one whose state
// machine could not go on.
const (
	ExitDisk  = 74
	ExitState = 70
)

// failure is an error with the exit status that goes with it.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// ExitCode returns the exit status that goes with an error of Run: 0 for nil, 1 for one that has none of its own.
func ExitCode(err error) int {
	var f *failure
	switch {
	case err == nil:
		return 0
	case errors.As(err, &f):
		return f.code
	}
	return 1
}
