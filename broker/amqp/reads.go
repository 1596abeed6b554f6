package amqp

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// afterStandstill is how long a read goes on once its time is over: what came in while the node itself stood still has
// not been read, though it was in time.
const afterStandstill = 100 * time.Millisecond

// deadlineReader bounds the reads of a socket and can be interrupted for good.
type deadlineReader struct {
	conn   net.Conn
	before func() // called ahead of each read: what has come in so far is all there is to do; may block

	mu          sync.Mutex
	until       time.Time     // of all reads together; guarded by mu
	timeout     time.Duration // of each read, 0: none; guarded by mu
	interrupted bool          // guarded by mu
}

var errInterrupted = errors.New("interrupted")

func (r *deadlineReader) Read(b []byte) (int, error) {
	r.before()
	if err := r.arm(); err != nil {
		return 0, err
	}
	n, err := r.conn.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) && r.again() {
		n, err = r.conn.Read(b)
	}
	if err != nil && err != io.EOF {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.interrupted {
			return n, errInterrupted
		}
	}
	return n, err
}

// again lets a read whose timeout passed look once more for what has come in.
func (r *deadlineReader) again() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.interrupted || !r.until.IsZero() || r.timeout == 0 {
		return false
	}
	return r.conn.SetReadDeadline(time.Now().Add(afterStandstill)) == nil
}

func (r *deadlineReader) arm() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.interrupted:
		return errInterrupted
	case !r.until.IsZero():
		return r.conn.SetReadDeadline(r.until)
	case r.timeout > 0:
		return r.conn.SetReadDeadline(time.Now().Add(r.timeout))
	}
	return nil
}

// within bounds all reads from now on by a time, or each read by a timeout; zero values lift the bounds.
func (r *deadlineReader) within(until time.Time, timeout time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.until, r.timeout = until, timeout
	if !r.interrupted {
		_ = r.conn.SetReadDeadline(until)
	}
}

// resume ends the effect of interrupt.
func (r *deadlineReader) resume() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.interrupted = false
}

// interrupt ends the read under way, and all to come until resume.
func (r *deadlineReader) interrupt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.interrupted = true
	_ = r.conn.SetReadDeadline(time.Unix(1, 0))
}
