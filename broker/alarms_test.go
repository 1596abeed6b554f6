package broker

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/warrenmq/warren/cluster"
)

// TestAlarmsOfOthers: what a connected voter is short of holds up the leader's publishers, and is named; a follower's own
// publishers hear of that follower only.
func TestAlarmsOfOthers(t *testing.T) {
	b := New(Config{})
	b.alarms.node = "n1"
	b.node = voters{list: []string{"s1", "s2"}}
	b.current.Store(&leadership{})
	tell := func(server string, s strain) (end func()) {
		there, here := net.Pipe()
		heard := make(chan struct{})
		go func() {
			b.hearAlarms(cluster.Member{NodeID: strings.Replace(server, "s", "n", 1), Server: server}, here)
			close(heard)
		}()
		for range 2 { // the second one is read once the first has been noted
			if _, err := there.Write(s.encode()); err != nil {
				t.Fatal(err)
			}
		}
		return func() { _ = there.Close(); <-heard }
	}
	full := strain{reason: "the disk is full", short: lowDisk, near: true, left: 0}
	end := tell("s2", full)
	endStranger := tell("s9", strain{reason: "never mind", short: lowMemory, near: true})
	own := strain{reason: "memory is gone", short: lowMemory, near: true, left: 7}
	l := b.allAlarms(own)
	if l.reason != "node 'n1': memory is gone; node 'n2': the disk is full" || l.short != "low on memory & disk" || !l.near || l.left != 0 {
		t.Errorf("%+v", l)
	}
	b.current.Store(nil)
	if l := b.allAlarms(own); l.reason != "node 'n1': memory is gone" || l.short != lowMemory || l.left != 7 {
		t.Errorf("a follower: %+v", l)
	}
	b.current.Store(&leadership{})
	end()
	endStranger()
	if l := b.allAlarms(strain{}); l != (strain{}) {
		t.Errorf("of those who have gone: %+v", l)
	}
}

type voters struct {
	Node
	list []string
}

func (v voters) Voters() []string { return v.list }

// TestAlarmsAreToldToTheLeader: at once when something changes, over a new connection when the old one broke.
func TestAlarmsAreToldToTheLeader(t *testing.T) {
	n := &led{change: make(chan struct{}), dialled: make(chan net.Conn, 1)}
	b := New(Config{})
	b.node = n
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { b.tellAlarms(ctx); close(done) }()
	for _, reason := range []string{"", "the disk is full"} {
		b.alarms.setOwn(strain{reason: reason})
		c := <-n.dialled
		if s, err := readStrain(c); err != nil || s.reason != reason {
			t.Fatalf("%+v, %v", s, err)
		}
		b.alarms.setOwn(strain{reason: "more " + reason})
		for {
			s, err := readStrain(c)
			if err != nil {
				t.Fatal(err)
			}
			if s.reason == "more "+reason {
				break
			}
		}
		_ = c.Close()
	}
	cancel()
	<-done
}

// led is a follower's node.
type led struct {
	Node
	change  chan struct{}
	dialled chan net.Conn
}

func (n *led) LeadershipChanged() <-chan struct{} { return n.change }
func (n *led) Leadership() cluster.Leadership     { return cluster.Leadership{Server: "leader"} }
func (n *led) DialStream(ctx context.Context, server string, kind cluster.StreamKind) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case n.dialled <- there:
		return here, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func FuzzReadStrain(f *testing.F) {
	for _, s := range []strain{{}, {reason: "r", short: lowDisk, near: true, left: 1}, {short: "low on memory & disk"}} {
		f.Add(s.encode())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := readStrain(bytes.NewReader(b))
		if err != nil {
			if !errors.Is(err, errStrain) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatal(err)
			}
			return
		}
		if again := s.encode(); !bytes.Equal(again, b[:len(again)]) {
			t.Fatalf("%x became %x", b, again)
		}
	})
}
