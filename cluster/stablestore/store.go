// Package stablestore keeps what a Raft node must not forget: its term, its vote, and a count of its starts. It
// lies on raft-boltdb. Every value carries a checksum and has a second copy; a damaged copy is repaired from the
// good one, two damaged copies are a *DamageError. A value that raft writes in two parts, the vote, is committed in
// one transaction.
//
// Both copies lie in one value of the database, so that they change together. They guard against flipped bits, not
// against the loss of a whole page.
package stablestore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
)

var (
	keyVoteTerm = []byte("LastVoteTerm")
	keyVoteCand = []byte("LastVoteCand")
	keyVote     = []byte("Vote") // term (8 bytes) and candidate, together
	keyBoots    = []byte("Boots")
)

// errNotFound reads as raft expects: it compares the text.
var errNotFound = errors.New("not found")

// DamageError says that both copies of a value are damaged: the node must not vote.
type DamageError struct {
	File string
	Key  string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s: both copies of %q are damaged; quarantine this node and let it take the state from its peers", e.File, e.Key)
}

// backend holds sealed copies; Set is durable and atomic when it returns.
type backend interface {
	Set(key, value []byte) error
	Get(key []byte) ([]byte, error)
	Close() error
}

// Store is a raft.StableStore, safe for concurrent use.
type Store struct {
	mu       sync.Mutex // guards everything below
	db       backend
	file     string
	heldTerm []byte // LastVoteTerm, until LastVoteCand comes
}

var _ raft.StableStore = (*Store)(nil)

// Open opens or makes the store at file. It waits at most 5 s for another process to let go of it.
func Open(file string) (*Store, error) {
	db, err := raftboltdb.New(raftboltdb.Options{Path: file, BoltOptions: boltOptions()})
	if err != nil {
		return nil, fmt.Errorf("open the stable store %s: %w", filepath.Clean(file), err)
	}
	return &Store{db: db, file: file}, nil
}

// OpenBoltLog opens raft-boltdb as a log store, with the options that make it less slow.
func OpenBoltLog(file string) (*raftboltdb.BoltStore, error) {
	o := boltOptions()
	o.NoFreelistSync, o.NoGrowSync, o.FreelistType = true, true, bbolt.FreelistMapType
	db, err := raftboltdb.New(raftboltdb.Options{Path: file, BoltOptions: o})
	if err != nil {
		return nil, fmt.Errorf("open the raft log %s: %w", filepath.Clean(file), err)
	}
	return db, nil
}

func boltOptions() *bbolt.Options { return &bbolt.Options{Timeout: 5 * time.Second} }

// NewMem returns a store that forgets at Close, for simulations: reopen it with Reopen.
func NewMem() *Store { return &Store{db: memory{}, file: "memory"} }

// Reopen returns the in-memory store as a restarted process finds it.
func (s *Store) Reopen() *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &Store{db: s.db, file: s.file}
}

type memory map[string][]byte

func (m memory) Set(k, v []byte) error { m[string(k)] = bytes.Clone(v); return nil }
func (m memory) Close() error          { return nil }
func (m memory) Get(k []byte) ([]byte, error) {
	if v, ok := m[string(k)]; ok {
		return bytes.Clone(v), nil
	}
	return nil, errNotFound
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal makes two equal copies of [length][checksum over key and value][value] in one value of the database, so that
// one Set changes both.
func seal(key, value []byte) []byte {
	one := binary.LittleEndian.AppendUint32(nil, uint32(len(value)))
	one = binary.LittleEndian.AppendUint32(one, sum(key, value))
	one = append(one, value...)
	return append(one, one...)
}

func sum(key, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
}

func unseal(key, b []byte) (value []byte, repaired, ok bool) {
	half := len(b) / 2
	value, ok = open(key, b[:half])
	other, good := open(key, b[half:])
	if !ok {
		return other, true, good
	}
	return value, !good, true
}

func open(key, b []byte) ([]byte, bool) {
	if len(b) < 8 || uint64(binary.LittleEndian.Uint32(b)) != uint64(len(b)-8) || binary.LittleEndian.Uint32(b[4:]) != sum(key, b[8:]) {
		return nil, false
	}
	return b[8:], true
}

func (s *Store) set(key, value []byte) error { return s.db.Set(key, seal(key, value)) }

func (s *Store) get(key []byte) ([]byte, error) {
	b, err := s.db.Get(key)
	if err != nil {
		return nil, err
	}
	value, repaired, ok := unseal(key, b)
	if !ok {
		return nil, &DamageError{File: s.file, Key: string(key)}
	}
	if repaired {
		if err := s.set(key, value); err != nil {
			return nil, err
		}
	}
	return bytes.Clone(value), nil
}

// Set stores a value durably. raft sets LastVoteTerm first and LastVoteCand after it: the first is held in memory
// and both are committed together with the second, so a crash between leaves the old vote whole.
func (s *Store) Set(key, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case bytes.Equal(key, keyVoteTerm):
		s.heldTerm = bytes.Clone(value)
		return nil
	case bytes.Equal(key, keyVoteCand):
		if len(s.heldTerm) != 8 {
			return errors.New("stable store: LastVoteCand without a LastVoteTerm before it")
		}
		if err := s.set(keyVote, append(bytes.Clone(s.heldTerm), value...)); err != nil {
			return err
		}
		s.heldTerm = nil
		return nil
	}
	return s.set(key, value)
}

// Get returns a value, or an error that reads "not found".
func (s *Store) Get(key []byte) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	term := bytes.Equal(key, keyVoteTerm)
	if !term && !bytes.Equal(key, keyVoteCand) {
		return s.get(key)
	}
	vote, err := s.get(keyVote)
	if err != nil {
		return nil, err
	}
	if len(vote) < 8 {
		return nil, &DamageError{File: s.file, Key: string(keyVote)}
	}
	if term {
		return vote[:8], nil
	}
	return vote[8:], nil
}

// SetUint64 stores a number durably.
func (s *Store) SetUint64(key []byte, value uint64) error {
	return s.Set(key, binary.BigEndian.AppendUint64(nil, value))
}

// GetUint64 returns a number, or an error that reads "not found".
func (s *Store) GetUint64(key []byte) (uint64, error) {
	b, err := s.Get(key)
	if err != nil {
		return 0, err
	}
	if len(b) != 8 {
		return 0, &DamageError{File: s.file, Key: string(key)}
	}
	return binary.BigEndian.Uint64(b), nil
}

// Verify reads everything that raft will ask for, so that damage shows before the node starts.
func (s *Store) Verify() error {
	for _, key := range [][]byte{[]byte("CurrentTerm"), keyVoteTerm, keyBoots} {
		if _, err := s.GetUint64(key); err != nil && err.Error() != errNotFound.Error() {
			return err
		}
	}
	return nil
}

// Boot raises the durable count of starts and returns it: 1 for the first.
func (s *Store) Boot() (uint64, error) {
	n, err := s.GetUint64(keyBoots)
	if err != nil && err.Error() != errNotFound.Error() {
		return 0, err
	}
	return n + 1, s.SetUint64(keyBoots, n+1)
}

// Close closes the database.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.db.Close()
}
