package failover

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warrenmq/warren/protocol/amqp091"
)

// maxIdleBytes is what an idle connection with a channel may cost a node.
const maxIdleBytes = 40 << 10

// TestIdleAMQPConnections: thousands of connections that do nothing cost little, on the leader and on a follower, which
// holds two sockets for each.
func TestIdleAMQPConnections(t *testing.T) {
	direct, relayed := 500, 500
	if *long {
		direct, relayed = 10_000, 4_000 // a process may have 20,000 files, or more
	}
	c := startCluster(t, 3)
	for _, part := range []struct {
		name  string
		node  *node
		count int
	}{{"leader", c.Leader(), direct}, {"follower", c.Followers()[0], relayed}} {
		t.Run(part.name, func(t *testing.T) {
			warmUp := part.node.openIdle(t, 100)
			before := part.node.RSS()
			all := part.node.openIdle(t, part.count)
			each := (part.node.RSS() - before) / int64(part.count)
			t.Logf("%d idle connections with a channel each: %.1f KiB of resident memory each", part.count, float64(each)/1024)
			if each > maxIdleBytes {
				t.Errorf("a connection costs %d bytes, more than %d", each, maxIdleBytes)
			}
			began := time.Now()
			all = append(all, warmUp...)
			for _, conn := range all {
				conn.Close()
			}
			c.Leader().connections(t, 0)
			t.Logf("all were gone %v after they were closed", time.Since(began).Round(time.Millisecond))
		})
	}
}

// TestAMQPConnectionsComeAndGo: connections that open and end in every way, as fast as they can, leave nothing behind.
func TestAMQPConnectionsComeAndGo(t *testing.T) {
	count := 1000
	if *long {
		count = 30_000
	}
	c := startCluster(t, 1)
	n := c.Leader()
	const slack = 25 // what the node makes and ends by itself
	goroutines, files := n.Metric("go_goroutines"), n.Metric("process_open_fds")
	began := time.Now()
	comeAndGo(t, n, count)
	took := time.Since(began)
	n.connections(t, 0)
	await(t, time.Minute, "goroutines and files as before", func() error {
		g, f := n.Metric("go_goroutines"), n.Metric("process_open_fds")
		if g > goroutines+slack || f > files+slack {
			return fmt.Errorf("%v goroutines, before %v; %v files, before %v", g, goroutines, f, files)
		}
		return nil
	})
	t.Logf("%d connections, %.0f a second; resident memory %d MiB", count, float64(count)/took.Seconds(), n.RSS()>>20)
}

// connections waits until the node serves so many clients.
func (n *node) connections(t *testing.T, want float64) {
	t.Helper()
	await(t, time.Minute, fmt.Sprintf("%v connections", want), func() error {
		if got := n.Metric("warren_connections"); got != want {
			return fmt.Errorf("there are %v", got)
		}
		return nil
	})
}

// comeAndGo opens connections side by side and ends each in one of four ways.
func comeAndGo(t *testing.T, n *node, count int) {
	t.Helper()
	var next atomic.Int64
	var work sync.WaitGroup
	for range 32 {
		work.Go(func() {
			for i := int(next.Add(1)) - 1; i < count; i = int(next.Add(1)) - 1 {
				conn, err := openAMQP(n.addr.amqp, i/4000)
				if err != nil {
					t.Errorf("connection %d: %v", i, err)
					return
				}
				switch i % 4 {
				case 0:
					if err := conn.call(0, &amqp091.ConnectionClose{ReplyCode: 200}, amqp091.ConnectionCloseOkID); err != nil {
						t.Errorf("close connection %d: %v", i, err)
					}
				case 1:
					_ = conn.Conn.(*net.TCPConn).SetLinger(0) // a reset
				case 2:
					_, _ = conn.Write([]byte{1, 0, 1, 0, 0, 1}) // in the middle of a frame
				}
				conn.Close()
			}
		})
	}
	work.Wait()
}

// openIdle opens connections with a channel.
func (n *node) openIdle(t *testing.T, count int) []net.Conn {
	t.Helper()
	all := make([]net.Conn, count)
	var next atomic.Int64
	var work sync.WaitGroup
	for range 16 {
		work.Go(func() {
			for i := int(next.Add(1)) - 1; i < count; i = int(next.Add(1)) - 1 {
				conn, err := openAMQP(n.addr.amqp, i/4000)
				if err != nil {
					t.Errorf("connection %d: %v", i, err)
					return
				}
				all[i] = conn.Conn // without its reader
				t.Cleanup(func() { conn.Conn.Close() })
			}
		})
	}
	work.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return all
}

// slim is an AMQP connection without goroutines of its own.
type slim struct {
	net.Conn
	reader *amqp091.Reader
}

// openAMQP opens a connection and channel 1. It comes from the loopback address of a number, for each has only so many
// ports.
func openAMQP(address string, from int) (*slim, error) {
	dialer := net.Dialer{Timeout: 20 * time.Second, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+from%250))}}
	socket, err := dialer.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	_ = socket.SetDeadline(time.Now().Add(20 * time.Second))
	conn := &slim{socket, amqp091.NewReader(socket, 0)}
	if _, err = socket.Write(amqp091.ProtocolHeader[:]); err == nil {
		err = conn.await(amqp091.ConnectionStartID)
	}
	for _, step := range []struct {
		channel uint16
		method  amqp091.Method
		answer  amqp091.MethodID
	}{
		{0, &amqp091.ConnectionStartOk{Mechanism: "PLAIN", Response: "\x00guest\x00guest", Locale: "en_US"}, amqp091.ConnectionTuneID},
		{0, &amqp091.ConnectionTuneOk{ChannelMax: 2047, FrameMax: 131_072}, 0},
		{0, &amqp091.ConnectionOpen{VirtualHost: "/"}, amqp091.ConnectionOpenOkID},
		{1, &amqp091.ChannelOpen{}, amqp091.ChannelOpenOkID},
	} {
		if err == nil {
			err = conn.call(step.channel, step.method, step.answer)
		}
	}
	if err != nil {
		socket.Close()
		return nil, err
	}
	_ = socket.SetDeadline(time.Time{})
	return conn, nil
}

// call sends a method and waits for its answer, if there is one.
func (c *slim) call(channel uint16, m amqp091.Method, answer amqp091.MethodID) error {
	if _, err := c.Write(m.AppendFrame(nil, channel)); err != nil {
		return err
	}
	if answer == 0 {
		return nil
	}
	return c.await(answer)
}

func (c *slim) await(want amqp091.MethodID) error {
	if _, err := c.reader.Next(); err != nil {
		return fmt.Errorf("instead of %s: %w", want, err)
	}
	payload, err := c.reader.Payload()
	if err != nil {
		return err
	}
	if id, _, err := amqp091.SplitMethod(payload); err != nil || id != want {
		return fmt.Errorf("%s came instead of %s (%v)", id, want, err)
	}
	return nil
}
