// Package simulation runs a whole cluster of Warren nodes, with their clients, in virtual time: the network, the disks
// and gossip are in memory, so inside testing/synctest hours of partitions and crashes pass in seconds. Its tests
// draw faults from a seed, record what clients saw, and check it.
package simulation

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path"
	"sync"
	"time"

	"github.com/warrenmq/warren/broker/server"
	"github.com/warrenmq/warren/cluster"
	"github.com/warrenmq/warren/cluster/stablestore"
	"github.com/warrenmq/warren/fsm/store/vfs"
)

// dataDir is where each machine keeps its data.
const dataDir = "data"

// Nodes is the size of the cluster.
const Nodes = 3

// Sizes that make snapshots, collections and new segments happen within a short run.
const (
	segmentBytes   = 64 << 10
	snapshotBytes  = 48 << 10
	collectRecords = 50
	bodyMemory     = 16 << 10
)

// Cluster is three machines, each with a disk and at most one running process. Its methods are called by one
// goroutine at a time.
type Cluster struct {
	Net        *Net
	Log        *slog.Logger
	LyingDisks bool                 // a planted fault: syncs do nothing
	Configure  func(*server.Config) // nil leaves the nodes as they are
	Formed     func()               // called by Run when the topology stands; may be nil

	machines [Nodes]*machine
	gossip   *gossip
	rand     *rand.Rand
	ended    sync.WaitGroup // the processes' goroutines
}

// machine is what survives a crash.
type machine struct {
	name    string
	disk    *vfs.Mem
	stable  *stablestore.Store
	port    int      // of Raft; a restarted node may have another
	process *process // nil while down
}

// process is one run of a node.
type process struct {
	machine  *machine
	server   *server.Server
	gate     *gate
	network  *Attachment
	presence *presence
	stop     context.CancelFunc
	done     chan struct{} // closed when Run has returned
	err      error         // of Run, set before done is closed
}

// NewCluster returns a cluster whose nodes are all down.
func NewCluster(seed uint64, log *slog.Logger) *Cluster {
	c := &Cluster{Net: NewNet(seed), Log: log, gossip: &gossip{present: map[*presence]cluster.Member{}},
		rand: rand.New(rand.NewPCG(seed, 2))}
	for i := range c.machines {
		c.machines[i] = &machine{name: fmt.Sprintf("n%d", i+1), disk: vfs.NewMem(), stable: stablestore.NewMem()}
	}
	return c
}

// Start starts a node that is down.
func (c *Cluster) Start(i int) error {
	m := c.machines[i]
	if m.process != nil {
		return nil
	}
	m.stable = m.stable.Reopen()
	p := &process{machine: m, gate: newGate(), network: c.Net.Attach(m.name), done: make(chan struct{})}
	log := c.Log.With("host", m.name)
	config := server.Config{
		Cluster: cluster.Config{NodeID: m.name, DataDir: dataDir, RaftAddr: fmt.Sprintf("%s:%d", m.name, 5680+m.port), GossipAddr: m.name + ":5690",
			BootstrapExpect: Nodes, SegmentBytes: segmentBytes, SnapshotBytes: snapshotBytes,
			Files: &files{FS: m.disk, gate: p.gate, lies: c.LyingDisks}, Network: p.network,
			Stable: &stable{Store: m.stable, gate: p.gate},
			Discovery: func(self cluster.Member) (cluster.Discovery, error) {
				var err error
				p.presence, err = c.gossip.join(self)
				return p.presence, err
			}},
		NativeAddr: m.name + ":5670", Memory: server.Memory{Bodies: bodyMemory}, CollectRecords: collectRecords, Logger: log,
	}
	if c.Configure != nil {
		c.Configure(&config)
	}
	var err error
	if p.server, err = server.New(config); err != nil {
		return fmt.Errorf("start %s: %w", m.name, err)
	}
	m.process = p
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	c.ended.Go(func() {
		p.err = p.server.Run(ctx)
		close(p.done)
	})
	return nil
}

// Stop stops a node gracefully and waits for it.
func (c *Cluster) Stop(i int) error {
	p := c.machines[i].process
	if p == nil {
		return nil
	}
	p.stop()
	<-p.done
	c.leave(p)
	return p.err
}

// Crash ends a node's process as kill -9 does when the power goes with it: what was not synced is lost, in part.
// With a trip the process first runs on until it has made so many file calls, or a second has passed.
func (c *Cluster) Crash(i int, trip int64) {
	p := c.machines[i].process
	if p == nil {
		return
	}
	if trip > 0 {
		p.gate.tripAfter(trip)
		select {
		case <-p.gate.tripped:
		case <-time.After(time.Second):
		}
	}
	p.gate.close()
	c.leave(p)
	p.machine.disk.Crash(c.rand)
}

// leave takes a process's access to everything; its goroutines end on their own.
func (c *Cluster) leave(p *process) {
	p.gate.close()
	p.network.Kill()
	_ = p.presence.Close()
	p.stop()
	p.machine.process = nil
}

// FailSync lets the next sync of a node's Raft log fail. (A snapshot that cannot be written is survived.)
func (c *Cluster) FailSync(i int) {
	if p := c.machines[i].process; p != nil {
		p.gate.failing.Store(true)
	}
}

// Wipe gives a node that is down an empty disk.
func (c *Cluster) Wipe(i int) {
	c.machines[i].disk, c.machines[i].stable = vfs.NewMem(), stablestore.NewMem()
}

// Disk returns a node's disk.
func (c *Cluster) Disk(i int) *vfs.Mem { return c.machines[i].disk }

// Rot flips a bit in one file under a folder of a node that is down; false when there is none.
func (c *Cluster) Rot(i int, folder string) (file string, rotten bool) {
	disk := c.machines[i].disk
	var files []string
	var walk func(dir string)
	walk = func(dir string) {
		names, _ := disk.ReadDir(dir)
		for _, name := range names {
			name = path.Join(dir, name)
			if info, err := disk.Stat(name); err == nil && info.IsDir() {
				walk(name)
			} else if err == nil && info.Size() > 0 {
				files = append(files, name)
			}
		}
	}
	walk(path.Join(dataDir, folder))
	if len(files) == 0 {
		return "", false
	}
	file = files[c.rand.IntN(len(files))]
	info, err := disk.Stat(file)
	if err != nil {
		return "", false
	}
	return file, vfs.FlipBit(disk, file, c.rand.Int64N(8*info.Size())) == nil
}

// Move gives a node that is down another Raft address.
func (c *Cluster) Move(i int) { c.machines[i].port++ }

// Wait waits for the goroutines of all processes that were stopped or crashed.
func (c *Cluster) Wait() { c.ended.Wait() }

// Up returns the numbers of the nodes that run.
func (c *Cluster) Up() []int {
	var up []int
	for i, m := range c.machines {
		if m.process != nil {
			up = append(up, i)
		}
	}
	return up
}

// Leader returns the number of the node that leads, -1 when none says so. Of several it is the one of the highest term.
func (c *Cluster) Leader() int {
	leader, term := -1, uint64(0)
	for _, i := range c.Up() {
		if l := c.Server(i).Node().Leadership(); l.Local && l.Term > term {
			leader, term = i, l.Term
		}
	}
	return leader
}

// Server returns a running node.
func (c *Cluster) Server(i int) *server.Server { return c.machines[i].process.server }

// Ended returns what a running node's process ended with by itself, if it has.
func (c *Cluster) Ended(i int) (err error, ended bool) {
	p := c.machines[i].process
	if p == nil {
		return nil, false
	}
	select {
	case <-p.done:
		return p.err, true
	default:
		return nil, false
	}
}

// Names returns the nodes' host names.
func (c *Cluster) Names() []string {
	var names []string
	for _, m := range c.machines {
		names = append(names, m.name)
	}
	return names
}

// Addresses returns the nodes' native addresses.
func (c *Cluster) Addresses() []string {
	var addresses []string
	for _, m := range c.machines {
		addresses = append(addresses, m.name+":5670")
	}
	return addresses
}
