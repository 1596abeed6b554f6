package cluster

import (
	"fmt"
	"log"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

const (
	gossipLabel   = "warren" // keeps other programs' gossip out
	rejoinEvery   = time.Second
	maxGossipMeta = memberlist.MetaMaxSize // bytes
)

// gossip is Discovery by memberlist. Its name of a node is the server and its boot, so that a node that comes back
// under another address is never in conflict with its former self.
type gossip struct {
	list    *memberlist.Memberlist
	log     *slog.Logger
	join    []string
	expect  int
	changed chan struct{}
	stop    chan struct{}
	done    sync.WaitGroup
	once    sync.Once

	mu   sync.Mutex // guards what follows
	meta []byte
	// alive are the members by memberlist's name. memberlist's own list is written while it is read.
	alive map[string]Member
	seen  map[string]bool // gossip addresses ever heard of, tried again when somebody is missing
}

func newGossip(c Config, self Member, logger *slog.Logger) (*gossip, error) {
	meta, err := encodeMember(self)
	if err != nil {
		return nil, err
	}
	if len(meta) > maxGossipMeta {
		return nil, fmt.Errorf("what this node gossips takes %d bytes of %d: use shorter ids and addresses", len(meta), maxGossipMeta)
	}
	g := &gossip{log: logger.With("from", "gossip"), join: c.Join, expect: c.BootstrapExpect, meta: meta, changed: make(chan struct{}, 1),
		stop: make(chan struct{}), seen: map[string]bool{}, alive: map[string]Member{}}
	mc := memberlist.DefaultLANConfig()
	mc.Name = self.Server + "#" + strconv.FormatUint(self.Boots, 10)
	mc.ProbeInterval, mc.ProbeTimeout, mc.SuspicionMult = 300*time.Millisecond, 150*time.Millisecond, 3
	mc.TCPTimeout = 2 * time.Second
	mc.Label = gossipLabel
	mc.Logger = log.New(debugWriter{g.log}, "", 0)
	mc.Delegate, mc.Events = g, g
	if mc.BindAddr, mc.BindPort, err = splitHost(c.GossipAddr); err != nil {
		return nil, fmt.Errorf("gossip address %q: %w", c.GossipAddr, err)
	}
	mc.AdvertisePort = mc.BindPort
	if c.GossipAdvertise != "" {
		host, port, err := splitHost(c.GossipAdvertise)
		if err != nil {
			return nil, fmt.Errorf("advertised gossip address %q: %w", c.GossipAdvertise, err)
		}
		mc.AdvertiseAddr, mc.AdvertisePort = host, port
	}
	if g.list, err = memberlist.Create(mc); err != nil {
		return nil, fmt.Errorf("gossip on %s: %w", c.GossipAddr, err)
	}
	g.done.Add(1)
	go g.keepJoining()
	return g, nil
}

// splitHost resolves the host, for memberlist takes only IP addresses.
func splitHost(address string) (host string, port int, err error) {
	host, p, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	if port, err = strconv.Atoi(p); err != nil {
		return "", 0, err
	}
	if host == "" {
		return "0.0.0.0", port, nil
	}
	if net.ParseIP(host) == nil {
		ips, err := net.LookupIP(host)
		if err != nil {
			return "", 0, err
		}
		host = ips[0].String()
	}
	return host, port, nil
}

// address is the one this node's gossip is reached at.
func (g *gossip) address() string {
	n := g.list.LocalNode()
	return net.JoinHostPort(n.Addr.String(), strconv.Itoa(int(n.Port)))
}

// keepJoining contacts the join list and everybody heard of before who is not there now: memberlist forgets the dead,
// so two halves of a healed network would not find each other.
func (g *gossip) keepJoining() {
	defer g.done.Done()
	wait := time.Duration(0)
	for {
		select {
		case <-time.After(wait):
		case <-g.stop:
			return
		}
		wait = rejoinEvery
		present := map[string]bool{}
		g.mu.Lock()
		for _, m := range g.alive {
			present[m.Gossip] = true
		}
		for a := range present {
			if len(g.seen) < maxBook {
				g.seen[a] = true
			}
		}
		missing := slices.Clone(g.join)
		for a := range g.seen {
			missing = append(missing, a)
		}
		g.mu.Unlock()
		missing = slices.DeleteFunc(missing, func(a string) bool { return a == "" || present[a] })
		slices.Sort(missing)
		for _, a := range slices.Compact(missing) {
			select {
			case <-g.stop:
				return
			default:
			}
			if _, err := g.list.Join([]string{a}); err != nil {
				g.log.Debug("joining failed", "address", a, "error", err)
			}
		}
	}
}

func (g *gossip) Members() []Member {
	g.mu.Lock()
	defer g.mu.Unlock()
	newest := map[string]Member{}
	for _, m := range g.alive {
		if other, twice := newest[m.Server]; !twice || other.Boots < m.Boots {
			newest[m.Server] = m
		}
	}
	return slices.Collect(maps.Values(newest))
}

func (g *gossip) Changed() <-chan struct{} { return g.changed }

func (g *gossip) Update(self Member) error {
	meta, err := encodeMember(self)
	if err != nil {
		return err
	}
	if len(meta) > maxGossipMeta {
		return fmt.Errorf("what this node gossips takes %d bytes of %d", len(meta), maxGossipMeta)
	}
	g.mu.Lock()
	g.meta = meta
	g.mu.Unlock()
	g.signal()
	if err := g.list.UpdateNode(time.Second); err != nil && !strings.Contains(err.Error(), "timeout") {
		return err
	}
	return nil
}

func (g *gossip) Leave(timeout time.Duration) error { return g.list.Leave(timeout) }

func (g *gossip) Close() error {
	var err error
	g.once.Do(func() {
		close(g.stop)
		err = g.list.Shutdown()
		g.done.Wait()
	})
	return err
}

func (g *gossip) signal() {
	select {
	case g.changed <- struct{}{}:
	default:
	}
}

// memberlist's delegates; it calls them on its own goroutines.

func (g *gossip) NodeMeta(int) []byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.meta
}

func (g *gossip) NotifyMsg([]byte)                {}
func (g *gossip) GetBroadcasts(int, int) [][]byte { return nil }
func (g *gossip) LocalState(bool) []byte          { return nil }
func (g *gossip) MergeRemoteState([]byte, bool)   {}
func (g *gossip) NotifyJoin(n *memberlist.Node)   { g.note(n) }
func (g *gossip) NotifyUpdate(n *memberlist.Node) { g.note(n) }

func (g *gossip) NotifyLeave(n *memberlist.Node) {
	g.mu.Lock()
	delete(g.alive, n.Name)
	g.mu.Unlock()
	g.signal()
}

// note keeps a copy of what memberlist tells.
func (g *gossip) note(n *memberlist.Node) {
	m, err := decodeMember(n.Meta)
	if err != nil {
		g.log.Debug("a member's gossip cannot be read", "member", n.Name, "error", err)
		return
	}
	m.Gossip = n.Address()
	g.mu.Lock()
	if len(g.alive) < maxBook {
		g.alive[n.Name] = m
	}
	g.mu.Unlock()
	g.signal()
}
