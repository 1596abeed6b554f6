package store

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/warrenmq/warren/fsm/store/vfs"
)

// Pages keeps bytes that never change in files instead of on the heap; the system reads them when they are looked at and
// lets them go as it needs the memory. They do not outlive the process, so nothing is synced. Safe for concurrent use.
type Pages struct {
	fs   vfs.FS
	name string
	end  func(error)

	writing sync.Mutex   // held while the file has its name
	bytes   atomic.Int64 // of the pages that are in use
}

// Page is a file that has no name any more: the space is the system's again when nobody has the page, or when the process
// ends in whatever way. Whoever keeps bytes of a page keeps the page.
type Page struct {
	pages *Pages
	bytes []byte
}

// NewPages returns an arena whose pages are written to a file of that name. What an earlier process left there is removed.
// End ends the process, and does not return: a page cannot be read, or is not what was written. Nil panics.
func NewPages(fs vfs.FS, name string, end func(error)) *Pages {
	if end == nil {
		end = func(err error) { panic(err) }
	}
	if _, err := fs.Stat(name); err == nil {
		_ = fs.Remove(name) // or the next page replaces it
	}
	return &Pages{fs: fs, name: name, end: end}
}

// Bytes returns how much is in pages, those included that nobody has any more and that the collector has not seen yet.
func (p *Pages) Bytes() int64 { return p.bytes.Load() }

// Write makes a page of bytes. After an error nothing is left of it: no room, or a system that cannot map files.
func (p *Pages) Write(b []byte) (_ *Page, err error) {
	p.writing.Lock()
	defer p.writing.Unlock()
	f, err := p.fs.OpenFile(p.name, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make a page of the index: %w", err)
	}
	mapped, unmap, err := writePage(f, b)
	err = errors.Join(err, f.Close(), p.fs.Remove(p.name))
	if err != nil {
		if unmap != nil {
			_ = unmap()
		}
		return nil, fmt.Errorf("write a page of the index: %w", err)
	}
	page := &Page{pages: p, bytes: mapped}
	p.bytes.Add(int64(len(b)))
	runtime.AddCleanup(page, func(size int64) {
		_ = unmap()
		p.bytes.Add(-size)
	}, int64(len(b)))
	return page, nil
}

// writePage writes at most writeBuffer at a time, as a Writer does.
func writePage(f vfs.File, b []byte) ([]byte, func() error, error) {
	for at := 0; at < len(b); at += writeBuffer {
		if _, err := f.WriteAt(b[at:min(at+writeBuffer, len(b))], int64(at)); err != nil {
			return nil, nil, err
		}
	}
	return f.Map(len(b))
}

// Len is how many bytes the page has.
func (p *Page) Len() int { return len(p.bytes) }

// Part returns bytes of the page. They are read in Guard only.
func (p *Page) Part(from, to int) []byte { return p.bytes[from:to:to] }

// Guard calls read, which looks at bytes of the page, when they have their checksum. If they do not, or cannot be read, it
// ends the process: what was to be read is part of the state, and the next start builds it anew.
func (p *Page) Guard(b []byte, sum uint32, read func()) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			if fault, ok := r.(interface {
				error
				Addr() uintptr
			}); ok {
				p.damaged(fault)
				return
			}
			panic(r)
		}
	}()
	if PageSum(b) != sum {
		p.damaged(errors.New("its checksum is wrong"))
	}
	read()
	runtime.KeepAlive(p)
}

func (p *Page) damaged(why error) {
	p.pages.end(fmt.Errorf("a page of the index that was in %s is damaged: %w; the disk of this node is failing. "+
		"A restart builds the index anew from the message files", p.pages.name, why))
}

// PageSum is the checksum of a part of a page.
func PageSum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }
