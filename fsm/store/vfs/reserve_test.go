package vfs_test

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/warrenmq/warren/fsm/store/vfs"
)

// TestReserve: a write that finds the disk full goes on where it was, as long as there is reserve for its file.
func TestReserve(t *testing.T) {
	mem := vfs.NewMem()
	full := vfs.Faulty(mem)
	r, err := vfs.NewReserve(full, "reserve", 160)
	if err != nil || r.Missing() != 160 {
		t.Fatalf("%v, %d are missing", err, r.Missing())
	}
	if err := r.Fill(); err != nil || r.Missing() != 0 {
		t.Fatalf("%v, %d are missing", err, r.Missing())
	}
	open := func(name string) vfs.File {
		f, err := r.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	log, other := open("log"), open("other")
	full.Add(vfs.Rule{Op: vfs.OpWrite, Path: "log", Nth: 1, Count: 3, Short: 2, Err: syscall.ENOSPC})
	if n, err := log.WriteAt([]byte("123456789"), 0); n != 9 || err != nil {
		t.Fatalf("%d bytes, %v", n, err)
	}
	var got [9]byte
	if _, err := log.ReadAt(got[:], 0); err != nil || string(got[:]) != "123456789" {
		t.Fatalf("%q, %v", got, err)
	}
	if r.Missing() != 30 {
		t.Errorf("three failures cost %d bytes", r.Missing())
	}
	full.Add(vfs.Rule{Op: vfs.OpWrite, Count: -1, Err: syscall.ENOSPC})
	if _, err := log.Write([]byte("x")); !errors.Is(err, syscall.ENOSPC) || r.Missing() != 80 {
		t.Errorf("%v; a file may have half, %d bytes are gone", err, r.Missing())
	}
	if _, err := other.Write([]byte("x")); !errors.Is(err, syscall.ENOSPC) || r.Missing() != 160 {
		t.Errorf("%v; there is half for another, %d bytes are gone", err, r.Missing())
	}
	again, err := vfs.NewReserve(mem, "reserve", 160)
	if err != nil || again.Missing() != 160 {
		t.Errorf("after a restart %d are missing, %v", again.Missing(), err)
	}
	if err := again.Fill(); err != nil || again.Missing() != 0 {
		t.Errorf("%d are missing, %v", again.Missing(), err)
	}
	if smaller, err := vfs.NewReserve(mem, "reserve", 50); err != nil || smaller.Missing() != 0 {
		t.Errorf("%d are missing, %v", smaller.Missing(), err)
	}
	if _, err := vfs.NewReserve(mem, "reserve", 0); err != nil {
		t.Error(err)
	}
	if _, err := mem.Stat("reserve"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a reserve of nothing is there: %v", err)
	}
}
