package cluster

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/warrenmq/warren/fsm/store/vfs"
)

const (
	identityFile   = "identity"
	identityHeader = "warren identity 1 "
)

// identity is who this node is, kept in one small file of the data directory. The file is replaced whole and is
// durable before a change is used.
type identity struct {
	files vfs.FS
	dir   string

	mu sync.Mutex // guards what follows
	v  identityRecord
}

// identityRecord is the file's content.
type identityRecord struct {
	NodeID      string
	Incarnation string // random, made with the data directory: an emptied node is a new server (rule 4)
	ClusterID   string // "" before a cluster was formed or joined; never changes after
	Boots       uint64 // starts of this directory (rule 18)
	// Founders are the server ids of the first voters when this node bootstraps. They are written before Raft's
	// first entry, so that a start after a crash in between does the same again.
	Founders []string `json:",omitempty"`
	// Quarantined says why this node must not vote, "" when it may (rule 18).
	Quarantined string `json:",omitempty"`
	// Peers holds the highest boot counter seen of each server (rule 18).
	Peers map[string]uint64 `json:",omitempty"`
}

// openIdentity reads or makes the identity and counts this start. isNew says that it was made.
func openIdentity(files vfs.FS, dir, nodeID string) (id *identity, isNew bool, err error) {
	if err := files.MkdirAll(dir, 0o755); err != nil {
		return nil, false, fmt.Errorf("make the data directory: %w", err)
	}
	// An error only means that this system does not sync directories that one may not read.
	if err := files.SyncDir(path.Dir(path.Clean(dir))); err != nil && !errors.Is(err, fs.ErrPermission) {
		return nil, false, fmt.Errorf("sync the parent of the data directory: %w", err)
	}
	id = &identity{files: files, dir: dir}
	data, err := readFile(files, path.Join(dir, identityFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := refuseWithout(files, dir); err != nil {
			return nil, false, err
		}
		isNew = true
		if nodeID == "" {
			nodeID = "node-" + randomHex(4)
		}
		id.v = identityRecord{NodeID: nodeID, Incarnation: randomHex(8)}
	case err != nil:
		return nil, false, fmt.Errorf("read the node's identity: %w", err)
	default:
		if id.v, err = decodeIdentity(data); err != nil {
			return nil, false, fmt.Errorf("%s: %w; move the data directory aside and start again, the node then joins as new", path.Join(dir, identityFile), err)
		}
		if nodeID != "" && nodeID != id.v.NodeID {
			return nil, false, fmt.Errorf("data directory %s belongs to node %q, not %q: give each node its own directory", dir, id.v.NodeID, nodeID)
		}
	}
	return id, isNew, id.change(func(v *identityRecord) { v.Boots++ })
}

// refuseWithout refuses a directory that holds a node's state but no identity. The identity is written before anything
// else, so it was lost; if a new one was made, the next start would take the log for another node's.
func refuseWithout(files vfs.FS, dir string) error {
	names, err := files.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read the data directory: %w", err)
	}
	for _, name := range names {
		if slices.Contains([]string{"log", "log.db", "stable", "snapshots"}, name) {
			return fmt.Errorf("%s is missing beside %s: restore that file, or move the whole directory aside to join as new",
				path.Join(dir, identityFile), path.Join(dir, name))
		}
	}
	return nil
}

func decodeIdentity(data []byte) (v identityRecord, err error) {
	head, body, ok := bytes.Cut(data, []byte("\n"))
	sum, isOurs := strings.CutPrefix(string(head), identityHeader)
	if !ok || !isOurs {
		return v, errors.New("is not an identity file of this version")
	}
	if sum != checksum(body) {
		return v, errors.New("the checksum is wrong, the file is damaged")
	}
	if err := json.Unmarshal(body, &v); err != nil {
		return v, err
	}
	if v.NodeID == "" || v.Incarnation == "" {
		return v, errors.New("names no node")
	}
	return v, nil
}

func checksum(b []byte) string {
	return fmt.Sprintf("%08x", crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// get returns a copy; its map must not be written.
func (id *identity) get() identityRecord {
	id.mu.Lock()
	defer id.mu.Unlock()
	return id.v
}

// server returns the Raft server id.
func (id *identity) server() string {
	v := id.get()
	return v.NodeID + "@" + v.Incarnation
}

// nodeIDOf returns the node id in a Raft server id.
func nodeIDOf(server string) string {
	if i := strings.LastIndexByte(server, '@'); i >= 0 {
		return server[:i]
	}
	return server
}

// change edits the record and returns when that is durable. After an error nothing has changed.
func (id *identity) change(edit func(*identityRecord)) error {
	id.mu.Lock()
	defer id.mu.Unlock()
	return id.changeLocked(edit)
}

func (id *identity) changeLocked(edit func(*identityRecord)) error {
	v := id.v
	edit(&v)
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := replaceFile(id.files, id.dir, identityFile, []byte(identityHeader+checksum(body)+"\n"+string(body))); err != nil {
		return fmt.Errorf("write the node's identity: %w", err)
	}
	id.v = v
	return nil
}

// adopt takes a cluster id if there is none yet and reports whether the node belongs to that cluster now.
func (id *identity) adopt(cluster string) (adopted, belongs bool, err error) {
	id.mu.Lock()
	defer id.mu.Unlock()
	if id.v.ClusterID != "" {
		return false, id.v.ClusterID == cluster, nil
	}
	err = id.changeLocked(func(v *identityRecord) { v.ClusterID = cluster })
	return err == nil, err == nil, err
}

// seenBoots records a peer's boot counter and returns the highest one known.
func (id *identity) seenBoots(server string, boots uint64) (uint64, error) {
	id.mu.Lock()
	defer id.mu.Unlock()
	if known := id.v.Peers[server]; known >= boots {
		return known, nil
	}
	return boots, id.changeLocked(func(v *identityRecord) {
		peers := map[string]uint64{server: boots}
		for k, b := range v.Peers {
			if k != server {
				peers[k] = b
			}
		}
		v.Peers = peers
	})
}

// replaceFile writes a file so that after a crash either the old or the new one is there, and returns when the new
// one is durable.
func replaceFile(files vfs.FS, dir, name string, data []byte) error {
	tmp := path.Join(dir, name+".tmp")
	f, err := files.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := files.Rename(tmp, path.Join(dir, name)); err != nil {
		return err
	}
	return files.SyncDir(dir)
}

func readFile(files vfs.FS, name string) ([]byte, error) {
	f, err := files.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, 1<<20))
	return data, errors.Join(err, f.Close())
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
