package broker

import "fmt"

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
		least += least / goOnParts
	}
	if left := free - min(free, least); left < w.MinDiskFree/2 {
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
