package simulation

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/warrenmq/warren/broker/server"
	"github.com/warrenmq/warren/fsm/store"
)

// Nemesis does harm to a cluster, from a seed. At any time at most one node is down, cut off or hard of hearing; only
// when the power goes, all are down at once (rule 25).
type Nemesis struct {
	cluster *Cluster
	history *History
	rand    *rand.Rand
	clients []string // hosts whose connections may be broken
	Did     map[string]int
}

// faults are what a nemesis can do to one node, with their weights.
var faults = []struct {
	name   string
	weight int
	do     func(n *Nemesis, ctx context.Context, i int)
}{
	{"partition", 4, (*Nemesis).partition},
	{"isolate", 3, (*Nemesis).isolate},
	{"one-way", 3, (*Nemesis).oneWay},
	{"crash", 6, (*Nemesis).crash},
	{"vanish", 2, (*Nemesis).vanish},
	{"power", 2, (*Nemesis).power},
	{"restart", 3, (*Nemesis).restart},
	{"transfer", 2, (*Nemesis).transfer},
	{"snapshot", 3, (*Nemesis).snapshot},
	{"reset", 2, (*Nemesis).reset},
	{"disk", 1, (*Nemesis).disk},
	{"wipe", 1, (*Nemesis).wipe},
	{"rot", 1, (*Nemesis).rot},
}

// Run does one thing after the other until the context ends, then undoes all.
func (n *Nemesis) Run(ctx context.Context) {
	total := 0
	for _, f := range faults {
		total += f.weight
	}
	for {
		pause(ctx, n.between(50*time.Millisecond, 1500*time.Millisecond))
		if ctx.Err() != nil {
			break
		}
		pick := n.rand.IntN(total)
		for _, f := range faults {
			if pick -= f.weight; pick < 0 {
				i := n.victim()
				if n.cluster.machines[i].process == nil {
					break // it could not be started, which is a violation already
				}
				n.cluster.Log.Info("NEMESIS", "does", f.name, "to", n.cluster.machines[i].name)
				n.Did[f.name]++
				f.do(n, ctx, i)
				break
			}
		}
		n.look()
	}
	n.cluster.Net.Heal()
	n.startAll()
}

// look notes nodes that stopped by themselves, and starts them again.
func (n *Nemesis) look() {
	for _, i := range n.cluster.Up() {
		if err, ended := n.cluster.Ended(i); ended {
			n.history.Violation("node %s ended by itself: %v", n.cluster.machines[i].name, err)
			n.cluster.Crash(i, 0)
		}
	}
	n.startAll()
}

func (n *Nemesis) startAll() {
	for _, i := range n.rand.Perm(Nodes) {
		n.start(i)
	}
}

func (n *Nemesis) start(i int) {
	if err := n.cluster.Start(i); err != nil {
		n.history.Violation("%v", err)
	}
}

func (n *Nemesis) between(least, most time.Duration) time.Duration {
	return least + time.Duration(n.rand.Int64N(int64(most-least)))
}

// victim is the leader half of the time.
func (n *Nemesis) victim() int {
	if leader := n.cluster.Leader(); leader >= 0 && n.rand.IntN(2) == 0 {
		return leader
	}
	return n.rand.IntN(Nodes)
}

// hold lets a fault last, and now and then does something small meanwhile.
func (n *Nemesis) hold(ctx context.Context, most time.Duration) {
	pause(ctx, n.between(50*time.Millisecond, most))
	switch i := n.rand.IntN(Nodes); n.rand.IntN(6) {
	case 0:
		n.transfer(ctx, i)
	case 1:
		n.snapshot(ctx, i)
	case 2:
		n.reset(ctx, i)
	default:
		return
	}
	pause(ctx, n.between(50*time.Millisecond, most))
}

func (n *Nemesis) cutBoth(a, b string) {
	n.cluster.Net.Cut(a, b)
	n.cluster.Net.Cut(b, a)
}

// partition takes a node from the other nodes; clients still reach it.
func (n *Nemesis) partition(ctx context.Context, i int) {
	names := n.cluster.Names()
	for j, other := range names {
		if j != i {
			n.cutBoth(names[i], other)
		}
	}
	n.hold(ctx, 2500*time.Millisecond)
	n.cluster.Net.Heal()
}

// isolate takes a node from everybody.
func (n *Nemesis) isolate(ctx context.Context, i int) {
	names := n.cluster.Names()
	for _, other := range append(names, n.clients...) {
		if other != names[i] {
			n.cutBoth(names[i], other)
		}
	}
	n.hold(ctx, 2500*time.Millisecond)
	n.cluster.Net.Heal()
}

// oneWay loses what a node sends to, or hears from, one or both of the others.
func (n *Nemesis) oneWay(ctx context.Context, i int) {
	names := n.cluster.Names()
	hears, one := n.rand.IntN(2) == 0, n.rand.IntN(2) == 0
	for _, j := range n.rand.Perm(Nodes) {
		if j == i {
			continue
		}
		if hears {
			n.cluster.Net.Cut(names[j], names[i])
		} else {
			n.cluster.Net.Cut(names[i], names[j])
		}
		if one {
			break
		}
	}
	n.hold(ctx, 2500*time.Millisecond)
	n.cluster.Net.Heal()
}

// trip is after how many file calls a crash comes; 0 for at once.
func (n *Nemesis) trip() int64 {
	if n.rand.IntN(3) == 0 {
		return 0
	}
	return 1 + n.rand.Int64N(40)
}

func (n *Nemesis) crash(ctx context.Context, i int) {
	n.cluster.Crash(i, n.trip())
	n.hold(ctx, 2*time.Second)
	if n.rand.IntN(4) == 0 {
		n.cluster.Move(i)
	}
	n.start(i)
}

// vanish is a crash of which nobody hears: the host is gone too.
func (n *Nemesis) vanish(ctx context.Context, i int) {
	names := n.cluster.Names()
	for _, other := range append(names, n.clients...) {
		if other != names[i] {
			n.cutBoth(names[i], other)
		}
	}
	n.cluster.Crash(i, 0)
	n.hold(ctx, 2500*time.Millisecond)
	n.cluster.Net.Heal()
	n.start(i)
}

// power ends all nodes at once, under a few writes each.
func (n *Nemesis) power(ctx context.Context, i int) {
	n.cluster.Crash(i, n.trip())
	for _, j := range n.rand.Perm(Nodes) {
		n.cluster.Crash(j, 0)
	}
	pause(ctx, n.between(0, 2*time.Second))
	for _, j := range n.rand.Perm(Nodes) {
		if n.rand.IntN(4) == 0 {
			n.cluster.Move(j)
		}
		n.start(j)
		pause(ctx, n.between(0, 300*time.Millisecond))
	}
}

func (n *Nemesis) restart(ctx context.Context, i int) {
	if err := n.cluster.Stop(i); err != nil {
		n.history.Violation("stopping %s: %v", n.cluster.machines[i].name, err)
	}
	n.hold(ctx, time.Second)
	n.start(i)
}

// Within these a node whose disk fails must have ended, and one with an empty disk vote.
const (
	endsWithin  = 10 * time.Second
	votesWithin = 30 * time.Second
)

// disk fails a sync: the node must not go on. It comes back with what it has on disk.
func (n *Nemesis) disk(ctx context.Context, i int) {
	n.cluster.FailSync(i)
	var err error
	if !await(endsWithin, func() (ended bool) { err, ended = n.cluster.Ended(i); return ended }) {
		n.history.Violation("node %s went on for %v after a sync had failed", n.cluster.machines[i].name, endsWithin)
	} else if server.ExitCode(err) != server.ExitDisk {
		n.history.Violation("node %s, whose disk failed, ended with status %d: %v", n.cluster.machines[i].name, server.ExitCode(err), err)
	}
	n.cluster.Crash(i, 0)
	n.hold(ctx, time.Second)
	n.start(i)
}

// wipe takes a node's data: it must join as a new server and be a voter in the end, instead of the one it was.
func (n *Nemesis) wipe(ctx context.Context, i int) {
	before := n.cluster.Server(i).Node().Self().Server
	n.cluster.Crash(i, 0)
	n.cluster.Wipe(i)
	pause(ctx, n.between(0, 2*time.Second))
	n.start(i)
	if n.cluster.machines[i].process == nil {
		return
	}
	after := n.cluster.Server(i).Node().Self().Server
	var voters []string
	if !await(votesWithin, func() bool {
		if leader := n.cluster.Leader(); leader >= 0 {
			voters = n.cluster.Server(leader).Node().Voters()
		}
		return slices.Contains(voters, after) && !slices.Contains(voters, before)
	}) {
		n.history.Violation("node %s came back with an empty disk as %s instead of %s, but %v later the voters are %v",
			n.cluster.machines[i].name, after, before, votesWithin, voters)
	}
}

// rot flips a bit of a message file or of a snapshot: the node must find that out when it needs it and mend it from
// the others.
func (n *Nemesis) rot(ctx context.Context, i int) {
	n.cluster.Crash(i, 0)
	file, rotten := n.cluster.Rot(i, []string{"messages", "snapshots"}[n.rand.IntN(2)])
	n.start(i)
	if n.cluster.machines[i].process == nil || !rotten {
		return
	}
	n.cluster.Log.Info("NEMESIS", "rots", file)
	var files []store.Damage
	var missing bool
	if !await(votesWithin, func() bool {
		s := n.cluster.Server(i)
		files, missing = s.Machine().Damaged()
		return s.Node().CaughtUp() && !s.Node().Quarantined() && !missing && len(files) == 0
	}) {
		n.history.Violation("node %s did not mend %s within %v: damaged %v, missing %t, quarantined %t", n.cluster.machines[i].name, file,
			votesWithin, files, missing, n.cluster.Server(i).Node().Quarantined())
	}
}

// await waits for a condition; false when it does not come true in time.
func await(within time.Duration, condition func() bool) bool {
	for deadline := time.Now().Add(within); !condition(); time.Sleep(poll) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

func (n *Nemesis) transfer(context.Context, int) {
	if leader := n.cluster.Leader(); leader >= 0 {
		within, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = n.cluster.Server(leader).Node().TransferLeadership(within)
	}
}

func (n *Nemesis) snapshot(_ context.Context, i int) {
	if n.cluster.machines[i].process != nil {
		_ = n.cluster.Server(i).Node().Snapshot()
	}
}

func (n *Nemesis) reset(context.Context, int) {
	n.cluster.Net.Reset(n.clients[n.rand.IntN(len(n.clients))])
}
