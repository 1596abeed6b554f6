package fsm

import (
	"cmp"
	"errors"
	"slices"
	"syscall"

	"github.com/warrenmq/warren/fsm/store"
)

// worthCollecting returns the files whose live records should be copied out, as far as there is room for the copies:
// when the queue holds much and less than half of it is live, those that are mostly dead; large files that are mostly
// dead, or, on a disk that is nearly full, all but small ones; small ones when there are too many (rule 16). more says
// that there was no room for all of them.
func (f *messageFiles) worthCollecting(q *queueFiles) (numbers []uint32, more bool) {
	room, short := f.room()
	large := f.collectBytes
	if short {
		large = min(large, smallFile)
	}
	candidates := make([]candidate, 0, len(q.files))
	var all candidate
	small := 0
	for number, file := range q.files {
		c := candidate{number, file.Records, file.Valid, file.Length, file.LiveBytes(), file.DeadBytes()}
		candidates = append(candidates, c)
		all.records, all.valid, all.length = all.records+c.records, all.valid+c.valid, all.length+c.length
		all.live, all.dead = all.live+c.live, all.dead+c.dead
		if c.length < smallFile {
			small++
		}
	}
	sparse := all.records > f.collectRecords && all.valid*2 < all.records || all.length > f.collectBytes && all.dead > all.live
	candidates = slices.DeleteFunc(candidates, func(c candidate) bool {
		return (!sparse || c.dead <= c.live && c.valid*2 >= c.records) && (c.length <= large || c.dead <= c.live) &&
			(small <= smallFiles || c.length >= smallFile)
	})
	numbers = fitting(room, candidates)
	return numbers, len(numbers) < len(candidates)
}

// candidate is a file that may be worth collecting.
type candidate struct {
	number             uint32
	records, valid     uint64
	length, live, dead int64
}

// fitting returns the numbers of those whose copies have room, those first that take least, in ascending order.
func fitting(room int64, candidates []candidate) (numbers []uint32) {
	slices.SortFunc(candidates, func(a, b candidate) int { return cmp.Or(cmp.Compare(a.live, b.live), cmp.Compare(a.number, b.number)) })
	for _, c := range candidates {
		if room -= c.live; room < 0 {
			break
		}
		numbers = append(numbers, c.number)
	}
	slices.Sort(numbers)
	return numbers
}

// collect copies what is worth it, as far as the disk has room for that; more says that a later snapshot should go on.
func (f *messageFiles) collect(number uint64, q *queueFiles, hold func(uint64, func(*messages)), damaged func(*store.Damage)) (more bool, err error) {
	old, more := f.worthCollecting(q)
	if len(old) == 0 {
		return more, nil
	}
	err = f.copyOut(number, q, old, hold, damaged)
	if errors.Is(err, syscall.ENOSPC) {
		return true, nil
	}
	return more, err
}

// copyOut copies the live records of files that are not worth keeping to a new file, syncs it and lets it take
// their place in memory and in the manifest to come. The old files lose their names here only after that; kept
// snapshots have names of their own. A crash at any point leaves the last manifest and its files as they were.
func (f *messageFiles) copyOut(number uint64, q *queueFiles, old []uint32, hold func(uint64, func(*messages)), damaged func(*store.Damage)) error {
	w, err := f.create(number, q)
	if err != nil {
		return err
	}
	w.Gentle()
	var moves []move
	var live []store.Extent
	copied := old[:0:0]
	for _, from := range old {
		var of []move
		err := f.dir.Records(number, q.files[from], func(frame []byte, r *store.Record, _ int64) error {
			e, err := w.AppendFrame(frame, r)
			of = append(of, move{from: from, place: place{sequence: e.Sequence, offset: e.Offset, length: e.Length, file: w.Number()}})
			return err
		})
		var damage *store.Damage
		if errors.As(err, &damage) {
			damaged(damage) // the file stays; what was copied of it is dead in the new one
			continue
		} else if err != nil {
			w.Abandon()
			return err
		}
		copied = append(copied, from)
		moves = append(moves, of...)
		for _, m := range of {
			live = append(live, store.Extent{From: m.offset, To: m.offset + int64(m.length)})
		}
	}
	file, err := w.Finish()
	if err != nil {
		return err
	}
	if len(copied) == 0 {
		f.dir.Remove(number, file.Number)
		return nil
	}
	file.Live, file.Valid = merged(live), uint64(len(moves))
	n := 0
	for part := range slices.Chunk(moves, chunkSlots) {
		if n++; n%pageOften == 0 && f.pager.concerns(len(moves)) {
			f.pager.pageOutQueue(number, hold)
		}
		hold(number, func(m *messages) {
			at := part[0].sequence
			for i := range part {
				if (part[i].sequence-1)/chunkSlots != (at-1)/chunkSlots {
					m.packAt(at)
				}
				at = part[i].sequence
				m.written(part[i].place, part[i].from, nil)
			}
			m.packAt(at)
		})
	}
	for _, from := range copied {
		f.drop(number, q, from)
	}
	q.files[file.Number] = file
	return nil
}

// move is a record's new place and the file that it came from.
type move struct {
	from uint32
	place
}
