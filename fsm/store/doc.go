// Package store keeps the bodies of live messages in append-only files, one or a few a queue, and the manifest that
// says which parts of which files a snapshot means.
//
// A message file is a head and then frames, each [length 4][CRC-32C 4][payload]. A frame is a record (one message) or
// an index block: 32 bytes for each record since the block before it, so that a restart reads indexes, not bodies.
// What is written never changes. That a message is gone is said outside the file, in the manifest, as dead ranges.
//
// The package knows no machine and no Raft; it takes its file system as a vfs.FS.
package store

import "fmt"

// Damage is a file whose bytes are not what was written. It is an error.
type Damage struct {
	File   string
	Offset int64
	Queue  uint64 // 0 when it concerns no single queue
	What   string
}

func (d *Damage) Error() string {
	return fmt.Sprintf("%s is damaged at offset %d: %s", d.File, d.Offset, d.What)
}
