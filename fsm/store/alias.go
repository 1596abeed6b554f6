package store

import "unsafe"

// alias is a string over bytes that never change again: a record's names are read a million times and are part of
// the buffer that its body keeps alive anyway.
func alias(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
