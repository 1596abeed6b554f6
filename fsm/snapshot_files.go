package fsm

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/warrenmq/warren/fsm/store"
)

// Bounds of message files, unless Options say otherwise.
const (
	// defaultCollectRecords: a queue whose files hold more records than this, fewer than half of them live, is collected.
	defaultCollectRecords = 2000
	// defaultCollectBytes: so is a file larger than this that is more than half dead.
	defaultCollectBytes = 64 << 20
	// rollBytes is where a queue's next file begins: small enough that a queue consumed in order drops whole files
	// and never copies. On a disk that fills up files become smaller, down to leastRoll, so that there is room to copy one.
	rollBytes = 64 << 20
	leastRoll = 1 << 20
	roomParts = 8 // a file takes at most that part of the room
	// writeTogether is how many queues' files are open, and synced at the same time, while a snapshot writes.
	writeTogether = 64
	syncTogether  = 16
	// smallSync is the most that is synced beside others: a few large syncs at once would take all processors from
	// whoever applies, for the runtime is slow to see that a thread waits for the disk.
	smallSync = 256 << 10
	// smallFiles is how many files below smallFile bytes a queue may have before they are put together: every
	// start of a process begins new ones.
	smallFiles = 32
	smallFile  = 1 << 20
)

// queueView is a queue's messages at a snapshot's index.
type queueView struct {
	number uint64
	messagesView
}

// messageFiles is which files hold which queue's messages, and the one writer of all of them (rule 16).
type messageFiles struct {
	dir            *store.Dir
	pager          *pager // may be nil
	collectRecords uint64
	collectBytes   int64
	rollBytes      int64
	room           func() (int64, bool)
	more           atomic.Bool // the last snapshot had no room for all copies that were worth it

	damages damages

	mu     sync.Mutex // held while a snapshot writes; guards queues
	queues map[uint64]*queueFiles
}

// queueFiles is a queue's message files.
type queueFiles struct {
	next    uint32                // the number of the next file
	files   map[uint32]store.File // finished and synced; Live and Valid are as of the last snapshot
	open    uint32                // the one that the next snapshot goes on with; 0 for a new one
	version uint64                // of the messages that manifest describes
	known   bool                  // manifest is there
	entry   store.Queue
	spans   map[uint64]span // of the last view's chunks, by serial
}

func newMessageFiles(dir *store.Dir, o Options) *messageFiles {
	f := &messageFiles{dir: dir, queues: make(map[uint64]*queueFiles),
		collectRecords: uint64(o.CollectRecords), collectBytes: o.CollectBytes, rollBytes: rollBytes, room: o.Room}
	if o.CollectRecords <= 0 {
		f.collectRecords = defaultCollectRecords
	}
	if o.CollectBytes <= 0 {
		f.collectBytes = defaultCollectBytes
	}
	if f.room == nil {
		f.room = func() (int64, bool) { return math.MaxInt64, false }
	}
	return f
}

// of returns a queue's files.
func (f *messageFiles) of(number uint64) *queueFiles {
	q := f.queues[number]
	if q == nil {
		q = &queueFiles{next: 1, files: make(map[uint32]store.File)}
		f.queues[number] = q
	}
	return q
}

// job is one queue on its way into a snapshot.
type job struct {
	view   *queueView
	queue  *queueFiles
	writer *store.Writer // of the file that is not finished; nil without one
	made   []uint32      // files that were begun for this job
	places []place       // of the messages that were in no file, in their order
}

// write puts the live messages of the views that are in no file yet into their queues' files, collects what has
// become mostly dead, and returns the views' manifest entries. Nothing that was acknowledged before the views were
// taken is written. hold runs a function on a queue's present messages under the machine's lock, or not at all when
// the queue is gone; keep says whether written contents stay in memory.
func (f *messageFiles) write(views []queueView, keep bool, hold func(uint64, func(*messages)), damaged func(*store.Damage)) ([]store.Queue, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forgetOthers(views)
	f.more.Store(false)
	entries := make([]store.Queue, len(views))
	shared := sharedContents(views, keep)
	for start := 0; start < len(views); {
		var jobs []*job
		var at []int
		for ; start < len(views) && len(jobs) < writeTogether; start++ {
			v := &views[start]
			q := f.of(v.number)
			if q.known && q.version == v.version {
				entries[start] = q.entry
				continue
			}
			jobs, at = append(jobs, &job{view: v, queue: q}), append(at, start)
		}
		if err := f.append(jobs); err != nil {
			return nil, err
		}
		for i, j := range jobs {
			j.install(keep, shared, hold)
			if err := f.describe(j, hold, damaged); err != nil {
				return nil, err
			}
			entries[at[i]] = j.queue.entry
		}
	}
	return entries, nil
}

// forgetOthers drops the files of queues that are gone.
func (f *messageFiles) forgetOthers(views []queueView) {
	for number, q := range f.queues {
		_, found := slices.BinarySearchFunc(views, number, func(v queueView, n uint64) int { return cmp.Compare(v.number, n) })
		if found {
			continue
		}
		for file := range q.files {
			f.dir.Remove(number, file)
		}
		delete(f.queues, number)
	}
}

// append writes and syncs the unwritten messages of a few queues. After an error none of the files touched is
// written again.
func (f *messageFiles) append(jobs []*job) (err error) {
	defer func() {
		if err == nil {
			return
		}
		for _, j := range jobs {
			j.queue.open = 0
			for _, made := range j.made { // no message points to it yet
				if _, whole := j.queue.files[made]; whole {
					f.drop(j.view.number, j.queue, made)
				}
			}
		}
	}()
	for _, j := range jobs {
		if err := f.appendQueue(j); err != nil {
			for _, j := range jobs {
				if j.writer != nil {
					j.writer.Abandon()
				}
			}
			return err
		}
	}
	return finish(jobs)
}

// appendQueue writes the unwritten messages of a queue. The last file is left to finish.
//
// Here and wherever else a snapshot is busy for long it steps back between two chunks: the runtime takes a processor away
// after 10 to 20 ms only, and with few of them whoever applies would wait that long each time.
func (f *messageFiles) appendQueue(j *job) error {
	roll, rolled := f.roll(), false
	for _, c := range j.view.chunks {
		if c.unwritten == 0 {
			continue
		}
		runtime.Gosched()
		for i := range c.slots {
			s := &c.slots[i]
			if !c.keeps(i) || s.file != 0 {
				continue
			}
			if w := j.writer; w != nil && w.Length() >= roll {
				j.writer, rolled = nil, true
				if err := j.queue.close(w); err != nil {
					return err
				}
			}
			if j.writer == nil {
				w, err := f.writer(j, !rolled, roll)
				if err != nil {
					return err
				}
				j.writer = w.Gentle()
			}
			e, err := j.writer.Append(c.record(i))
			if err != nil {
				return err
			}
			j.places = append(j.places, place{sequence: e.Sequence, offset: e.Offset, length: e.Length, file: j.writer.Number()})
		}
	}
	return nil
}

// roll returns how long a file may become before the next one begins.
func (f *messageFiles) roll() int64 {
	room, _ := f.room()
	return min(f.rollBytes, max(room/roomParts, leastRoll))
}

// writer goes on with a queue's open file, if it may, or creates one.
func (f *messageFiles) writer(j *job, mayContinue bool, roll int64) (*store.Writer, error) {
	q := j.queue
	if file, ok := q.files[q.open]; ok && mayContinue && file.Length < roll {
		return f.dir.Continue(j.view.number, file)
	}
	w, err := f.create(j.view.number, q)
	if err == nil {
		j.made = append(j.made, w.Number())
	}
	return w, err
}

func (f *messageFiles) create(number uint64, q *queueFiles) (*store.Writer, error) {
	for {
		n := q.next
		q.next++
		w, err := f.dir.Create(number, n)
		if !errors.Is(err, fs.ErrExist) {
			return w, err
		}
	}
}

// finish syncs the writers of all jobs, small ones several at a time, and enters the files.
func finish(jobs []*job) error {
	errs := make([]error, len(jobs))
	files := make([]store.File, len(jobs))
	turn := make(chan struct{}, syncTogether)
	var wait sync.WaitGroup
	for i, j := range jobs {
		if j.writer == nil {
			continue
		}
		if j.writer.Unsynced() > smallSync {
			files[i], errs[i] = j.writer.Finish()
			continue
		}
		turn <- struct{}{}
		wait.Go(func() {
			files[i], errs[i] = j.writer.Finish()
			<-turn
		})
	}
	wait.Wait()
	for i, j := range jobs {
		if j.writer != nil && errs[i] == nil {
			j.queue.files[files[i].Number], j.queue.open = files[i], files[i].Number
		}
	}
	return errors.Join(errs...)
}

// record is the message at a position, whose content is in memory, as a file keeps it.
func (c *chunk) record(position int) *store.Record {
	of := c.slots[position].content
	return &store.Record{Sequence: c.first() + uint64(position), Hash: of.hash, ID: of.id, Transient: of.transient, Deaths: of.deaths, Priority: levelCode(c.slots[position].state),
		Expires: c.expiresAt(position), Exchange: of.exchange, RoutingKey: of.routingKey, Properties: of.properties, Body: of.body}
}

// describe makes a queue's manifest entry, after collecting what is worth it.
func (f *messageFiles) describe(j *job, hold func(uint64, func(*messages)), damaged func(*store.Damage)) error {
	q, v := j.queue, j.view
	q.known = false
	entry, files, spans := entryOf(v, j.places, q.spans)
	q.spans = spans
	for number := range files {
		file, ok := q.files[number]
		if !ok {
			return fmt.Errorf("queue %d: messages are in file %d, which is not one of its files", v.number, number)
		}
		live := files[number]
		file.Live, file.Valid = live.Live, live.Valid
		files[number] = file
		q.files[number] = file
	}
	for number := range q.files {
		if _, ok := files[number]; !ok { // nothing in it is live
			f.drop(v.number, q, number)
		}
	}
	more, err := f.collect(v.number, q, hold, damaged)
	if err != nil {
		return err
	}
	if more {
		f.more.Store(true)
	}
	for _, file := range q.files {
		entry.Files = append(entry.Files, file)
	}
	sortFiles(entry.Files)
	entry.NextFile = q.next
	q.entry, q.version, q.known = entry, v.version, !more
	return nil
}

func (f *messageFiles) drop(number uint64, q *queueFiles, file uint32) {
	delete(q.files, file)
	if q.open == file {
		q.open = 0
	}
	f.dir.Remove(number, file)
}
