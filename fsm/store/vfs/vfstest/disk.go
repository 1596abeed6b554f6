package vfstest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"

	"github.com/warrenmq/warren/fsm/store/vfs"
)

// Disk is one machine's disk, in memory, for one run: calls of its processes are recorded, and one of them may be picked
// out. Safe for concurrent use. It uses no clock and may be used inside a synctest bubble.
type Disk struct {
	Mem *vfs.Mem
	// EndHung ends the process at the call that hangs, as a watchdog does in the end. It is set before the run.
	EndHung bool

	plain func(string) string // how names are recorded; nil leaves them as they are
	call  Call
	kind  Kind
	armed bool

	power sync.RWMutex // held for reading during each call; guards boot
	boot  *boot        // the process that runs; nil while none does

	mu    sync.Mutex // guards everything below
	trace []Call
	seen  map[Call]int // by operation and name
	hit   bool
}

// boot is one process's time.
type boot struct {
	down   chan struct{} // closed when the power has gone at the call that was picked out
	killed chan struct{} // closed by Kill
}

// NewDisk returns an empty disk. plain, if it is not nil, takes out of a file's name what differs between runs.
func NewDisk(plain func(string) string) *Disk {
	return &Disk{Mem: vfs.NewMem(), plain: plain, seen: map[Call]int{}}
}

// Pick picks out a call of the run. It is called before the run.
func (d *Disk) Pick(c Call, k Kind) { d.call, d.kind, d.armed = c, k, true }

// Hit reports whether the call that was picked out has been made.
func (d *Disk) Hit() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.hit
}

// Calls returns the calls so far.
func (d *Disk) Calls() []Call {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.trace
}

// Start begins a process. down is closed if the power goes; then, and after Kill, none of its calls does anything.
func (d *Disk) Start() (files vfs.FS, down <-chan struct{}) {
	b := &boot{down: make(chan struct{}), killed: make(chan struct{})}
	d.power.Lock()
	d.boot = b
	d.power.Unlock()
	return vfs.Hook(d.Mem, func(op vfs.Op, name string, size int, call func(int) error) error {
		return d.around(b, op, name, size, call)
	}), b.down
}

// Kill ends the process: what it has written stays, what it still does is lost, calls that hang return.
func (d *Disk) Kill() {
	d.power.Lock()
	defer d.power.Unlock()
	if d.boot != nil {
		close(d.boot.killed)
		d.boot = nil
	}
}

// Down reports whether no process runs: it was killed, or the power has gone.
func (d *Disk) Down() bool {
	d.power.RLock()
	defer d.power.RUnlock()
	return d.boot == nil
}

// Cut is a loss of power after the process has ended: what it had not synced is gone.
func (d *Disk) Cut() {
	d.Kill()
	d.Mem.Crash(nil)
}

func (d *Disk) around(b *boot, op vfs.Op, name string, size int, call func(int) error) error {
	picked := d.record(op, name)
	fail := func(err error) error { return &os.PathError{Op: string(op), Path: name, Err: err} }
	if picked && d.kind == Hangs {
		if d.EndHung {
			d.Kill()
		}
		<-b.killed
		return fail(syscall.EIO)
	}
	if picked && d.kind.Crash() {
		d.crash(b, op, size, call)
		return fail(syscall.EIO)
	}
	d.power.RLock()
	defer d.power.RUnlock()
	switch {
	case d.boot != b:
		return fail(syscall.EIO)
	case picked && d.kind == Short:
		if err := call(size / 2); err != nil {
			return err
		}
		return fail(syscall.ENOSPC)
	case picked:
		return fail(syscall.EIO)
	}
	return call(size)
}

// crash ends the process and takes the power away before, after or within a call.
func (d *Disk) crash(b *boot, op vfs.Op, size int, call func(int) error) {
	d.power.Lock()
	defer d.power.Unlock()
	if d.boot != b {
		return
	}
	var part *rand.Rand
	if d.kind == CrashTorn {
		part = rand.New(rand.NewPCG(uint64(d.call.Nth), uint64(len(d.call.Name))))
	}
	syncs := op == vfs.OpSync || op == vfs.OpSyncDir
	if d.kind == CrashAfter || d.kind == CrashTorn && !syncs {
		_ = call(size)
	}
	d.boot = nil
	d.Mem.Crash(part)
	close(b.killed)
	close(b.down)
}

// record counts a call and reports whether it is the one that was picked out.
func (d *Disk) record(op vfs.Op, name string) bool {
	if d.plain != nil {
		name = d.plain(name)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	c := Call{Op: op, Name: name}
	d.seen[c]++
	c.Nth = d.seen[c]
	d.trace = append(d.trace, c)
	if d.armed && c == d.call && !d.hit {
		d.hit = true
		return true
	}
	return false
}

// Fault is a call and what happens at it.
type Fault struct {
	Call Call
	Kind Kind
}

func (f Fault) String() string { return fmt.Sprintf("%v %v", f.Call, f.Kind) }

// Faults returns everything that can happen in a run with these calls.
func Faults(calls []Call) (all []Fault) {
	for _, c := range calls {
		for _, k := range c.Kinds() {
			all = append(all, Fault{c, k})
		}
	}
	return all
}
