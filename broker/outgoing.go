package broker

import (
	"net"
	"sync"
	"time"
)

// Bounds of an Outgoing, in bytes.
const (
	outgoingHigh  = 1 << 20 // consumers wait above it
	outgoingMax   = 8 << 20 // the connection's reader waits above it
	outgoingSpare = 1 << 20 // a larger buffer is not kept for reuse
	writeChunk    = 1 << 20 // of it the client must take within writeTimeout
)

// writeTimeout is how long a client may need for a chunk before the connection is given up.
const writeTimeout = 30 * time.Second

// Outgoing is what waits to be written to a connection. Anyone appends; one goroutine, Run, writes all there is in as
// few calls as the moment allows, without waiting for more. Safe for concurrent use.
type Outgoing struct {
	conn      net.Conn
	drained   func()        // called by Run, without locks, when Writable becomes true again
	idle      time.Duration // of nothing to write before heartbeat is called
	heartbeat func()

	mu      sync.Mutex
	buf     []byte
	pending []Pending // to be asked before buf is written
	spare   []byte
	writing int // bytes in the call under way
	held    bool
	closed  bool
	signal  chan struct{} // capacity 1
	room    chan struct{} // closed and replaced when bytes were written
}

// NewOutgoing returns an empty buffer in front of a connection.
func NewOutgoing(conn net.Conn, drained func()) *Outgoing {
	return &Outgoing{conn: conn, drained: drained, signal: make(chan struct{}, 1), room: make(chan struct{})}
}

// Append lets add append to the buffer. It does not block; what comes after Close is dropped.
func (o *Outgoing) Append(add func(b []byte) []byte) {
	o.mu.Lock()
	if !o.closed {
		o.buf = add(o.buf)
	}
	o.mu.Unlock()
	o.wake()
}

// Pending adds frames at the last moment, so that what comes together in the meantime goes out together: the confirms
// of a channel, say.
type Pending interface {
	// AppendPending appends to b and returns it. It is called with the Outgoing's lock held: it must not block, nor
	// call the Outgoing, and a lock that it takes must not be held by anybody who calls the Outgoing.
	AppendPending(b []byte) []byte
}

// Pend has p.AppendPending called once, when the writer next takes the buffer, at once if it is idle, or by
// AppendBehind. Its frames come behind what was appended up to then. It does not block and, after Close, does nothing.
// Whoever pends again before it was called is called again: p remembers whether it is pending, so that nothing grows.
func (o *Outgoing) Pend(p Pending) {
	o.mu.Lock()
	if !o.closed {
		o.pending = append(o.pending, p)
	}
	o.mu.Unlock()
	o.wake()
}

// AppendBehind is Append behind all that is pending: for what must not overtake it, as the close of a channel must
// not overtake its confirms.
func (o *Outgoing) AppendBehind(add func(b []byte) []byte) {
	o.mu.Lock()
	if !o.closed {
		o.collect()
		o.buf = add(o.buf)
	}
	o.mu.Unlock()
	o.wake()
}

// collect appends what is pending. The caller holds mu.
func (o *Outgoing) collect() {
	for i, p := range o.pending {
		o.buf = p.AppendPending(o.buf)
		o.pending[i] = nil
	}
	o.pending = o.pending[:0]
}

func (o *Outgoing) wake() {
	select {
	case o.signal <- struct{}{}:
	default:
	}
}

// Writable reports whether consumers may be given more.
func (o *Outgoing) Writable() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || len(o.buf)+o.writing >= outgoingHigh {
		o.held = true
		return false
	}
	return true
}

// Full reports whether far too much waits to be written: nothing more may be added that need not be.
func (o *Outgoing) Full() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closed || len(o.buf)+o.writing >= outgoingMax
}

// WaitForRoom blocks while far too much waits to be written: the client must read before it may ask for more.
func (o *Outgoing) WaitForRoom(done <-chan struct{}) {
	for {
		o.mu.Lock()
		full, room := !o.closed && len(o.buf)+o.writing >= outgoingMax, o.room
		o.mu.Unlock()
		if !full {
			return
		}
		select {
		case <-room:
		case <-done:
			return
		}
	}
}

// Beat has heartbeat called whenever nothing was written for idle. Zero stops it.
func (o *Outgoing) Beat(idle time.Duration, heartbeat func()) {
	o.mu.Lock()
	o.idle, o.heartbeat = idle, heartbeat
	o.mu.Unlock()
	o.wake()
}

// Run writes until Close has been called and everything is written, or a write fails.
func (o *Outgoing) Run() error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		o.mu.Lock()
		o.collect()
		b, closed, idle, heartbeat := o.buf, o.closed, o.idle, o.heartbeat
		o.buf, o.spare, o.writing = o.spare[:0], nil, len(b)
		o.mu.Unlock()
		if len(b) == 0 {
			o.mu.Lock()
			o.spare = b
			o.mu.Unlock()
			if closed {
				return nil
			}
			if idle > 0 {
				timer.Reset(idle)
			}
			select {
			case <-o.signal:
			case <-timer.C:
				if idle > 0 && heartbeat != nil {
					heartbeat()
				}
			}
			continue
		}
		err := o.write(b)
		o.wrote(b, err)
		if err != nil {
			return err
		}
	}
}

// write writes all of b. A slow client may take as long as it likes, as long as it takes a chunk in time.
func (o *Outgoing) write(b []byte) error {
	for len(b) > 0 {
		_ = o.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
		n, err := o.conn.Write(b[:min(len(b), writeChunk)])
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

func (o *Outgoing) wrote(b []byte, err error) {
	o.mu.Lock()
	o.writing = 0
	if cap(b) <= outgoingSpare {
		o.spare = b[:0]
	}
	if err != nil {
		o.closed, o.buf, o.pending = true, nil, nil
	}
	drained := o.held && len(o.buf) < outgoingHigh
	if drained {
		o.held = false
	}
	close(o.room)
	o.room = make(chan struct{})
	o.mu.Unlock()
	if drained && o.drained != nil {
		o.drained()
	}
}

// Close lets Run end once everything appended so far is written.
func (o *Outgoing) Close() {
	o.mu.Lock()
	o.closed = true
	close(o.room)
	o.room = make(chan struct{})
	o.mu.Unlock()
	o.wake()
}
