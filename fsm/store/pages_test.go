package store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/warrenmq/warren/fsm/store/vfs"
)

// seconds is a file system that keeps a second opening of each file.
type seconds struct {
	vfs.OS
	files []*os.File
}

func (k *seconds) OpenFile(name string, flag int, perm os.FileMode) (vfs.File, error) {
	f, err := k.OS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	again, err := os.OpenFile(name, os.O_RDWR, 0)
	k.files = append(k.files, again)
	return f, errors.Join(err)
}

func TestPages(t *testing.T) {
	name := filepath.Join(t.TempDir(), "page")
	if err := os.WriteFile(name, []byte("of an earlier process"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := NewPages(vfs.OS{}, name, nil)
	gone := func() {
		t.Helper()
		if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("the file has a name: %v", err)
		}
	}
	gone()
	want := bytes.Repeat([]byte("0123456789abcde\n"), 50_000)
	page, err := p.Write(want)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	gone()
	part, read := page.Part(16, 300_000), 0
	page.Guard(part, PageSum(want[16:300_000]), func() {
		if read++; !bytes.Equal(part, want[16:300_000]) {
			t.Error("it reads something else")
		}
	})
	if read != 1 || page.Len() != len(want) || p.Bytes() != int64(len(want)) {
		t.Fatalf("read %d times, %d bytes, %d in pages", read, page.Len(), p.Bytes())
	}
	runtime.KeepAlive(page)
	part, page = nil, nil
	for end := time.Now().Add(10 * time.Second); p.Bytes() > 0; runtime.Gosched() {
		if runtime.GC(); time.Now().After(end) {
			t.Fatal("the page is still there")
		}
	}
}

// TestPagesThatAreNotWritten: whatever call fails, nothing stays.
func TestPagesThatAreNotWritten(t *testing.T) {
	for _, op := range []vfs.Op{vfs.OpOpen, vfs.OpWrite, vfs.OpMap, vfs.OpClose, vfs.OpRemove} {
		mem := vfs.NewMem()
		p := NewPages(vfs.Faulty(mem, vfs.Rule{Op: op, Err: syscall.ENOSPC}), "/page", nil)
		if _, err := p.Write(make([]byte, 3*writeBuffer)); !errors.Is(err, syscall.ENOSPC) || p.Bytes() != 0 {
			t.Errorf("%s: %v, %d bytes", op, err, p.Bytes())
		}
		if _, err := p.Write(make([]byte, 10)); err != nil || p.Bytes() != 10 {
			t.Errorf("after %s: %v, %d bytes", op, err, p.Bytes())
		}
	}
}

// TestDamagedPagesEndTheProcess: what is not what was written, or cannot be read, is never taken for it.
func TestDamagedPagesEndTheProcess(t *testing.T) {
	for what, damage := range map[string]func(*os.File) error{
		"checksum": func(f *os.File) error { _, err := f.WriteAt([]byte{1}, 5000); return err },
		"fault":    func(f *os.File) error { return f.Truncate(0) }, // as a sector that cannot be read: SIGBUS
	} {
		t.Run(what, func(t *testing.T) {
			files := &seconds{}
			var told error
			p := NewPages(files, filepath.Join(t.TempDir(), "page"), func(err error) { told = err; panic(err) })
			b := make([]byte, 8192)
			page, err := p.Write(b)
			if errors.Is(err, errors.ErrUnsupported) {
				t.Skip(err)
			} else if err != nil {
				t.Fatal(err)
			}
			defer files.files[0].Close()
			if err := damage(files.files[0]); err != nil {
				t.Fatal(err)
			}
			func() {
				defer func() { _ = recover() }()
				page.Guard(page.Part(4096, 8192), PageSum(b[4096:]), func() { t.Error("it was read") })
			}()
			if told == nil || !strings.Contains(told.Error(), what) || !strings.Contains(told.Error(), "restart") {
				t.Errorf("told of %v", told)
			}
		})
	}
}
