package relay

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warrenmq/warren/protocol/amqp091"
)

func TestTheLeaderServesAndFollowersRelay(t *testing.T) {
	n := newTown()
	n.lead("a")
	a, b := n.start(t, "a", polite("a")), n.start(t, "b", polite("b"))
	for _, at := range []*node{a, b} {
		c, said := greet(t, at)
		if want := "a " + c.LocalAddr().String() + " " + at.address; said != want {
			t.Errorf("through %s the leader saw %q, want %q", at.name, said, want)
		}
		for _, size := range []int{0, 1, 4088, 4089, 5000, busyBuffer - 8, busyBuffer - 7, 300_000, 10} {
			sent := frame(3, bytes.Repeat([]byte{byte(size)}, size))
			go func() { _, _ = c.Write(sent) }()
			if got, err := readFrame(c); err != nil || !bytes.Equal(got, sent) {
				t.Fatalf("%d bytes through %s came back as %d: %v", size, at.name, len(got), err)
			}
		}
	}
}

func TestAStrangersHeaderIsAnsweredHere(t *testing.T) {
	n := newTown()
	b := n.start(t, "b", polite("b"))
	c := connect(t, b)
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\n\r\n")
	got := make([]byte, headerSize)
	if _, err := io.ReadFull(c, got); err != nil || string(got) != string(amqp091.ProtocolHeader[:]) {
		t.Fatalf("%q %v", got, err)
	}
}

func TestALostLeaderIsTold(t *testing.T) {
	n := newTown()
	n.lead("a")
	n.start(t, "a", polite("a"))
	b := n.start(t, "b", polite("b"))
	c, _ := greet(t, b)
	n.kill("a")
	if text := expectForced(t, c); text != "CONNECTION_FORCED - the connection to the leader, node 'a', was lost; connect again" {
		t.Error(text)
	}
}

func TestAChangeOfLeaderIsTold(t *testing.T) {
	n := newTown()
	n.lead("a")
	n.start(t, "a", polite("a")) // which says nothing by itself
	b := n.start(t, "b", polite("b"))
	c, _ := greet(t, b)
	n.lead("b")
	if text := expectForced(t, c); text != "CONNECTION_FORCED - "+leaderChanged {
		t.Error(text)
	}
	if _, said := greet(t, b); !strings.HasPrefix(said, "b ") {
		t.Errorf("the new leader says %q", said)
	}
}

// A leader that closes on purpose is not contradicted: with a close of its own, or without a word.
func TestTheLeadersWordIsTheLast(t *testing.T) {
	n := newTown()
	n.lead("a")
	n.start(t, "a", frontFunc(func(c net.Conn) {
		defer c.Close()
		_, _ = io.ReadFull(c, make([]byte, headerSize))
		_, _ = c.Write(start(""))
		if f, err := readFrame(c); err == nil && f[0] == 1 {
			_, _ = c.Write(forced("x"))
			n.lead("")
		}
	}))
	b := n.start(t, "b", polite("b"))
	mute, _ := greet(t, b)
	_, _ = mute.Write(frame(99, nil))
	if f, err := readFrame(mute); !errors.Is(err, io.EOF) {
		t.Errorf("a silent close came as %q, %v", f, err)
	}
	loud, _ := greet(t, b)
	_, _ = loud.Write(frame(1, nil))
	if text := expectForced(t, loud); text != "CONNECTION_FORCED - x" {
		t.Errorf("the leader's close came as %q", text)
	}
}

func TestNewConnectionsWaitForALeader(t *testing.T) {
	n := newTown()
	b := n.start(t, "b", polite("b"))
	n.start(t, "a", polite("a"))
	said := make(chan string, 2)
	for _, leader := range []string{"a", "b"} {
		n.lead("")
		c := connect(t, b)
		_, _ = c.Write(amqp091.ProtocolHeader[:])
		go func() {
			f, _ := readFrame(c)
			said <- string(f)
		}()
		waiting(t, b, 1)
		n.lead(leader)
		if s := <-said; !strings.Contains(s, leader+" 127.0.0.1:") {
			t.Errorf("after %s had become the leader the client got %q", leader, s)
		}
	}
}

// A leader that is lost before it has said anything is replaced under the client.
func TestALeaderLostBeforeTheFirstByteIsReplaced(t *testing.T) {
	n := newTown()
	n.lead("a")
	came := make(chan struct{})
	n.start(t, "a", frontFunc(func(c net.Conn) {
		_, _ = io.ReadFull(c, make([]byte, headerSize))
		close(came)
		_, _ = c.Read(make([]byte, 1))
	}))
	b := n.start(t, "b", polite("b"))
	c := connect(t, b)
	_, _ = c.Write(amqp091.ProtocolHeader[:])
	<-came
	n.kill("a")
	n.lead("b")
	if said := expectStart(t, c); !strings.HasPrefix(said, "b ") {
		t.Error(said)
	}
}

// A leader that hangs before it has said anything is given up, and its successor serves the client.
func TestALeaderSilentFromTheBeginningIsReplaced(t *testing.T) {
	n := newTown()
	n.lead("a")
	came := make(chan struct{})
	n.start(t, "a", frontFunc(func(c net.Conn) {
		_, _ = io.ReadFull(c, make([]byte, headerSize))
		close(came)
		_, _ = c.Read(make([]byte, 1))
	}))
	b := n.start(t, "b", polite("b"))
	n.start(t, "c", polite("c"))
	c := connect(t, b)
	_, _ = c.Write(amqp091.ProtocolHeader[:])
	<-came
	n.lead("c")
	if said := expectStart(t, c); !strings.HasPrefix(said, "c ") {
		t.Error(said)
	}
}

func TestWithoutALeaderTheClientIsToldInTheHandshake(t *testing.T) {
	n := newTown()
	n.lead("nobody")
	b := n.start(t, "b", polite("b"))
	c := connect(t, b)
	_, _ = c.Write(amqp091.ProtocolHeader[:])
	eventually(t, "a try to reach the leader", func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.dialled > 0
	})
	go b.close() // the other way to end the wait early
	expect(t, c, amqp091.ConnectionStartID)
	_, _ = c.Write(new(amqp091.ConnectionStartOk).AppendFrame(nil, 0))
	expect(t, c, amqp091.ConnectionTuneID)
	_, _ = c.Write(new(amqp091.ConnectionTuneOk).AppendFrame(nil, 0))
	_, _ = c.Write(new(amqp091.ConnectionOpen).AppendFrame(nil, 0))
	if text := expectForced(t, c); !strings.Contains(text, "shutting down") {
		t.Error(text)
	}
}

func TestClosingTellsRelayedClients(t *testing.T) {
	n := newTown()
	n.lead("a")
	n.start(t, "a", polite("a"))
	b := n.start(t, "b", polite("b"))
	c, _ := greet(t, b)
	silent := connect(t, b) // must not hold it up
	defer silent.Close()
	waiting(t, b, 1)
	go b.close()
	if text := expectForced(t, c); !strings.Contains(text, "shutting down") {
		t.Error(text)
	}
}

func TestTheOldestWaitingOneMakesRoom(t *testing.T) {
	n := newTown()
	b := n.start(t, "b", polite("b"))
	first := connect(t, b)
	_, _ = first.Write(amqp091.ProtocolHeader[:])
	waiting(t, b, 1)
	b.server.mu.Lock()
	one := b.server.waiting[0]
	for len(b.server.waiting) < maxWaiting {
		b.server.waiting = append(b.server.waiting, one)
	}
	b.server.mu.Unlock()
	connect(t, b)
	if _, err := readFrame(first); err == nil {
		t.Error("the oldest connection got an answer")
	}
	b.server.mu.Lock()
	b.server.waiting = nil
	b.server.mu.Unlock()
}

// A client that takes nothing stops the leader, whose writes wait.
func TestASlowClientHoldsTheLeaderUp(t *testing.T) {
	n := newTown()
	n.lead("a")
	written := make(chan int, 1)
	n.start(t, "a", frontFunc(func(c net.Conn) {
		defer c.Close()
		_, _ = io.ReadFull(c, make([]byte, headerSize))
		_, _ = c.Write(start(""))
		f, total := frame(3, make([]byte, 100_000)), 0
		for {
			_ = c.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
			k, err := c.Write(f)
			if total += k; err != nil {
				written <- total
				return
			}
		}
	}))
	b := n.start(t, "b", polite("b"))
	c, _ := greet(t, b)
	if total := <-written; total > 64<<20 {
		t.Errorf("the leader could write %d bytes to a client that reads nothing", total)
	}
	_ = c.Close()
}

// Storms of connections in all stages leave nothing behind (goleak and the two maps).
func TestStorm(t *testing.T) {
	n := newTown()
	n.lead("a")
	n.start(t, "a", polite("a"))
	b := n.start(t, "b", polite("b"))
	var work sync.WaitGroup
	for i := range 200 {
		work.Go(func() {
			c, err := net.Dial("tcp", b.address)
			if err != nil {
				return
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(patience))
			_, _ = c.Write(amqp091.ProtocolHeader[:min(i%12, headerSize)])
			switch i % 4 {
			case 1:
				_, _ = c.Write(amqp091.ProtocolHeader[:])
				_, _ = readFrame(c)
			case 2:
				_ = c.(*net.TCPConn).CloseWrite()
				_, _ = io.Copy(io.Discard, c)
			case 3:
				_ = c.(*net.TCPConn).SetLinger(0)
			}
		})
		if i == 150 {
			n.lead("b")
			n.lead("a")
		}
	}
	work.Wait()
	waiting(t, b, 0)
	eventually(t, "all connections to be forgotten", func() bool {
		b.server.mu.Lock()
		defer b.server.mu.Unlock()
		return len(b.server.connections) == 0
	})
}

func waiting(t *testing.T, n *node, want int) {
	t.Helper()
	eventually(t, "the connections that wait for a leader", func() bool {
		n.server.mu.Lock()
		defer n.server.mu.Unlock()
		return len(n.server.waiting) == want
	})
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !cond(); {
		if time.Now().After(end) {
			t.Fatalf("waited %v in vain for %s", patience, what)
		}
		<-time.After(2 * time.Millisecond)
	}
}

func BenchmarkRelay(b *testing.B) {
	near, far, err := pair()
	if err != nil {
		b.Fatal(err)
	}
	up, leader, err := pair()
	if err != nil {
		b.Fatal(err)
	}
	r := &connection{server: &Server{}, client: far}
	var work sync.WaitGroup
	work.Go(func() { r.copyDown(up) })
	work.Go(func() {
		f := bytes.Repeat(frame(3, make([]byte, 256)), 200)
		for range b.N {
			if _, err := leader.Write(f); err != nil {
				return
			}
		}
		_ = leader.Close()
	})
	b.SetBytes(200 * 264)
	for got, buf := 0, make([]byte, 1<<20); got < b.N*200*264; {
		k, err := near.Read(buf)
		if err != nil {
			b.Fatal(err)
		}
		got += k
	}
	_, _ = near.Close(), up.Close()
	work.Wait()
	_ = far.Close()
}
