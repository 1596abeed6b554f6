//go:build unix

package vfs

import (
	"errors"
	"io"
	"os"
	"syscall"
)

var _ Locker = OS{}

// Lock implements Locker with flock. Elsewhere OS is no Locker.
func (OS) Lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrLocked
	}
	return nil, &os.PathError{Op: "lock", Path: name, Err: err}
}
