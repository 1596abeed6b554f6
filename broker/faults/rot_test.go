package faults

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/warrenmq/warren/cluster/stablestore"
	"github.com/warrenmq/warren/fsm"
	"github.com/warrenmq/warren/fsm/store/vfs"
	"github.com/warrenmq/warren/fsm/store/vfs/vfstest"
)

// wholeFile is how many bytes of a file are damaged, each in a run of its own; with -all wholeFileAll, and without it only
// one of rotStride damages.
const (
	wholeFile    = 3
	wholeFileAll = 400
	rotStride    = 5
)

// left is what a machine that played the history has left.
type left struct {
	mem    *vfs.Mem
	stable *stablestore.Store
	want   model
}

func (l left) machine() *machine {
	m := newMachine()
	m.disk.Mem, m.stable = l.mem.Clone(), l.stable
	return m
}

// TestEveryByteOfANodeIsGuarded damages the data directory of a node that is alone, file by file: it starts with all it
// had, or refuses to start and names the file, at every try; or it serves all but the queue whose record is damaged,
// and names that one.
func TestEveryByteOfANodeIsGuarded(t *testing.T) {
	for _, cut := range []bool{false, true} { // the log begins with the first entry, or behind a snapshot
		t.Run(fmt.Sprintf("cut %t", cut), func(t *testing.T) {
			var l left
			synctest.Test(t, func(t *testing.T) {
				p := newPlay()
				if cut {
					p.machine.snapshotBytes = 2 << 10
				}
				if err := p.run(false); err != nil || len(p.ends) > 0 {
					t.Fatal(err, p.ends)
				}
				l = left{p.machine.disk.Mem.Clone(), p.machine.stable, p.states[len(p.states)-1]}
			})
			whole := int64(wholeFile)
			if *all {
				whole = wholeFileAll
			}
			rots, err := vfstest.Rots(l.mem, "data", whole)
			if err != nil {
				t.Fatal(err)
			}
			if !*all {
				var some []vfstest.Rot
				for i := range rots {
					if i%rotStride == 0 {
						some = append(some, rots[i])
					}
				}
				rots = some
			}
			began, ends := time.Now(), map[string]int{}
			for _, rot := range rots {
				var end string
				var failed error
				synctest.Test(t, func(*testing.T) { end, failed = l.rotten(rot) })
				if failed != nil {
					t.Errorf("%v: %v", rot, failed)
				}
				ends[fmt.Sprintf("%s %s: %s", plain(rot.File), rot.What, end)]++
			}
			t.Logf("%d damages in %v", len(rots), time.Since(began).Round(time.Millisecond))
			var lines []string
			for end, n := range ends {
				lines = append(lines, fmt.Sprintf("%.300s (%d)", end, n))
			}
			slices.Sort(lines)
			t.Log(strings.Join(lines, "\n"))
		})
	}
}

// rotten starts a node on a damaged directory, three times, and returns what it came to.
func (l left) rotten(rot vfstest.Rot) (end string, err error) {
	p := &play{machine: l.machine(), states: []model{l.want}}
	if err := rot.Do(p.machine.disk.Mem); err != nil {
		return "", err
	}
	defer func() {
		p.machine.kill()
		p.machine.ended.Wait()
	}()
	for range 3 {
		u, err := p.open()
		if err != nil {
			if end != "" && !strings.HasPrefix(end, "refuses") {
				return end, fmt.Errorf("it served, and then: %w", err)
			}
			if text := err.Error(); !strings.Contains(text, "damage") && !strings.Contains(text, rot.File) {
				return "refuses", fmt.Errorf("it does not say what is damaged: %w", err)
			}
			end = "refuses: " + err.Error()
			continue
		}
		now, err := p.served(u)
		u.leave()
		if err != nil {
			return now, err
		}
		if strings.HasPrefix(end, "refuses") {
			return end, errors.New("it refused, and served when it was started again")
		}
		end = now
		if err := p.machine.halt(); err != nil {
			return end, err
		}
	}
	return end, nil
}

// served compares what a node on a damaged directory serves.
func (p *play) served(u *user) (string, error) {
	got, err := actual(u.server)
	if err == nil && !got.equal(p.states[0]) {
		return "", fmt.Errorf("the state is\n  %v, must be\n  %v", got, p.states[0])
	}
	if err == nil {
		return "it is of no consequence", nil
	}
	if !fsm.Unreadable(err) || u.server.Machine().Incomplete() != nil {
		return "", err
	}
	// A record that cannot be read costs its queue: the others are as they were, and this one counts what it has.
	for _, q := range u.server.Machine().Queues(1) {
		if int(q.Messages) != len(p.states[0].queues[q.Name]) {
			return "", fmt.Errorf("queue %s has %d messages, must have %d", q.Name, q.Messages, len(p.states[0].queues[q.Name]))
		}
		if _, _, err := u.server.Machine().Read(q.Number, 1, 1000, 1<<30, nil); err == nil && !slices.Equal(got.queues[q.Name], p.states[0].queues[q.Name]) && got.queues[q.Name] != nil {
			return "", fmt.Errorf("queue %s has %v", q.Name, got.queues[q.Name])
		}
	}
	return fmt.Sprintf("a queue is not served: %v", err), nil
}
