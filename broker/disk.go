package broker

import (
	"fmt"
	"time"
)

const (
	// diskGoOnParts: what was stopped for the disk goes on when that part of the bound more is free, for each snapshot takes
	// some and gives some back.
	diskGoOnParts = 4
	// fastestDisk bounds in bytes a second how fast a disk can fill up: it is looked at in time.
	fastestDisk      = 1 << 30
	shortestInterval = 5 * time.Millisecond
)

// addDisk takes the disk's watermark into account.
func (l *strain) addDisk(w *Watermarks, blocked bool) {
	if w.DiskFree == nil || w.MinDiskFree == 0 {
		return
	}
	free, err := w.DiskFree()
	if err != nil {
		return
	}
	least := w.MinDiskFree
	if blocked {
		least += least / diskGoOnParts
	}
	left := free - min(free, least)
	if l.look = watermarkInterval; left > 0 && left < fastestDisk {
		l.look = min(l.look, max(time.Duration(left)*time.Second/fastestDisk, shortestInterval))
	}
	if left < w.MinDiskFree {
		if !l.near || left < l.left {
			l.left = left
		}
		l.near, l.disk = true, true
	}
	if free >= least {
		return
	}
	l.reason = fmt.Sprintf("the disk has less than %d MiB free; consume messages, free some space or add to it", w.MinDiskFree>>20)
	l.short = shortOf(l.short != "", true)
}

// shortOf says of what, in RabbitMQ's words.
func shortOf(memory, disk bool) string {
	switch {
	case memory && disk:
		return lowMemory + " & disk"
	case memory:
		return lowMemory
	case disk:
		return lowDisk
	}
	return ""
}

const (
	lowMemory = "low on memory"
	lowDisk   = "low on disk"
)
