package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Bounds of a run's phases, in virtual time.
const (
	formWithin  = 20 * time.Second
	drainWithin = 60 * time.Second
	poll        = 50 * time.Millisecond
)

// Report is how a run went.
type Report struct {
	Violations []string
	Counts     Counts
	Did        map[string]int // what the nemesis did, how often
	Virtual    time.Duration
}

// Run lets clients work on a cluster that a nemesis harms for some time, heals it, drains it and checks what was seen.
// It is called inside a synctest bubble and returns when all is stopped.
func Run(c *Cluster, seed uint64, harm time.Duration) (r Report) {
	h := NewHistory()
	start := time.Now()
	defer func() { r.Virtual = time.Since(start) }()
	for i := range Nodes {
		if err := c.Start(i); err != nil {
			h.Violation("%v", err)
		}
	}
	w := &Workload{cluster: c, history: h}
	var stopProducing, stopConsuming, calmDown, giveUp context.CancelFunc
	w.producing, stopProducing = context.WithCancel(context.Background())
	w.consuming, stopConsuming = context.WithCancel(context.Background())
	w.calm, calmDown = context.WithCancel(context.Background())
	w.patience, giveUp = context.WithCancel(context.Background())
	n := &Nemesis{cluster: c, history: h, rand: rand.New(rand.NewPCG(seed, 3)), Did: map[string]int{}}

	forming, cancel := context.WithTimeout(context.Background(), formWithin)
	if err := w.Declare(forming); err != nil {
		h.Violation("the cluster did not form: %v", err)
		harm = 0
	}
	cancel()
	if c.Formed != nil {
		c.Formed()
	}
	stream := uint64(10)
	draw := func() *rand.Rand { stream++; return rand.New(rand.NewPCG(seed, stream)) }
	if harm > 0 {
		for i := range 3 {
			name := fmt.Sprintf("p%d", i+1)
			n.clients = append(n.clients, name)
			w.Publish(name, draw())
		}
		for i, q := range append(queues, queues[0]) {
			w.Consume(fmt.Sprintf("s%d", i+1), q, draw())
		}
		n.clients = append(n.clients, "g1")
		w.Get("g1", draw())
		n.clients = append(n.clients, "x1")
		w.Churn("x1", draw())
		harming, cancel := context.WithTimeout(context.Background(), harm)
		n.Run(harming)
		cancel()
	}
	r.Did = n.Did

	stopProducing()
	ended := make(chan struct{})
	go func() { w.publishers.Wait(); close(ended) }()
	within := time.After(drainWithin)
	select {
	case <-ended:
	case <-within:
		h.Violation("publishes were still unconfirmed %v after the heal", drainWithin)
	}
	calmDown()
	enqueued := n.drain()
	stopConsuming()
	if harm > 0 {
		n.compare()
	}
	giveUp()
	for i := range Nodes { // violations with everything down would have no cause
		if err := c.Stop(i); err != nil {
			h.Violation("stopping %s: %v", c.machines[i].name, err)
		}
	}
	w.consumers.Wait()
	<-ended
	c.Wait()
	r.Violations, r.Counts = h.Finish(enqueued)
	return r
}

// drain waits until the topology's queues are empty and all others gone, and returns how many messages each ever took.
func (n *Nemesis) drain() map[string]uint64 {
	deadline := time.Now().Add(drainWithin)
	var state string
	for time.Now().Before(deadline) {
		n.look()
		if leader := n.cluster.Leader(); leader >= 0 {
			m := n.cluster.Server(leader).Machine()
			left, took, names := uint64(0), map[string]uint64{}, []string(nil)
			vhost, _ := m.Vhost("/")
			for _, q := range m.Queues(vhost.Number) {
				if names = append(names, q.Name); slices.Contains(queues, q.Name) {
					left += q.Messages
					took[q.Name] = q.Next - 1
				}
			}
			others := foreign(names)
			if state = fmt.Sprintf("%d messages are left, and the queues %v", left, others); left == 0 && len(others) == 0 && len(took) > 0 {
				return took
			}
		} else {
			state = "nobody leads"
		}
		time.Sleep(poll)
	}
	n.history.Violation("the queues were not drained %v after the heal: %s", drainWithin, state)
	return nil
}

// compare waits until all nodes have applied the same and compares their states. One that knows of messages which it lost
// to a fault of its disk is waited for: another node's state mends it.
func (n *Nemesis) compare() {
	deadline := time.Now().Add(drainWithin)
	var state string
	for time.Now().Before(deadline) {
		n.look()
		lowest := ^uint64(0)
		for _, i := range n.cluster.Up() {
			index, _ := n.cluster.Server(i).Machine().Hash()
			lowest = min(lowest, index)
		}
		var hashes []uint64
		var lines []string
		whole := true
		for _, i := range n.cluster.Up() {
			m := n.cluster.Server(i).Machine()
			applied, _ := m.Applied()
			damaged, missing := m.Damaged()
			whole = whole && len(damaged) == 0 && !missing
			hash, known := m.HashAt(lowest)
			if known {
				hashes = append(hashes, hash)
			}
			lines = append(lines, fmt.Sprintf("%s: applied %d, hash %016x at %d (known: %t), whole: %t", n.cluster.machines[i].name, applied, hash, lowest, known, !missing && len(damaged) == 0))
		}
		state = strings.Join(lines, "; ")
		if whole && len(hashes) == Nodes {
			if slices.Min(hashes) != slices.Max(hashes) {
				n.history.Violation("the nodes' states differ: %s", state)
			}
			return
		}
		time.Sleep(poll)
	}
	n.history.Violation("the nodes did not reach the same index: %s", state)
}
