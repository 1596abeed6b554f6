package broker

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/warrenmq/warren/cluster"
	"github.com/warrenmq/warren/fsm"
)

// Streams between nodes that the broker serves.
const (
	streamHash   cluster.StreamKind = 16 // a node's state hash at an index
	streamExport cluster.StreamKind = 17 // a node's whole state
)

const (
	hashTimeout     = 5 * time.Second
	damageRetry     = 5 * time.Second // a damage is looked at again, by the repair and by who reads the queue
	repairTimeout   = 30 * time.Minute
	transferTimeout = 5 * time.Second
)

// repairWhenWrong exchanges this node's state when it is in the minority at an audit (rule 15), or when it cannot
// read messages that it should have.
func (b *Broker) repairWhenWrong(ctx context.Context) {
	tick := time.NewTicker(damageRetry)
	defer tick.Stop()
	for {
		select {
		case a := <-b.suspects:
			b.judge(ctx, a)
		case <-tick.C:
			if damaged, missing := b.machine.Damaged(); missing || len(damaged) > 0 {
				b.log.Error("message files are damaged; fetching the state from another node", "files", damaged, "missing", missing)
				b.stepAside(ctx)
				b.repair(ctx, b.others())
			}
		case <-ctx.Done():
			return
		}
	}
}

// judge asks everybody for the hash at the audit's index: only the minority is wrong.
func (b *Broker) judge(ctx context.Context, a fsm.Audit) {
	own, ok := b.machine.HashAt(a.Index)
	if !ok {
		return
	}
	votes := map[uint64][]string{own: {b.node.Self().Server}}
	for _, server := range b.others() {
		if hash, err := b.askHash(ctx, server, a.Index); err == nil {
			votes[hash] = append(votes[hash], server)
		}
	}
	voters := len(b.node.Voters())
	for hash, servers := range votes {
		if len(servers) <= voters/2 {
			continue
		}
		if hash == own {
			return // somebody else is wrong and hears of it from its own machine
		}
		b.log.Error("this node's state differs from the majority's; taking theirs", "index", a.Index, "own", fmt.Sprintf("%016x", own), "majority", fmt.Sprintf("%016x", hash))
		b.stepAside(ctx)
		b.repair(ctx, servers)
		return
	}
	b.log.Error("the nodes' states differ and there is no majority: nothing is overwritten; stop the cluster and compare the nodes", "index", a.Index, "hashes", votes)
}

// stepAside hands leadership over if this node leads: what it cannot read, another node serves at once.
func (b *Broker) stepAside(ctx context.Context) {
	if !b.node.Leadership().Local || len(b.others()) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, transferTimeout)
	defer cancel()
	if err := b.node.TransferLeadership(ctx); err != nil {
		b.log.Error("could not hand leadership over before the repair", "error", err)
	}
}

func (b *Broker) others() []string {
	var servers []string
	for _, m := range b.node.Members() {
		if m.Server != b.node.Self().Server {
			servers = append(servers, m.Server)
		}
	}
	return servers
}

// repair replaces the state by the first one of the servers that can be had.
func (b *Broker) repair(ctx context.Context, servers []string) {
	for _, server := range servers {
		err := b.fetchState(ctx, server)
		if err == nil {
			b.log.Warn("the state was replaced by another node's", "from", server)
			return
		}
		b.log.Error("could not fetch the state", "from", server, "error", err)
	}
}

func (b *Broker) fetchState(ctx context.Context, server string) error {
	ctx, cancel := context.WithTimeout(ctx, repairTimeout)
	defer cancel()
	c, err := b.node.DialStream(ctx, server, streamExport)
	if err != nil {
		return err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	return b.machine.Replace(c)
}

// serveExport sends the whole state.
func (b *Broker) serveExport(from cluster.Member, c net.Conn) {
	defer c.Close()
	if _, err := b.machine.Export(c); err != nil {
		b.log.Warn("could not send the state to a node that asked for it", "to", from.NodeID, "error", err)
	}
}

// serveHash answers an index with whether its hash is known, and the hash.
func (b *Broker) serveHash(_ cluster.Member, c net.Conn) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(hashTimeout))
	var q [8]byte
	if _, err := io.ReadFull(c, q[:]); err != nil {
		return
	}
	var answer [9]byte
	if hash, ok := b.machine.HashAt(binary.BigEndian.Uint64(q[:])); ok {
		answer[0] = 1
		binary.BigEndian.PutUint64(answer[1:], hash)
	}
	_, _ = c.Write(answer[:])
}

func (b *Broker) askHash(ctx context.Context, server string, index uint64) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, hashTimeout)
	defer cancel()
	c, err := b.node.DialStream(ctx, server, streamHash)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(hashTimeout))
	var answer [9]byte
	if _, err := c.Write(binary.BigEndian.AppendUint64(nil, index)); err != nil {
		return 0, err
	}
	if _, err := io.ReadFull(c, answer[:]); err != nil {
		return 0, err
	}
	if answer[0] == 0 {
		return 0, errors.New("the hash at that index is not known any more")
	}
	return binary.BigEndian.Uint64(answer[1:]), nil
}
