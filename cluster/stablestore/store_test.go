package stablestore

import (
	"errors"
	"path/filepath"
	"testing"
)

func TestRule4VoteIsOneTransaction(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stable")
	s, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.GetUint64(keyVoteTerm); err == nil || err.Error() != "not found" {
		t.Fatalf("an empty store: %v", err)
	}
	vote := func(term uint64, cand string) {
		if err := s.SetUint64(keyVoteTerm, term); err != nil {
			t.Fatal(err)
		}
		if cand != "" {
			if err := s.Set(keyVoteCand, []byte(cand)); err != nil {
				t.Fatal(err)
			}
		}
	}
	vote(3, "a")
	vote(4, "") // the process dies between raft's two writes
	s.Close()
	if s, err = Open(file); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	term, _ := s.GetUint64(keyVoteTerm)
	cand, _ := s.Get(keyVoteCand)
	if term != 3 || string(cand) != "a" {
		t.Errorf("after the crash the vote is %d %q", term, cand)
	}
	if n, err := s.Boot(); n != 1 || err != nil {
		t.Error(n, err)
	}
	if n, err := s.Boot(); n != 2 || err != nil {
		t.Error(n, err)
	}
}

func TestRule18DamagedCopyIsRepairedOrReported(t *testing.T) {
	s := NewMem()
	key := []byte("CurrentTerm")
	if err := s.SetUint64(key, 7); err != nil {
		t.Fatal(err)
	}
	raw := s.db.(memory)[string(key)]
	for i := range raw {
		raw[i] ^= 4
		if n, err := s.Reopen().GetUint64(key); n != 7 || err != nil {
			t.Fatalf("byte %d: %d %v", i, n, err)
		}
		raw = s.db.(memory)[string(key)]
	}
	raw[3] ^= 1
	raw[len(raw)-1] ^= 1
	var damage *DamageError
	if err := s.Verify(); !errors.As(err, &damage) {
		t.Errorf("two damaged copies: %v", err)
	}
}
