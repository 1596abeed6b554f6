package fsm

import (
	"bytes"
	"path"
	"slices"

	"github.com/warrenmq/warren/fsm/store"
)

// pageBytes is how large a page of packed chunks is: some hundred of them, 100,000 messages.
const pageBytes = 1 << 20

// DefaultIndexMemoryMessages is Options.IndexMemoryMessages when it is zero.
const DefaultIndexMemoryMessages = 1_000_000

// pager moves packed chunks from the heap to pages, where a queue has more than so many messages. Only full pages are
// written; what is left over waits on the heap.
type pager struct {
	pages *store.Pages
	after uint64 // messages of a queue, from its head on, whose chunks stay on the heap
	bytes int    // of a page
	short func() bool
}

func newPager(o Options) *pager {
	p := &pager{pages: store.NewPages(o.Files, path.Join(o.Dir, "index.page"), o.End), after: uint64(o.IndexMemoryMessages), bytes: pageBytes}
	if o.IndexMemoryMessages <= 0 {
		p.after = DefaultIndexMemoryMessages
	}
	if o.pageBytes > 0 {
		p.bytes = o.pageBytes
	}
	p.short = func() bool {
		if o.Room == nil {
			return false
		}
		_, short := o.Room()
		return short
	}
	return p
}

// moved is where the bytes of a packed chunk are now.
type moved struct {
	chunk  *chunk
	packed []byte
	page   *store.Page // nil: on the heap
	sum    uint32
}

// out moves chunks of a queue, of which none changes meanwhile, and has install put them in place, a page at a time. Before
// is how many messages come before the first chunk. Chunks of sparse pages, which may be nil, are moved together, so that
// the pages are free. Where pages cannot be written everything stays as it is.
func (p *pager) out(chunks []*chunk, before uint64, sparse map[*store.Page]bool, install func([]moved)) {
	if p.short() {
		return // the disk has other needs
	}
	var batch []*chunk
	size := 0
	for _, c := range chunks {
		head := before < p.after
		before += uint64(c.count)
		if c.packed == nil || c.page == nil && head || c.page != nil && !sparse[c.page] {
			continue
		}
		batch, size = append(batch, c), size+len(c.packed)
		if size < p.bytes {
			continue
		}
		if !p.page(batch, size, install) {
			return
		}
		batch, size = batch[:0], 0
	}
	var back []moved // too little for a page
	for _, c := range batch {
		if c.page != nil {
			c.guarded(func() { back = append(back, moved{chunk: c, packed: bytes.Clone(c.packed)}) })
		}
	}
	install(back)
}

// page writes a page; false when that cannot be done.
func (p *pager) page(batch []*chunk, size int, install func([]moved)) bool {
	b := make([]byte, 0, size)
	for _, c := range batch {
		c.guarded(func() { b = append(b, c.packed...) })
	}
	page, err := p.pages.Write(b)
	if err != nil {
		return false
	}
	all, at := make([]moved, len(batch)), 0
	for i, c := range batch {
		to := at + len(c.packed)
		all[i] = moved{chunk: c, packed: page.Part(at, to), page: page, sum: store.PageSum(b[at:to])}
		at = to
	}
	install(all)
	return true
}

// move puts chunks in place that were moved, unless they are others by now. What a chunk says stays the same, so its epoch
// and its serial do, too.
func (m *messages) move(all []moved) {
	for _, to := range all {
		where, ok := m.find(to.chunk.index)
		if !ok {
			continue
		}
		now := m.chunks[where]
		if len(now.packed) != len(to.packed) || &now.packed[0] != &to.chunk.packed[0] {
			continue
		}
		c := *now
		c.packed, c.page, c.sum = to.packed, to.page, to.sum
		m.index += c.weight() - now.weight()
		m.chunks[where], m.viewed = &c, nil
	}
}

// guarded calls read, which looks at the packed bytes. Bytes of a page that are damaged end the process.
func (c *chunk) guarded(read func()) {
	if c.page == nil {
		read()
	} else {
		c.page.Guard(c.packed, c.sum, read)
	}
}

// pageOut moves what the queues of a snapshot have packed by now.
func (p *pager) pageOut(views []queueView, hold func(uint64, func(*messages))) {
	if p == nil {
		return
	}
	for i := range views {
		v := &views[i]
		if v.count > p.after || slices.ContainsFunc(v.chunks, func(c *chunk) bool { return c.page != nil }) {
			p.pageOutQueue(v.number, hold)
		}
	}
}

// pageOften is how many chunks a collection changes before they are moved to pages: some pages' worth.
const pageOften = 8192

// concerns reports whether so many messages of a queue are to be in pages in part.
func (p *pager) concerns(messages int) bool { return p != nil && uint64(messages) > p.after }

// pageOutQueue moves what a queue has packed by now.
func (p *pager) pageOutQueue(number uint64, hold func(uint64, func(*messages))) {
	var v messagesView
	hold(number, func(q *messages) { v = q.view() })
	live := make(map[*store.Page]int)
	for _, c := range v.chunks {
		if c.page != nil {
			live[c.page] += len(c.packed)
		}
	}
	sparse := make(map[*store.Page]bool)
	for page, n := range live {
		sparse[page] = 2*n < page.Len()
	}
	p.out(v.chunks, 0, sparse, func(all []moved) {
		if len(all) > 0 {
			hold(number, func(q *messages) { q.move(all) })
		}
	})
}

// pagesTogether is how many pages' worth of a queue's index are on the heap before a restore writes them.
const pagesTogether = 16

// paging moves the index of a queue that is being restored to pages as it grows, so that it is never on the heap as a whole.
type paging struct {
	pager *pager // may be nil
	at    uint64 // the index's bytes on the heap when it was done last
}

// grown does it when there is enough.
func (p *paging) grown(m *messages) {
	if p.pager != nil && m.count > p.pager.after && m.index >= p.at+uint64(pagesTogether*p.pager.bytes) {
		p.whole(m)
	}
}

// whole does it for what there is.
func (p *paging) whole(m *messages) {
	if p.pager != nil && m.count > p.pager.after {
		p.pager.out(m.chunks, 0, nil, m.move)
		p.at = m.index
	}
}
