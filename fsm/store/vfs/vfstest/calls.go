// Package vfstest lets every file call of a scripted run fail once, in turn, in every way that a disk fails: a Disk
// records the calls of a run without faults, and then runs again with one of them picked out.
package vfstest

import (
	"fmt"

	"github.com/warrenmq/warren/fsm/store/vfs"
)

// Call names one call of a run: the nth one, from 1, of an operation on a file. A name stays the same from run to run
// where an index over all calls would not, because goroutines take turns as they like.
type Call struct {
	Op   vfs.Op
	Name string
	Nth  int
}

func (c Call) String() string { return fmt.Sprintf("%s %s #%d", c.Op, c.Name, c.Nth) }

// Kind is what happens at the call that is picked out.
type Kind int

const (
	Fails       Kind = iota // it does nothing and returns EIO; what a failed sync should have kept is lost at the next crash
	Short                   // a write lets half of its bytes through and returns ENOSPC
	CrashBefore             // the power goes before it; nothing unsynced survives
	CrashAfter              // the power goes after it; nothing unsynced survives
	CrashTorn               // the power goes in the middle; any part of what is not synced survives
	Hangs                   // it does not return until the process is killed
)

var kinds = [...]string{"fails", "is cut short", "meets a crash before it", "meets a crash after it", "is torn by a crash", "hangs"}

func (k Kind) String() string { return kinds[k] }

// Crash reports whether the power goes.
func (k Kind) Crash() bool { return k == CrashBefore || k == CrashAfter || k == CrashTorn }

// Kinds returns what can happen at a call.
func (c Call) Kinds() []Kind {
	switch c.Op {
	case vfs.OpRead, vfs.OpStat, vfs.OpReadDir, vfs.OpClose:
		return []Kind{Fails, Hangs} // it changes nothing: a crash here is a crash at the next call that does
	case vfs.OpWrite:
		return []Kind{Fails, Short, CrashBefore, CrashAfter, CrashTorn, Hangs}
	}
	return []Kind{Fails, CrashBefore, CrashAfter, CrashTorn, Hangs}
}
