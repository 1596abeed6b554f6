package fsm

import (
	"cmp"
	"runtime"
	"slices"

	"github.com/warrenmq/warren/fsm/store"
)

// span says where the messages of a chunk are when they are in a single run of one file and nothing became of them:
// nearly all chunks of a backlog. A chunk never changes once it has been in a view, so a span holds for as long as the
// chunk is in the next ones, and describing a queue costs what changed and not its messages.
type span struct {
	file     uint32
	messages uint32
	extent   store.Extent
}

// chunksTogether is how many chunks are described before others have a turn.
const chunksTogether = 64

// entryOf describes a view; places are those of the messages that it knows in no file, in order, and known are spans of
// earlier views by the serials of their chunks, which may be nil. The files have Live, Valid and, as far as live records show it, Length. The spans of
// this view are returned.
func entryOf(v *queueView, places []place, known map[uint64]span) (store.Queue, map[uint32]store.File, map[uint64]span) {
	d := description{entry: store.Queue{Number: v.number, Last: v.last, Count: v.count, Bytes: v.bytes, Sum: v.sum},
		files: make(map[uint32]*store.File), sorted: true, places: places}
	spans := make(map[uint64]span, len(known))
	for i, c := range v.chunks {
		if i%chunksTogether == chunksTogether-1 {
			runtime.Gosched()
		}
		s, ok := known[c.serial]
		if ok {
			d.add(s)
		} else {
			s, ok = d.chunk(c)
		}
		if ok {
			spans[c.serial] = s
		}
	}
	described := make(map[uint32]store.File, len(d.files))
	for number, file := range d.files {
		if !d.sorted {
			file.Live = merged(file.Live)
		}
		file.Records, file.Length = file.Valid, file.Live[len(file.Live)-1].To
		described[number] = *file
	}
	return d.entry, described, spans
}

// description is a manifest entry that is being made.
type description struct {
	entry  store.Queue
	files  map[uint32]*store.File
	file   *store.File // the last one added to
	sorted bool        // the extents of each file
	places []place     // not used yet
}

// chunk adds a chunk message by message. ok says that it has a span that holds later on, too.
func (d *description) chunk(c *chunk) (whole span, ok bool) {
	ok = true
	var open opened
	slots, kept := open.slots(c), c.kept()
	for i := kept.from(0); i >= 0; i = kept.from(i + 1) {
		s := &slots[i]
		at := span{file: s.file, messages: 1, extent: store.Extent{From: int64(s.offset), To: int64(s.offset) + int64(s.length)}}
		if s.file == 0 {
			p := d.places[0]
			d.places = d.places[1:]
			at.file, at.extent = p.file, store.Extent{From: p.offset, To: p.offset + int64(p.length)}
			ok = false
		}
		d.add(at)
		if s.changed() {
			d.entry.Changes = append(d.entry.Changes, store.Change{Sequence: c.first() + uint64(i), State: s.state &^ slotFixed, Time: c.notBefore(i)})
			ok = false
		}
		switch {
		case whole.messages == 0:
			whole = at
		case whole.file == at.file && whole.extent.To == at.extent.From:
			whole.extent.To = at.extent.To
			whole.messages++
		default:
			ok = false
		}
	}
	return whole, ok && whole.messages > 0
}

func (d *description) add(s span) {
	if d.file == nil || d.file.Number != s.file {
		if d.file = d.files[s.file]; d.file == nil {
			d.file = &store.File{Number: s.file}
			d.files[s.file] = d.file
		}
	}
	f := d.file
	f.Valid += uint64(s.messages)
	n := len(f.Live)
	if n > 0 && f.Live[n-1].To == s.extent.From {
		f.Live[n-1].To = s.extent.To
		return
	}
	d.sorted = d.sorted && (n == 0 || f.Live[n-1].To < s.extent.From)
	f.Live = append(f.Live, s.extent)
}

func sortFiles(files []store.File) {
	slices.SortFunc(files, func(a, b store.File) int { return cmp.Compare(a.Number, b.Number) })
}

// merged sorts extents and joins those that touch: records that a collection copied are not in the order of their
// sequences.
func merged(e []store.Extent) []store.Extent {
	slices.SortFunc(e, func(a, b store.Extent) int { return cmp.Compare(a.From, b.From) })
	out := e[:1]
	for _, x := range e[1:] {
		if last := &out[len(out)-1]; last.To == x.From {
			last.To = x.To
		} else {
			out = append(out, x)
		}
	}
	return out
}
