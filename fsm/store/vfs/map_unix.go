//go:build unix

package vfs

import "golang.org/x/sys/unix"

// Map implements File with mmap.
func (f osFile) Map(size int) (b []byte, unmap func() error, err error) {
	if b, err = unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return nil, nil, pathError("map", f.Name(), err)
	}
	return b, func() error { return unix.Munmap(b) }, nil
}
