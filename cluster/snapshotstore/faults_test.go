package snapshotstore

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/warrenmq/warren/fsm/store/vfs/vfstest"
)

var idTime = regexp.MustCompile(`(/snapshots/\d+-\d+)-\d+-\d+`)

// plain takes the time out of snapshots' names.
func plain(name string) string { return idTime.ReplaceAllString(name, "$1") }

// messages is a file that snapshots refer to.
const messages = "/data/queue.messages"

// snapshots is a history on one disk: it takes snapshots with and without files, cancels some, reads old ones while newer
// ones are taken, and restarts. Each index is used once, so that a call has the same name in every run.
type snapshots struct {
	disk  *vfstest.Disk
	taken map[uint64]string // by index: what was confirmed, and what it must read as
	doubt map[uint64]string // may be there or not
	at    uint64            // index of the last one tried
	ends  []error
}

const (
	retained  = 2
	processes = 2
	perLife   = 3
)

func newSnapshots(t *testing.T) *snapshots {
	t.Helper()
	r := &snapshots{disk: vfstest.NewDisk(plain), taken: map[uint64]string{}, doubt: map[uint64]string{}}
	r.disk.EndHung = true
	if err := errors.Join(r.disk.Mem.MkdirAll("/data", 0o750), r.disk.Mem.SyncDir("/")); err != nil {
		t.Fatal(err)
	}
	writeFile(t, r.disk.Mem, messages, []byte("0123456789"))
	if err := r.disk.Mem.SyncDir("/data"); err != nil {
		t.Fatal(err)
	}
	return r
}

// play runs every process of the history, each after a loss of power. The error is a violation.
func (r *snapshots) play() error {
	for life := range processes {
		for {
			ends := len(r.ends)
			if err := r.process(life); err != nil {
				return err
			}
			r.disk.Cut()
			if len(r.ends) == ends {
				break
			}
			if len(r.ends) > 3 {
				return fmt.Errorf("it does not get on: %w", errors.Join(r.ends...))
			}
		}
	}
	return nil
}

// process is one process. It leaves an error in ends when it is over before its time.
func (r *snapshots) process(life int) error {
	files, _ := r.disk.Start()
	s, err := New(files, "/data/snapshots", retained, nil)
	if err != nil {
		r.ends = append(r.ends, err)
		return nil
	}
	if err := r.check(s); err != nil {
		return r.unlessDown(err)
	}
	var old io.ReadCloser
	var must string
	for n := range uint64(perLife) {
		index := uint64(life)*10 + n + 1
		if index <= r.at {
			continue
		}
		r.at = index
		text := fmt.Sprintf("text %d|%s|", index, strings.Repeat("x", int(index)*40))
		if n == 1 {
			r.cancel(s, index)
			continue
		}
		file, ranges, want := "", [][2]int64(nil), text+"|end"
		if n == 0 {
			file, ranges, want = messages, [][2]int64{{1, 3}, {5, 6}}, text+"125|end"
		}
		if _, err := take(s, index, text, file, ranges); err != nil {
			r.doubt[index] = want // of it nothing is left, or all of it
		} else {
			r.taken[index] = want
		}
		if n == 0 {
			if _, old, err = s.Open(r.newest(s)); err != nil {
				old = nil // taken, but not read just now
			}
			must = want
		}
	}
	if old != nil {
		got, err := io.ReadAll(old)
		if err == nil && r.taken[uint64(life)*10+1] != "" && string(got) != must {
			return fmt.Errorf("the one being read is %q, must be %q", got, must)
		}
		if err := old.Close(); err != nil && !r.disk.Hit() {
			return err
		}
	}
	return r.unlessDown(r.check(s))
}

func (r *snapshots) cancel(s *Store, index uint64) {
	k, err := s.Create(1, index, 2, configuration, 1, nil)
	if err == nil {
		_, _ = k.Write([]byte("given up"))
		_ = k.Cancel() // what it leaves goes at the next start
	}
}

func (r *snapshots) newest(s *Store) string {
	metas, err := s.List()
	if err != nil || len(metas) == 0 {
		return ""
	}
	return metas[0].ID
}

// unlessDown drops an error of a process that is dead, and takes it for its end.
func (r *snapshots) unlessDown(err error) error {
	if r.disk.Down() {
		r.ends = append(r.ends, fmt.Errorf("no process: %w", err))
		return nil
	}
	return err
}

// check holds the snapshots that are listed against those that were confirmed. One call may fail meanwhile: it is made
// again.
func (r *snapshots) check(s *Store) error {
	err := r.look(s)
	if err != nil && r.disk.Hit() && !r.disk.Down() {
		err = r.look(s)
	}
	return err
}

func (r *snapshots) look(s *Store) error {
	metas, err := s.List()
	if err != nil {
		return err
	}
	var have []uint64
	for _, m := range metas {
		want, ok := r.taken[m.Index]
		if !ok {
			want, ok = r.doubt[m.Index]
		}
		if !ok {
			return fmt.Errorf("snapshot %d was never taken", m.Index)
		}
		got, err := read(s, m.ID)
		if err != nil {
			return fmt.Errorf("snapshot %d: %w", m.Index, err)
		}
		if got != want {
			return fmt.Errorf("snapshot %d is %q, must be %q", m.Index, got, want)
		}
		have = append(have, m.Index)
	}
	confirmed := slices.Sorted(maps.Keys(r.taken))
	for _, index := range confirmed[max(0, len(confirmed)-retained):] {
		newer := 0
		for _, h := range have {
			if h > index {
				newer++
			}
		}
		if newer < retained && !slices.Contains(have, index) {
			return fmt.Errorf("snapshot %d was confirmed and is gone; there are %v", index, have)
		}
	}
	return nil
}

// TestEveryFileCallFailsOnce runs the history with each of its file calls failing in each way: a snapshot that was
// confirmed is there and reads as it was written until newer ones have taken its place, also after a loss of power; one
// that was not is there as a whole or not at all; and a start leaves nothing unfinished.
func TestEveryFileCallFailsOnce(t *testing.T) {
	clean := newSnapshots(t)
	if err := clean.play(); err != nil || len(clean.ends) > 0 {
		t.Fatal(err, clean.ends)
	}
	calls := clean.disk.Calls()
	faults, missed := vfstest.Faults(calls), 0
	for _, f := range faults {
		r := newSnapshots(t)
		r.disk.Pick(f.Call, f.Kind)
		err := r.play()
		if err == nil {
			err = r.nothingIsLeft()
		}
		if err != nil {
			t.Errorf("%v: %v (%v)", f, err, r.ends)
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

// nothingIsLeft starts once more and looks for what is no snapshot.
func (r *snapshots) nothingIsLeft() error {
	if _, err := New(r.disk.Mem, "/data/snapshots", retained, nil); err != nil {
		return err
	}
	names, err := r.disk.Mem.ReadDir("/data/snapshots")
	if err == nil && len(names) != retained {
		err = fmt.Errorf("there are %v", names)
	}
	return err
}

// TestEveryByteIsGuarded damages each file of the snapshots: each is read as it was written, or its damage is named. (The
// bytes of files that are referred to have checksums of their own.)
func TestEveryByteIsGuarded(t *testing.T) {
	clean := newSnapshots(t)
	if err := clean.play(); err != nil {
		t.Fatal(err)
	}
	rots, err := vfstest.Rots(clean.disk.Mem, "/data/snapshots", 2000)
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, rot := range rots {
		if strings.Contains(rot.File, filesDir) && (rot.What == "flip" || rot.What == "zero") {
			continue
		}
		mem := clean.disk.Mem.Clone()
		if err := rot.Do(mem); err != nil {
			t.Fatal(err)
		}
		s, err := New(mem, "/data/snapshots", retained, nil)
		if err != nil {
			t.Errorf("%v: %v", rot, err)
			continue
		}
		metas, broken, err := s.Look()
		if err != nil || len(metas)+len(broken) < retained {
			t.Errorf("%v: %d snapshots, %v, %v", rot, len(metas), broken, err)
		}
		damages := len(broken)
		for _, m := range metas {
			got, err := read(s, m.ID)
			switch {
			case err != nil && strings.Contains(err.Error(), path.Base(rot.File)):
				damages++
			case err != nil:
				t.Errorf("%v: %v does not name it", rot, err)
			case got != clean.taken[m.Index]:
				t.Errorf("%v: snapshot %d is %q", rot, m.Index, got)
			}
		}
		for _, b := range broken {
			if !strings.Contains(b.Err.Error(), rot.File) {
				t.Errorf("%v: %v does not name it", rot, b.Err)
			}
		}
		if damages > 0 {
			named++
		}
	}
	t.Logf("%d damages, %d named, the others are of no consequence", len(rots), named)
	if named < len(rots)/2 {
		t.Errorf("of %d damages %d are named", len(rots), named)
	}
}
