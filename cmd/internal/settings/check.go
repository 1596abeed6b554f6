package settings

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/warrenmq/warren/cluster"
)

// Bounds of settings.
const (
	maxBootstrapExpect = 9
	minSegmentSize     = 1 << 20
	maxSegmentSize     = 1 << 30
	minSnapshotBytes   = 1 << 20
	minMemory          = 64 << 20
	minDiskTimeout     = 100 * time.Millisecond
	minSnapshotAge     = time.Second
	maxUserBytes       = 255 // as AMQP carries them
)

// noUsers is what stands for an empty list of users.
const noUsers = "none"

var nodeID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// Problems returns everything that is wrong with the settings, one sentence each; none when they can be used.
func (s *Serve) Problems() []string {
	c := &check{problems: slices.Clone(s.problems)}
	if s.NodeID != "" && !nodeID.MatchString(s.NodeID) {
		c.add("node-id", "%q must be 1 to 63 letters, digits, dots, dashes or underscores, beginning with a letter or digit", s.NodeID)
	}
	if s.DataDir == "" {
		c.add("data-dir", "must not be empty")
	}

	s.checkAddresses(c)
	s.checkForming(c)
	s.checkClients(c)
	c.oneOf("timing", s.Timing, "default", "fast")
	c.oneOf("log-store", s.LogStore, "segments", "bolt")
	c.oneOf("log-level", s.LogLevel, "debug", "info", "warn", "error")
	c.oneOf("log-format", s.LogFormat, "text", "json")

	c.size("segment-size", s.SegmentSize, minSegmentSize, maxSegmentSize)
	c.size("snapshot-log-bytes", s.SnapshotLogBytes, minSnapshotBytes, 1<<50)
	s.checkMemory(c)
	if s.SnapshotRate.problem != "" || s.SnapshotRate.Bytes != 0 {
		c.size("snapshot-rate", s.SnapshotRate, cluster.MinSnapshotRate, 1<<50)
	}
	c.size("min-disk-free", s.MinDiskFree, 0, 1<<50)
	c.count("collect-records", s.CollectRecords, 1, 1<<30)
	c.count("index-memory-messages", s.IndexMemoryMessages, 1, 1<<30)
	c.span("snapshot-age", s.SnapshotAge, minSnapshotAge)
	c.span("disk-timeout", s.DiskTimeout, minDiskTimeout)
	c.span("close-within", s.CloseWithin, time.Millisecond)
	return c.problems
}

func (s *Serve) checkClients(c *check) {
	if s.DefaultUser == "" || len(s.DefaultUser) > maxUserBytes {
		c.add("default-user", "must be 1 to %d bytes", maxUserBytes)
	}
	if s.DefaultPassword == "" {
		c.add("default-password", "must not be empty")
	}
	if len(s.LoopbackUsers) == 0 || slices.Contains(s.LoopbackUsers, "") || slices.Contains(s.LoopbackUsers, noUsers) && len(s.LoopbackUsers) > 1 {
		c.add("loopback-users", "name users, or say %s alone", noUsers)
	}
	c.span("consumer-timeout", s.ConsumerTimeout, 0)
}

func (s *Serve) checkForming(c *check) {
	if !c.count("bootstrap-expect", s.BootstrapExpect, 1, maxBootstrapExpect) {
		return
	}
	others := 0
	for _, address := range s.Join {
		if host, port, err := splitAddress(address); err != nil || host == "" || port == 0 {
			c.add("join", "%q is no HOST:PORT", address)
		}
		if address != s.GossipAddr && address != s.AdvertiseGossip {
			others++
		}
	}
	switch {
	case s.BootstrapExpect.N > 1 && others == 0:
		c.add("join", "name the gossip addresses of the other nodes: --bootstrap-expect %d needs them", s.BootstrapExpect.N)
	case s.BootstrapExpect.N == 1 && others > 0:
		c.add("bootstrap-expect", "a node that joins others must not form a cluster alone: say how many nodes the cluster begins with, as on the others")
	}
}

func (s *Serve) checkAddresses(c *check) {
	listeners := []struct{ name, address, advertise string }{
		{"native", s.NativeAddr, s.AdvertiseNative}, {"amqp", s.AMQPAddr, s.AdvertiseAMQP}, {"http", s.HTTPAddr, s.AdvertiseHTTP},
		{"raft", s.RaftAddr, s.AdvertiseRaft}, {"gossip", s.GossipAddr, s.AdvertiseGossip},
	}
	usedBy := map[string]string{}
	for _, l := range listeners {
		host, port, err := splitAddress(l.address)
		switch {
		case err != nil:
			c.add(l.name+"-addr", "%q: %v", l.address, err)
		case everyInterface(host) && l.advertise == "":
			c.add("advertise-"+l.name, "is needed: %s is every interface, which nobody can dial", l.address)
		}
		if other := usedBy[l.address]; other != "" && err == nil && port != 0 {
			c.add(l.name+"-addr", "%s is --%s-addr already", l.address, other)
		}
		usedBy[l.address] = l.name
		if l.advertise == "" {
			continue
		}
		host, port, err = splitAddress(l.advertise)
		switch {
		case err != nil:
			c.add("advertise-"+l.name, "%q: %v", l.advertise, err)
		case everyInterface(host) || port == 0:
			c.add("advertise-"+l.name, "%q is no address that others can dial", l.advertise)
		}
	}
}

// splitAddress takes HOST:PORT apart; a name in place of the port's number is refused.
func splitAddress(address string) (host string, port uint16, err error) {
	host, word, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, fmt.Errorf("it must be HOST:PORT")
	}
	n, err := strconv.ParseUint(word, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("the port must be a number up to 65535")
	}
	return host, uint16(n), nil
}

func everyInterface(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

// check gathers problems.
type check struct{ problems []string }

func (c *check) add(flag, format string, args ...any) {
	c.problems = append(c.problems, "--"+flag+": "+fmt.Sprintf(format, args...))
}

func (c *check) oneOf(flag, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		c.add(flag, "%q must be one of %s", value, strings.Join(allowed, ", "))
	}
}

func (c *check) size(flag string, v Size, least, most int64) {
	switch {
	case v.problem != "":
		c.add(flag, "%s", v.problem)
	case v.Bytes < least || v.Bytes > most:
		c.add(flag, "%d bytes is outside of %d to %d", v.Bytes, least, most)
	}
}

func (c *check) span(flag string, v Span, least time.Duration) {
	switch {
	case v.problem != "":
		c.add(flag, "%s", v.problem)
	case v.Duration < least:
		c.add(flag, "%v is below %v", v.Duration, least)
	}
}

func (c *check) count(flag string, v Count, least, most int) bool {
	switch {
	case v.problem != "":
		c.add(flag, "%s", v.problem)
	case v.N < least || v.N > most:
		c.add(flag, "%d is outside of %d to %d", v.N, least, most)
	default:
		return true
	}
	return false
}
