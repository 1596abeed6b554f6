package faults

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warrenmq/warren/broker/server"
	"github.com/warrenmq/warren/broker/simulation"
	"github.com/warrenmq/warren/cluster"
	"github.com/warrenmq/warren/cluster/stablestore"
	"github.com/warrenmq/warren/fsm/store/vfs/vfstest"
)

var (
	all     = flag.Bool("all", false, "every fault; without it, a part of them")
	only    = flag.Int("kind", -1, "only faults of this kind: a number of vfstest.Kind")
	verbose = flag.Bool("nodelog", false, "print the nodes' logs")
)

// Bounds, in virtual time.
const (
	startWithin = 6 * time.Minute // a start that takes longer hangs
	stepWithin  = 6 * time.Minute // so does a step of the history, and the end of a node that is stopped
)

// errHung is what something that does not come back ends with.
var errHung = errors.New("it hangs")

// machine is one machine: a disk, and at most one process on it.
type machine struct {
	disk   *vfstest.Disk
	stable *stablestore.Store
	net    *simulation.Net
	// snapshotBytes is how much log triggers a snapshot and is kept behind the one before the newest.
	snapshotBytes int64
	diskTimeout   time.Duration // 0 for the default
	process       *process
	ended         sync.WaitGroup // everything that still runs of earlier processes
}

// process is one run of a node.
type process struct {
	server  *server.Server
	network *simulation.Attachment
	gone    atomic.Bool // the process is dead to its disk
	stop    context.CancelFunc
	done    chan struct{}   // closed when Run has returned
	err     error           // of Run, set before done is closed
	down    <-chan struct{} // closed when the power has gone
	alive   context.Context // ends when either is closed
}

func newMachine() *machine {
	return &machine{disk: vfstest.NewDisk(plain), stable: stablestore.NewMem(), net: simulation.NewNet(1), snapshotBytes: 1 << 40}
}

var snapshotID = regexp.MustCompile(`/snapshots/\d+-\d+-\d+-\d+`)

// plain takes the time out of snapshots' names.
func plain(name string) string { return snapshotID.ReplaceAllString(name, "/snapshots/ID") }

// single is the discovery of a node that has nobody to find.
type single struct {
	self    cluster.Member
	changed chan struct{}
}

func (s *single) Members() []cluster.Member   { return []cluster.Member{s.self} }
func (s *single) Changed() <-chan struct{}    { return s.changed }
func (s *single) Update(cluster.Member) error { return nil }
func (s *single) Leave(time.Duration) error   { return nil }
func (s *single) Close() error                { close(s.changed); return nil }

// stable ends with its process.
type stable struct {
	*stablestore.Store
	gone *atomic.Bool
}

func (s *stable) Set(key, value []byte) error {
	if s.gone.Load() {
		return nil // raft panics at an error, and nobody hears of this process any more
	}
	return s.Store.Set(key, value)
}

func (s *stable) SetUint64(key []byte, value uint64) error {
	if s.gone.Load() {
		return nil
	}
	return s.Store.SetUint64(key, value)
}

func (s *stable) Close() error { return nil }

func logger() *slog.Logger {
	var w io.Writer = io.Discard
	if *verbose {
		w = os.Stderr
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// start starts a node. An error is what the start ended with; the process is gone then.
func (m *machine) start() error {
	m.stable = m.stable.Reopen()
	files, down := m.disk.Start()
	p := &process{network: m.net.Attach("n1"), done: make(chan struct{})}
	config := server.Config{
		Cluster: cluster.Config{NodeID: "n1", DataDir: "data", RaftAddr: "n1:5680", GossipAddr: "n1:5690", BootstrapExpect: 1,
			SegmentBytes: 8 << 10, SnapshotBytes: m.snapshotBytes, DiskTimeout: m.diskTimeout, Files: files, Network: p.network, Stable: &stable{m.stable, &p.gone},
			Discovery: func(self cluster.Member) (cluster.Discovery, error) {
				return &single{self, make(chan struct{}, 1)}, nil
			}},
		NativeAddr: "n1:5670", Memory: server.Memory{Bodies: 2 << 10}, CollectRecords: 6, Logger: logger(), CloseWithin: 5 * time.Second,
	}
	type made struct {
		server *server.Server
		err    error
	}
	result := make(chan made, 1)
	go func() {
		s, err := server.New(config)
		result <- made{s, err}
	}()
	var got made
	select {
	case got = <-result:
	case <-time.After(startWithin):
		m.disk.Kill()
		if got = <-result; got.err == nil {
			got.err = errHung
		}
		got.err = fmt.Errorf("start: %w: %w", errHung, got.err)
	}
	if got.server != nil {
		p.server = got.server
		m.run(p, down)
		m.process = p
	}
	if got.err != nil {
		m.kill()
		p.network.Kill()
		return got.err
	}
	return nil
}

func (m *machine) run(p *process, down <-chan struct{}) {
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	alive, dead := context.WithCancel(context.Background())
	p.alive, p.down = alive, down
	m.ended.Go(func() {
		p.err = p.server.Run(ctx)
		close(p.done)
	})
	m.ended.Go(func() {
		select {
		case <-p.done:
		case <-down:
		}
		dead()
	})
}

// kill ends the process as kill -9 does.
func (m *machine) kill() {
	m.disk.Kill()
	if p := m.process; p != nil {
		p.gone.Store(true)
		p.network.Kill()
		p.stop()
		m.process = nil
	}
}

// halt stops the process gracefully.
func (m *machine) halt() error {
	p := m.process
	p.stop()
	select {
	case <-p.done:
		m.kill()
		return p.err
	case <-time.After(stepWithin):
		m.kill()
		return fmt.Errorf("stop: %w", errHung)
	}
}
