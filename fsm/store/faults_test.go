package store

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"testing"

	"github.com/warrenmq/warren/fsm/store/vfs/vfstest"
)

var errWrongMessage = errors.New("wrong message")

// act is one step of a scripted history, and what it makes of the content.
type act struct {
	name  string
	do    func(b *book, again bool) error // again: it failed once in this process
	model func(content)
}

func adding(queue uint64, size int, sequences ...uint64) act {
	return act{fmt.Sprintf("add %v to %d", sequences, queue),
		func(b *book, again bool) error { return b.add(queue, size, again, sequences...) },
		func(c content) {
			if c[queue] == nil {
				c[queue] = map[uint64]int{}
			}
			for _, s := range sequences {
				c[queue][s] = size
			}
		}}
}

func dropping(queue uint64, sequences ...uint64) act {
	return act{fmt.Sprintf("drop %v from %d", sequences, queue),
		func(b *book, _ bool) error { return b.drop(queue, sequences...) },
		func(c content) {
			for _, s := range sequences {
				delete(c[queue], s)
			}
		}}
}

func collecting(queue uint64) act {
	return act{fmt.Sprintf("collect %d", queue), func(b *book, _ bool) error { return b.collect(queue) }, func(content) {}}
}

// scripted writes new files, goes on with them over restarts, drops and collects.
func scripted() []act {
	return []act{
		adding(1, 100, 1, 2, 3), adding(2, 3000, 1), adding(1, 700, 4, 5), dropping(1, 2, 4), adding(1, 0, 6), collecting(1),
		// a restart is here
		adding(1, 50, 7, 8), adding(2, writeBuffer, 2), dropping(2, 2), adding(1, 10, 9), collecting(1), dropping(2, 1),
	}
}

const restartAfter = 6

// run is the history on one disk.
type run struct {
	disk   *vfstest.Disk
	acts   []act
	states []content // by acts confirmed
	next   int
	doubt  bool // the next one may count
	failed []error
}

func newRun(t *testing.T) *run {
	t.Helper()
	r := &run{disk: vfstest.NewDisk(nil), acts: scripted()}
	r.disk.EndHung = true
	if err := errors.Join(r.disk.Mem.MkdirAll("data", 0o750), r.disk.Mem.SyncDir("/")); err != nil {
		t.Fatal(err)
	}
	now := content{}
	r.states = append(r.states, now)
	for _, a := range r.acts {
		now = now.clone()
		a.model(now)
		r.states = append(r.states, now)
	}
	return r
}

// check compares what a book has with the model and resolves the doubt.
func (r *run) check(b *book) error {
	got, err := b.content()
	if err != nil && !errors.Is(err, errWrongMessage) { // the fault was met here
		r.failed = append(r.failed, err)
		got, err = b.content()
	}
	if err != nil {
		return err
	}
	same := func(want content) bool {
		return maps.EqualFunc(got, want, func(a, b map[uint64]int) bool { return maps.Equal(a, b) })
	}
	if r.doubt && same(r.states[r.next+1]) {
		r.next++
	} else if !same(r.states[r.next]) {
		return fmt.Errorf("after %d acts it has %v, must have %v", r.next, got, r.states[r.next])
	}
	r.doubt = false
	return nil
}

// process is one process: it does acts until the next restart. The error is a violation.
func (r *run) process() error {
	files, _ := r.disk.Start()
	defer r.disk.Kill()
	b, err := openBook(files)
	if err != nil {
		r.failed = append(r.failed, fmt.Errorf("open: %w", err))
		return nil
	}
	defer b.close()
	if err := r.check(b); err != nil {
		return r.dead(err)
	}
	again := false
	for r.next < len(r.acts) {
		err := r.acts[r.next].do(b, again)
		if err != nil {
			r.failed = append(r.failed, fmt.Errorf("%s: %w", r.acts[r.next].name, err))
			if r.disk.Down() || again {
				r.doubt = true
				return nil
			}
			again = true
			continue
		}
		again = false
		if r.next++; r.next%restartAfter == 0 {
			break
		}
	}
	return r.dead(r.check(b))
}

// dead returns a violation unless there was no process any more.
func (r *run) dead(err error) error {
	if r.disk.Down() && !errors.Is(err, errWrongMessage) {
		r.failed = append(r.failed, err)
		return nil
	}
	return err
}

// play runs all processes, each after a loss of power.
func (r *run) play() error {
	for done := false; !done; {
		done = r.next == len(r.acts)
		if err := r.process(); err != nil {
			return err
		}
		r.disk.Cut()
		if len(r.failed) > 3 {
			return fmt.Errorf("it does not get on: %w", errors.Join(r.failed...))
		}
	}
	return nil
}

// TestEveryFileCallFailsOnce runs the history with each of its file calls failing in each way. What counted is read as it
// was written, by each way of reading; what was under way counts as a whole or not at all; and it goes on from there, in
// the same process if that lives.
func TestEveryFileCallFailsOnce(t *testing.T) {
	clean := newRun(t)
	if err := clean.play(); err != nil || len(clean.failed) > 0 {
		t.Fatal(err, clean.failed)
	}
	calls := clean.disk.Calls()
	faults, missed := vfstest.Faults(calls), 0
	for _, f := range faults {
		r := newRun(t)
		r.disk.Pick(f.Call, f.Kind)
		if err := r.play(); err != nil {
			t.Errorf("%v: %v (%v)", f, err, r.failed)
		}
		if !r.disk.Hit() {
			missed++
		}
	}
	t.Logf("%d calls, %d faults, %d not met", len(calls), len(faults), missed)
	if len(calls) < 200 || missed > 0 {
		t.Errorf("%d calls; %d of %d faults were not met", len(calls), missed, len(faults))
	}
}

// TestEveryByteIsGuarded damages each file that a manifest names, and the manifest: what is read is as it was written, or
// the damage is named with its file.
func TestEveryByteIsGuarded(t *testing.T) {
	clean := newRun(t)
	clean.acts = clean.acts[:10]
	if err := clean.play(); err != nil || len(clean.failed) > 0 {
		t.Fatal(err, clean.failed)
	}
	rots, err := vfstest.Rots(clean.disk.Mem, keptDir, 2000)
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, rot := range rots {
		d := vfstest.NewDisk(nil)
		d.Mem = clean.disk.Mem.Clone()
		if err := rot.Do(d.Mem); err != nil {
			t.Fatal(err)
		}
		files, _ := d.Start()
		b, err := openBook(files)
		var got content
		if err == nil {
			got, err = b.content()
			b.close()
		}
		var damage *Damage
		switch {
		case errors.As(err, &damage) || errors.Is(err, ErrManifest) || rot.What == "gone" && err != nil:
			named++
		case err != nil:
			t.Errorf("%v: %v is not a damage", rot, err)
		case rot.File == path.Join(keptDir, "manifest") && rot.What == "gone" && len(got) == 0: // as if nothing had been
		case !reflect.DeepEqual(got, clean.states[10]):
			t.Errorf("%v: %v, want %v", rot, got, clean.states[10])
		}
	}
	t.Logf("%d damages, %d named, the others are of no consequence", len(rots), named)
	if named < len(rots)/2 {
		t.Errorf("of %d damages %d are named", len(rots), named)
	}
}
