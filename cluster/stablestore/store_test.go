package stablestore

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warrenmq/warren/fsm/store/vfs"
)

func reopen(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(vfs.OS{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func vote(s *Store, term uint64, candidate string) error {
	return errors.Join(s.SetUint64(keyTerm, term), s.SetUint64(keyVoteTerm, term), s.Set(keyVoteCand, []byte(candidate)))
}

func check(t *testing.T, s *Store, term uint64, candidate string) {
	t.Helper()
	current, err := s.GetUint64(keyTerm)
	voted, err2 := s.GetUint64(keyVoteTerm)
	c, err3 := s.Get(keyVoteCand)
	if err := errors.Join(err, err2, err3); err != nil || current != term || voted != term || string(c) != candidate {
		t.Errorf("term %d, voted in %d for %q, %v; want %d for %q", current, voted, c, err, term, candidate)
	}
}

func TestRule4VoteIsOneTransaction(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "stable")
	s := reopen(t, dir)
	if _, err := s.GetUint64(keyVoteTerm); err == nil || err.Error() != "not found" {
		t.Fatalf("an empty store: %v", err)
	}
	if err := vote(s, 3, "a"); err != nil {
		t.Fatal(err)
	}
	if err := s.SetUint64(keyVoteTerm, 4); err != nil { // the process dies between raft's two writes
		t.Fatal(err)
	}
	s.Close()
	s = reopen(t, dir)
	check(t, s, 3, "a")
	for want := uint64(1); want < 3; want++ {
		if n, err := s.Boot(); n != want || err != nil {
			t.Error(n, err)
		}
	}
	if err := s.Set([]byte("other"), make([]byte, 8)); err == nil {
		t.Error("a key that is not kept was taken")
	}
}

func TestRule18DamagedCopyIsRepairedOrReported(t *testing.T) {
	s := NewMem()
	if err := s.SetUint64(keyTerm, 7); err != nil {
		t.Fatal(err)
	}
	raw := s.db.(memory)[string(keyTerm)]
	for i := range raw {
		raw[i] ^= 4
		if n, err := s.Reopen().GetUint64(keyTerm); n != 7 || err != nil {
			t.Fatalf("byte %d: %d %v", i, n, err)
		}
		raw = s.db.(memory)[string(keyTerm)]
	}
	raw[3] ^= 1
	raw[len(raw)-1] ^= 1
	var damage *DamageError
	if _, err := s.Reopen().GetUint64(keyTerm); !errors.As(err, &damage) {
		t.Errorf("two damaged copies: %v", err)
	}
}

// Either of the two files may be lost, spoiled or come back old; both together are reported, again at each start.
func TestRule18EitherPlaceMayBeLost(t *testing.T) {
	spoil := func(t *testing.T, file string) {
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		info, _ := f.Stat()
		junk := []byte(strings.Repeat("junk", int(info.Size()/4)))
		if _, err := f.WriteAt(junk, 0); err != nil {
			t.Fatal(err)
		}
	}
	swap := func(t *testing.T, file, by string) {
		data, err := os.ReadFile(by)
		if err == nil {
			err = os.WriteFile(file, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name    string
		do      func(t *testing.T, database, side, old string)
		damaged bool
	}{
		{"nothing", func(*testing.T, string, string, string) {}, false},
		{"database removed", func(t *testing.T, d, _, _ string) { os.Remove(d) }, false},
		{"database spoiled", func(t *testing.T, d, _, _ string) { spoil(t, d) }, false},
		{"database empty", func(t *testing.T, d, _, _ string) { os.Truncate(d, 0) }, false},
		{"database old", func(t *testing.T, d, _, old string) { swap(t, d, filepath.Join(old, databaseFile)) }, false},
		{"copy removed", func(t *testing.T, _, c, _ string) { os.Remove(c) }, false},
		{"copy spoiled", func(t *testing.T, _, c, _ string) { spoil(t, c) }, false},
		{"copy old", func(t *testing.T, _, c, old string) { swap(t, c, filepath.Join(old, copyFile)) }, false},
		{"both spoiled", func(t *testing.T, d, c, _ string) { spoil(t, d); spoil(t, c) }, true},
		{"database removed, copy spoiled", func(t *testing.T, d, c, _ string) { os.Remove(d); spoil(t, c) }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, old := filepath.Join(t.TempDir(), "stable"), t.TempDir()
			s := reopen(t, dir)
			if err := vote(s, 2, "earlier"); err != nil {
				t.Fatal(err)
			}
			s.Close()
			if err := os.CopyFS(old, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			s = reopen(t, dir)
			if err := vote(s, 5, "n2@7f"); err != nil {
				t.Fatal(err)
			}
			s.Close()
			c.do(t, filepath.Join(dir, databaseFile), filepath.Join(dir, copyFile), old)
			for range 2 { // the second start finds it repaired, or still damaged
				s, err := Open(vfs.OS{}, dir)
				var damage *DamageError
				if errors.As(err, &damage) != c.damaged || (err != nil) != c.damaged {
					t.Fatalf("opens with %v", err)
				}
				if err == nil {
					check(t, s, 5, "n2@7f")
					s.Close()
				}
			}
			if !c.damaged {
				os.Remove(filepath.Join(dir, databaseFile)) // the copy alone is whole again
				check(t, reopen(t, dir), 5, "n2@7f")
			}
		})
	}
}

// Whichever call of the copy's file fails or is cut short, and whatever of it a crash leaves: what was promised is
// there, with or without the database, and nothing is there that was not tried.
func TestRule18CrashAtEachCallOfTheCopy(t *testing.T) {
	for _, lost := range []bool{false, true} {
		for call := 1; ; call++ {
			mem, db := vfs.NewMem(), memory{}
			faulty := vfs.Faulty(mem, vfs.Rule{Nth: call, Short: 100, Count: -1})
			promised, tried := uint64(0), uint64(0)
			s, err := openOn(faulty, db)
			for term := uint64(1); err == nil && term <= 6; term++ {
				tried = term
				if err = s.SetUint64(keyTerm, term); err == nil {
					promised = term
				}
			}
			if err != nil && s != nil {
				if again := s.SetUint64(keyTerm, 99); again == nil {
					t.Fatal("the store went on after a failure")
				}
			}
			finished := err == nil
			mem.Crash(rand.New(rand.NewPCG(uint64(call), 3)))
			if lost && len(db) > 0 && promised > 0 {
				clear(db)
			}
			s, err = openOn(mem, db)
			var damage *DamageError
			if lost && errors.As(err, &damage) {
				if finished {
					t.Fatal(err)
				}
				continue // a torn write and a lost database at once are two faults
			}
			if err != nil {
				t.Fatalf("call %d: %v", call, err)
			}
			got, err := s.GetUint64(keyTerm)
			if err != nil && (promised > 0 || err.Error() != "not found") {
				t.Fatalf("call %d, %d promised: %v", call, promised, err)
			}
			if got < promised || got > tried {
				t.Fatalf("call %d: term %d, promised %d, tried %d", call, got, promised, tried)
			}
			if finished {
				break
			}
		}
	}
}

// openOn opens a store on a database in memory.
func openOn(fs vfs.FS, db backend) (*Store, error) {
	side, err := openCopy(fs, copyFile)
	if err != nil {
		return nil, err
	}
	if err := fs.SyncDir("/"); err != nil {
		return nil, err
	}
	s := &Store{db: db, copy: side, file: "memory"}
	if err := s.load(); err != nil {
		return nil, err
	}
	return s, nil
}

func FuzzDecodeSlot(f *testing.F) {
	good, err := encodeSlot(7, map[string][]byte{string(keyTerm): binary.BigEndian.AppendUint64(nil, 3)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:30])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		sequence, values, ok := decodeSlot(b)
		if !ok {
			return
		}
		again, err := encodeSlot(sequence, values)
		if err != nil {
			return // larger when written out plainly
		}
		if _, _, ok := decodeSlot(again); !ok {
			t.Errorf("%q was read, but not what was written from it", b)
		}
	})
}
