package stablestore

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"time"

	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"github.com/warrenmq/warren/fsm/store/vfs"
	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// errUnreadable says that bbolt cannot make sense of the file.
var errUnreadable = errors.New("the database cannot be read")

// readDatabase returns the sealed values of a database; none when there is no file. bbolt trusts its pages: at a damaged
// one it panics, reads beyond the file, or writes where it must not. So a file of an earlier process is only read, under
// guard, and never written.
func readDatabase(file string) (found memory, err error) {
	found = memory{}
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return found, nil
	case err != nil:
		return nil, err
	case info.Size() == 0: // bbolt would begin a new one in it
		return found, fmt.Errorf("%w: it is empty", errUnreadable)
	}
	var bolt *raftboltdb.BoltStore
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			found, err = memory{}, fmt.Errorf("%w: %v", errUnreadable, p)
		}
		if bolt != nil {
			_ = bolt.Close()
		}
	}()
	o := boltOptions()
	o.ReadOnly = true
	bolt, err = raftboltdb.New(raftboltdb.Options{Path: file, BoltOptions: o})
	var path *os.PathError
	switch {
	case errors.Is(err, berrors.ErrTimeout) || errors.As(err, &path):
		return nil, err
	case err != nil:
		return memory{}, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	for _, key := range append([]string{string(keyWhole)}, kept...) {
		value, err := bolt.Get([]byte(key))
		if err == nil {
			found[key] = value // a copy
		} else if err.Error() != errNotFound.Error() {
			return nil, err
		}
	}
	return found, nil
}

// makeDatabase puts a new database with sealed values in a file's place, durably, and opens it.
func makeDatabase(fs vfs.FS, file string, values memory) (backend, error) {
	fresh := file + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	bolt, err := raftboltdb.New(raftboltdb.Options{Path: fresh, BoltOptions: boltOptions(), NoSync: true})
	if err != nil {
		return nil, err
	}
	for key, value := range values {
		err = errors.Join(err, bolt.Set([]byte(key), value))
	}
	if err := errors.Join(err, bolt.Sync(), bolt.Close()); err != nil {
		return nil, err
	}
	if err := fs.Rename(fresh, file); err != nil {
		return nil, err
	}
	if err := fs.SyncDir(path.Dir(file)); err != nil {
		return nil, err
	}
	bolt, err = raftboltdb.New(raftboltdb.Options{Path: file, BoltOptions: boltOptions()})
	if err != nil { // not a nil *BoltStore as a backend
		return nil, err
	}
	return bolt, nil
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
