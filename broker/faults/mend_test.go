package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/warrenmq/warren/broker/simulation"
	"github.com/warrenmq/warren/client"
	"github.com/warrenmq/warren/fsm"
	"github.com/warrenmq/warren/fsm/store/vfs"
	"github.com/warrenmq/warren/fsm/store/vfs/vfstest"
)

// How many damages are tried without -all, and with it at how many places each file is damaged.
const (
	someMends    = 24
	placesOfEach = 4
)

// mendWithin is for how long, in virtual time, a node may take to be what it was.
const mendWithin = 3 * time.Minute

// lines keeps what the nodes log. Safe for concurrent use.
type lines struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if *verbose {
		_, _ = os.Stderr.Write(b)
	}
	return l.buf.Write(b)
}

// take returns what was logged since the last call.
func (l *lines) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.buf.Reset()
	return l.buf.String()
}

// three is a cluster of three nodes under traffic, one of which is damaged at a time.
type three struct {
	*traffic
	log *lines
}

func newThree() (*three, error) {
	log := &lines{}
	c := simulation.NewCluster(1, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelInfo})))
	for i := range simulation.Nodes {
		if err := c.Start(i); err != nil {
			return nil, err
		}
	}
	t, err := startTraffic(c)
	return &three{t, log}, err
}

// until waits for a condition; false when it does not come true in time.
func until(condition func() bool) bool {
	for late := time.Now().Add(mendWithin); !condition(); <-time.After(50 * time.Millisecond) {
		if time.Now().After(late) {
			return false
		}
	}
	return true
}

// whole reports whether all three nodes vote, have all that is known, and agree; otherwise why not.
func (t *three) whole() (why string) {
	c := t.cluster
	leader := c.Leader()
	if len(c.Up()) < simulation.Nodes || leader < 0 {
		return fmt.Sprintf("%v are up, %d leads", c.Up(), leader)
	}
	voters := c.Server(leader).Node().Voters()
	lowest := ^uint64(0)
	for i := range simulation.Nodes {
		s := c.Server(i)
		if self := s.Node().Self().Server; len(voters) != simulation.Nodes || !slices.Contains(voters, self) {
			return fmt.Sprintf("%v vote, %s must", voters, self)
		}
		if err, ended := c.Ended(i); ended {
			return fmt.Sprintf("node %d ended: %v", i+1, err)
		}
		damaged, missing := s.Machine().Damaged()
		if missing || len(damaged) > 0 || s.Node().Quarantined() || !s.Node().CaughtUp() {
			return fmt.Sprintf("node %d: damaged %v, missing %t, quarantined %t, caught up %t", i+1, damaged, missing, s.Node().Quarantined(), s.Node().CaughtUp())
		}
		index, _ := s.Machine().Hash()
		lowest = min(lowest, index)
	}
	var first uint64
	for i := range simulation.Nodes {
		hash, known := c.Server(i).Machine().HashAt(lowest)
		if i == 0 {
			first = hash
		}
		if !known || hash != first {
			return fmt.Sprintf("at %d the hash of node %d is %x (known: %t), the first one's %x", lowest, i+1, hash, known, first)
		}
	}
	return ""
}

// damage takes a node down without power, damages a file of it, starts it again and waits until it is whole. It returns
// what the operator saw.
func (t *three) damage(i int, rot vfstest.Rot) (saw string, err error) {
	c := t.cluster
	_ = t.log.take()
	if err := rot.Do(c.Disk(i)); err != nil {
		return "", err
	}
	saw = "nothing"
	if err := c.Start(i); err != nil {
		if !strings.Contains(err.Error(), rot.File) {
			return "", fmt.Errorf("it refuses to start and does not name the file: %w", err)
		}
		saw = "it refuses to start: " + err.Error()
		c.Wipe(i) // the way out that it names
		if err := c.Start(i); err != nil {
			return saw, err
		}
	}
	if !until(func() bool { return t.whole() == "" }) {
		return saw, errors.New(t.whole())
	}
	if err := t.read(i); err != nil && !fsm.Unreadable(err) {
		return saw, err
	} else if err != nil { // a body is looked at when it is read; it is mended then
		saw = err.Error()
		if !until(func() bool { err = t.read(i); return err == nil && t.whole() == "" }) {
			return saw, errors.Join(err, errors.New(t.whole()))
		}
	}
	for line := range strings.Lines(t.log.take()) {
		if strings.Contains(line, fmt.Sprintf("host=n%d", i+1)) && strings.Contains(line, rot.File) && !strings.Contains(line, "level=INFO") {
			return line, nil
		}
	}
	if mustName.MatchString(rot.File) && saw == "nothing" {
		return saw, errors.New("nobody named the file")
	}
	return saw, nil
}

// mustName are files that every start reads whole.
var mustName = regexp.MustCompile(`^data/(identity|snapshots/[0-9-]+/meta)$`)

// read holds a node's part of the queue that grows against what was confirmed.
func (t *three) read(i int) error {
	must := t.confirmed()
	m := t.cluster.Server(i).Machine()
	if !until(func() bool { q, _ := m.Queue(1, keptQueue); return int(q.Messages) >= len(must) }) {
		return fmt.Errorf("node %d lacks messages that were confirmed", i+1)
	}
	q, _ := m.Queue(1, keptQueue)
	out, _, err := m.Read(q.Number, 1, len(must), 1<<30, nil)
	if err != nil {
		return fmt.Errorf("node %d: %w", i+1, err)
	}
	for n, msg := range out {
		if string(msg.Body) != must[n] {
			return fmt.Errorf("node %d: message %d is %.40q, must be %.40q", i+1, n, msg.Body, must[n])
		}
	}
	if len(out) != len(must) {
		return fmt.Errorf("node %d: %d messages, must have %d", i+1, len(out), len(must))
	}
	return nil
}

// end stops the traffic, drains the queue that is consumed, stops the nodes and returns what was wrong.
func (t *three) end() []string {
	t.stop()
	until(func() bool { return len(t.missing()) == 0 })
	wrong := t.violations()
	if m := t.missing(); len(m) > 0 {
		wrong = append(wrong, fmt.Sprintf("confirmed and lost: %v", m))
	}
	for i := range simulation.Nodes {
		if err := t.read(i); err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	t.leave()
	t.giveUp()
	for i := range simulation.Nodes {
		if err := t.cluster.Stop(i); err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	t.done.Wait()
	t.cluster.Wait()
	return wrong
}

var numbers = regexp.MustCompile(`[0-9a-f]{8,}|\d+`)

// TestEveryDamageOfOneOfThreeIsMended takes one node of three down after the other, damages one of its files, in every
// way and at several places, and starts it again, under traffic: it is mended from the others, says which file it was
// if that had a consequence, and all three have the same state; no message is lost, and none is wrong.
func TestEveryDamageOfOneOfThreeIsMended(t *testing.T) {
	began, tried, named := time.Now(), 0, 0
	saws := map[string]int{}
	synctest.Test(t, func(t *testing.T) {
		c, err := newThree()
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			for _, wrong := range c.end() {
				t.Error(wrong)
			}
		}()
		<-time.After(10 * time.Second) // snapshots, and a log behind them
		places, rounds := int64(1), someMends
		if *all {
			places, rounds = placesOfEach, 0
		}
		for round := 0; round < max(rounds, 1); round++ {
			victim := round % simulation.Nodes
			c.cluster.Crash(victim, 0)
			rots, err := vfstest.Rots(c.cluster.Disk(victim), "data", places)
			if err != nil {
				t.Error(err)
				return
			}
			if *all && rounds == 0 {
				rounds = len(rots)
			}
			rot := rots[round*len(rots)/rounds%len(rots)]
			saw, err := c.damage(victim, rot)
			tried++
			if err != nil {
				t.Errorf("node %d, %v: %v (%s)", victim+1, rot, err, saw)
				return
			}
			if saw != "nothing" {
				named++
			}
			saws[fmt.Sprintf("%s %s: %t", numbers.ReplaceAllString(rot.File, "N"), rot.What, saw != "nothing")]++
		}
	})
	t.Logf("%d damages in %v, %d named, the others were of no consequence", tried, time.Since(began).Round(time.Millisecond), named)
	if named == 0 {
		t.Error("no damage was named")
	}
	var all []string
	for saw, n := range saws {
		all = append(all, fmt.Sprintf("%4d %s", n, saw))
	}
	slices.Sort(all)
	t.Log("named:\n" + strings.Join(all, "\n"))
}

// deep is how many messages the queue has whose files rot under a node that leads.
const deep = 60

// TestMessageFilesRotUnderTheLeader damages bodies in the message files of a leader that runs; then a consumer takes them
// all: each comes, in order and as it was sent, from this leader or from the next.
func TestMessageFilesRotUnderTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := newThree()
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			for _, wrong := range c.end() {
				t.Error(wrong)
			}
		}()
		ctx, cancel := context.WithTimeout(context.Background(), mendWithin)
		defer cancel()
		conn, ch, err := dial(ctx, c.cluster, "d1")
		if err != nil {
			t.Error(err)
			return
		}
		defer drop(conn)
		if _, err = ch.DeclareQueue(ctx, client.Queue{Name: "deep", Durable: true}); err != nil {
			t.Error(err)
			return
		}
		for n := range deep {
			if _, err := ch.Publish(ctx, "", "deep", client.Message{Body: []byte("deep " + text(n))}); err != nil {
				t.Error(err)
				return
			}
		}
		leader := c.cluster.Leader()
		for i := range simulation.Nodes {
			_ = c.cluster.Server(i).Node().Snapshot()
		}
		rotten := 0
		for n := 3; n < deep; n += 7 {
			rotten += rotText(t, c.cluster.Disk(leader), "data/messages", "deep "+text(n))
		}
		if rotten == 0 {
			t.Error("no message file has them")
		}
		_ = c.log.take()
		consumer, err := ch.Consume(ctx, "deep", client.ConsumeOptions{})
		if err != nil {
			t.Error(err)
			return
		}
		for next := 0; next < deep; {
			select {
			case d := <-consumer.Deliveries():
				if string(d.Body) == "deep "+text(next) {
					next++
				} else if n, ok := number(bytes.TrimPrefix(d.Body, []byte("deep "))); !ok || n > next || !d.Redelivered {
					t.Errorf("%.40q came, want message %d", d.Body, next)
					return
				}
				_ = d.Ack(ctx)
			case <-ctx.Done():
				t.Errorf("message %d did not come: %s", next, c.whole())
				return
			}
		}
		if log := c.log.take(); !strings.Contains(log, "is damaged at offset") {
			t.Error("nobody named the damage")
		}
		if !until(func() bool { return c.whole() == "" }) {
			t.Error(c.whole())
		}
	})
}

// rotText flips a bit of a text wherever it is under a directory and returns how many files that were.
func rotText(t *testing.T, disk *vfs.Mem, dir, text string) (rotten int) {
	files, err := vfstest.Walk(disk, dir)
	if err != nil {
		t.Error(err)
	}
	for _, name := range files {
		f, err := disk.OpenFile(name, os.O_RDONLY, 0)
		if err != nil {
			t.Error(err)
			continue
		}
		data, err := io.ReadAll(f)
		_ = f.Close()
		if err != nil {
			t.Error(err)
		}
		if at := bytes.Index(data, []byte(text)); at >= 0 {
			if err := vfs.FlipBit(disk, name, 8*int64(at+20)); err != nil {
				t.Error(err)
			}
			rotten++
		}
	}
	return rotten
}
