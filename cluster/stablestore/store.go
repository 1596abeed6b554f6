// Package stablestore keeps what a Raft node must not forget: its term, its vote, and a count of its starts. It
// lies on raft-boltdb, with a second copy of everything in a small file beside it (rule 18). A value that raft writes
// in two parts, the vote, is committed at once.
//
// A write goes to the copy first, then to the database, and returns when both are durable. So each of the two
// holds at least what was promised, and either may be lost. Every value begins with a number that only grows (a term,
// a count), so at the next start the larger one is the newer one. It may never have been promised; to remember a
// term or a vote that was not used does no harm. Within the database each value is kept twice and with a checksum
// too, because bbolt has none for its pages; and each process makes a new database of what it has read, because a write
// to a damaged one ends the process or spoils more.
package stablestore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path"
	"slices"
	"sync"

	"github.com/hashicorp/raft"
	"github.com/warrenmq/warren/fsm/store/vfs"
)

var (
	keyVoteTerm = []byte("LastVoteTerm")
	keyVoteCand = []byte("LastVoteCand")
	keyVote     = []byte("Vote") // term (8 bytes) and candidate, together
	keyBoots    = []byte("Boots")
	keyTerm     = []byte("CurrentTerm")
	// keyWhole is set once the database holds everything. Without it, a database is new or took a lost one's place.
	keyWhole = []byte("Whole")
)

// kept are the values that there are. Each begins with a big-endian number that only grows.
var kept = []string{string(keyTerm), string(keyVote), string(keyBoots)}

const (
	databaseFile = "stable.db"
	copyFile     = "copy"
)

// errNotFound reads as raft expects: it compares the text.
var errNotFound = errors.New("not found")

// DamageError says that a value is damaged in the database and in the copy: the node must not vote.
type DamageError struct {
	File string
	Key  string // "" when it is all of them
}

func (e *DamageError) Error() string {
	what := "everything"
	if e.Key != "" {
		what = fmt.Sprintf("%q", e.Key)
	}
	return fmt.Sprintf("%s and the copy beside it: %s is damaged in both; quarantine this node and let it take the state from its peers", e.File, what)
}

// backend holds sealed copies; Set is durable and atomic when it returns.
type backend interface {
	Set(key, value []byte) error
	Get(key []byte) ([]byte, error)
	Close() error
}

// Store is a raft.StableStore for the values that raft keeps and the count of starts, safe for concurrent use. After
// a write that failed, every later write returns that error.
type Store struct {
	file string

	mu       sync.Mutex // guards everything below
	db       backend
	copy     *sideCopy         // nil in memory
	values   map[string][]byte // what is durable
	heldTerm []byte            // LastVoteTerm, until LastVoteCand comes
	err      error
}

var _ raft.StableStore = (*Store)(nil)

// Open opens or makes the store in a directory of its own. It waits at most 5 s for another process to let go of it.
// What is damaged in one place is repaired from the other; a *DamageError says that this could not be done, and
// nothing was altered then.
func Open(fs vfs.FS, dir string) (*Store, error) {
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	s := &Store{file: path.Join(dir, databaseFile)}
	if err := s.open(fs, dir); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("open the stable store %s: %w", s.file, err)
	}
	return s, nil
}

func (s *Store) open(fs vfs.FS, dir string) error {
	found, unreadable := readDatabase(s.file)
	if unreadable != nil && !errors.Is(unreadable, errUnreadable) {
		return unreadable
	}
	var err error
	if s.copy, err = openCopy(fs, path.Join(dir, copyFile)); err != nil {
		return err
	}
	if unreadable != nil {
		if err := s.setDatabaseAside(fs, unreadable); err != nil {
			return err
		}
	}
	s.db = found
	if err := s.load(); err != nil {
		return err
	}
	s.db = nil
	for _, dir := range []string{dir, path.Dir(dir)} { // the copy's name
		if err := fs.SyncDir(dir); err != nil {
			return err
		}
	}
	s.db, err = makeDatabase(fs, s.file, found)
	return err
}

// setDatabaseAside moves a database that cannot be read aside, if the copy is sound.
func (s *Store) setDatabaseAside(fs vfs.FS, why error) error {
	if len(s.copy.values) == 0 || s.copy.doubtful {
		return errors.Join(&DamageError{File: s.file}, why)
	}
	aside := s.file + ".damaged"
	for n := 1; ; n++ {
		if _, err := fs.Stat(aside); errors.Is(err, os.ErrNotExist) {
			break
		} else if err != nil {
			return err
		}
		aside = fmt.Sprintf("%s.damaged-%d", s.file, n)
	}
	return fs.Rename(s.file, aside)
}

// load reads both places, takes the newer of each value and writes it where it is missing.
func (s *Store) load() error {
	whole, _, err := s.read(keyWhole)
	if err != nil {
		return err
	}
	// A database that is not whole yet must be filled from the copy, unless nothing was ever promised.
	if whole == nil && s.copy != nil && s.copy.doubtful {
		return &DamageError{File: s.file}
	}
	s.values = map[string][]byte{}
	stale := map[string]bool{} // in the database
	for _, key := range kept {
		value, sound, err := s.read([]byte(key))
		if err != nil {
			return err
		}
		var other []byte
		if s.copy != nil {
			other = s.copy.values[key]
		}
		if value == nil && !sound && (other == nil || s.copy.doubtful) {
			return &DamageError{File: s.file, Key: key}
		}
		if number(other) > number(value) || value == nil {
			value, sound = other, other == nil
		}
		if value != nil {
			s.values[key], stale[key] = value, !sound
		}
	}
	if s.copy != nil {
		if err := s.copy.write(s.values); err != nil {
			return err
		}
	}
	for key, value := range s.values {
		if stale[key] {
			if err := s.db.Set([]byte(key), seal([]byte(key), value)); err != nil {
				return err
			}
		}
	}
	if whole == nil {
		return s.db.Set(keyWhole, seal(keyWhole, []byte{1}))
	}
	return nil
}

// read returns a value of the database, nil if it is missing or damaged; it is not sound if one of its two halves at
// least is damaged.
func (s *Store) read(key []byte) (value []byte, sound bool, err error) {
	b, err := s.db.Get(key)
	if err != nil {
		if err.Error() == errNotFound.Error() {
			return nil, true, nil
		}
		return nil, false, err
	}
	value, repaired, ok := unseal(key, b)
	if !ok || len(value) == 0 || (len(value) < 8 && !bytes.Equal(key, keyWhole)) {
		return nil, false, nil
	}
	return bytes.Clone(value), !repaired, nil
}

// number is what a value begins with; 0 for one that is not there.
func number(value []byte) uint64 {
	if len(value) < 8 {
		return 0
	}
	return binary.BigEndian.Uint64(value)
}

// NewMem returns a store that forgets at Close, for simulations: reopen it with Reopen.
func NewMem() *Store {
	s := &Store{db: memory{}, file: "memory"}
	if err := s.load(); err != nil {
		panic(err) // an empty map can be read
	}
	return s
}

// Reopen returns the in-memory store as a restarted process finds it.
func (s *Store) Reopen() *Store {
	again, err := s.reopen()
	if err != nil {
		again = &Store{db: s.db, file: s.file, err: err}
	}
	return again
}

func (s *Store) reopen() (*Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	again := &Store{db: s.db, file: s.file}
	return again, again.load()
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

// set makes a value durable, in the copy first.
func (s *Store) set(key, value []byte) error {
	if s.err != nil {
		return s.err
	}
	next := maps.Clone(s.values)
	next[string(key)] = bytes.Clone(value)
	if s.copy != nil {
		s.err = s.copy.write(next)
	}
	if s.err == nil {
		s.err = s.db.Set(key, seal(key, value))
	}
	if s.err == nil {
		s.values = next
	}
	return s.err
}

func (s *Store) get(key []byte) ([]byte, error) {
	if s.err != nil {
		return nil, s.err
	}
	value, ok := s.values[string(key)]
	if !ok {
		return nil, errNotFound
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
	case slices.Contains(kept, string(key)) && len(value) >= 8:
		return s.set(key, value)
	}
	return fmt.Errorf("stable store: %q is none of the values that are kept", key)
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

// Boot raises the durable count of starts and returns it: 1 for the first.
func (s *Store) Boot() (uint64, error) {
	n, err := s.GetUint64(keyBoots)
	if err != nil && err.Error() != errNotFound.Error() {
		return 0, err
	}
	return n + 1, s.SetUint64(keyBoots, n+1)
}

// Close closes the database and the copy.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	if s.db != nil {
		errs = append(errs, s.db.Close())
	}
	if s.copy != nil {
		errs = append(errs, s.copy.file.Close())
	}
	return errors.Join(errs...)
}
