package fsm

import (
	"errors"
	"slices"

	"github.com/warrenmq/warren/fsm/store"
)

// worthCollecting returns the files whose live records should be copied out: when the queue holds many records and
// fewer than half are live, those that are mostly dead; large files that are mostly dead; small ones when there are
// too many (rule 16).
func (f *messageFiles) worthCollecting(q *queueFiles) []uint32 {
	var records, valid uint64
	for _, file := range q.files {
		records += file.Records
		valid += file.Valid
	}
	sparse := records > f.collectRecords && valid*2 < records
	small := 0
	for _, file := range q.files {
		if file.Length < smallFile {
			small++
		}
	}
	var numbers []uint32
	for number, file := range q.files {
		mostlyDead := file.Valid*2 < file.Records
		large := file.Length > f.collectBytes && file.LiveBytes()*2 < file.Length
		if sparse && mostlyDead || large || small > smallFiles && file.Length < smallFile {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	return numbers
}

// collect copies the live records of files that are not worth keeping to a new file, syncs it and lets it take
// their place in memory and in the manifest to come. The old files lose their names here only after that; kept
// snapshots have names of their own. A crash at any point leaves the last manifest and its files as they were.
func (f *messageFiles) collect(number uint64, q *queueFiles, hold func(uint64, func(*messages)), damaged func(*store.Damage)) error {
	old := f.worthCollecting(q)
	if len(old) == 0 {
		return nil
	}
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
	for part := range slices.Chunk(moves, chunkSlots) {
		hold(number, func(m *messages) {
			for i := range part {
				m.written(part[i].place, part[i].from, nil)
			}
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
