package fsm

import (
	"os"

	"github.com/warrenmq/warren/fsm/store/vfs"
)

type osFS struct{}
type osFile struct{ *os.File }

func (osFile) Allocate(int64) error { return nil }
func (osFS) OpenFile(n string, f int, p os.FileMode) (vfs.File, error) {
	x, err := os.OpenFile(n, f, p)
	if err != nil {
		return nil, err
	}
	return osFile{x}, nil
}
func (osFS) ReadDir(n string) ([]string, error) {
	es, err := os.ReadDir(n)
	var o []string
	for _, e := range es {
		o = append(o, e.Name())
	}
	return o, err
}
func (osFS) Stat(n string) (os.FileInfo, error)     { return os.Stat(n) }
func (osFS) MkdirAll(n string, p os.FileMode) error { return os.MkdirAll(n, p) }
func (osFS) Rename(a, b string) error               { return os.Rename(a, b) }
func (osFS) Link(a, b string) error                 { return os.Link(a, b) }
func (osFS) Remove(n string) error                  { return os.Remove(n) }
func (osFS) RemoveAll(n string) error               { return os.RemoveAll(n) }
func (osFS) SyncDir(n string) error {
	f, err := os.Open(n)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
