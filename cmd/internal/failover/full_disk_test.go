package failover

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/warrenmq/warren/broker/server"
	"github.com/warrenmq/warren/client"
)

const (
	smallDisk = 96 << 20 // bytes
	fullBody  = 16 << 10
)

// smallArgs are settings for such a disk.
var smallArgs = []string{"--min-disk-free", "16MiB", "--snapshot-log-bytes", "2MiB", "--segment-size", "1MiB"}

// TestFullDisk: on a disk that is really full publishers wait and are told why, consumers drain what there is, and
// publishers go on by themselves. (The form that needs no disk of its own is TestFullDisk of broker/server.)
func TestFullDisk(t *testing.T) {
	if !*long {
		t.Skip("it mounts small disks: run it with -long, as root")
	}
	t.Run("one node", func(t *testing.T) { fullDisk(t, 1) })
	t.Run("a follower", func(t *testing.T) { fullDisk(t, 3) })
	t.Run("nothing left at all", outOfDisk)
}

func fullDisk(t *testing.T, size int) {
	c := layCluster(t, size, smallArgs...)
	small := c.nodes[size-1]
	small.mount(smallDisk)
	c.Start(c.nodes...)
	c.Ready()
	for range 10 {
		if size == 1 || c.Leader() != small {
			break
		}
		small.Stop()
		small.Start()
		c.Ready()
	}
	c.Declare("q")
	conn := c.Dial(client.WithPublishWindow(1024, 4<<20))
	one := c.publishUntil(conn, 0)
	two := c.publishAMQPUntil(small, 1)
	await(t, time.Minute, "publishers told that the disk is full", func() error {
		if reason := conn.Blocked(); !strings.Contains(reason, "disk") || !strings.Contains(reason, small.id) {
			return fmt.Errorf("the reason is %q", reason)
		}
		if two.reason() != "low on disk" {
			return fmt.Errorf("over AMQP the reason is %q", two.reason())
		}
		return nil
	})
	one.stop()
	two.stop()
	await(t, 10*time.Second, "the alarm in the status", func() error {
		status, err := c.Leader().Status()
		for _, m := range status.Members {
			if (m.Alarm != "") != (m.ID == small.id) || m.ID == small.id && m.Short != "low on disk" {
				return fmt.Errorf("of %s: %q, %q", m.ID, m.Alarm, m.Short)
			}
		}
		return err
	})
	out, err := exec.Command(warren, "cluster", "status", "--servers", strings.Join(c.Servers(), ",")).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "publishes are held up: node '"+small.id+"': the disk has less than 16 MiB") {
		t.Errorf("cluster status: %v\n%s", err, out)
	}
	depth := c.Depth("q")
	pass(t, 2*time.Second)
	other := small.startFilling() // another program takes the rest, and ends
	await(t, 10*time.Second, "a full disk", func() error {
		if free := small.diskFree(); free > 0 {
			return fmt.Errorf("%d bytes are free", free)
		}
		return nil
	})
	took := other.stop()
	if now := c.Depth("q"); now > depth+200 {
		t.Errorf("%d messages came in while publishers were held up", now-depth)
	}
	t.Logf("%d messages are in the queue; another program took %d MiB more; free: %d bytes", depth, took>>20, small.diskFree())

	// Three quarters of it are acknowledged, and the rest, spread over all files, stays.
	ctx, cancel := small.lifetime()
	defer cancel()
	ch := c.Channel()
	c.check(ch.Qos(ctx, 65_000, false))
	consumer, err := ch.Consume(ctx, "q", client.ConsumeOptions{})
	c.check(err)
	pull, end := iter.Pull2(consumer.All(ctx))
	defer end()
	var held []*client.Delivery
	seen := map[message]int{}
	next := func() *client.Delivery {
		d, err, ok := pull()
		if !ok {
			t.Fatalf("the consumer ended: %v", ctx.Err())
		}
		c.check(err)
		m, err := messageOf(d.Body)
		c.check(err)
		seen[m]++
		return d
	}
	for i := range depth {
		if d := next(); i%4 == 0 {
			held = append(held, d)
		} else {
			c.check(d.AckAsync())
		}
	}
	began := time.Now()
	await(t, 2*time.Minute, "publishers let go on", func() error {
		if reason := conn.Blocked() + two.reason(); reason != "" {
			return fmt.Errorf("%s; %d bytes are free", reason, small.diskFree())
		}
		return nil
	})
	t.Logf("with %d of %d messages held, publishes went on %v later; free: %d KiB", len(held), depth, time.Since(began).Round(time.Second/10), small.diskFree()>>10)
	confirmed := one.wait() + two.wait()
	again := c.publishBatch(conn, 2, 50)
	for len(seen) < confirmed+again {
		c.check(next().AckAsync())
	}
	for _, d := range held {
		c.check(d.Ack(ctx))
	}
	for m, n := range seen {
		if n != 1 {
			t.Errorf("%v came %d times", m, n)
		}
	}
	await(t, 30*time.Second, "an empty queue", func() error {
		if n := c.Depth("q"); n != 0 {
			return fmt.Errorf("%d messages are left", n)
		}
		return nil
	})
	other.remove()
	c.Agree()
}

// outOfDisk: when even the reserve is gone the node ends and says why; with room again it goes on where it was.
func outOfDisk(t *testing.T) {
	c := layCluster(t, 1, smallArgs...)
	n := c.nodes[0]
	n.mount(smallDisk)
	n.Start()
	n.Ready()
	c.Declare("q")
	conn := c.Dial()
	confirmed := c.publishBatch(conn, 0, 1000)
	other := n.startFilling()
	ended := n.done
	ch := c.Channel()
	for i := 0; ; i++ { // declarations are no publishes
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		_, err := ch.DeclareQueue(ctx, client.Queue{Name: fmt.Sprintf("%s-%d", strings.Repeat("q", 200), i), Durable: true})
		cancel()
		if err != nil {
			break
		}
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("the node lives on a full disk, and does not answer")
	}
	var exit *exec.ExitError
	if !errors.As(n.err, &exit) || exit.ExitCode() != server.ExitDisk || !n.Logged("disk", "is full", "nothing that was confirmed is lost") {
		t.Errorf("it ended with %v", n.err)
	}
	n.cmd = nil
	other.stop()
	other.remove()
	n.Start()
	n.Ready()
	if depth := c.Depth("q"); depth != uint64(confirmed) {
		t.Errorf("%d messages are in the queue, %d were confirmed", depth, confirmed)
	}
	c.publishBatch(c.Dial(), 1, 10)
}

// mount gives a node that was never started a small disk for its data directory.
func (n *node) mount(size int) {
	n.t.Helper()
	if err := os.MkdirAll(n.dir, 0o755); err != nil {
		n.t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", n.dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		n.t.Fatalf("mount a small disk (this test must run as root): %v", err)
	}
	n.t.Cleanup(func() {
		n.Kill()
		if err := syscall.Unmount(n.dir, syscall.MNT_DETACH); err != nil {
			n.t.Error(err)
		}
	})
}

func (n *node) diskFree() uint64 {
	var s syscall.Statfs_t
	if err := syscall.Statfs(n.dir, &s); err != nil {
		n.t.Fatal(err)
	}
	return s.Bavail * uint64(s.Bsize)
}

// filling is another program that takes whatever is free on a node's disk.
type filling struct {
	name    string
	quit    chan struct{}
	working sync.WaitGroup
	took    int64 // after stop
}

func (n *node) startFilling() *filling {
	f := &filling{name: filepath.Join(n.dir, "other"), quit: make(chan struct{})}
	out, err := os.Create(f.name)
	if err != nil {
		n.t.Fatal(err)
	}
	f.working.Go(func() {
		defer out.Close()
		piece := make([]byte, 64<<10)
		for {
			m, err := out.Write(piece)
			f.took += int64(m)
			pause := time.Duration(0)
			if err != nil { // it looks again soon, for less
				piece, pause = piece[:4096], time.Millisecond
			}
			select {
			case <-f.quit:
				return
			case <-time.After(pause):
			}
		}
	})
	return f
}

func (f *filling) stop() int64 {
	close(f.quit)
	f.working.Wait()
	return f.took
}

func (f *filling) remove() { _ = os.Remove(f.name) }

// publishing is a publisher to the queue q that goes on until it is told to stop.
type publishing struct {
	quit chan struct{}
	done chan struct{}

	mu        sync.Mutex
	why       string // AMQP's; guarded by mu
	confirmed int    // after done
}

func newPublishing() *publishing {
	return &publishing{quit: make(chan struct{}), done: make(chan struct{})}
}

// stop says that no more messages are wanted. It waits for nothing.
func (p *publishing) stop() { close(p.quit) }

// wait waits until everything that was sent is confirmed, and returns how much that is.
func (p *publishing) wait() int {
	<-p.done
	return p.confirmed
}

func (p *publishing) reason() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.why
}

func (p *publishing) set(reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.why = reason
}

func (c *cluster) publishUntil(conn *client.Connection, publisher uint32) *publishing {
	c.t.Helper()
	p := newPublishing()
	ch, err := conn.Channel(c.t.Context())
	c.check(err)
	go func() {
		defer close(p.done)
		var confirms []*client.Confirm
		for i := uint32(0); ; i++ {
			select {
			case <-p.quit:
				for _, confirm := range confirms {
					if _, err := confirm.Wait(c.t.Context()); err != nil {
						c.t.Error(err)
					}
				}
				p.confirmed = len(confirms)
				return
			default:
			}
			confirm, err := ch.PublishAsync(c.t.Context(), "", "q", client.Message{Body: message{publisher, i}.body(fullBody)})
			if err != nil {
				c.t.Error(err)
				return
			}
			confirms = append(confirms, confirm)
		}
	}()
	return p
}

func (c *cluster) publishAMQPUntil(n *node, publisher uint32) *publishing {
	c.t.Helper()
	p := newPublishing()
	conn, err := amqp.Dial("amqp://guest:guest@" + n.addr.amqp + "/")
	c.check(err)
	c.t.Cleanup(func() { _ = conn.CloseDeadline(time.Now().Add(time.Second)) })
	blocked := conn.NotifyBlocked(make(chan amqp.Blocking, 16))
	go func() {
		for b := range blocked {
			p.set(b.Reason)
		}
	}()
	ch, err := conn.Channel()
	c.check(err)
	c.check(ch.Confirm(false))
	go func() {
		defer close(p.done)
		var confirms []*amqp.DeferredConfirmation
		for i := uint32(0); ; i++ {
			select {
			case <-p.quit:
				for _, confirm := range confirms {
					if ok, err := confirm.WaitContext(c.t.Context()); !ok || err != nil {
						c.t.Error("not confirmed", err)
					}
				}
				p.confirmed = len(confirms)
				return
			default:
			}
			if i >= 64 { // what waits on the connection stays below what is read of a blocked one
				_, _ = confirms[i-64].WaitContext(c.t.Context())
			}
			confirm, err := ch.PublishWithDeferredConfirm("", "q", false, false, amqp.Publishing{DeliveryMode: 2, Body: message{publisher, i}.body(fullBody)})
			if err != nil {
				c.t.Error(err)
				return
			}
			confirms = append(confirms, confirm)
		}
	}()
	return p
}

// publishBatch publishes some messages and waits for their confirms.
func (c *cluster) publishBatch(conn *client.Connection, publisher uint32, messages int) int {
	c.t.Helper()
	ch, err := conn.Channel(c.t.Context())
	c.check(err)
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	for i := range messages {
		_, err := ch.Publish(ctx, "", "q", client.Message{Body: message{publisher, uint32(i)}.body(fullBody)})
		c.check(err)
	}
	return messages
}
