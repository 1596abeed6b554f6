package server_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warrenmq/warren/broker/server"
	"github.com/warrenmq/warren/cluster"
)

// A second process on a data directory is refused before it has changed anything there.
func TestDataDirectoryIsUsedOnce(t *testing.T) {
	dir := t.TempDir()
	config := server.Config{Cluster: cluster.Config{DataDir: dir, RaftAddr: "127.0.0.1:0", GossipAddr: "127.0.0.1:0"}, NativeAddr: "127.0.0.1:0"}
	open := func() *server.Server {
		s, err := server.New(config)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	stop := func(s *server.Server) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := s.Run(ctx); err != nil {
			t.Fatal(err)
		}
	}
	first := open()
	before := contents(t, dir)
	if second, err := server.New(config); err == nil {
		stop(second)
		t.Fatal("two servers run on one data directory")
	} else if !strings.Contains(err.Error(), "another process uses the data directory "+dir) {
		t.Errorf("the error does not say what to do: %v", err)
	}
	for name := range contents(t, dir) {
		if _, was := before[name]; !was {
			t.Errorf("the refused server left %s", name)
		}
	}
	if now := contents(t, dir)["identity"]; now != before["identity"] {
		t.Errorf("the refused server changed the identity from %q to %q", before["identity"], now)
	}
	stop(first)
	stop(open())
}

// contents returns the names in a directory, and what is in the small files.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		text := ""
		if e.Name() == "identity" {
			b, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			text = string(b)
		}
		relative, err := filepath.Rel(dir, name)
		all[relative] = text
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
