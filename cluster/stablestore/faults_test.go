package stablestore

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/warrenmq/warren/fsm/store/vfs"
	"github.com/warrenmq/warren/fsm/store/vfs/vfstest"
)

var all = flag.Bool("all", false, "damage every byte; without it, a part of them")

// database is a backend whose calls are counted and fail as a disk's: Gets and Sets are calls of a file of their own.
type database struct {
	memory
	files vfs.FS
}

// call lets the disk decide over one call of the database.
func (d database) call(op string, do func() error) error {
	f, err := d.files.OpenFile("database-"+op, os.O_CREATE|os.O_RDWR, 0o600) // durable at once in do, or not at all
	if err != nil {
		return err
	}
	defer f.Close()
	if err := do(); err != nil {
		return err
	}
	return f.Sync() // may fail though it was done
}

func (d database) Set(k, v []byte) error {
	return d.call("set", func() error { return d.memory.Set(k, v) })
}

func (d database) Get(k []byte) (v []byte, err error) {
	err = d.call("get", func() error { v, err = d.memory.Get(k); return err })
	return v, err
}

// votes are what a run promises and tries: term and candidate, one after the other.
const lastTerm = 8

// TestEveryCallFailsOnce raises term and vote with each call of the copy's file and of the database failing in each way:
// what was promised is there after a restart, what was not is there as a whole or not at all, and nothing older.
func TestEveryCallFailsOnce(t *testing.T) {
	run := func(d *vfstest.Disk) (ends []error, err error) {
		db := memory{}
		term, tried := uint64(0), uint64(0) // promised, and perhaps there
		for lives := 0; term < lastTerm; lives++ {
			if lives > 8 {
				return ends, errors.New("it does not get on")
			}
			files, _ := d.Start()
			s, err := openOn(files, database{db, files})
			for n := 0; err == nil; n++ {
				current, cerr := s.GetUint64(keyTerm)
				voted, verr := s.GetUint64(keyVoteTerm)
				candidate, _ := s.Get(keyVoteCand)
				if term+tried > 0 && (cerr != nil || verr != nil) && term > 0 {
					return ends, fmt.Errorf("term %d was promised: %v, %v", term, cerr, verr)
				}
				if current < term || current > tried || voted < term || voted > current ||
					verr == nil && string(candidate) != fmt.Sprint("n", voted) {
					return ends, fmt.Errorf("term %d, voted in %d for %q; promised %d, tried %d", current, voted, candidate, term, tried)
				}
				if term = max(term, voted); n == 3 || term == lastTerm {
					break // a restart
				}
				tried = current + 1
				if err = vote(s, tried, fmt.Sprint("n", tried)); err == nil {
					term = tried
				}
			}
			if err != nil {
				ends = append(ends, err)
			}
			d.Kill()
			d.Cut()
		}
		return ends, nil
	}
	clean := vfstest.NewDisk(nil)
	if ends, err := run(clean); err != nil || len(ends) > 0 {
		t.Fatal(err, ends)
	}
	calls := clean.Calls()
	faults, missed := vfstest.Faults(calls), 0
	for _, f := range faults {
		d := vfstest.NewDisk(nil)
		d.EndHung = true
		d.Pick(f.Call, f.Kind)
		if ends, err := run(d); err != nil {
			t.Errorf("%v: %v (%v)", f, err, ends)
		}
		if !d.Hit() {
			missed++
		}
	}
	t.Logf("%d calls, %d faults, %d not met", len(calls), len(faults), missed)
	if len(calls) < 100 || missed > 0 {
		t.Errorf("%d calls; %d of %d faults were not met", len(calls), missed, len(faults))
	}
}

// image is the two files of a store.
type image struct{ database, copy []byte }

func (i image) write(t *testing.T, dir string) {
	t.Helper()
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, databaseFile), i.database, 0o600),
		os.WriteFile(filepath.Join(dir, copyFile), i.copy, 0o600)); err != nil {
		t.Fatal(err)
	}
}

func readImage(t *testing.T, dir string) (i image) {
	t.Helper()
	var err, other error
	i.database, err = os.ReadFile(filepath.Join(dir, databaseFile))
	i.copy, other = os.ReadFile(filepath.Join(dir, copyFile))
	if err := errors.Join(err, other); err != nil {
		t.Fatal(err)
	}
	return i
}

// images returns the files of a store after each of some votes, the first in term 1.
func images(t *testing.T, dir string) (all []image) {
	t.Helper()
	s := reopen(t, dir)
	for term := uint64(1); term <= 4; term++ {
		if err := vote(s, term, fmt.Sprint("n", term)); err != nil {
			t.Fatal(err)
		}
		all = append(all, readImage(t, dir))
	}
	return all
}

// opens opens a store and returns its term, which is that of its vote too.
func opens(dir string, least, most uint64) error {
	s, err := Open(vfs.OS{}, dir)
	if err != nil {
		return err
	}
	defer s.Close() // twice does no harm
	current, err := s.GetUint64(keyTerm)
	voted, err2 := s.GetUint64(keyVoteTerm)
	candidate, err3 := s.Get(keyVoteCand)
	if err := errors.Join(err, err2, err3); err != nil {
		return err
	}
	if current < least || voted < least || current > most || voted > current || string(candidate) != fmt.Sprint("n", voted) {
		return fmt.Errorf("term %d, voted in %d for %q; must be %d to %d", current, voted, candidate, least, most)
	}
	next := most + 1
	if err := vote(s, next, fmt.Sprint("n", next)); err != nil {
		return fmt.Errorf("it opens and does not go on: %w", err)
	}
	if err := s.Close(); err != nil {
		return err
	}
	if s, err = Open(vfs.OS{}, dir); err != nil {
		return fmt.Errorf("it went on and does not open: %w", err)
	}
	voted, err = s.GetUint64(keyVoteTerm)
	if err := errors.Join(err, s.Close()); err != nil || voted != next {
		return fmt.Errorf("it went on to term %d and has %d, %w", next, voted, err)
	}
	return nil
}

// memoryDir is where files are synced at no cost, if there is such a place.
func memoryDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "stable")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "stable")
}

// TestEveryCrashOfTheDatabase: bbolt writes its file itself, so its crashes are made from outside: whichever of the pages
// that a vote changed have reached the disk, what was promised before is there, or what was tried.
func TestEveryCrashOfTheDatabase(t *testing.T) {
	dir := memoryDir(t)
	votes, torn := images(t, dir), 0
	const page = 4096
	for i := range votes[1:] {
		before, after := votes[i], votes[i+1]
		before.database = append(before.database, make([]byte, max(0, len(after.database)-len(before.database)))...)
		var changed []int
		for at := 0; at < len(after.database); at += page {
			if !bytes.Equal(before.database[at:at+page], after.database[at:at+page]) {
				changed = append(changed, at)
			}
		}
		for set := range 1 << len(changed) {
			now := image{bytes.Clone(before.database), after.copy} // the copy is written first
			for bit, at := range changed {
				if set>>bit&1 == 1 {
					copy(now.database[at:at+page], after.database[at:at+page])
				}
			}
			now.write(t, dir)
			torn++
			if err := opens(dir, uint64(i+2), uint64(i+2)); err != nil {
				t.Errorf("vote %d, pages %b of %v: %v", i+2, set, changed, err)
			}
		}
		for _, c := range []image{{after.database, before.copy}, {before.database, before.copy}} { // and before the copy was
			c.write(t, dir)
			if err := opens(dir, uint64(i+1), uint64(i+2)); err != nil {
				t.Error(err)
			}
		}
	}
	t.Logf("%d torn databases", torn)
}

// byteStride is how many bytes are passed over for one that is damaged, without -all.
const byteStride = 61

// TestEveryByteOfEitherFileMayBeDamaged: the store opens with the vote that was promised, and goes on, whichever byte or
// block of either file is wrong, missing or cut off.
func TestEveryByteOfEitherFileMayBeDamaged(t *testing.T) {
	dir := memoryDir(t)
	votes := images(t, dir)
	last := votes[len(votes)-1]
	n := 0
	try := func(what string, damage func(b []byte) []byte) {
		for _, hit := range []image{{damage(bytes.Clone(last.database)), last.copy}, {last.database, damage(bytes.Clone(last.copy))}} {
			hit.write(t, dir)
			n++
			if err := opens(dir, uint64(len(votes)), uint64(len(votes))); err != nil {
				t.Errorf("%s, database %t: %v", what, &hit.copy[0] == &last.copy[0], err)
			}
		}
	}
	stride := byteStride
	if *all {
		stride = 1
	}
	for at := 0; at < len(last.database); at += stride {
		try(fmt.Sprint("flip at ", at), func(b []byte) []byte {
			if at < len(b) {
				b[at] ^= 1 << (at % 8)
			}
			return b
		})
	}
	for at := 0; at < len(last.database); at += 512 {
		try(fmt.Sprint("block at ", at), func(b []byte) []byte {
			if at < len(b) {
				clear(b[at:min(at+512, len(b))])
			}
			return b
		})
		try(fmt.Sprint("cut at ", at), func(b []byte) []byte { return b[:max(1, min(at, len(b)))] })
	}
	t.Logf("%d damages of %d and %d bytes", n, len(last.database), len(last.copy))
}

// TestADatabaseThatFailsIsNotTriedAgain: from a moment on every write to bbolt's file fails. The vote that met it was not
// promised, later ones are refused, and at the next start it is one of the two.
func TestADatabaseThatFailsIsNotTriedAgain(t *testing.T) {
	dir := memoryDir(t)
	s := reopen(t, dir)
	if err := vote(s, 1, "n1"); err != nil {
		t.Fatal(err)
	}
	db := s.db
	s.db = failing{db}
	for range 2 {
		if err := vote(s, 2, "n2"); !errors.Is(err, syscall.EIO) {
			t.Fatal(err)
		}
	}
	s.db = db // the disk is sound again, the store does not trust it
	if err := vote(s, 3, "n3"); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = reopen(t, dir)
	if current, err := s.GetUint64(keyTerm); err != nil || current < 1 || current > 2 {
		t.Error(current, err)
	}
	if candidate, err := s.Get(keyVoteCand); err != nil || string(candidate) != "n1" {
		t.Errorf("voted for %q, %v", candidate, err)
	}
}

// failing is a database whose writes fail.
type failing struct{ backend }

func (failing) Set([]byte, []byte) error { return syscall.EIO }
