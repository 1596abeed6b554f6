package vfs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func syncData(f *os.File) error {
	for {
		// Only an interrupted call is repeated: it has not reported a lost write.
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return wrap("fdatasync", f, err)
		}
	}
}

func allocate(f *os.File, size int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, size)
		switch {
		case err == unix.EINTR:
			continue
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
			return nil // space is then taken as it is written
		}
		return wrap("fallocate", f, err)
	}
}

func wrap(op string, f *os.File, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: op, Path: f.Name(), Err: err}
}
