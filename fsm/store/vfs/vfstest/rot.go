package vfstest

import (
	"fmt"
	"os"
	"path"

	"github.com/warrenmq/warren/fsm/store/vfs"
)

// Rot is a damage to one file of a machine that is down.
type Rot struct {
	File string
	What string // "flip", "cut", "zero" or "gone"
	At   int64  // the byte; for gone 0
}

func (r Rot) String() string { return fmt.Sprintf("%s: %s at byte %d", r.File, r.What, r.At) }

// Walk returns all files under a directory, in order.
func Walk(fs vfs.FS, dir string) (files []string, err error) {
	names, err := fs.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		name = path.Join(dir, name)
		info, err := fs.Stat(name)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			files = append(files, name)
			continue
		}
		below, err := Walk(fs, name)
		if err != nil {
			return nil, err
		}
		files = append(files, below...)
	}
	return files, nil
}

// Rots returns damages to all files under a directory: every byte of a file of up to whole bytes has a bit flipped, in
// larger ones as many bytes evenly; each file is also cut short and overwritten with a block of zeros at some places,
// and missing.
func Rots(fs vfs.FS, dir string, whole int64) (all []Rot, err error) {
	cuts := min(16, 2*whole)
	files, err := Walk(fs, dir)
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		info, err := fs.Stat(name)
		if err != nil {
			return nil, err
		}
		size := info.Size()
		for at := int64(0); at < size; at += max(1, size/whole) {
			all = append(all, Rot{name, "flip", at})
		}
		for at := int64(0); at < size; at += max(1, size/cuts) {
			all = append(all, Rot{name, "cut", at}, Rot{name, "zero", at})
		}
		all = append(all, Rot{name, "gone", 0})
	}
	return all, nil
}

// zeroed is how many bytes "zero" overwrites.
const zeroed = 512

// Do damages the file. Every name of it sees the damage, except for "gone", which takes one name.
func (r Rot) Do(fs vfs.FS) error {
	switch r.What {
	case "flip":
		return vfs.FlipBit(fs, r.File, 8*r.At+r.At%8)
	case "gone":
		if err := fs.Remove(r.File); err != nil {
			return err
		}
		return fs.SyncDir(path.Dir(r.File))
	}
	f, err := fs.OpenFile(r.File, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if r.What == "cut" {
		err = f.Truncate(r.At)
	} else {
		var info os.FileInfo
		if info, err = f.Stat(); err != nil {
			return err
		}
		_, err = f.WriteAt(make([]byte, min(zeroed, info.Size()-r.At)), r.At)
	}
	if err != nil {
		return err
	}
	return f.Sync()
}
