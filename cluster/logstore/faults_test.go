package logstore

import (
	"errors"
	"fmt"

	"testing"

	"github.com/hashicorp/raft"
	"github.com/warrenmq/warren/fsm/store/vfs/vfstest"
)

// act is one step of a scripted history, and what it makes of the entries that the log must have.
type act struct {
	name  string
	do    func(*Store) error
	model func(have []uint64) []uint64
}

func appending(lo, hi uint64, size int) act {
	return act{fmt.Sprintf("append %d-%d", lo, hi), func(s *Store) error { return s.StoreLogs(entries(lo, hi, size)) },
		func(have []uint64) []uint64 {
			for i := lo; i <= hi; i++ {
				have = append(have, i)
			}
			return have
		}}
}

func deleting(lo, hi uint64) act {
	return act{fmt.Sprintf("delete %d-%d", lo, hi), func(s *Store) error { return s.DeleteRange(lo, hi) },
		func(have []uint64) (left []uint64) {
			for _, i := range have {
				if i < lo || i > hi {
					left = append(left, i)
				}
			}
			return left
		}}
}

// scripted fills and rolls segments, marks, cuts both ends, empties the log and goes on elsewhere.
func scripted() []act {
	same := func(have []uint64) []uint64 { return have }
	mark := act{"mark", (*Store).syncMark, same}
	return []act{
		appending(1, 1, 50), appending(2, 4, 300), appending(5, 5, 2000), appending(6, 8, 900), mark, appending(9, 9, 3000),
		deleting(9, 9), appending(9, 12, 700), deleting(11, 12), appending(11, 11, 10), deleting(1, 5), mark,
		appending(12, 15, 1200), appending(16, 16, 6000), deleting(6, 12), appending(17, 17, 3000), deleting(13, 17),
		appending(30, 31, 100),
		{"reset to 40", func(s *Store) error { return s.Reset(40) }, func([]uint64) []uint64 { return nil }},
		appending(40, 44, 500), appending(45, 45, 3000), mark, appending(46, 46, 20),
	}
}

func faultOptions(d *vfstest.Disk) Options {
	files, _ := d.Start()
	return Options{FS: files, Dir: "data/log", SegmentSize: 4096, CacheSize: 1, MarkDelay: -1, SnapshotIndex: 39}
}

// play opens the log, runs the acts from one on and closes it. It returns how many acts were confirmed, and the error
// that ended the run.
func play(d *vfstest.Disk, acts []act, from int) (int, error) {
	s, err := Open(faultOptions(d))
	if err != nil {
		return from, err
	}
	defer s.Close()
	for ; from < len(acts); from++ {
		if err := acts[from].do(s); err != nil {
			return from, fmt.Errorf("%s: %w", acts[from].name, err)
		}
	}
	return from, s.Close()
}

func look(d *vfstest.Disk) (string, error) {
	s, err := Open(faultOptions(d))
	if err != nil {
		return "", err
	}
	defer s.Close()
	first, err := s.FirstIndex()
	if err != nil {
		return "", err
	}
	last, err := s.LastIndex()
	if err != nil {
		return "", err
	}
	var have []uint64
	for i := first; i <= last && first > 0; i++ {
		var l raft.Log
		if err := s.GetLog(i, &l); err != nil {
			return "", err
		}
		if want := entries(i, i, len(l.Data))[0]; string(l.Data) != string(want.Data) || l.Index != i || l.Term != want.Term {
			return "", fmt.Errorf("entry %d is %+v", i, l)
		}
		have = append(have, i)
	}
	return fmt.Sprint(have), nil
}

func newDisk(t *testing.T) *vfstest.Disk {
	t.Helper()
	d := vfstest.NewDisk(nil)
	if err := d.Mem.MkdirAll("data", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := d.Mem.SyncDir("/"); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestEveryFileCallFailsOnce runs the history with each of its file calls failing in each way. After a restart the log
// has what was confirmed, with or without the one act that was under way; it still has it when the power goes then;
// and it goes on from there.
func TestEveryFileCallFailsOnce(t *testing.T) {
	acts := scripted()
	states := []string{"[]"} // by acts confirmed
	var have []uint64
	for _, a := range acts {
		have = a.model(have)
		states = append(states, fmt.Sprint(have))
	}
	clean := newDisk(t)
	for from := 0; from < len(acts); {
		n, err := play(clean, acts[:min(from+8, len(acts))], from) // with restarts in between
		if err != nil {
			t.Fatal(err)
		}
		clean.Cut()
		from = n
	}
	calls := clean.Calls()
	faults, missed := vfstest.Faults(calls), 0
	for _, f := range faults {
		d := newDisk(t)
		d.EndHung = true // by the watchdog
		d.Pick(f.Call, f.Kind)
		if err := withOneFault(d, acts, states); err != nil {
			t.Errorf("%v: %v", f, err)
		}
		if !d.Hit() {
			missed++
		}
	}
	t.Logf("%d calls, %d runs, %d without their fault", len(calls), len(faults), missed)
	if len(calls) < 200 || missed > 0 {
		t.Errorf("%d calls; %d runs did not meet their fault", len(calls), missed)
	}
}

func withOneFault(d *vfstest.Disk, acts []act, states []string) error {
	for from := 0; from < len(acts); {
		n, failed := play(d, acts[:min(from+8, len(acts))], from)
		d.Kill()
		if failed == nil {
			d.Cut()
			from = n
			continue
		}
		got, err := look(d)
		if err != nil {
			return fmt.Errorf("it ended with %v; restart: %w", failed, err)
		}
		d.Cut()
		again, err := look(d)
		if err != nil {
			return fmt.Errorf("it ended with %v; restart after a loss of power: %w", failed, err)
		}
		if got != again {
			return fmt.Errorf("it ended with %v; after a restart it had %s, after a loss of power %s", failed, got, again)
		}
		switch {
		case n < len(acts) && got == states[n+1]:
			from = n + 1
		case got == states[n]:
			from = n
		default:
			return fmt.Errorf("it ended with %v after %d acts with %s, want %s", failed, n, got, states[n])
		}
	}
	got, err := look(d)
	if err == nil && got != states[len(acts)] {
		err = fmt.Errorf("%s, want %s", got, states[len(acts)])
	}
	if err != nil {
		return fmt.Errorf("at the end: %w", err)
	}
	return nil
}

// TestEveryByteIsGuarded damages each file of a log that was closed, byte for byte: it opens with what it had, or says
// what is damaged.
func TestEveryByteIsGuarded(t *testing.T) {
	acts := scripted()
	clean := newDisk(t)
	if _, err := play(clean, acts, 0); err != nil {
		t.Fatal(err)
	}
	clean.Cut()
	want, err := look(clean)
	if err != nil {
		t.Fatal(err)
	}
	clean.Cut()
	rots, err := vfstest.Rots(clean.Mem, "data", 16<<10)
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, rot := range rots {
		d := vfstest.NewDisk(nil)
		d.Mem = clean.Mem.Clone()
		if err := rot.Do(d.Mem); err != nil {
			t.Fatal(err)
		}
		got, err := look(d)
		var damage *DamageError
		switch {
		case errors.As(err, &damage):
			named++
		case err != nil:
			t.Errorf("%v: %v is not a damage", rot, err)
		case got != want:
			t.Errorf("%v: %s, want %s", rot, got, want)
		}
	}
	t.Logf("%d damages, %d named, the others are of no consequence", len(rots), named)
	if named < len(rots)/4 {
		t.Errorf("of %d damages %d are named", len(rots), named)
	}
}
