//go:build !unix

package vfs

import "errors"

// Map implements File: nothing can be mapped here.
func (f osFile) Map(int) ([]byte, func() error, error) {
	return nil, nil, pathError("map", f.Name(), errors.ErrUnsupported)
}
