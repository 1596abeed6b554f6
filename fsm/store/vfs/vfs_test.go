package vfs

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path"
	"syscall"
	"testing"
)

func write(t *testing.T, fs FS, name, text string, sync bool) {
	t.Helper()
	f, err := fs.OpenFile(name, os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if sync {
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, fs FS, name string) string {
	t.Helper()
	f, err := fs.OpenFile(name, os.O_RDONLY, 0)
	if errors.Is(err, os.ErrNotExist) {
		return "(none)"
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func expect(t *testing.T, fs FS, name, want string) {
	t.Helper()
	if got := read(t, fs, name); got != want {
		t.Errorf("%s holds %q, want %q", name, got, want)
	}
}

func TestBothFileSystemsAgree(t *testing.T) {
	for name, fs := range map[string]FS{"os": OS{}, "mem": NewMem(), "faulty": Faulty(NewMem())} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			must(fs.MkdirAll(path.Join(dir, "d"), 0o700))
			a, b := path.Join(dir, "d/a"), path.Join(dir, "d/b")
			write(t, fs, a, "hello", true)
			must(fs.Link(a, b))
			if err := fs.Link(a, b); !errors.Is(err, os.ErrExist) {
				t.Errorf("a second link: %v", err)
			}
			must(fs.Remove(a))
			expect(t, fs, a, "(none)")
			expect(t, fs, b, "hello")
			f, err := fs.OpenFile(b, os.O_RDWR, 0)
			must(err)
			must(f.Allocate(1 << 16))
			if info, err := f.Stat(); err != nil || info.Size() != 5 {
				t.Errorf("size after Allocate: %v %v", info, err)
			}
			_, err = f.WriteAt([]byte("!"), 7)
			must(err)
			must(f.Truncate(8))
			must(f.Close())
			if err := f.Sync(); err == nil {
				t.Error("a closed file can be synced")
			}
			expect(t, fs, b, "hello\x00\x00!")
			must(fs.Rename(b, a))
			names, err := fs.ReadDir(path.Join(dir, "d"))
			if err != nil || len(names) != 1 || names[0] != "a" {
				t.Errorf("ReadDir: %v %v", names, err)
			}
			must(fs.SyncDir(dir))
			must(fs.RemoveAll(path.Join(dir, "d")))
			if _, err := fs.Stat(a); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("Stat: %v", err)
			}
		})
	}
}

func TestCrashForgetsWhatWasNotSynced(t *testing.T) {
	m := NewMem()
	write(t, m, "kept", "one", true)
	write(t, m, "renamed", "two", true)
	m.SyncDir("/")
	write(t, m, "new", "no directory sync", true)
	write(t, m, "kept", "longer", false)
	m.Rename("renamed", "other")
	m.Crash(nil)
	expect(t, m, "kept", "one")
	expect(t, m, "renamed", "two")
	expect(t, m, "other", "(none)")
	expect(t, m, "new", "(none)")
}

func TestCrashTearsWritesBySeed(t *testing.T) {
	after := func(seed uint64) string {
		m := NewMem()
		write(t, m, "f", "", true)
		m.SyncDir("/")
		f, _ := m.OpenFile("f", os.O_RDWR, 0)
		f.WriteAt(make([]byte, 64*tornBlock), 0)
		for i := range 64 {
			f.WriteAt([]byte{byte(i + 1)}, int64(i*tornBlock))
		}
		m.Crash(rand.New(rand.NewPCG(seed, 1)))
		if _, err := f.ReadAt(make([]byte, 1), 0); !errors.Is(err, os.ErrClosed) {
			t.Fatalf("a handle outlived the crash: %v", err)
		}
		return read(t, m, "f")
	}
	if first, again := after(1), after(1); first != again || first == after(2) {
		t.Error("the seed does not decide what survives")
	}
}

func TestFaultRules(t *testing.T) {
	fs := Faulty(NewMem(), Rule{Op: OpSync, Path: "*.log", Nth: 2}, Rule{Op: OpWrite, Path: "full", Full: 5},
		Rule{Op: OpWrite, Path: "short", Short: 2})
	open := func(name string) File {
		f, err := fs.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	log := open("a.log")
	if err := log.Sync(); err != nil {
		t.Error(err)
	}
	if err := log.Sync(); !errors.Is(err, syscall.EIO) {
		t.Errorf("the second sync: %v", err)
	}
	if err := log.Sync(); err != nil {
		t.Error(err)
	}
	if n, err := open("full").Write([]byte("1234567")); n != 5 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a full disk: %d %v", n, err)
	}
	if n, err := open("short").Write([]byte("1234567")); n != 2 || !errors.Is(err, syscall.EIO) {
		t.Errorf("a short write: %d %v", n, err)
	}
	release, done := make(chan struct{}), make(chan error)
	fs.Add(Rule{Op: OpSync, Hang: release})
	go func() { done <- log.Sync() }()
	select {
	case <-done:
		t.Error("the sync did not hang")
	default:
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
