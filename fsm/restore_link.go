package fsm

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/warrenmq/warren/fsm/store"
)

// linkAll takes over the files of all queues, several queues at a time, the longest first.
func (r *restored) linkAll(source FileSource, queues []store.Queue) error {
	order := make([]*store.Queue, len(queues))
	for i := range queues {
		order[i] = &queues[i]
	}
	slices.SortStableFunc(order, func(a, b *store.Queue) int { return cmp.Compare(b.Count, a.Count) })
	var next atomic.Int64
	var working sync.WaitGroup
	errs := make([]error, runtime.GOMAXPROCS(0))
	for w := range errs {
		working.Go(func() {
			for at := next.Add(1) - 1; at < int64(len(order)); at = next.Add(1) - 1 {
				if err := r.link(source, order[at]); err != nil {
					errs[w] = fmt.Errorf("restore queue %d: %w", order[at].Number, err)
					next.Store(int64(len(order)))
					return
				}
			}
		})
	}
	working.Wait()
	slices.SortStableFunc(r.damaged, func(a, b *store.Damage) int { return cmp.Compare(a.Queue, b.Queue) })
	return errors.Join(errs...)
}

// link takes over a queue's files and makes its messages from their indexes.
func (r *restored) link(source FileSource, q *store.Queue) error {
	files, err := r.adopt(source, q)
	if err != nil {
		return err
	}
	b := r.rebuilt(q)
	err = r.indexes(q.Number, files, func(file uint32, entries []store.Entry) error {
		for i := range entries {
			if err := b.add(&entries[i], file, nil); err != nil {
				return err
			}
		}
		r.progress.add(entries)
		return nil
	})
	if err != nil {
		return err
	}
	return r.enter(b)
}

// adopt links a queue's files into the directory and returns those that are there.
func (r *restored) adopt(source FileSource, q *store.Queue) (there []store.File, err error) {
	r.mu.Lock()
	queue := r.files.of(q.Number)
	r.mu.Unlock()
	queue.next = q.NextFile
	for _, f := range q.Files {
		queue.next = max(queue.next, f.Number+1)
		if err := r.adoptFile(source, q.Number, f); r.note(err) {
			continue
		} else if err != nil {
			return nil, err
		}
		queue.files[f.Number] = f
		there = append(there, f)
	}
	return there, nil
}

func (r *restored) adoptFile(source FileSource, queue uint64, f store.File) error {
	name := store.FileName(queue, f.Number)
	from, ok := source.Referred(name)
	if !ok {
		return &store.Damage{File: name, Queue: queue, What: "the snapshot does not refer to the file"}
	}
	if err := r.files.dir.Adopt(queue, f.Number, from); errors.Is(err, fs.ErrNotExist) {
		return &store.Damage{File: from, Queue: queue, What: "the file is missing"}
	} else if err != nil { // no room, too many links
		return fmt.Errorf("link message file %s: %w", from, err)
	}
	return nil
}

// note remembers an error that is a damage, once, and reports whether it is one.
func (r *restored) note(err error) bool {
	var damage *store.Damage
	if !errors.As(err, &damage) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.ContainsFunc(r.damaged, func(d *store.Damage) bool { return d.File == damage.File }) {
		r.damaged = append(r.damaged, damage)
	}
	return true
}

// indexes calls yield with the index of each file in turn while it reads the next one's. What a damaged file held is
// lost: the file is none of the queue's any more.
func (r *restored) indexes(queue uint64, files []store.File, yield func(file uint32, entries []store.Entry) error) error {
	type index struct {
		entries []store.Entry
		err     error
	}
	read := func(f store.File) (i index) {
		i.entries, i.err = r.files.dir.ReadIndex(queue, f)
		return i
	}
	var ahead chan index
	var reading sync.WaitGroup
	defer reading.Wait()
	for at, f := range files {
		var i index
		if ahead == nil {
			i = read(f)
		} else {
			i = <-ahead
		}
		if ahead = nil; at+1 < len(files) {
			next := make(chan index, 1)
			ahead = next
			reading.Go(func() { next <- read(files[at+1]) })
		}
		if r.note(i.err) {
			r.mu.Lock()
			delete(r.files.of(queue).files, f.Number)
			r.mu.Unlock()
			continue
		}
		if i.err != nil {
			return i.err
		}
		if err := yield(f.Number, i.entries); err != nil {
			return err
		}
	}
	return nil
}
