package vfs

import "golang.org/x/sys/unix"

// Free returns the bytes that the operating system's file system below a directory has left for this process.
func Free(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return s.Bavail * uint64(s.Bsize), nil
}
